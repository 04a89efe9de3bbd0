#include "python/strands.h"

#include <Python.h>

#include <algorithm>

namespace deepcontext {

namespace {

/// Call `visit(frame)` with the outermost coroutine of each task that runs on this stack, innermost
/// task first, until it returns false. Returns the outermost frame visited.
template <typename Visit>
const InterpreterFrame *visitTasks(const InterpreterFrame *top, Visit visit) {
  const InterpreterFrame *task = nullptr;
  const InterpreterFrame *last = nullptr;
  for (const InterpreterFrame *frame = top; frame; frame = callerFrame(frame)) {
    if (task && !isResumable(frame)) {
      if (!visit(task)) {
        return last;
      }
      task = nullptr;
    }
    task = isOfTask(frame) ? frame : task;
    last = frame;
  }
  if (task) {
    visit(task);
  }
  return last;
}

uint64_t numberOf(PyThreadState *state) {
  return state ? PyThreadState_GetID(state) : 0;
}

/// Whether the frame lies in the memory for frames of the running stack; each greenlet has memory
/// of its own.
bool isOfRunningStack(PyThreadState *state, const void *frame) {
  auto address = reinterpret_cast<uintptr_t>(frame);
  for (_PyStackChunk *chunk = state->datastack_chunk; chunk; chunk = chunk->previous) {
    auto begin = reinterpret_cast<uintptr_t>(chunk);
    if (address >= begin && address < begin + chunk->size) {
      return true;
    }
  }
  return false;
}

/// The tasks that the running stack is in, innermost first, and its outermost frame.
class RunningStrands {
public:
  /// Walks up to the task of `until`, if that is met: what is further out has not changed.
  RunningStrands(const InterpreterFrame *top, const Strand *until) {
    bottom_ = visitTasks(top, [&](const InterpreterFrame *task) {
      reached_ = until && until->is_task && isSame(*until, task);
      if (!reached_ && count_ < kMost) {
        tasks_[count_++] = task;
      }
      return !reached_;
    });
  }

  bool hasReached() const { return reached_; }
  /// Whether the strand runs. A stack that ended, such as that of a hook that a native thread
  /// called, has no turns to wait for: its scopes go on in the next one.
  bool isRunning(const Strand &strand) const {
    if (strand.is_task) {
      return std::any_of(tasks_, tasks_ + count_,
                         [&](const InterpreterFrame *task) { return isSame(strand, task); });
    }
    PyThreadState *state = PyGILState_GetThisThreadState();
    bool may_be_greenlet = bottom_ && strand.frame && strand.frame != bottom_ &&
                           strand.thread_state == numberOf(state);
    return !may_be_greenlet || isOfRunningStack(state, strand.frame);
  }
  /// Open the scopes of the strands again that were put aside, outermost strand first.
  void unpark(Recorder &recorder, uint64_t now) const {
    unparkOne(recorder, reached_ ? nullptr : bottom_, now);
    for (uint32_t i = count_; i-- > 0;) {
      unparkOne(recorder, tasks_[i], now);
    }
  }

private:
  static constexpr uint32_t kMost = 16; // event loops inside each other

  static bool isSame(const Strand &strand, const InterpreterFrame *task) {
    return strand.frame == task && strand.code == frameCode(task);
  }
  static void unparkOne(Recorder &recorder, const InterpreterFrame *frame, uint64_t now) {
    if (frame && recorder.parked.has(frame, frameCode(frame))) {
      recorder.unpark(frame, now);
    }
  }

  const InterpreterFrame *tasks_[kMost];
  uint32_t count_ = 0;
  const InterpreterFrame *bottom_ = nullptr;
  bool reached_ = false;
};

} // namespace

Strand strandOf(const InterpreterFrame *top) {
  const InterpreterFrame *task = nullptr;
  const InterpreterFrame *last = visitTasks(top, [&](const InterpreterFrame *frame) {
    task = frame;
    return false;
  });
  const InterpreterFrame *frame = task ? task : last;
  if (!frame) {
    return {};
  }
  return {frame, frameCode(frame), numberOf(PyGILState_GetThisThreadState()), task != nullptr};
}

__attribute__((noinline)) const Level *enterStrand(Recorder &recorder, const InterpreterFrame *top,
                                                   const Level *outer) {
  if (outer != recorder.innermost()) {
    return outer; // within an operator
  }
  recorder.closeEndedElsewhere();
  const Level *inner = recorder.innermost();
  RunningStrands running(top, inner ? &inner->strand : nullptr);
  uint64_t now = ticks();
  while (!running.hasReached() && inner && inner->kind == LevelKind::kScope &&
         !running.isRunning(inner->strand)) {
    recorder.parkInnermost(now);
    inner = recorder.innermost();
  }
  if (!recorder.parked.isEmpty()) {
    running.unpark(recorder, now);
  }
  return recorder.innermost();
}

} // namespace deepcontext
