#pragma once
// The registers that a walk follows, and the instructions that read them.
#include <cstdint>

namespace deepcontext::unwind {

/// What a walk starts from.
struct Registers {
  uintptr_t pc = 0, sp = 0, frame_pointer = 0;

  /// Those of the function that this is inlined into, at this place.
  static Registers here();
};

/// The processors whose native stacks can be walked.
enum class ProcessorKind : uint8_t { kX86_64, kAarch64, kOther };

#if defined(__x86_64__)

constexpr ProcessorKind kThisProcessor = ProcessorKind::kX86_64;

// The frame pointer first: the compiler may choose its register for another result.
__attribute__((always_inline)) inline Registers Registers::here() {
  Registers at;
  asm volatile("mov %%rbp, %2\n\tmov %%rsp, %1\n\tlea 0(%%rip), %0"
               : "=&r"(at.pc), "=&r"(at.sp), "=&r"(at.frame_pointer));
  return at;
}

/// The return address itself: this processor signs none.
inline uintptr_t withoutSignature(uintptr_t address) {
  return address;
}

#elif defined(__aarch64__)

constexpr ProcessorKind kThisProcessor = ProcessorKind::kAarch64;

// Declares x30, the return address, to be overwritten, so that the function has saved it before.
__attribute__((always_inline)) inline Registers Registers::here() {
  Registers at;
  asm volatile("mov %2, x29\n\tmov %1, sp\n\tadr %0, 0f\n0:"
               : "=&r"(at.pc), "=&r"(at.sp), "=&r"(at.frame_pointer)
               :
               : "x30");
  return at;
}

/// A return address without its pointer authentication code. The instruction (xpaclri) knows the
/// size of the address space, and does nothing on a processor that signs no address.
inline uintptr_t withoutSignature(uintptr_t address) {
  register uintptr_t link asm("x30") = address;
  asm("hint #7" : "+r"(link));
  return link;
}

#else

constexpr ProcessorKind kThisProcessor = ProcessorKind::kOther;

inline Registers Registers::here() {
  return {};
}

inline uintptr_t withoutSignature(uintptr_t address) {
  return address;
}

#endif

/// Whether native stacks can be walked on this processor.
constexpr bool isSupported() {
  return kThisProcessor != ProcessorKind::kOther;
}

} // namespace deepcontext::unwind
