#pragma once
// Walks native frames, innermost first: of the calling thread, or of a copy of a stack.
#include <cstdint>
#include <vector>

#include "unwind/address_table.h"
#include "unwind/processor.h"

namespace deepcontext::unwind {

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

/// Visit the native frames from `at` on, innermost first, until `visit(frame)` says false. Reads
/// only `stack`, the part of a stack from the innermost frame on, so that wrong tables cause no
/// fault.
template <typename Stack, typename Visit>
WalkResult walkStackPart(ReturnAddressCache &addresses, Registers at, const Stack &stack,
                         Visit visit) {
  while (at.pc != 0) {
    const ReturnAddressCache::Slot &known = addresses.lookup(at.pc);
    const FrameRule &rule = known.rule;
    uintptr_t cfa = at.sp + rule.cfa_offset;
    if (__builtin_expect(rule.kind != RuleKind::kStackPointer, 0)) {
      if (rule.kind == RuleKind::kOutermost) {
        bool goes_on = visit(NativeFrame{at.pc, at.sp, stack.high, &known});
        return {goes_on ? WalkEnd::kOutermost : WalkEnd::kStopped, false};
      }
      if (rule.kind == RuleKind::kUnknown) {
        if constexpr (Stack::kIsLive) {
          return walkByLibgcc(addresses, at, stack.high, visit);
        }
        return {WalkEnd::kNoRule, false};
      }
      cfa = Processor::cfaOf(rule, at, stack);
    }
    bool is_on_stack = cfa > at.sp && stack.isReadable(cfa - sizeof(uintptr_t)) &&
                       stack.isReadable(Processor::returnPlace(rule, cfa));
    if (__builtin_expect(!is_on_stack, 0)) {
      return {WalkEnd::kBadStack, false};
    }
    if (!visit(NativeFrame{at.pc, at.sp, cfa, &known})) {
      return {WalkEnd::kStopped, false};
    }
    Processor::goToCaller(rule, cfa, stack, &at);
  }
  return {WalkEnd::kOutermost, false};
}

/// Visit the native frames of the calling thread from `at` on; `stack_high` is the end of the stack
/// that `at.sp` lies on.
template <typename Visit>
WalkResult walkStack(ReturnAddressCache &addresses, const Registers &at, uintptr_t stack_high,
                     Visit visit) {
  return walkStackPart(addresses, at, StackRange{at.sp, stack_high}, visit);
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
