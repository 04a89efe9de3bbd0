#include "gpu/call_recorder.h"

#include <utility>

#include "core/metric_registry.h"

namespace deepcontext::gpu {

namespace {

std::atomic<ContextProvider> g_provider{nullptr};

} // namespace

void setContextProvider(ContextProvider provider) {
  g_provider.store(provider, std::memory_order_relaxed);
}

Node *currentContext(Recorder &recorder) {
  if (ContextProvider provider = g_provider.load(std::memory_order_relaxed)) {
    return provider(recorder);
  }
  Level *level = recorder.innermost();
  return level ? level->node : recorder.tree.root();
}

CallRecorder::CallRecorder(uint32_t slots)
    : table(slots), wait_metric_(MetricRegistry::instance().id("sync_wait_ns", true)),
      time_metric_(MetricRegistry::instance().id("gpu_api_ns", true)),
      allocation_metric_(MetricRegistry::instance().id("driver_alloc_bytes")) {}

uint32_t CallRecorder::nextInternalId() {
  constexpr uint32_t kBlock = 256;
  struct Block {
    const CallRecorder *owner;
    uint64_t age;
    uint32_t next;
    uint32_t left;
  };
  static thread_local Block block{nullptr, 0, 0, 0};
  uint64_t age = age_.load(std::memory_order_relaxed);
  if (block.left == 0 || block.owner != this || block.age != age) {
    block = {this, age, next_block_.fetch_add(1, std::memory_order_relaxed) * kBlock, kBlock};
  }
  --block.left;
  uint32_t id = block.next++;
  return id != 0 ? id : nextInternalId();
}

void CallRecorder::withdrawLaunch() {
  OpenLaunches &open = t_open;
  bool is_open =
      open.depth > 0 && open.depth <= kMostOpen && open.age == age_.load(std::memory_order_relaxed);
  Lane *lane = is_open ? std::exchange(open.lanes[open.depth - 1], nullptr) : nullptr;
  if (lane) {
    lane->launches.fetch_sub(1, std::memory_order_relaxed);
  }
}

void CallRecorder::noteCall(uint32_t id, uint32_t silent_graph) {
  if (!RecorderRegistry::isRecording()) {
    return;
  }
  Recorder &recorder = RecorderRegistry::current();
  table.set(id, recorder.index(), currentContext(recorder)->id, ticks(), silent_graph);
}

bool CallRecorder::addTime(uint16_t metric, uint32_t name, uint64_t start_ticks) {
  uint64_t now = ticks();
  if (!RecorderRegistry::isRecording()) {
    return false;
  }
  Recorder &recorder = RecorderRegistry::current();
  Node *call = recorder.tree.child(currentContext(recorder), FrameKind::kGpuApi, name, 0);
  recorder.tree.metric(call, metric).add(recorder.ticksSince(start_ticks, now));
  return true;
}

void CallRecorder::noteWait(uint32_t name, uint64_t start_ticks) {
  if (addTime(wait_metric_, name, start_ticks)) {
    bump(laneOf(RecorderRegistry::current()).waits);
  }
}

void CallRecorder::noteTime(uint32_t name, uint64_t start_ticks) {
  addTime(time_metric_, name, start_ticks);
}

void CallRecorder::noteAllocation(uint64_t bytes) {
  if (!RecorderRegistry::isRecording()) {
    return;
  }
  Recorder &recorder = RecorderRegistry::current();
  recorder.tree.metric(currentContext(recorder), allocation_metric_).add(bytes);
}

uint64_t CallRecorder::sum(std::atomic<uint64_t> Lane::*counter) const {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < kLanes; ++i) {
    sum += (lanes_[i].*counter).load(std::memory_order_relaxed);
  }
  return sum;
}

void CallRecorder::clear() {
  table.clear();
  age_.fetch_add(1, std::memory_order_relaxed);
  for (uint32_t i = 0; i < kLanes; ++i) {
    lanes_[i].launches.store(0, std::memory_order_relaxed);
    lanes_[i].waits.store(0, std::memory_order_relaxed);
  }
}

} // namespace deepcontext::gpu
