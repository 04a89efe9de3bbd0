#pragma once
// The part of a stack that a walk may read, in place or in a copy.
#include <cstdint>
#include <cstring>

namespace deepcontext::unwind {

/// Not checked by AddressSanitizer, because other functions' frames contain red zones.
__attribute__((no_sanitize("address"))) inline uintptr_t readStack(uintptr_t address) {
  return *reinterpret_cast<const uintptr_t *>(address);
}

/// From the innermost frame to the end of the thread's stack, so that wrong tables cause no fault.
struct StackRange {
  static constexpr bool kIsLive = true; // of the calling thread, which libgcc can walk, too
  uintptr_t low, high;

  bool isReadable(uintptr_t address) const {
    return address >= low && address <= high - sizeof(uintptr_t) && address % 8 == 0;
  }
  /// The value at an address; 0 where it must not be read.
  uintptr_t read(uintptr_t address) const {
    return __builtin_expect(isReadable(address), 1) ? readStack(address) : 0;
  }
  /// The value at a readable address.
  static uintptr_t readKnown(uintptr_t address) { return readStack(address); }
};

/// A copy of the inner end of another thread's stack: addresses are those of the stack.
struct StackCopy {
  static constexpr bool kIsLive = false;
  uintptr_t low, high;
  const char *content; // of [low, high)

  bool isReadable(uintptr_t address) const {
    return address >= low && high - low >= sizeof(uintptr_t) &&
           address <= high - sizeof(uintptr_t) && address % 8 == 0;
  }
  uintptr_t read(uintptr_t address) const { return isReadable(address) ? readKnown(address) : 0; }
  uintptr_t readKnown(uintptr_t address) const {
    uintptr_t value;
    std::memcpy(&value, content + (address - low), sizeof value);
    return value;
  }
};

} // namespace deepcontext::unwind
