// Attribution of idle time: which call path the host was on while the device had nothing to do.
//
// Between two consecutive API calls of a host thread, the host stayed inside the frames that both
// call paths share and moved within the outermost frame that differs. That frame, at the line of
// the later call, is charged.
#include <algorithm>

#include "gpu/attribution.h"

namespace deepcontext::gpu {

namespace {

constexpr uint32_t kLookBack = 256; // calls
constexpr size_t kRemembered = 1u << 16;

uint32_t depthOf(const Node *node) {
  uint32_t depth = 0;
  for (; node->kind != FrameKind::kRoot; node = node->parent) {
    ++depth;
  }
  return depth;
}

/// The outermost node on the path to `after` that is not on the path to `before`; `after` itself
/// when there is none.
const Node *whereTheyPart(const Node *before, const Node *after) {
  uint32_t before_depth = depthOf(before), after_depth = depthOf(after);
  for (; before_depth > after_depth; --before_depth) {
    before = before->parent;
  }
  const Node *parted = after;
  for (; after_depth > before_depth; --after_depth) {
    parted = after;
    after = after->parent;
  }
  while (before != after) {
    parted = after;
    before = before->parent;
    after = after->parent;
  }
  return parted;
}

} // namespace

/// Find the same thread's call before `*correlation`, and set `*correlation` to that call.
bool Attribution::callBefore(const CallSite &site, uint32_t *correlation, CallSite *before) const {
  uint32_t id = *correlation;
  for (uint32_t steps = 0; steps < kLookBack; ++steps) {
    --id;
    if (table_.find(id, before) && before->recorder == site.recorder &&
        CorrelationTable::ticksBetween(before->ticks, site.ticks) >= 0) {
      *correlation = id;
      return true;
    }
  }
  return false;
}

Node *Attribution::hostLocation(const CallSite &before, const CallSite &after) {
  uint64_t key = pathKey(after.recorder, before.node, after.node);
  auto known = host_locations_.find(key);
  if (known != host_locations_.end()) {
    return link(after.recorder, known->second);
  }
  Recorder *recorder = recorderAt(after.recorder);
  uint32_t size = recorder ? recorder->tree.size() : 0;
  if (before.node >= size || after.node >= size) {
    return link(after.recorder, after.node);
  }
  if (host_locations_.size() >= kRemembered) {
    host_locations_.clear();
  }
  const ThreadTree &tree = recorder->tree;
  uint32_t node = whereTheyPart(tree.node(before.node), tree.node(after.node))->id;
  host_locations_.emplace(key, node);
  return link(after.recorder, node);
}

/// Charge host time [from_ns, to_ns) before the call at `site`, split at the thread's earlier
/// calls.
void Attribution::chargeIdle(const CallSite &site, uint32_t correlation, int64_t from_ns,
                             int64_t to_ns) {
  CallSite after = site;
  CallSite before;
  while (to_ns > from_ns) {
    bool is_known = callBefore(after, &correlation, &before);
    int64_t begin = is_known ? std::max(from_ns, clock.deviceNs(before.ticks)) : from_ns;
    Node *where = is_known ? hostLocation(before, after) : link(after.recorder, after.node);
    if (begin < to_ns) {
      recorder_->tree.metric(where, idle_metric_).add(static_cast<uint64_t>(to_ns - begin));
      to_ns = begin;
    }
    after = before;
  }
}

void Attribution::onGap(const IdleGap &gap) {
  CallSite site;
  auto start = static_cast<int64_t>(gap.start_ns);
  auto end = static_cast<int64_t>(gap.end_ns);
  ThreadTree &tree = recorder_->tree;
  if (!table_.find(gap.correlation, &site) || !clock.isKnown()) {
    Node *nobody = parentNode(unattributedKey());
    tree.metric(nobody, idle_metric_).add(static_cast<uint64_t>(end - start));
    return;
  }
  // Before the launch the device had no work; after it, the device had not started the work.
  int64_t launched = std::min(std::max(clock.deviceNs(site.ticks), start), end);
  if (launched > start) {
    chargeIdle(site, gap.correlation, start, launched);
  }
  if (end > launched) {
    Node *launch = link(site.recorder, site.node);
    tree.metric(launch, gap_metric_).add(static_cast<uint64_t>(end - launched));
  }
}

} // namespace deepcontext::gpu
