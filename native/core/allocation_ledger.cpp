#include "core/allocation_ledger.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <new>

#include "core/guard.h"
#include "core/ledger_reading.h"
#include "core/metric_registry.h"

namespace deepcontext {

namespace {

using Guard = std::lock_guard<SpinLock>;

constexpr uint32_t kTurnMask = (1u << 24) - 1;
constexpr uint32_t kRoleMask = (1u << 7) - 1;

/// Ids of the metrics of one kind of pool.
struct Metrics {
  explicit Metrics(const std::string &prefix) {
    MetricRegistry &registry = MetricRegistry::instance();
    auto gauge = [&](const char *name) { return registry.gauge(prefix + name); };
    allocated = registry.id(prefix + "alloc_bytes");
    own_peak = registry.id(prefix + "own_peak_bytes");
    live = gauge("live_bytes");
    peak = gauge("peak_bytes");
    growth = gauge("growth_bytes");
    roles = {0,
             gauge("peak_parameter_bytes"),
             gauge("peak_gradient_bytes"),
             gauge("peak_optimizer_bytes"),
             gauge("peak_activation_bytes"),
             gauge("peak_input_bytes"),
             gauge("peak_temporary_bytes")};
  }
  static const Metrics &host() {
    static const Metrics metrics("");
    return metrics;
  }
  static const Metrics &device() {
    static const Metrics metrics("gpu_");
    return metrics;
  }
  uint16_t allocated, own_peak, live, peak, growth;
  std::array<uint16_t, kTensorRoles> roles;
};

MetricValues gauge(uint64_t count, uint64_t total) {
  MetricValues values;
  values.count = count;
  values.total = total;
  return values;
}

bool isInModule(const Node *node) {
  while (node && node->kind != FrameKind::kModule) {
    node = node->parent;
  }
  return node != nullptr;
}

/// Stages of the contexts that a thread was in last; its owner only. A look-up reads the nodes up
/// to the root, so each context is looked up once, whatever its depth, until a node of the thread
/// gets a new flag, which happens at most a few times to each node.
class KnownStages {
public:
  template <typename LookUp> Stage of(const Node *node, uint64_t session, LookUp look_up) {
    if (session_ != session || flags_ != Node::flagsSet()) {
      known_.fill({});
      session_ = session;
      flags_ = Node::flagsSet();
    }
    Known &known = known_[node->id % kContexts];
    if (known.node != node) {
      known = {node, look_up(node)};
    }
    return known.stage;
  }

private:
  static constexpr size_t kContexts = 64; // operators of a step that free memory, one after another
  struct Known {
    const Node *node = nullptr;
    Stage stage = Stage::kOther;
  };
  uint64_t session_ = 0;
  uint64_t flags_ = 0;
  std::array<Known, kContexts> known_;
};

/// On the heap: the static TLS block, which all libraries of a process share, has no room for it.
class OwnStages {
public:
  ~OwnStages() {
    delete stages_;
    stages_ = nullptr;
    is_over_ = true; // later destructors of the thread may free memory
  }
  KnownStages *get() {
    if (!stages_ && !is_over_) {
      stages_ = new (std::nothrow) KnownStages();
    }
    return stages_;
  }

private:
  KnownStages *stages_ = nullptr;
  bool is_over_ = false;
};

/// What the calling thread is doing now.
Stage currentStage(AllocationLedger::StageOf stage_of) {
  static thread_local OwnStages own;
  Recorder *recorder = RecorderRegistry::currentOrNull();
  const Level *level = recorder ? recorder->innermost() : nullptr;
  if (!level || !level->node || !stage_of) {
    return Stage::kOther;
  }
  auto look_up = [stage_of](const Node *node) { return stage_of(node, false); };
  KnownStages *known = own.get();
  return known ? known->of(level->node, RecorderRegistry::generation(), look_up)
               : look_up(level->node);
}

} // namespace

AllocationLedger &AllocationLedger::instance() {
  static AllocationLedger *const ledger = new AllocationLedger(); // outlives every thread
  return *ledger;
}

template <typename Part> void AllocationLedger::keepForReading(Part &part) {
  if (reading_ && !guarded([&] { reading_->see(part); })) {
    reading_->fail();
  }
}

void AllocationLedger::touch(AllocationSite &site) {
  keepForReading(site);
  if (site.epoch != site.pool->epoch) {
    keepPeak(site);
  }
  if (__builtin_expect(site.steps != steps_, 0)) {
    passSteps(site);
  }
}

void AllocationLedger::begin(uint64_t session, StageOf stage_of) {
  Guard only(readings_);
  Guard guard(lock_);
  table_.clear();
  sites_.clear();
  histories_.clear();
  pools_.fill(MemoryPool());
  pool_count_ = 0;
  frozen_roles_.clear();
  is_frozen_ = false;
  for (auto &pool : pool_of_) {
    pool.store(nullptr, std::memory_order_relaxed);
  }
  for (auto *counter : {&counters.untracked, &counters.untracked_bytes, &counters.replaced}) {
    counter->store(0, std::memory_order_relaxed);
  }
  steps_ = 0;
  uncounted_steps_ = 0;
  step_kind_ = StepKind::kCall;
  turn_ = 0;
  stage_of_.store(stage_of, std::memory_order_relaxed);
  last_session_ = session;
  session_.store(session, std::memory_order_relaxed);
}

void AllocationLedger::freeze() {
  {
    Guard guard(lock_);
    if (!isRecording()) {
      return;
    }
    session_.store(0, std::memory_order_relaxed); // nothing changes from now on
  }
  LedgerReading reading(*this);
  while (reading.next()) {
  }
  AllocationTable living; // gives the memory back without the lock
  Guard guard(lock_);
  frozen_roles_.swap(reading.roles);
  is_frozen_ = true;
  table_.swap(living);
}

MemoryPool *AllocationLedger::findPool(uint16_t key) const {
  for (size_t i = 0; i < kMaxPools; ++i) {
    MemoryPool *known = pool_of_[i].load(std::memory_order_acquire);
    if (!known || pool_keys_[i] == key) {
      return known;
    }
  }
  return nullptr;
}

MemoryPool *AllocationLedger::pool(uint16_t key, const char *kind) {
  if (MemoryPool *known = findPool(key)) {
    return known;
  }
  Guard guard(lock_);
  MemoryPool *known = findPool(key); // another thread may have made it
  if (!isRecording() || known || pool_count_ == kMaxPools) {
    return isRecording() ? known : nullptr;
  }
  MemoryPool &fresh = pools_[pool_count_];
  fresh.is_device = key != 0;
  fresh.name = fresh.is_device ? kind + (":" + std::to_string(key & 0xff)) : kind;
  fresh.growth.pass(countedSteps(), 0);
  pool_keys_[pool_count_] = key;
  pool_of_[pool_count_++].store(&fresh, std::memory_order_release);
  return &fresh;
}

void AllocationLedger::allocated(const Recorder &recorder, Node *node, MemoryPool *pool,
                                 const void *address, uint64_t bytes) {
  // Read without the lock: only the caller, who owns the node, ever writes it.
  bool is_new = !siteOf(recorder, node, pool);
  StageOf stage_of = stage_of_.load(std::memory_order_relaxed);
  Stage stage = is_new && stage_of ? stage_of(node, pool->is_device) : Stage::kOther;
  Guard guard(lock_);
  if (!recorder.isOf(session_.load(std::memory_order_relaxed))) {
    return; // the session ended meanwhile
  }
  AllocationSite *site =
      is_new ? makeSite(recorder, node, pool, stage) : siteOf(recorder, node, pool);
  // A path that allocates more often than any before means a new call, or a pass of a loop in one.
  if (site->is_in_module && step_kind_ == StepKind::kCall &&
      site->allocated.count() > countedSteps()) {
    passStep(StepKind::kCall);
  }
  touch(*site);
  site->allocated.add(bytes);
  pool->allocations++;
  pool->allocated_bytes += bytes;
  Allocation *entry = table_.insert(reinterpret_cast<uintptr_t>(address));
  if (__builtin_expect(!entry, 0)) {
    RecorderCounters::bump(counters.untracked);
    RecorderCounters::bump(counters.untracked_bytes, bytes);
    return;
  }
  if (__builtin_expect(entry->site != nullptr, 0)) {
    RecorderCounters::bump(counters.replaced);
    release(entry);
  }
  entry->site = site;
  entry->size_bytes = bytes;
  entry->epoch = pool->epoch;
  turn_ += site->stage == Stage::kBackward;
  entry->turn = turn_ & kTurnMask;
  entry->role = static_cast<uint32_t>(TensorRole::kUnknown);
  entry->is_seen = seen_mark_;
  site->live_bytes += bytes;
  site->blocks++;
  site->own_peak_bytes = std::max(site->own_peak_bytes, site->live_bytes);
  pool->live_bytes += bytes;
  if (pool->live_bytes > pool->peak_bytes) {
    pool->peak_bytes = pool->live_bytes;
    pool->peak_ticks = ticks();
    pool->peak_step = countedSteps();
    pool->epoch++;
  }
}

void AllocationLedger::freed(const void *address) {
  Guard guard(lock_);
  Allocation *entry = isRecording() ? table_.find(reinterpret_cast<uintptr_t>(address)) : nullptr;
  if (!entry) {
    return; // not a tensor's, or allocated before the session
  }
  release(entry);
  table_.erase(entry);
}

/// Subtract an allocation from the site that made it. The entry stays in the table.
void AllocationLedger::release(Allocation *entry) {
  AllocationSite &site = *entry->site;
  keepForReading(*entry);
  touch(site);
  if (entry->epoch < site.pool->epoch) { // was held at the peak
    TensorRole role =
        roleOf(*entry, currentStage(stage_of_.load(std::memory_order_relaxed)), turn_);
    historyOf(site).freed_since_peak[static_cast<size_t>(role)] += entry->size_bytes;
  }
  site.live_bytes -= entry->size_bytes;
  site.blocks--;
  site.pool->live_bytes -= entry->size_bytes;
}

void AllocationLedger::noteReserved(MemoryPool *pool, uint64_t bytes) {
  Guard guard(lock_);
  if (isRecording()) {
    pool->reserved_peak_bytes = std::max(pool->reserved_peak_bytes, bytes);
  }
}

void AllocationLedger::markStep() {
  Guard guard(lock_);
  passStep(StepKind::kMark);
}

void AllocationLedger::markOptimizerStep() {
  Guard guard(lock_);
  passStep(StepKind::kOptimizer);
}

void AllocationLedger::passStep(StepKind kind) {
  if (!isRecording() || kind < step_kind_) {
    return;
  }
  if (kind > step_kind_) {
    if (reading_) {
      reading_->forgetGrowth();
    }
    step_kind_ = kind;
    // One more, so that every site is behind, and forgets its own growth at its next change: there
    // may be too many sites to visit below the lock.
    uncounted_steps_ = ++steps_;
    for (size_t i = 0; i < pool_count_; ++i) {
      pools_[i].growth = Growth();
      pools_[i].peak_step = 0;
    }
  }
  ++steps_;
  for (size_t i = 0; i < pool_count_; ++i) {
    MemoryPool &pool = pools_[i];
    pool.growth.pass(countedSteps(), pool.live_bytes);
  }
}

void AllocationLedger::setRole(const std::vector<uintptr_t> &addresses, TensorRole role) {
  Guard guard(lock_);
  for (uintptr_t address : addresses) {
    if (Allocation *entry = isRecording() ? table_.find(address) : nullptr) {
      keepForReading(*entry);
      entry->role = static_cast<uint32_t>(role) & kRoleMask;
    }
  }
}

std::vector<AllocationLedger::Place>
AllocationLedger::placesOf(const std::vector<uintptr_t> &addresses) {
  std::map<uint32_t, Place> places; // by site
  Guard guard(lock_);
  for (uintptr_t address : addresses) {
    if (const Allocation *entry = table_.find(address)) {
      const AllocationSite &site = *entry->site;
      Place &place = places
                         .try_emplace(site.index, Place{site.recorder, site.node, 0, 0, site.blocks,
                                                        site.allocated.count()})
                         .first->second;
      ++place.blocks;
      place.size_bytes += entry->size_bytes;
    }
  }
  std::vector<Place> found;
  for (const auto &[index, place] : places) {
    found.push_back(place);
  }
  return found;
}

AllocationSite *AllocationLedger::siteOf(const Recorder &recorder, Node *node, MemoryPool *pool) {
  if (!recorder.isOf(session_.load(std::memory_order_relaxed))) {
    return nullptr;
  }
  AllocationSite *site = node->sites;
  while (site && site->pool != pool) {
    site = site->next_of_node;
  }
  return site;
}

AllocationSite *AllocationLedger::makeSite(const Recorder &recorder, Node *node, MemoryPool *pool,
                                           Stage stage) {
  AllocationSite &site = sites_.emplace_back();
  site.pool = pool;
  site.recorder = recorder.index();
  site.node = node->id;
  site.index = static_cast<uint32_t>(sites_.size() - 1);
  site.stage = stage;
  site.is_in_module = stage == Stage::kForward && isInModule(node);
  site.epoch = pool->epoch;
  site.is_seen = seen_mark_;
  site.next_of_node = node->sites;
  node->sites = &site;
  site.steps = steps_;
  return &site;
}

void AllocationLedger::abandonReadingInChild() {
  reading_ = nullptr;
  new (&readings_) SpinLock();
}

void AllocationLedger::keepPeak(AllocationSite &site) {
  site.at_peak_bytes = site.live_bytes;
  site.at_peak_blocks = site.blocks;
  site.epoch = site.pool->epoch;
  if (site.history) {
    site.history->freed_since_peak.fill(0);
  }
}

SiteHistory &AllocationLedger::historyOf(AllocationSite &site) {
  if (!site.history) {
    site.history = &histories_.emplace_back();
    site.history->growth.pass(countedSteps(site), 0);
  }
  return *site.history;
}

/// Growth of what a site holds, the steps since its last change included.
Growth AllocationLedger::growthOf(const AllocationSite &site, uint32_t steps) const {
  Growth growth = site.history && !isOfEarlierKind(site) ? site.history->growth : Growth();
  growth.pass(countedSteps(site), 0); // changes nothing where there is a history
  growth.pass(steps, site.live_bytes);
  return growth;
}

void AllocationLedger::passSteps(AllocationSite &site) {
  if (site.history && isOfEarlierKind(site)) {
    site.history->growth = Growth();
  }
  if (site.history || site.live_bytes > 0) {
    historyOf(site).growth.pass(countedSteps(), site.live_bytes);
  }
  site.steps = steps_;
}

/// The role of an allocation: as set by the collector, otherwise inferred from the stage that made
/// the allocation and whether it outlived that stage.
TensorRole AllocationLedger::roleOf(const Allocation &entry, Stage freed_in, uint32_t turn) {
  if (entry.role != static_cast<uint32_t>(TensorRole::kUnknown)) {
    return static_cast<TensorRole>(entry.role);
  }
  Stage made_in = entry.site->stage;
  switch (made_in) {
  case Stage::kForward:
    return freed_in == Stage::kBackward || entry.turn != (turn & kTurnMask)
               ? TensorRole::kActivation
               : TensorRole::kTemporary;
  case Stage::kBackward:
    return freed_in == made_in ? TensorRole::kTemporary : TensorRole::kGradient;
  case Stage::kOptimizer:
    return freed_in == made_in ? TensorRole::kTemporary : TensorRole::kOptimizerState;
  case Stage::kLoading:
    return TensorRole::kInput;
  case Stage::kOther:
    break;
  }
  return TensorRole::kUnknown;
}

ForeignRows AllocationLedger::rows(uint64_t session) {
  LedgerReading reading(*this);
  if (session != reading.session) {
    return {};
  }
  while (reading.next()) {
  }
  return rowsOf(reading);
}

/// Call `visit(site)` for each site of a session, some hundred at a time under the lock, so that
/// threads that allocate wait for microseconds only. Sites are only added while it runs.
template <typename Visit> void AllocationLedger::forEachSite(uint64_t session, Visit visit) {
  constexpr size_t kSlice = 256;
  for (size_t begin = 0, end = kSlice; begin < end; begin = end, end += kSlice) {
    Guard guard(lock_);
    if (session != last_session_) {
      return;
    }
    end = std::min(end, sites_.size());
    for (size_t place = begin; place < end; ++place) {
      visit(sites_[place]);
    }
    if (end == sites_.size()) {
      return;
    }
  }
}

void AllocationLedger::copyAllocated(uint64_t session, Sums *sums) {
  auto host = static_cast<uint16_t>(Metrics::host().allocated + 1);
  auto device = static_cast<uint16_t>(Metrics::device().allocated + 1);
  forEachSite(session, [&](const AllocationSite &site) {
    sums->push_back({site.index, site.pool->is_device ? device : host,
                     static_cast<int64_t>(site.allocated.count()),
                     static_cast<int64_t>(site.allocated.total()), 0});
  });
}

std::vector<std::pair<uint32_t, uint32_t>> AllocationLedger::nodesOfSites(uint64_t session) {
  std::vector<std::pair<uint32_t, uint32_t>> nodes;
  forEachSite(session,
              [&](const AllocationSite &site) { nodes.emplace_back(site.recorder, site.node); });
  return nodes;
}

ForeignRows AllocationLedger::rowsOf(const LedgerReading &reading) {
  const Metrics &host_metrics = Metrics::host();
  const Metrics &device_metrics = Metrics::device();
  ForeignRows rows;
  for (const SiteValues &site : reading.sites) {
    const Metrics &metrics = reading.pools[site.pool].is_device ? device_metrics : host_metrics;
    auto add = [&](uint16_t metric, const MetricValues &values) {
      if (values.total > 0) {
        rows[metric].push_back({site.node, site.recorder, values});
      }
    };
    MetricValues own = gauge(1, site.own_peak_bytes);
    own.minimum = own.maximum = site.own_peak_bytes;
    add(metrics.allocated, site.allocated);
    add(metrics.own_peak, own);
    add(metrics.live, gauge(site.blocks, site.live_bytes));
    add(metrics.peak, gauge(site.at_peak_blocks, site.at_peak_bytes));
    auto held = reading.roles.find(site.index);
    for (size_t role = 1; held != reading.roles.end() && role < kTensorRoles; ++role) {
      add(metrics.roles[role], gauge(1, held->second[role]));
    }
    // What one call gathers and gives back at its end, such as a cache, falls between calls.
    bool is_kept = reading.step_kind != StepKind::kCall || !site.growth.hasFallen();
    if (reading.hasGrowth() && site.growth.isUp() && is_kept) {
      auto increase = static_cast<uint64_t>(site.growth.increase());
      add(metrics.growth, gauge(site.growth.grownSteps(), increase));
    }
  }
  return rows;
}

AllocationLedger::Summary AllocationLedger::summary() {
  LedgerReading reading(*this);
  while (reading.next()) {
  }
  Summary summary;
  summary.pools = reading.pools;
  summary.peak_roles.resize(reading.pools.size());
  for (const SiteValues &site : reading.sites) {
    auto held = reading.roles.find(site.index);
    for (size_t role = 0; held != reading.roles.end() && role < kTensorRoles; ++role) {
      summary.peak_roles[site.pool][role] += held->second[role];
    }
  }
  summary.steps = reading.steps;
  summary.step_kind = reading.step_kind;
  summary.growth_since_step = Growth::baseStep(reading.steps);
  return summary;
}

} // namespace deepcontext
