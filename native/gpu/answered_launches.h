#pragma once
// Which launches left a record.
#include <cstdint>

#include "core/lazy_array.h"
#include "gpu/correlation.h"

namespace deepcontext::gpu {

/// A ring as large as the correlation table's: an id is remembered until an id with the same slot
/// comes. Used by the draining thread alone.
class AnsweredLaunches {
public:
  /// Note a record of the launch `id`. True for the launch's first record.
  bool note(uint32_t id) {
    uint16_t &last = rounds_[id & kMask];
    uint16_t round = static_cast<uint16_t>((id >> kSlotBits) + 1); // 0 stands for no launch
    bool is_first = last != round;
    last = round;
    return is_first;
  }
  void clear() {
    for (uint32_t i = 0; i <= kMask; ++i) {
      if (rounds_[i] != 0) {
        rounds_[i] = 0;
      }
    }
  }

private:
  static constexpr int kSlotBits = 20;
  static constexpr uint32_t kMask = CorrelationTable::kDefaultSlots - 1;
  static_assert(kMask == (1u << kSlotBits) - 1);
  LazyArray<uint16_t> rounds_{CorrelationTable::kDefaultSlots};
};

} // namespace deepcontext::gpu
