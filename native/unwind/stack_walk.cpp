#include "unwind/stack_walk.h"

#include <unwind.h>

namespace deepcontext::unwind {

namespace {

struct LibgccWalk {
  uintptr_t after; // only frames further out than this
  std::vector<NativeFrame> *found;

  static _Unwind_Reason_Code onFrame(_Unwind_Context *context, void *user) {
    auto &walk = *static_cast<LibgccWalk *>(user);
    NativeFrame frame;
    frame.pc = _Unwind_GetIP(context);
    // CFA of the next inner frame, which is where this frame begins
    frame.sp = _Unwind_GetCFA(context);
    if (frame.sp >= walk.after) {
      walk.found->push_back(frame);
    }
    return walk.found->size() < kMostFrames ? _URC_NO_REASON : _URC_END_OF_STACK;
  }

  static constexpr size_t kMostFrames = 1024;
};

} // namespace

std::vector<NativeFrame> askLibgcc(const Registers &from, uintptr_t stack_high) {
  std::vector<NativeFrame> frames;
  LibgccWalk walk{from.sp, &frames};
  _Unwind_Backtrace(LibgccWalk::onFrame, &walk);
  // It stops in the same frame when it has no rule either.
  if (frames.size() < 2 || frames[0].pc != from.pc) {
    return {};
  }
  for (size_t i = 0; i < frames.size(); ++i) {
    frames[i].cfa = i + 1 < frames.size() ? frames[i + 1].sp : stack_high;
  }
  return frames;
}

} // namespace deepcontext::unwind
