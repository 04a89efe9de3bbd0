#include "python/native_merge.h"

#include <algorithm>

#include "python/callable_names.h"
#include "unwind/stack_walk.h"

namespace deepcontext {

namespace {

/// A thread's state of the walk through its native stack.
struct NativeWalker final : RecorderExtension {
  static constexpr ExtensionPlace kPlace = ExtensionPlace::kNativeStack;
  unwind::ReturnAddressCache addresses;
  std::vector<uintptr_t> activations =
      std::vector<uintptr_t>(Recorder::kMaxPath); // of the Python frames in recorder.walked
  std::vector<WalkedFrame> merged = std::vector<WalkedFrame>(Recorder::kMaxPath);
};

/// For each of `count` frames from `top` on, the C stack address of the activation that runs it;
/// UINTPTR_MAX where it has none (3.14 keeps the outermost shim elsewhere).
void findActivations(const Recorder &recorder, const InterpreterFrame *top, uint32_t count,
                     uintptr_t *activations) {
  uint32_t seen = 0;
#if PY_VERSION_HEX >= 0x030c0000
  uint32_t first_of_activation = 0;
  for (const InterpreterFrame *frame = top; frame && first_of_activation < count;
       frame = frame->previous) {
    if (isInterpreterShim(frame)) {
      uint32_t end = std::min(seen, count);
      std::fill(activations + first_of_activation, activations + end,
                recorder.isOnStack(frame) ? reinterpret_cast<uintptr_t>(frame) : UINTPTR_MAX);
      first_of_activation = end;
    } else {
      ++seen;
    }
  }
  seen = first_of_activation;
#else
  const PyThreadState *state = PyGILState_GetThisThreadState();
  bool is_begun = false;
  for (const _PyCFrame *loop = state ? state->cframe : nullptr; loop && seen < count;
       loop = loop->previous) {
    auto *frame = reinterpret_cast<const InterpreterFrame *>(loop->current_frame);
    for (; frame && seen < count; frame = frame->previous) {
      is_begun = is_begun || frame == top;
      if (is_begun) {
        activations[seen++] =
            recorder.isOnStack(loop) ? reinterpret_cast<uintptr_t>(loop) : UINTPTR_MAX;
      }
      if (frame->is_entry) {
        break;
      }
    }
  }
#endif
  std::fill(activations + seen, activations + count, UINTPTR_MAX);
}

/// Frames of one walk, innermost first.
class Merge {
public:
  Merge(Recorder &recorder, NativeWalker &walker, const NativeWalk &wanted)
      : recorder_(recorder), walker_(walker), wanted_(wanted) {
    const Level *outer = wanted.outer;
    bool is_operator = outer && outer->kind != LevelKind::kScope;
    if (is_operator && recorder.isOnStack(outer->owner)) {
      limit_ = reinterpret_cast<uintptr_t>(outer->owner);
      goes_past_python_ = true;
    }
    reaches_thread_start_ = !outer && wanted.count == 0;
  }

  /// Whether there can be native frames to add.
  bool isWorthwhile() const {
    if (wanted_.count == 0) {
      return wanted_.machinery_until != kOnlyBetweenPythonFrames &&
             (goes_past_python_ || reaches_thread_start_);
    }
    return wanted_.count < wanted_.most;
  }

  uint32_t run(const unwind::Registers &here) {
    findActivations(recorder_, wanted_.top, wanted_.count, walker_.activations.data());
    uintptr_t begin = wanted_.machinery_until == kOnlyBetweenPythonFrames ? walker_.activations[0]
                                                                          : wanted_.machinery_until;
    uint32_t walked = 0;
    auto visit = [&](const unwind::NativeFrame &frame) {
      if (frame.cfa > limit_) {
        return false;
      }
      add(frame, begin);
      return !is_complete_ && ++walked < kMostFrames;
    };
    unwind::WalkResult result =
        unwind::walkStack(walker_.addresses, here, recorder_.stack_high, visit);
    count(result, walked);
    if (reaches_thread_start_) {
      dropThreadStart();
    }
    takePythonBelow(UINTPTR_MAX);
    std::copy_n(walker_.merged.begin(), count_, recorder_.walked.data());
    return count_;
  }

private:
  static constexpr uint32_t kMostFrames = 1024;

  void add(const unwind::NativeFrame &frame, uintptr_t begin) {
    if (next_ < wanted_.count && walker_.activations[next_] < frame.cfa) {
      takePythonBelow(frame.cfa);
      is_complete_ = next_ == wanted_.count && !goes_past_python_;
      return;
    }
    unwind::ObjectRole role = frame.known->role();
    bool is_shown =
        role == unwind::ObjectRole::kProgram || role == unwind::ObjectRole::kThreadStart;
    bool has_room = count_ + (wanted_.count - next_) < wanted_.most;
    if (frame.cfa > begin && is_shown && has_room) {
      shown_ += 1;
      WalkedFrame &place = walker_.merged[count_++];
      place = {nullptr, reinterpret_cast<const void *>(frame.pc), nullptr,
               walker_.addresses.functionOf(*frame.known)};
      if (role != unwind::ObjectRole::kThreadStart) {
        without_thread_start_ = count_;
      }
    }
  }

  /// The Python frames of the activations that lie below `address`.
  void takePythonBelow(uintptr_t address) {
    while (next_ < wanted_.count &&
           (walker_.activations[next_] < address || address == UINTPTR_MAX)) {
      walker_.merged[count_++] = recorder_.walked[next_++];
    }
  }

  void dropThreadStart() { count_ = without_thread_start_; }

  void count(const unwind::WalkResult &walk, uint32_t walked) {
    RecorderCounters &counters = recorder_.counters;
    RecorderCounters::bump(counters.native_walks);
    RecorderCounters::bump(counters.native_frames, shown_);
    if (__builtin_expect(walk.is_by_libgcc, 0)) {
      RecorderCounters::bump(counters.native_by_libgcc);
    }
    if (__builtin_expect(walk.end == unwind::WalkEnd::kNoRule, 0)) {
      RecorderCounters::bump(counters.native_no_rule);
    } else if (__builtin_expect(walk.end == unwind::WalkEnd::kBadStack, 0)) {
      RecorderCounters::bump(counters.native_bad_stack);
    } else if (__builtin_expect(walked == kMostFrames, 0)) {
      RecorderCounters::bump(counters.native_too_deep);
    }
  }

  Recorder &recorder_;
  NativeWalker &walker_;
  const NativeWalk &wanted_;
  uintptr_t limit_ = UINTPTR_MAX; // a frame that ends beyond is the outer operator's dispatcher
  bool goes_past_python_ = false; // native frames outside the outermost Python frame are new, too
  bool reaches_thread_start_ = false;
  bool is_complete_ = false;
  uint32_t next_ = 0;  // Python frame to take next
  uint32_t count_ = 0; // frames in walker_.merged
  uint32_t shown_ = 0;
  uint32_t without_thread_start_ = 0; // without those that start the thread
};

} // namespace

void NativeFrames::start() {
  hideOwnObjects();
  is_on_.store(unwind::isSupported(), std::memory_order_relaxed);
}

__attribute__((noinline)) uint32_t mergeNative(Recorder &recorder, const NativeWalk &wanted) {
  unwind::Registers here = unwind::Registers::here();
  NativeWalker &walker = recorder.extensions.get<NativeWalker>();
  Merge merge(recorder, walker, wanted);
  if (!merge.isWorthwhile()) {
    return wanted.count;
  }
  if (__builtin_expect(!recorder.isOnStack(reinterpret_cast<const void *>(here.sp)), 0)) {
    RecorderCounters::bump(recorder.counters.native_bad_stack);
    return wanted.count;
  }
  if (__builtin_expect(walker.addresses.refresh(), 0)) {
    for (uint32_t i = 0; i < recorder.path_length; ++i) {
      recorder.path[i].instruction = nullptr;
    }
  }
  return merge.run(here);
}

} // namespace deepcontext
