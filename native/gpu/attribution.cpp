#include "gpu/attribution.h"

#include "core/collective_launches.h"
#include "core/exemplars.h"
#include "core/interner.h"
#include "core/metric_registry.h"
#include "gpu/communication.h"

namespace deepcontext::gpu {

namespace {

// A slot's key: recorder (15 bits) | node (22) | name (26) | is a kernel (1).
constexpr int kNodeShift = 27;
constexpr int kRecorderShift = kNodeShift + 22;
constexpr uint64_t kNodeMask = (1ull << 22) - 1;
constexpr uint64_t kNameMask = (1ull << 26) - 1;
// Values that stand for no thread's tree.
constexpr uint64_t kDetachedTree = 0x7FFF;  // the node is of the detached tree
constexpr uint64_t kUnattributed = 0x7FFE;  // no call path is known
constexpr uint64_t kCommunication = 0x7FFD; // no call path is known, but what it is
static_assert(ThreadTree::kChunkNodes * ThreadTree::kMaxChunks <= kNodeMask + 1);
static_assert(kNodeMask >> CorrelationTable::kNodeBits == 0);

uint64_t parentKey(uint64_t recorder, uint64_t node) {
  return recorder << kRecorderShift | (node & kNodeMask) << kNodeShift;
}

} // namespace

inline uint64_t Attribution::Slot::hashOf(uint64_t key) {
  key *= 0x9E3779B97F4A7C15u;
  key ^= key >> 29;
  return key * 0xBF58476D1CE4E5B9u >> 20;
}

Attribution::Attribution(const CorrelationTable &table)
    : table_(table), idle_([this](const IdleGap &gap) { onGap(gap); }) {
  MetricRegistry &metrics = MetricRegistry::instance();
  time_metric_ = metrics.id("gpu_time_ns");
  delay_metric_ = metrics.id("queue_delay_ns");
  bytes_metric_ = metrics.id("copy_bytes");
  launch_metric_ = metrics.id("launch_count");
  idle_metric_ = metrics.id("gpu_idle_ns");
  gap_metric_ = metrics.id("gpu_gap_ns");
  stall_metric_ = metrics.id("stall_samples");
  exposed_metric_ = metrics.id("exposed_communication_ns");
  grid_metric_ = metrics.id("grid_block_count");
  block_metric_ = metrics.id("block_thread_count");
  register_metric_ = metrics.id("register_count");
  shared_metric_ = metrics.id("shared_memory_bytes");
  Interner &interner = Interner::instance();
  unattributed_name_ = interner.intern("GPU work of unknown origin");
  communication_name_ = interner.intern("communication between GPUs (RCCL)");
  replay_name_ = interner.intern("graph replay");
  unseen_replay_name_ = interner.intern("graph replay (captured before profiling)");
}

void Attribution::begin(Recorder &recorder) {
  recorder_ = &recorder;
  count_ = 0;
  recorder.spans.begin(RecorderRegistry::instance().takesSpans());
  slots_.clear();
  recorders_.clear();
  graph_parents_.clear();
  host_locations_.clear();
  graphs.clear();
  silent_graphs.clear();
  answered_.clear();
  counters.forEach(
      [](const char *, auto &counter) { counter.store(0, std::memory_order_relaxed); });
  stalls.take();
  waiting_stalls_.clear();
  idle_.clear();
  clock = DeviceClock();
}

void Attribution::forgetAnswers() {
  std::lock_guard<std::mutex> lock(mutex_);
  flush();
  answered_.clear();
}

void Attribution::finishBuffer() {
  flush();
  idle_.settle(false);
  Exemplars::instance().noteRecords();
}

void Attribution::publish(bool is_final) {
  flush();
  if (is_final) {
    idle_.settle(true);
  }
  graphs.forgetDestroyed(is_final);
  uint64_t late = 0, crowded = 0;
  for (const auto &[device, totals] : idle_.totals()) {
    late += totals.late_ns;
    crowded += totals.crowded;
  }
  counters.late_idle_ns.store(late, std::memory_order_relaxed);
  counters.crowded.store(crowded, std::memory_order_relaxed);
  slots_.forEach([this](Slot &slot) {
    if (slot.time->count() > slot.launches) {
      slot.launches = slot.time->count();
      recorder_->tree.metric(slot.node, launch_metric_)
          .assign({slot.launches, slot.launches, 1, 1, 0});
    }
  });
  publishStalls(is_final);
}

void Attribution::flush() {
  CallSite sites[kBatch];
  bool is_known[kBatch];
  uint64_t keys[kBatch];
  Slot *slots[kBatch];
  for (uint32_t i = 0; i < count_; ++i) {
    table_.prefetch(batch_[i].correlation);
  }
  uint64_t matched = 0, answered = 0, communication = 0;
  for (uint32_t i = 0; i < count_; ++i) {
    is_known[i] =
        table_.find(batch_[i].correlation, &sites[i]) && sites[i].recorder < kCommunication;
    matched += is_known[i];
    communication += !is_known[i] && batch_[i].is_communication;
    answered += is_known[i] && answered_.note(batch_[i].correlation);
    if (__builtin_expect(is_known[i] && sites[i].silent_graph != 0, 0)) {
      silent_graphs.noteRecord(sites[i].silent_graph);
    }
    keys[i] = keyOf(batch_[i], is_known[i], sites[i]);
    slots_.prefetch(keys[i]);
  }
  // Room for all first, because a table that grows moves its slots.
  if (!slots_.makeRoom(count_)) {
    throw std::bad_alloc();
  }
  for (uint32_t i = 0; i < count_; ++i) {
    slots[i] = &slotOf(keys[i], batch_[i]);
    __builtin_prefetch(slots[i]->time, 1);
    __builtin_prefetch(slots[i]->delay, 1);
  }
  for (uint32_t i = 0; i < count_; ++i) {
    addTimes(batch_[i], *slots[i], is_known[i], sites[i]);
  }
  Counters::bump(counters.matched, matched);
  Counters::bump(counters.unmatched, count_ - matched - communication);
  Counters::bump(counters.communication, communication);
  Counters::bump(counters.answered, answered);
  count_ = 0;
}

uint64_t Attribution::keyOf(const Activity &activity, bool is_known, const CallSite &site) {
  uint64_t what = static_cast<uint64_t>(activity.name & kNameMask) << 1 |
                  (activity.kind == ActivityKind::kKernel);
  if (!is_known) {
    return parentKey(activity.is_communication ? kCommunication : kUnattributed, 0) | what;
  }
  if (__builtin_expect(activity.graph_node != 0, 0)) {
    return parentOfGraphRecord(activity, site) | what;
  }
  return parentKey(site.recorder, site.node) | what;
}

/// Below the replaying call, the path that captured the node; where that is unknown, the replay
/// alone.
uint64_t Attribution::parentOfGraphRecord(const Activity &activity, const CallSite &site) {
  TreePlace captured{0, 0};
  bool is_seen = graphs.find(activity.graph_node, &captured) ||
                 (activity.captured_node && graphs.find(activity.captured_node, &captured));
  Counters::bump(is_seen ? counters.graph_captured : counters.graph_launched);
  Node *launch = link(site.recorder, site.node);
  Node *replay = recorder_->tree.child(launch, FrameKind::kGraph,
                                       is_seen ? replay_name_ : unseen_replay_name_, 0);
  if (!is_seen) {
    return parentKey(kDetachedTree, replay->id);
  }
  uint64_t key = pathKey(captured.recorder, captured.node, replay->id);
  auto known = graph_parents_.find(key);
  if (known == graph_parents_.end()) {
    known = graph_parents_.emplace(key, copyPath(replay, captured)->id).first;
  }
  return parentKey(kDetachedTree, known->second);
}

Attribution::Slot &Attribution::slotOf(uint64_t key, const Activity &activity) {
  Slot *known = slots_.find(key);
  Slot &slot =
      __builtin_expect(known != nullptr, 1) ? *known : slots_.insert(makeSlot(key, activity));
  if (__builtin_expect(activity.kind == ActivityKind::kKernel, 1)) {
    uint64_t shape = activity.shape.fingerprint();
    if (__builtin_expect(slot.shape != shape, 0)) {
      slot.shape = shape;
      describe(slot, activity.shape);
    }
  }
  return slot;
}

Attribution::Slot Attribution::makeSlot(uint64_t key, const Activity &activity) {
  bool is_kernel = activity.kind == ActivityKind::kKernel;
  ThreadTree &tree = recorder_->tree;
  Slot slot;
  slot.key = key;
  slot.node = tree.child(parentNode(key), is_kernel ? FrameKind::kKernel : FrameKind::kCopy,
                         activity.name, 0);
  slot.time = &tree.metric(slot.node, time_metric_);
  bool is_communication =
      is_kernel && isCommunicationKernel(Interner::instance().text(activity.name));
  if (!is_kernel || is_communication) {
    slot.more = &tree.metric(slot.node, is_kernel ? exposed_metric_ : bytes_metric_);
  }
  return slot;
}

/// Record a launch shape only when it differs from the last one.
void Attribution::describe(Slot &slot, const LaunchShape &shape) {
  if (shape.block_threads == 0) { // roctracer does not report it
    return;
  }
  ThreadTree &tree = recorder_->tree;
  tree.metric(slot.node, grid_metric_).add(shape.grid_blocks);
  tree.metric(slot.node, block_metric_).add(shape.block_threads);
  tree.metric(slot.node, register_metric_).add(shape.registers);
  tree.metric(slot.node, shared_metric_).add(shape.shared_bytes);
}

void Attribution::addTimes(const Activity &activity, Slot &slot, bool is_known,
                           const CallSite &site) {
  bool is_kernel = activity.kind == ActivityKind::kKernel;
  if (!is_kernel) {
    slot.more->add(activity.bytes);
  }
  // A start of 0: the vendor could not take the time, or a forced flush delivered the record early.
  // As a time it would be an idle gap since the epoch.
  // A start that is years away is of another tool's clock.
  if (__builtin_expect(activity.end_ns < activity.start_ns || activity.start_ns == 0 ||
                           !clock.isPlausible(activity.start_ns),
                       0)) {
    Counters::bump(counters.bad_times);
    slot.time->add(0);
    return;
  }
  slot.time->add(activity.end_ns - activity.start_ns);
  BusyInterval interval = {activity.start_ns,
                           activity.end_ns,
                           activity.correlation,
                           is_kernel ? Work::kCompute : Work::kCopy,
                           0,
                           nullptr};
  if (__builtin_expect(is_kernel && slot.more != nullptr, 0)) {
    interval.work = Work::kCommunication;
    interval.exposed = slot.more;
    interval.collective = CollectiveLaunches::instance().find(activity.correlation);
  }
  idle_.add(activity.device, activity.stream, interval);
  if (clock.isKnown()) {
    recorder_->spans.add(clock.ticksOf(activity.start_ns), clock.ticksOf(activity.end_ns),
                         slot.node->id, Span::laneOf(activity.device, activity.stream));
  }
  // In a graph only the first node waits for the launch.
  if (is_known && activity.graph_node == 0 && clock.isKnown()) {
    int64_t delay = static_cast<int64_t>(activity.start_ns) - clock.deviceNs(site.ticks);
    if (__builtin_expect(delay < 0, 0)) {
      Counters::bump(counters.early_starts);
      delay = 0;
    }
    if (__builtin_expect(!slot.delay, 0)) {
      slot.delay = &recorder_->tree.metric(slot.node, delay_metric_);
    }
    slot.delay->add(static_cast<uint64_t>(delay));
  }
}

uint64_t Attribution::unattributedKey() {
  return parentKey(kUnattributed, 0);
}

Recorder *Attribution::recorderAt(uint32_t index) {
  if (index >= recorders_.size()) {
    recorders_.resize(index + 1, nullptr);
  }
  if (!recorders_[index]) {
    recorders_[index] = RecorderRegistry::instance().at(index);
  }
  return recorders_[index];
}

Node *Attribution::link(uint32_t recorder, uint32_t node) {
  ThreadTree &tree = recorder_->tree;
  return tree.child(tree.root(), FrameKind::kLink, recorder, node);
}

Node *Attribution::parentNode(uint64_t key) {
  uint64_t recorder = key >> kRecorderShift;
  uint32_t node = static_cast<uint32_t>(key >> kNodeShift & kNodeMask);
  ThreadTree &tree = recorder_->tree;
  switch (recorder) {
  case kDetachedTree:
    return tree.node(node);
  case kCommunication:
    return tree.child(tree.root(), FrameKind::kMarker, communication_name_, 0);
  case kUnattributed:
    return tree.child(tree.root(), FrameKind::kMarker, unattributed_name_, 0);
  default:
    return link(static_cast<uint32_t>(recorder), node);
  }
}

/// Copy the path of another tree's node below `parent`.
Node *Attribution::copyPath(Node *parent, TreePlace place) {
  std::vector<const Node *> path;
  constexpr size_t kDeepest = 4096; // no path is longer; guards against a cycle of links
  const Recorder *recorder = recorderAt(place.recorder);
  const Node *node =
      recorder && place.node < recorder->tree.size() ? recorder->tree.node(place.node) : nullptr;
  while (node && node->kind != FrameKind::kRoot && path.size() < kDeepest) {
    if (node->kind == FrameKind::kLink) {
      recorder = recorderAt(static_cast<uint32_t>(node->a));
      node = recorder ? recorder->tree.node(static_cast<uint32_t>(node->b)) : nullptr;
      continue;
    }
    path.push_back(node);
    node = node->parent;
  }
  for (auto step = path.rbegin(); step != path.rend(); ++step) {
    Node *copy = recorder_->tree.child(parent, (*step)->kind, (*step)->a, (*step)->b);
    copy->setFlag(static_cast<NodeFlag>((*step)->flags.load(std::memory_order_relaxed)));
    parent = copy;
  }
  return parent;
}

} // namespace deepcontext::gpu
