#include "jax/spans.h"

#include <algorithm>

#include "core/metric_registry.h"
#include "jax/collectives.h"
#include "jax/device_waits.h"
#include "jax/dispatch.h"
#include "jax/live_arrays.h"
#include "python/frame_walk.h"
#include "python/scopes.h"

namespace deepcontext::jax {

namespace {

constexpr char kCopyToDevice[] = "jax: copy to device";

/// Charge finished time to a separate node instead of the level around it.
Node *addLeaf(Recorder &recorder, Node *parent, const std::string &marker, uint64_t spent_ticks) {
  Node *node =
      recorder.tree.child(parent, FrameKind::kMarker, Interner::instance().intern(marker), 0);
  NodeCost &cost = recorder.tree.cost(node);
  cost.duration.add(spent_ticks);
  cost.addExclusive(spent_ticks);
  uint64_t now = ticks();
  recorder.spans.add(now - std::min(spent_ticks, now), now, node->id);
  if (Level *level = recorder.innermost()) {
    level->nested_ticks += spent_ticks;
  }
  return node;
}

uint64_t nsOf(uint64_t spent_ticks) {
  return static_cast<uint64_t>(static_cast<double>(spent_ticks) *
                               RecorderRegistry::instance().clock().nsPerTick());
}

} // namespace

void addPhaseTime(const std::string &marker, uint64_t ns) {
  if (!RecorderRegistry::isRecording()) {
    return;
  }
  Recorder &recorder = RecorderRegistry::current();
  const ActiveCall *outermost = innermostCall();
  while (outermost && outermost->outer) {
    outermost = outermost->outer;
  }
  Level *level = recorder.innermost();
  bool is_inside = outermost && outermost->node && level && level->owner == outermost;
  Node *parent =
      is_inside ? outermost->node : pythonContext(recorder, currentFrame(recorder), level);
  auto spent = static_cast<uint64_t>(static_cast<double>(ns) /
                                     RecorderRegistry::instance().clock().nsPerTick());
  addLeaf(recorder, parent, marker, spent);
}

void addWait(const std::string &marker, uint64_t start_ticks, uint64_t end_ticks,
             uint64_t read_bytes) {
  if (!RecorderRegistry::isRecording() || innermostCall()) {
    return; // inside a call, jax itself waits
  }
  Recorder &recorder = RecorderRegistry::current();
  Node *parent = pythonContext(recorder, currentFrame(recorder), recorder.innermost());
  Node *node = addLeaf(recorder, parent, marker, recorder.ticksSince(start_ticks, end_ticks));
  static const uint16_t metric = MetricRegistry::instance().id("read_bytes");
  recorder.tree.metric(node, metric).add(read_bytes);
  DeviceWaits::instance().addEnded(nsOf(end_ticks - start_ticks));
}

uint64_t enterSpan(FrameKind kind, const std::string &name) {
  if (!RecorderRegistry::isRecording() || innermostCall()) {
    return 0; // inside a call, jax itself waits and copies
  }
  Collectives::instance().setWaiting(name != kCopyToDevice);
  return enterPythonScope(RecorderRegistry::current(), kind, Interner::instance().intern(name));
}

void noteCopied(PyObject *result) {
  if (!g_array_type || !RecorderRegistry::isRecording() || innermostCall()) {
    return; // inside a call, they belong to that call
  }
  static const uint32_t name = Interner::instance().intern(kCopyToDevice);
  Recorder &recorder = RecorderRegistry::current();
  const InterpreterFrame *top = skipScopePlumbing(recorder, currentFrame(recorder));
  Node *parent = pythonContext(recorder, top, recorder.innermost());
  noteMade(result, recorder.index(), recorder.tree.child(parent, FrameKind::kCopy, name, 0)->id);
}

void leaveSpan(uint64_t token, uint64_t bytes) {
  uint64_t now = ticks();
  Collectives::instance().setWaiting(false);
  Recorder *recorder = RecorderRegistry::currentOrNull();
  if (!recorder || token == 0) {
    return;
  }
  const Level *level = recorder->innermost();
  if (level && level->owner == scopeOwner(token) && now > level->start_ticks) {
    DeviceWaits::instance().addEnded(nsOf(now - level->start_ticks));
  }
  if (bytes > 0 && level && level->owner == scopeOwner(token)) {
    static const uint16_t metric = MetricRegistry::instance().id("transfer_bytes");
    recorder->tree.metric(level->node, metric).add(bytes);
  }
  recorder->close(scopeOwner(token), now);
}

} // namespace deepcontext::jax
