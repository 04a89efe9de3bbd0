// What CUPTI calls: on the launching thread for API calls, on its own thread for buffers. Launching
// threads share no lock, no exception escapes, and CUPTI is not called with a lock held.
#include <algorithm>

#include "gpu/cupti/collector.h"
#include "gpu/deadline.h"

namespace deepcontext::gpu::cupti {

namespace {

/// The context that the thread last launched in, so that threads with one context each take no
/// lock.
struct SeenContext {
  void *context;
  uint64_t age;
};
thread_local SeenContext t_seen{nullptr, 0};

/// Whether the driver's function, which is returning, failed.
bool hasFailed(const abi::cupti::CallbackData &call) {
  return call.return_value && *static_cast<const int *>(call.return_value) != 0;
}

/// Whether the copy or memset is of no bytes, which leaves no record.
bool isEmpty(const abi::cupti::CallbackData &call) {
  return call.parameters &&
         static_cast<const abi::cupti::SizedParameters *>(call.parameters)->count == 0;
}

} // namespace

void CuptiCollector::onCallback(void *user, uint32_t domain, uint32_t id, const void *data) {
  auto &self = *static_cast<CuptiCollector *>(user);
  if (!self.isRunning()) {
    return;
  }
  if (__builtin_expect(domain == abi::cupti::kDomainDriver, 1)) {
    self.onDriverCall(id, *static_cast<const abi::cupti::CallbackData *>(data));
  } else if (domain == abi::cupti::kDomainResource) {
    self.onResource(id, *static_cast<const abi::cupti::ResourceData *>(data));
  }
}

void CuptiCollector::onDriverCall(uint32_t id, const abi::cupti::CallbackData &call) {
  const CallClass &known = driver_calls_.of(id);
  bool is_sampled = __builtin_expect(stalls_.isRunning(), 0) && !isInternalThread();
  if (is_sampled && call.site == abi::cupti::kSiteEnter) {
    stalls_.enter(known.is_launch ? call.context : nullptr);
  }
  if (__builtin_expect(known.captures != 0, 0)) {
    onCapture(known.captures, call);
  }
  if (__builtin_expect(known.flags != 0, 0)) {
    noteInstantiation(known, call);
  }
  if (call.site == abi::cupti::kSiteEnter) {
    if (known.is_launch) {
      noteLaunch(known, call);
      if (__builtin_expect(call.context != last_context_.load(std::memory_order_relaxed), 0)) {
        seeContext(call.context);
      }
    }
    if (known.is_waiting && !isInternalThread()) {
      if (!known.is_launch) {
        calls_.noteCall(call.correlation);
      }
    }
    if ((known.is_waiting || isTiming()) && !isInternalThread()) {
      *call.correlation_data = ticks();
    }
  } else {
    if (known.is_launch) {
      endLaunch(call);
    }
    if ((known.is_waiting || isTiming()) && !isInternalThread() && *call.correlation_data != 0) {
      noteEnd(known, call);
    }
    if (is_sampled) {
      stalls_.leave(known.is_launch || known.is_waiting);
    }
  }
}

void CuptiCollector::noteEnd(const CallClass &known, const abi::cupti::CallbackData &call) {
  if (known.is_waiting) {
    calls_.noteWait(known.name, *call.correlation_data);
  }
  if (isTiming()) {
    calls_.noteTime(known.name, *call.correlation_data);
  }
  *call.correlation_data = 0;
}

void CuptiCollector::noteLaunch(const CallClass &known, const abi::cupti::CallbackData &call) {
  uint32_t silent_graph = __builtin_expect(known.is_replay, 0) ? noteReplay(call) : 0;
  // Without callbacks for graph nodes, nothing tells which launches a capture takes.
  bool is_captured = !sees_graph_nodes_.load(std::memory_order_relaxed) &&
                     captures_.load(std::memory_order_relaxed) > 0;
  // That such work has no records is said already.
  bool is_refused = (refused_kinds_.load(std::memory_order_relaxed) >> known.record_kind & 1) != 0;
  bool is_empty = known.is_sized && isEmpty(call);
  if (__builtin_expect(is_captured || is_refused || is_empty || silent_graph != 0, 0)) {
    calls_.beginUncountedLaunch(call.correlation, silent_graph);
  } else {
    calls_.beginLaunch(call.correlation);
  }
  early_flush_.noteLaunch(call.correlation);
}

void CuptiCollector::endLaunch(const abi::cupti::CallbackData &call) {
  if (__builtin_expect(hasFailed(call), 0)) {
    calls_.withdrawLaunch();
  }
  calls_.endLaunch();
}

void CuptiCollector::onCapture(int change, const abi::cupti::CallbackData &call) {
  if (call.site == abi::cupti::kSiteEnter) {
    return;
  }
  bool is_begun = change > 0 && call.return_value && !hasFailed(call);
  if (is_begun) {
    captures_.fetch_add(1);
  } else if (change < 0) {
    // Never below 0, because a capture that began before the session was not counted.
    uint32_t count = captures_.load();
    while (count > 0 && !captures_.compare_exchange_weak(count, count - 1)) {
    }
  }
}

void CuptiCollector::noteInstantiation(const CallClass &known,
                                       const abi::cupti::CallbackData &call) {
  auto *given = static_cast<const abi::cupti::GraphInstantiateParameters *>(call.parameters);
  if (call.site == abi::cupti::kSiteEnter || !given || hasFailed(call)) {
    return;
  }
  uint64_t flags = known.flags == 1        ? given->flags
                   : given->flags_and_more ? *given->flags_and_more
                                           : 0;
  if ((flags & abi::cupti::kFlagDeviceLaunch) != 0) {
    Counters::bumpShared(device_graphs_);
  }
}

void CuptiCollector::seeContext(void *context) {
  uint64_t age = contexts_age_.load(std::memory_order_relaxed);
  if (t_seen.context == context && t_seen.age == age) {
    return;
  }
  t_seen = {context, age};
  last_context_.store(context, std::memory_order_relaxed);
  if (context) {
    std::lock_guard<std::mutex> lock(contexts_mutex_);
    contexts_.insert(context);
    if (stalls_.isRunning() && !isOneDevice(contexts_)) {
      stalls_.refuse("stalls are not sampled: the program uses several GPUs");
    }
  }
}

/// Whether the contexts are of one device, as far as CUPTI tells.
bool CuptiCollector::isOneDevice(const std::set<void *> &contexts) const {
  auto deviceOf = [this](void *context) {
    uint32_t device = 0;
    return library_.GetDeviceId && library_.GetDeviceId(context, &device) == abi::cupti::kSuccess
               ? device
               : 0;
  };
  return std::all_of(contexts.begin(), contexts.end(), [&](void *context) {
    return deviceOf(context) == deviceOf(*contexts.begin());
  });
}

void CuptiCollector::onResource(uint32_t id, const abi::cupti::ResourceData &resource) {
  if (id == abi::cupti::kResourceContextDestroy) {
    {
      std::lock_guard<std::mutex> lock(contexts_mutex_);
      contexts_.erase(resource.context);
    }
    last_context_.store(nullptr, std::memory_order_relaxed);
    contexts_age_.fetch_add(1, std::memory_order_relaxed);
    if (stalls_.isRunning()) {
      stalls_.contextDestroyed(resource.context);
    }
  } else if (id == abi::cupti::kResourceContextCreated) {
    if (stalls_.isRunning()) {
      stalls_.contextCreated(resource.context);
    }
  } else if (id == abi::cupti::kResourceModuleLoaded) {
    if (resource.descriptor && stalls_.isRunning()) {
      stalls_.addModule(*static_cast<const abi::cupti::ModuleData *>(resource.descriptor));
    }
  } else if (resource.descriptor) {
    onGraph(id, *static_cast<const abi::cupti::GraphData *>(resource.descriptor));
  }
}

void CuptiCollector::onBufferRequested(uint8_t **buffer, size_t *bytes, size_t *most_records) {
  CuptiCollector &self = instance();
  *buffer = nullptr;
  *most_records = 0; // as many as fit
  *bytes = self.buffers_.bufferBytes();
  // Releases before 12.9 crash when they are given no buffer.
  bool must_have = self.library_.version < abi::cupti::kVersionDeclinedBuffers;
  *buffer = self.isRunning() || must_have ? self.buffers_.take(must_have) : nullptr;
  if (!*buffer) {
    *bytes = 0;
    Counters::bumpShared(self.attribution_.counters.declined_buffers);
  }
}

void CuptiCollector::onBufferRequestedV2(uint8_t **buffer, size_t *bytes, size_t *most_records,
                                         void *) {
  onBufferRequested(buffer, bytes, most_records);
}

void CuptiCollector::onBufferCompleted(void *context, uint32_t stream, uint8_t *buffer,
                                       size_t bytes, size_t valid_bytes) {
  CuptiCollector &self = instance();
  self.takeBack({buffer, bytes, valid_bytes});
  self.countDropped(context, stream);
}

void CuptiCollector::onBufferCompletedV2(uint8_t *buffer, size_t bytes, size_t valid_bytes,
                                         void *) {
  CuptiCollector &self = instance();
  self.takeBack({buffer, bytes, valid_bytes});
  self.countDropped(nullptr, 0);
}

void CuptiCollector::countDropped(void *context, uint32_t stream) {
  // A buffer may be completed after the unsubscribe. Without a subscriber, releases 13.3 and 13.5
  // dereference a null pointer where CUPTI was never initialised, for example without a device.
  asking_.fetch_add(1); // before `is_running_` is read, so that stop() waits for this thread
  if (is_running_.load() && !is_released_.load()) {
    askForDropped(context, stream);
  }
  asking_.fetch_sub(1);
}

void CuptiCollector::askForDropped(void *context, uint32_t stream) {
  size_t dropped = 0;
  Result result =
      is_second_family_
          ? library_.ActivityGetNumDroppedRecords_v2(subscriber_, context, stream, &dropped)
          : library_.ActivityGetNumDroppedRecords(context, stream, &dropped);
  if (result == abi::cupti::kSuccess && dropped > 0) {
    Counters::bumpShared(attribution_.counters.dropped, dropped);
  }
}

void CuptiCollector::takeBack(const FilledBuffer &buffer) {
  if (!buffer.data) {
    return;
  }
  if (isRunning() && RecorderRegistry::isRecording()) {
    buffers_.put(buffer);
  } else {
    Counters::bumpShared(attribution_.counters.after_stop);
    buffers_.discard(buffer);
  }
}

} // namespace deepcontext::gpu::cupti
