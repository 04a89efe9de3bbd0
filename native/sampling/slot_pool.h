#pragma once
// The slots for samples that are in use.
#include <cstdint>
#include <vector>

#include "sampling/signal_handler.h"

namespace deepcontext {

/// Hands out slots by number and makes them as needed; they are never freed. Sampler's thread only;
/// `begin` while there is no such thread.
class SlotPool {
public:
  /// A session begins: no slot is in use.
  void begin() {
    free_.clear();
    for (uint32_t slot = 0; slot < made_; ++slot) {
      free_.push_back(slot);
    }
  }
  /// An idle slot; `SampleSlots::kMost` when all are in use.
  uint32_t take() {
    if (free_.empty()) {
      if (made_ == SampleSlots::kMost) {
        return SampleSlots::kMost;
      }
      SampleSlots::put(made_, new SampleSlot); // without writing its pages
      free_.push_back(made_++);
    }
    uint32_t slot = free_.back();
    free_.pop_back();
    SampleSlots::at(slot)->state.store(SampleSlot::kIdle, std::memory_order_relaxed);
    return slot;
  }
  void giveBack(uint32_t slot) { free_.push_back(slot); }

private:
  std::vector<uint32_t> free_;
  uint32_t made_ = 0;
};

} // namespace deepcontext
