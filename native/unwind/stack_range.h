#pragma once
// The part of a stack that a walk may read.
#include <cstdint>

namespace deepcontext::unwind {

/// Not checked by AddressSanitizer, because other functions' frames contain red zones.
__attribute__((no_sanitize("address"))) inline uintptr_t readStack(uintptr_t address) {
  return *reinterpret_cast<const uintptr_t *>(address);
}

/// From the innermost frame to the end of the thread's stack, so that wrong tables cause no fault.
struct StackRange {
  uintptr_t low, high;

  bool isReadable(uintptr_t address) const {
    return address >= low && address <= high - sizeof(uintptr_t) && address % 8 == 0;
  }
  /// The value at an address; 0 where it must not be read.
  uintptr_t read(uintptr_t address) const {
    return __builtin_expect(isReadable(address), 1) ? readStack(address) : 0;
  }
};

} // namespace deepcontext::unwind
