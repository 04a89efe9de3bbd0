#pragma once
// Whether calls compute what an earlier call at the same node computed, from a few elements of
// their inputs.
#include <atomic>
#include <cstdint>

#include "core/probe_table.h"

namespace deepcontext::torch {

/// Compares the inputs of costly operators on the host with those of earlier calls at their node.
///
/// Of each tensor at most 32 elements are read, spread evenly; they and the sizes make one number.
/// Only operators that read all elements themselves are looked at, so that the memory is there.
/// Nothing is said of a call with inputs whose elements hardly differ among each other (zeros,
/// padding, one-hot vectors), because two such inputs may have the same elements at these places.
/// Earlier calls are the last few thousand of all nodes, because a loop in a part that repeats its
/// work has other inputs in each pass.
class RepeatedInputs {
public:
  enum class Answer { kUnknown, kOther, kSame };

  /// Called while the operator begins, on its thread. `kUnknown` for the first call at a node, too.
  Answer compare(const void *node, const char *name, const void *record_function,
                 int inputs_offset);
  /// Nodes of an earlier session may be somewhere else. Any thread.
  void forget() { session_.fetch_add(1, std::memory_order_relaxed); }

private:
  struct Seen {
    uint64_t number = 0;

    bool isFree() const { return number == 0; }
    bool isOf(uint64_t other) const { return number == other; }
    uint64_t hash() const { return hashOf(number); }
    static uint64_t hashOf(uint64_t number) { return number >> 1; } // numbers are odd
  };
  static constexpr size_t kMost = 8192; // of each half of the memory, 16 bytes each

  /// Whether a number is known; from now on it is.
  bool know(uint64_t number);

  // One thread at a time: a late call of a window that is closed may meet the next window's.
  std::atomic_flag is_used_ = ATOMIC_FLAG_INIT;
  std::atomic<uint64_t> session_{0};
  uint64_t of_session_ = 0;
  ProbeTable<Seen> seen_[2] = {ProbeTable<Seen>(1024, 2 * kMost),
                               ProbeTable<Seen>(1024, 2 * kMost)};
  int newer_ = 0;
};

} // namespace deepcontext::torch
