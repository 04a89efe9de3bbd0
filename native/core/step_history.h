#pragma once
// How the durations of steps are distributed, and how they went over the run, in constant memory.
#include <array>
#include <cstddef>
#include <cstdint>

namespace deepcontext {

/// Durations in ticks. Not thread-safe.
///
/// Quantiles come from a sketch whose error is relative to the value, because slow steps are asked
/// for. Source: Masson, Rim, Lee (2019), "DDSketch".
class StepHistory {
public:
  static constexpr double kError = 0.01; // of a quantile, relative
  static constexpr size_t kBins = 2048;  // bin i: durations in (g^(i-1), g^i], see `growth`
  static constexpr size_t kParts = 128;
  static constexpr size_t kSlowest = 8;
  static constexpr size_t kRandom = 8;
  static constexpr size_t kMarked = 8;

  /// Consecutive steps.
  struct Part {
    uint64_t count = 0;
    uint64_t total = 0;
    uint64_t minimum = 0;
    uint64_t maximum = 0;
    void add(const Part &later);
  };
  struct Step {
    uint64_t number = 0; // from 1
    uint64_t end_ticks = 0;
    uint64_t duration = 0;
  };

  /// Add the step after all others. `is_marked`: the program has marked it. Returns whether it is
  /// one of those below.
  bool add(const Step &step, bool is_marked);

  /// The duration that half of the steps do not exceed, within `kError`; 0 without steps.
  uint64_t median() const;

  /// Ratio of the upper ends of two neighbouring bins.
  static constexpr double growth() { return (1 + kError) / (1 - kError); }
  const std::array<uint64_t, kBins> &bins() const { return bins_; }
  /// All but the last have the same number of steps, which doubles when there are too many.
  const std::array<Part, kParts> &parts() const { return parts_; }
  /// The slowest steps, in no order; duration 0: none.
  const std::array<Step, kSlowest> &slowest() const { return slowest_; }
  /// Steps of which each has been chosen with the same probability.
  const std::array<Step, kRandom> &random() const { return random_; }
  /// The last steps that the program has marked.
  const std::array<Step, kMarked> &marked() const { return marked_; }

private:
  std::array<uint64_t, kBins> bins_{};
  std::array<Part, kParts> parts_{};
  std::array<Step, kSlowest> slowest_{};
  std::array<Step, kRandom> random_{};
  std::array<Step, kMarked> marked_{};
  uint64_t count_ = 0;        // of steps
  uint64_t marked_count_ = 0; // of marked steps
  uint64_t draw_ = 0x9E3779B97F4A7C15u;
  uint64_t drawn(uint64_t below);

  size_t part_ = 0; // that the next step belongs to, unless it is full
  uint64_t part_steps_ = 1;
};

} // namespace deepcontext
