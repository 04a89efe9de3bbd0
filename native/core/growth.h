#pragma once
// How a quantity grows over the steps of a program.
#include <cstdint>

namespace deepcontext {

/// Values of a quantity at the ends of steps. Growth is counted from the end of a step whose number
/// is the largest power of two not above half of the steps so far, so that warming up is left out.
/// Not thread-safe.
class Growth {
public:
  /// Take the ends of all steps up to number `steps` into account; at each it was `value`.
  void pass(uint32_t steps, uint64_t value) {
    if (steps == steps_) {
      return;
    }
    uint32_t before = steps_;
    grown_ += value > last_; // at the first of these ends; the others equal it
    fallen_ += value < last_;
    last_ = value;
    steps_ = steps;
    uint32_t mark = lastPowerOfTwo(steps);
    if (mark <= before) {
      return;
    }
    base_ = mark / 2 > before ? Mark{last_, grown_, fallen_} : mark_;
    mark_ = {last_, grown_, fallen_};
  }

  uint32_t steps() const { return steps_; }
  bool isUp() const { return baseStep(steps_) > 0 && last_ > base_.value; }
  /// Increase since the step that growth is counted from; negative for a decrease.
  int64_t increase() const { return static_cast<int64_t>(last_ - base_.value); }
  /// Number of steps since then at whose end the value was higher than at the previous end.
  uint32_t grownSteps() const { return grown_ - base_.grown; }
  /// Whether the value was lower at the end of a step since then than at the end before.
  bool hasFallen() const { return fallen_ > base_.fallen; }

  /// The step that growth is counted from; 0 if there are too few steps.
  static uint32_t baseStep(uint32_t steps) { return steps < 2 ? 0 : lastPowerOfTwo(steps) / 2; }

private:
  struct Mark {
    uint64_t value = 0;
    uint32_t grown = 0;
    uint32_t fallen = 0;
  };
  static uint32_t lastPowerOfTwo(uint32_t steps) { return 1u << (31 - __builtin_clz(steps)); }

  uint64_t last_ = 0;
  Mark mark_; // at the last power of two
  Mark base_; // at the power of two before
  uint32_t steps_ = 0;
  uint32_t grown_ = 0;
  uint32_t fallen_ = 0;
};

} // namespace deepcontext
