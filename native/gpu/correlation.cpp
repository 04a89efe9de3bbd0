#include "gpu/correlation.h"

#include <cstdlib>
#include <new>

namespace deepcontext::gpu {

void CorrelationTable::Release::operator()(Slot *slots) const {
  std::free(slots);
}

CorrelationTable::CorrelationTable(uint32_t slots) : mask_(slots - 1) {
  // calloc of this size maps fresh zero pages: memory is used only as far as ids have come.
  slots_.reset(static_cast<Slot *>(std::calloc(slots, sizeof(Slot))));
  if (!slots_) {
    throw std::bad_alloc();
  }
}

void CorrelationTable::clear() {
  for (uint32_t i = 0; i <= mask_; ++i) {
    if (slots_[i].key.load(std::memory_order_relaxed) != 0) {
      slots_[i].key.store(0, std::memory_order_relaxed);
    }
  }
}

} // namespace deepcontext::gpu
