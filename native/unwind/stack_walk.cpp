#include "unwind/stack_walk.h"

#include <unwind.h>

namespace deepcontext::unwind {

namespace {

uintptr_t readStack(uintptr_t address) {
  return *reinterpret_cast<const uintptr_t *>(address);
}

struct LibgccWalk {
  uintptr_t after; // only frames further out than this
  std::vector<NativeFrame> *found;

  static _Unwind_Reason_Code onFrame(_Unwind_Context *context, void *user) {
    auto &walk = *static_cast<LibgccWalk *>(user);
    NativeFrame frame;
    frame.pc = _Unwind_GetIP(context);
    frame.sp = _Unwind_GetCFA(context); // of the frame inside this one: where this one's stack ends
    if (frame.sp >= walk.after) {
      walk.found->push_back(frame);
    }
    return walk.found->size() < kMostFrames ? _URC_NO_REASON : _URC_END_OF_STACK;
  }

  static constexpr size_t kMostFrames = 1024;
};

} // namespace

__attribute__((noinline)) Registers Registers::ofCaller() {
#if defined(__x86_64__)
  // Asking for it gives this function a frame pointer: rbp, return address, then the caller's
  // stack.
  auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return {readStack(frame + 8), frame + 16, readStack(frame)};
#else
  return {};
#endif
}

bool StackWalk::next(NativeFrame &frame) {
  if (__builtin_expect(is_by_libgcc_, 0)) {
    return nextByLibgcc(frame);
  }
  if (at_.pc == 0) {
    return end_ == WalkEnd::kNotYet ? finish(WalkEnd::kOutermost) : false;
  }
  const KnownAddress &known = addresses_.lookup(at_.pc);
  const FrameRule &rule = known.rule;
  uintptr_t cfa = 0;
  switch (rule.kind) {
  case RuleKind::kRsp:
    cfa = at_.sp + rule.cfa_offset;
    break;
  case RuleKind::kRbp:
    cfa = at_.rbp + rule.cfa_offset;
    break;
  case RuleKind::kRspPointer:
  case RuleKind::kRbpPointer: {
    uintptr_t place = (rule.kind == RuleKind::kRspPointer ? at_.sp : at_.rbp) + rule.cfa_offset;
    cfa = isReadable(place) ? readStack(place) : 0;
    break;
  }
  case RuleKind::kOutermost:
    frame = {at_.pc, at_.sp, stack_high_, known.function, known.role};
    finish(WalkEnd::kOutermost);
    return true;
  case RuleKind::kUnknown:
    return askLibgcc() && nextByLibgcc(frame);
  }
  if (cfa <= at_.sp || !isReadable(cfa - 8)) {
    return finish(WalkEnd::kBadStack);
  }
  frame = {at_.pc, at_.sp, cfa, known.function, known.role};
  uintptr_t saved = rule.is_rbp_at_rbp ? at_.rbp : cfa + rule.rbp_offset;
  if (rule.is_rbp_at_rbp || rule.rbp_offset != 0) {
    at_.rbp = isReadable(saved) ? readStack(saved) : 0;
  }
  at_.pc = readStack(cfa - 8);
  at_.sp = cfa;
  return true;
}

bool StackWalk::askLibgcc() {
  is_by_libgcc_ = true;
  LibgccWalk walk{at_.sp, &rest_};
  _Unwind_Backtrace(LibgccWalk::onFrame, &walk);
  // It gives up in the same frame when it has no rule either.
  bool is_further = rest_.size() > 1 && rest_[0].pc == at_.pc;
  return is_further || finish(WalkEnd::kNoRule);
}

bool StackWalk::nextByLibgcc(NativeFrame &frame) {
  if (rest_position_ >= rest_.size()) {
    return end_ == WalkEnd::kNotYet ? finish(WalkEnd::kOutermost) : false;
  }
  frame = rest_[rest_position_++];
  frame.cfa = rest_position_ < rest_.size() ? rest_[rest_position_].sp : stack_high_;
  const KnownAddress &known = addresses_.lookup(frame.pc);
  frame.function = known.function;
  frame.role = known.role;
  return true;
}

} // namespace deepcontext::unwind
