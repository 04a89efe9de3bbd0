#include "sampling/remote_context.h"

#include <cstring>

#include "core/recorder.h"
#include "python/code_table.h"
#include "sampling/frame_sampling.h"

namespace deepcontext {

namespace {

// A list that changes while it is followed could lead round in a circle.
constexpr int kMostThreads = 1 << 16;

/// Copies through the kernel, two pages at a time: neighbouring frames come in one copy.
class CopyingReader {
public:
  explicit CopyingReader(const MemoryReader &memory) : memory_(memory) {}

  template <typename Value> bool copy(const void *address, Value *value) const {
    auto begin = reinterpret_cast<uintptr_t>(address);
    if (begin % alignof(void *) != 0) {
      return false;
    }
    uintptr_t page = begin / kPageBytes * kPageBytes;
    if (page != page_ && memory_.read(reinterpret_cast<const void *>(page), bytes_, kPageBytes)) {
      page_ = page;
    }
    if (page == page_ && begin - page + sizeof(Value) <= kPageBytes) {
      std::memcpy(value, bytes_ + (begin - page), sizeof(Value));
      return true;
    }
    return memory_.read(address, value, sizeof(Value));
  }

private:
  static constexpr uintptr_t kPageBytes = 4096;
  const MemoryReader &memory_;
  mutable uintptr_t page_ = 0;
  mutable char bytes_[kPageBytes];
};

} // namespace

RemotePython::RemotePython()
    : interpreter_(PyInterpreterState_Main()),
      oldest_(PyInterpreterState_ThreadHead(const_cast<PyInterpreterState *>(interpreter_))) {
  while (PyThreadState *older = PyThreadState_Next(const_cast<PyThreadState *>(oldest_))) {
    oldest_ = older;
  }
}

RemotePython::State RemotePython::find(int thread, const MemoryReader &memory) const {
  const PyThreadState *address = oldest_; // newer ones are put in front
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
  PyThreadState copy;
  if (!memory.read(state, &copy, sizeof copy)) {
    context->is_garbled = true;
    return;
  }
  CopyingReader reader(memory);
  sampleFrames(context, firstFrame(&copy, reader), boundary, reader);
}

} // namespace deepcontext
