#include "sampling/remote_context.h"

#include "core/recorder.h"
#include "python/code_table.h"
#include "sampling/frame_sampling.h"

namespace deepcontext {

namespace {

// Bounds the walk, because a list that changes meanwhile may form a cycle.
constexpr int kMostThreads = 1 << 16;

/// Whether the thread of a state holds the GIL.
bool holdsGil(const void *state, const MemoryReader &memory) {
#if PY_VERSION_HEX >= 0x030c0000
  PyThreadState copy;
  return memory.read(state, &copy, sizeof copy) && copy._status.active;
#else
  // One for the whole process. Its holder may be a state of another interpreter, in the same
  // thread.
  const PyThreadState *holder = _PyThreadState_UncheckedGet();
  auto threadOf = [&](const PyThreadState *of) {
    unsigned long thread = 0;
    return memory.read(&of->native_thread_id, &thread, sizeof thread) ? thread : 0;
  };
  if (!holder || holder == state) {
    return holder != nullptr;
  }
  unsigned long thread = threadOf(holder);
  return thread != 0 && thread == threadOf(static_cast<const PyThreadState *>(state));
#endif
}

} // namespace

RemotePython::RemotePython()
    : interpreter_(PyInterpreterState_Main()),
      oldest_(PyInterpreterState_ThreadHead(const_cast<PyInterpreterState *>(interpreter_))) {
  while (PyThreadState *older = PyThreadState_Next(const_cast<PyThreadState *>(oldest_))) {
    oldest_ = older;
  }
}

RemotePython::State RemotePython::find(int thread, const MemoryReader &memory) const {
  const PyThreadState *address = oldest_; // newer states are linked in front
  PyThreadState state;
  for (int seen = 0; address && seen < kMostThreads; ++seen) {
    if (!memory.read(address, &state, sizeof state) || state.interp != interpreter_) {
      break;
    }
    if (state.native_thread_id == static_cast<unsigned long>(thread)) {
      return {address, state.thread_id};
    }
    address = state.prev;
  }
  return {};
}

bool RemotePython::isOf(const void *address, int thread, const MemoryReader &memory) const {
  PyThreadState state;
  return memory.read(address, &state, sizeof state) && state.interp == interpreter_ &&
         state.native_thread_id == static_cast<unsigned long>(thread);
}

void RemotePython::sample(const void *state, Recorder *recorder, uint64_t now,
                          SampledContext *context, const MemoryReader &memory) const {
  context->code_deaths = CodeTable::deaths();
  LevelView levels = recorder ? recorder->view(now) : LevelView();
  context->recorder = recorder;
  context->thread_state = state;
  context->holds_gil = false;
  context->is_garbled = false;
  context->frame_count = 0;
  SampleBoundary boundary = enterLevels(context, levels);
  if (!state || levels.is_in_operator || isFolded(levels)) {
    return;
  }
  context->holds_gil = holdsGil(state, memory);
  PageReader reader;
  reader.begin(&memory);
  sampleFrames(context, static_cast<const PyThreadState *>(state), boundary, reader);
}

} // namespace deepcontext
