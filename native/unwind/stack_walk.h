#pragma once
// Walks the native frames of the calling thread, innermost first.
#include <cstdint>
#include <vector>

#include "unwind/address_table.h"

namespace deepcontext::unwind {

/// Whether native stacks can be walked on this processor.
constexpr bool isSupported() {
#if defined(__x86_64__)
  return true;
#else
  return false;
#endif
}

/// What a walk starts from.
struct Registers {
  uintptr_t pc = 0, sp = 0, rbp = 0;

  /// Those of the calling function, as they are when this returns.
  static Registers ofCaller();
};

/// A native frame: its place on the stack is [sp, cfa).
struct NativeFrame {
  uintptr_t pc = 0, sp = 0, cfa = 0;
  const ReturnAddressCache::Slot *known = nullptr; // until the next look-up
};

enum class WalkEnd : uint8_t {
  kStopped,   // the visitor stopped the walk
  kOutermost, // the thread's first frame
  kNoRule,    // code without unwind information, generated at run time for example
  kBadStack,  // the next frame would not lie further out on this thread's stack
};

/// Not checked by AddressSanitizer, because other functions' frames contain red zones.
__attribute__((no_sanitize("address"))) inline uintptr_t readStack(uintptr_t address) {
  return *reinterpret_cast<const uintptr_t *>(address);
}

struct WalkResult {
  WalkEnd end = WalkEnd::kStopped;
  bool is_by_libgcc = false; // libgcc was asked, which is slow
};

/// The frames that libgcc finds from `from` on, innermost first; none if it has no rule for the
/// first.
std::vector<NativeFrame> askLibgcc(const Registers &from, uintptr_t stack_high);

template <typename Visit>
WalkResult walkByLibgcc(ReturnAddressCache &addresses, const Registers &from, uintptr_t stack_high,
                        Visit &visit);

/// Visit the native frames from `at` on, innermost first, until `visit(frame)` says false.
///
/// `stack_high` is the end of the stack that `at.sp` lies on. Reads only that stack, so that wrong
/// tables cause no fault.
template <typename Visit>
WalkResult walkStack(ReturnAddressCache &addresses, Registers at, uintptr_t stack_high,
                     Visit visit) {
  const uintptr_t low = at.sp;
  auto is_readable = [&](uintptr_t address) {
    return address >= low && address <= stack_high - sizeof(uintptr_t) && address % 8 == 0;
  };
  while (at.pc != 0) {
    const ReturnAddressCache::Slot &known = addresses.lookup(at.pc);
    uintptr_t cfa = at.sp + known.cfa_offset;
    if (__builtin_expect(known.kind != RuleKind::kRsp, 0)) {
      if (known.kind == RuleKind::kRbp) {
        cfa = at.rbp + known.cfa_offset;
      } else if (known.kind == RuleKind::kOutermost) {
        bool goes_on = visit(NativeFrame{at.pc, at.sp, stack_high, &known});
        return {goes_on ? WalkEnd::kOutermost : WalkEnd::kStopped, false};
      } else if (known.kind == RuleKind::kUnknown) {
        return walkByLibgcc(addresses, at, stack_high, visit);
      } else {
        uintptr_t base = known.kind == RuleKind::kRspPointer ? at.sp : at.rbp;
        uintptr_t place = base + known.cfa_offset;
        cfa = is_readable(place) ? readStack(place) : 0;
      }
    }
    if (__builtin_expect(cfa <= at.sp || !is_readable(cfa - 8), 0)) {
      return {WalkEnd::kBadStack, false};
    }
    if (!visit(NativeFrame{at.pc, at.sp, cfa, &known})) {
      return {WalkEnd::kStopped, false};
    }
    if (known.rbp_offset != 0 || known.is_rbp_at_rbp) {
      uintptr_t saved = known.is_rbp_at_rbp ? at.rbp : cfa + known.rbp_offset;
      at.rbp = is_readable(saved) ? readStack(saved) : 0;
    }
    at.pc = readStack(cfa - 8);
    at.sp = cfa;
  }
  return {WalkEnd::kOutermost, false};
}

template <typename Visit>
__attribute__((noinline)) WalkResult walkByLibgcc(ReturnAddressCache &addresses,
                                                  const Registers &from, uintptr_t stack_high,
                                                  Visit &visit) {
  std::vector<NativeFrame> frames = askLibgcc(from, stack_high);
  for (NativeFrame &frame : frames) {
    frame.known = &addresses.lookup(frame.pc);
    if (!visit(frame)) {
      return {WalkEnd::kStopped, true};
    }
  }
  return {frames.empty() ? WalkEnd::kNoRule : WalkEnd::kOutermost, true};
}

} // namespace deepcontext::unwind
