// torch.profiler beside the tool under test: what Kineto does to CUPTI, before and since August 2026. And
// a tool that subscribes and ends its subscription, as Proton.
// Written after Kineto's sources, CuptiCallbackApi.cpp, CuptiActivityApi.cpp and CuptiTimestamp.cpp.
#include <cstring>

#include "control.h"
#include "cupti_device.h"

using namespace fake::cupti;

FAKE_API int cuptiActivityRegisterCallbacks(abi::BufferRequested, abi::BufferCompleted);
FAKE_API int cuptiActivityRegisterTimestampCallback(abi::Timestamp clock);
FAKE_API int cuptiActivityEnable(uint32_t kind);
FAKE_API int cuptiActivityDisable(uint32_t kind);
FAKE_API int cuptiActivityFlushAll(uint32_t flags);
FAKE_API int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_bytes,
                                        abi::Activity **record);

namespace {

constexpr char kName[] = "torch.profiler";
constexpr uint32_t kKinds[] = {abi::kKindMemcpy, abi::kKindMemset, abi::kKindConcurrentKernel,
                               abi::kKindOverhead};

struct Profiler {
  bool has_begun_before = false;
  bool has_device = false; // decided once, by the older Kineto
  std::set<uint8_t *> buffers;
  uint64_t records = 0;
  uint64_t unknown_buffers = 0; // of another tool; it leaves them
};

Profiler &profiler() {
  static auto *const profiler = new Profiler();
  return *profiler;
}

void request(uint8_t **buffer, size_t *bytes, size_t *most) {
  *bytes = 1u << 16;
  *most = 0;
  *buffer = static_cast<uint8_t *>(std::aligned_alloc(64, *bytes));
  std::lock_guard<std::mutex> lock(state().mutex);
  profiler().buffers.insert(*buffer);
}

void complete(void *, uint32_t, uint8_t *buffer, size_t, size_t valid_bytes) {
  {
    std::lock_guard<std::mutex> lock(state().mutex);
    if (profiler().buffers.erase(buffer) == 0) {
      ++profiler().unknown_buffers;
      return;
    }
  }
  abi::Activity *record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid_bytes, &record) == abi::kSuccess) {
    ++profiler().records;
  }
  std::free(buffer);
}

/// Older releases subscribe when they are used first, keep the subscription, and have no device where
/// they do not get it.
void subscribeOnce() {
  std::lock_guard<std::mutex> lock(state().mutex);
  if (profiler().has_begun_before) {
    return;
  }
  profiler().has_begun_before = true;
  profiler().has_device = !state().subscription && state().holder.empty();
  if (profiler().has_device) {
    state().holder = kName;
  }
}

} // namespace

uint64_t fake::cupti::ticksOfProfiler() { return fake::nowNs() * kTicksPerNs; }

void fake::cupti::resetProfiler() { profiler() = Profiler(); }

FAKE_API void fake_profiler_begin(int is_older) {
  profiler().has_device = profiler().has_device || !is_older;
  if (is_older) {
    subscribeOnce();
  }
  if (!profiler().has_device) {
    return;
  }
  cuptiActivityRegisterTimestampCallback(ticksOfProfiler);
  cuptiActivityRegisterCallbacks(request, complete);
  for (uint32_t kind : kKinds) {
    cuptiActivityEnable(kind);
  }
}

FAKE_API void fake_profiler_end() {
  if (!profiler().has_device) {
    return;
  }
  for (uint32_t kind : kKinds) {
    cuptiActivityDisable(kind);
  }
  cuptiActivityFlushAll(abi::kFlushForced);
}

FAKE_API int fake_subscriber_begin() {
  {
    std::lock_guard<std::mutex> lock(state().mutex);
    if (state().subscription || !state().holder.empty()) {
      return abi::kMultipleSubscribers;
    }
    state().holder = "Proton";
  }
  cuptiActivityRegisterCallbacks(request, complete);
  return cuptiActivityEnable(abi::kKindConcurrentKernel);
}

FAKE_API void fake_subscriber_end() {
  cuptiActivityDisable(abi::kKindConcurrentKernel);
  cuptiActivityFlushAll(abi::kFlushForced);
  std::lock_guard<std::mutex> lock(state().mutex);
  state().holder.clear();
  state().next_correlation = 1; // as at any end of a subscription
  state().requested = nullptr;
  state().completed = nullptr;
}

uint64_t fake::cupti::profilerCount(const std::string &what) {
  std::lock_guard<std::mutex> lock(state().mutex);
  return what == "profiler_records" ? profiler().records : profiler().unknown_buffers;
}
