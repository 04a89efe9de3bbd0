#include "python/gc_pauses.h"

#include "core/metric_registry.h"
#include "core/recorder.h"
#include "python/frame_walk.h"

namespace deepcontext {

namespace {

uint64_t g_started = 0; // guarded by the GIL

} // namespace

void GcPauses::started() {
  g_started = ticks();
}

void GcPauses::stopped() {
  static const uint16_t metric = MetricRegistry::instance().id("gc_time_ns", true);
  Recorder *recorder = RecorderRegistry::currentOrNull();
  if (!g_started || !recorder || !RecorderRegistry::isRecording() ||
      !recorder->isOf(RecorderRegistry::generation())) {
    return;
  }
  uint64_t elapsed = recorder->ticksSince(g_started, ticks());
  g_started = 0;
  double ns_per_tick = RecorderRegistry::instance().clock().nsPerTick();
  if (static_cast<double>(elapsed) * ns_per_tick < kLeastNs) {
    return;
  }
  Node *node = pythonContext(*recorder, currentFrame(*recorder), recorder->innermost());
  recorder->tree.metric(node, metric).add(elapsed);
}

} // namespace deepcontext
