#pragma once
// The launching thread's part: which call path an API call was made on.
#include <atomic>
#include <cstdint>

#include "core/collective_launches.h"
#include "core/lazy_array.h"
#include "core/recorder.h"
#include "gpu/correlation.h"

namespace deepcontext::gpu {

/// Finds the node of the calling thread's call path; set once by the layer that walks Python
/// frames.
using ContextProvider = Node *(*)(Recorder &recorder);
void setContextProvider(ContextProvider provider);
/// The provider's node; without a provider the innermost operator or scope, or the thread's root.
Node *currentContext(Recorder &recorder);

/// Notes API calls under their vendor's numbers. Called on launching threads; no lock.
class CallRecorder {
public:
  explicit CallRecorder(uint32_t slots = CorrelationTable::kDefaultSlots);

  CorrelationTable table;

  /// An API call that feeds the device.
  void noteLaunch(uint32_t id) { note(id); }
  /// The same, up to endLaunch(): the launch may be withdrawn meanwhile. Launches nest, because the
  /// first launch of a kernel loads its code by calls of its own.
  void beginLaunch(uint32_t id) { open(note(id)); }
  /// A launch that does not count, up to endLaunch(); `silent_graph` as in CallSite.
  void beginUncountedLaunch(uint32_t id, uint32_t silent_graph = 0) {
    noteCall(id, silent_graph);
    open(nullptr);
  }
  /// The calling thread's innermost launch has returned.
  void endLaunch() { t_open.depth -= t_open.depth > 0; }
  /// The calling thread's innermost launch, which has not returned, leaves no record: it failed, or
  /// a graph that is being captured took it.
  void withdrawLaunch();
  /// The same for vendors that let the profiler number a launch. Returns the number, or 0 when
  /// nothing is recorded.
  uint32_t noteLaunchWithInternalId() {
    if (__builtin_expect(!RecorderRegistry::isRecording(), 0)) {
      return 0;
    }
    uint32_t id = nextInternalId();
    noteLaunch(id);
    return id;
  }
  /// An API call that launches nothing, but shows where the host was.
  void noteCall(uint32_t id, uint32_t silent_graph = 0);
  /// The host waited for the device since `start_ticks`, inside the API call `name` (interned).
  void noteWait(uint32_t name, uint64_t start_ticks);
  /// The API call `name` (interned) has lasted since `start_ticks`.
  void noteTime(uint32_t name, uint64_t start_ticks);
  /// Memory was taken from the driver.
  void noteAllocation(uint64_t bytes);

  uint64_t launches() const { return sum(&Lane::launches); }
  uint64_t waits() const { return sum(&Lane::waits); }
  /// Forget calls and counts; no call may be in progress.
  void clear();

private:
  /// Threads take numbers in blocks, so that they share no cache line and a thread's numbers are
  /// consecutive. Never 0.
  uint32_t nextInternalId();
  std::atomic<uint32_t> next_block_{1};
  std::atomic<uint64_t> age_{1}; // rises with each clear()

  struct alignas(64) Lane { // one a thread, so that counters share no cache line
    std::atomic<uint64_t> launches;
    std::atomic<uint64_t> waits;
  };
  struct OpenLaunches { // of a thread
    uint64_t age;
    uint32_t depth;
    Lane *lanes[8]; // null for a launch that does not count, or not any more
  };
  static inline thread_local OpenLaunches t_open{0, 0, {}};
  static constexpr uint32_t kMostOpen = sizeof t_open.lanes / sizeof t_open.lanes[0];

  /// Where the launch was counted; null when nothing is recorded.
  Lane *note(uint32_t id) {
    if (__builtin_expect(!RecorderRegistry::isRecording(), 0)) {
      return nullptr;
    }
    Recorder &recorder = RecorderRegistry::current();
    Node *node = currentContext(recorder);
    table.set(id, recorder.index(), node->id, ticks());
    if (__builtin_expect(recorder.device_collective.owner != nullptr, 0)) {
      CollectiveLaunches::instance().note(id, recorder.device_collective.order);
    }
    Lane &lane = laneOf(recorder);
    bump(lane.launches);
    return &lane;
  }
  void open(Lane *lane) {
    OpenLaunches &open = t_open;
    uint64_t age = age_.load(std::memory_order_relaxed);
    if (__builtin_expect(open.age != age, 0)) { // left by an earlier session
      open.age = age;
      open.depth = 0;
    }
    if (__builtin_expect(open.depth < kMostOpen, 1)) {
      open.lanes[open.depth] = lane;
    }
    ++open.depth;
  }
  static constexpr uint32_t kLanes = 4096;
  Lane &laneOf(const Recorder &recorder) { return lanes_[recorder.index() % kLanes]; }
  static void bump(std::atomic<uint64_t> &counter) {
    // Atomic, because two threads share a lane past 4,096 recorders.
    counter.fetch_add(1, std::memory_order_relaxed);
  }
  LazyArray<Lane> lanes_{kLanes};
  uint64_t sum(std::atomic<uint64_t> Lane::*counter) const;
  bool addTime(uint16_t metric, uint32_t name, uint64_t start_ticks);
  uint16_t wait_metric_, time_metric_, allocation_metric_;
};

} // namespace deepcontext::gpu
