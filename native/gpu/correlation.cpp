#include "gpu/correlation.h"

namespace deepcontext::gpu {

void CorrelationTable::clear() {
  for (uint32_t i = 0; i <= mask_; ++i) {
    if (slots_[i].key.load(std::memory_order_relaxed) != 0) {
      slots_[i].key.store(0, std::memory_order_relaxed);
    }
  }
}

} // namespace deepcontext::gpu
