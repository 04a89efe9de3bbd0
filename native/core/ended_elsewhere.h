#pragma once
// Ranges that ended on another thread than the one that opened them.
#include <array>
#include <atomic>
#include <cstdint>

namespace deepcontext {

/// The last ends that a thread could not match with a range of its own. The thread that opened the
/// range looks here at its next event. Any thread; no lock.
class EndedElsewhere {
public:
  struct End {
    const void *owner;
    uint64_t ticks;
  };
  static constexpr uint64_t kMost = 4096; // beyond, the oldest are forgotten

  static EndedElsewhere &instance() {
    static EndedElsewhere *const ends = new EndedElsewhere(); // outlives every thread
    return *ends;
  }

  /// How many ends were noted so far.
  static uint64_t count() { return count_.load(std::memory_order_relaxed); }
  void note(const void *owner, uint64_t now) {
    uint64_t number = count_.fetch_add(1, std::memory_order_relaxed);
    Slot &slot = slots_[number % kMost];
    slot.written.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    slot.owner.store(owner, std::memory_order_relaxed);
    slot.ticks.store(now, std::memory_order_relaxed);
    slot.written.store(number + 1, std::memory_order_release);
  }
  /// Read end number `number`: false while it is being written. `end->owner` is null when it has
  /// been forgotten.
  bool read(uint64_t number, End *end) const {
    const Slot &slot = slots_[number % kMost];
    uint64_t written = slot.written.load(std::memory_order_acquire);
    *end = {slot.owner.load(std::memory_order_relaxed), slot.ticks.load(std::memory_order_relaxed)};
    std::atomic_thread_fence(std::memory_order_acquire);
    if (written != number + 1 || slot.written.load(std::memory_order_relaxed) != written) {
      end->owner = nullptr;
      return count() - number > kMost;
    }
    return true;
  }

private:
  struct Slot {
    std::atomic<uint64_t> written{0}; // its number and 1
    std::atomic<const void *> owner{nullptr};
    std::atomic<uint64_t> ticks{0};
  };

  static inline std::atomic<uint64_t> count_{0};
  std::array<Slot, kMost> slots_{};
};

} // namespace deepcontext
