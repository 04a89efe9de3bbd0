#include "core/recorder.h"

#include <algorithm>
#include <fstream>
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "core/guard.h"
#include "core/step_clock.h"
#include "core/steps.h"
#include "core/thread.h"
#include "core/thread_label.h"

namespace deepcontext {

__thread Recorder *RecorderRegistry::current_ __attribute__((tls_model("initial-exec"))) = nullptr;
std::atomic<uint64_t> RecorderRegistry::generation_{0};
std::atomic<bool> RecorderRegistry::recording_{false};

namespace {

/// Whether the process's first thread is the program's main thread. In a child forked by another
/// thread it is not, and the interpreter state of that thread may be temporary.
std::atomic<bool> g_is_first_thread_main{true};

} // namespace

uint64_t RecorderCounters::sum(const std::vector<Recorder *> &recorders,
                               std::atomic<uint64_t> RecorderCounters::*counter) {
  uint64_t total = 0;
  for (const Recorder *recorder : recorders) {
    total += (recorder->counters.*counter).load(std::memory_order_relaxed);
  }
  return total;
}

Recorder::Recorder(uint32_t index) : index_(index) {}

__attribute__((noinline, cold)) uint64_t Recorder::countStepBack() {
  RecorderCounters::bump(counters.clock_steps_back);
  return 0;
}

/// The level of `owner`, or null. One that was put aside is opened first.
Level *Recorder::find(const void *owner) {
  for (uint32_t position = level_count_; position-- > 0;) {
    if (levels_[position].owner == owner) {
      return &levels_[position];
    }
  }
  const Level *waiting = parked.isEmpty() ? nullptr : parked.find(owner);
  if (!waiting) {
    return nullptr;
  }
  Strand strand = waiting->strand;
  uint64_t now = ticks();
  for (const Level *inner = innermost(); inner && inner->isOfOtherTurn(strand);
       inner = innermost()) {
    parkInnermost(now);
  }
  unpark(strand.frame, now);
  return find(owner);
}

void Recorder::closeBelowTop(const void *owner, uint64_t now) {
  if (const Level *level = find(owner)) {
    closeUnderneath(static_cast<uint32_t>(level - levels_.data()), now);
  } else if (!isOnStack(owner)) {
    EndedElsewhere::instance().note(owner, now);
  }
}

void Recorder::closeUnderneath(uint32_t position, uint64_t now) {
  if (position + 1 == level_count_) {
    closeAt(--level_count_, now);
    return;
  }
  // Levels nested inside stay open, because scopes may be closed in any order. Time after the
  // nested level began belongs to the nested level, and is charged to the parent when that level
  // closes.
  uint64_t elapsed = now - std::min(levels_[position].start_ticks, now);
  uint64_t nested = now - std::min(levels_[position + 1].start_ticks, now);
  nested = std::min(nested, elapsed); // no more than the parent is charged with
  uint32_t common_path = levels_[position].path_length;
  levels_[position].nested_ticks += nested;
  closeAt(position, now);
  if (position > 0) {
    levels_[position - 1].nested_ticks -= nested;
  }
  const Level closed = levels_[position];
  --level_count_;
  for (uint32_t i = position; i < level_count_; ++i) {
    levels_[i] = levels_[i + 1];
    levels_[i].path_length = std::min(levels_[i].path_length, common_path);
  }
  path_length = std::min(path_length, common_path);
  Node *to = beside(closed, position);
  Node *base = closed.base;
  for (uint32_t i = position; i < level_count_ && rebase(i, to, base, now); ++i) {
    to = base = levels_[i].context();
  }
}

/// Where the path of the level at `position` goes on now that the one around it has closed: below
/// what calls the frame that its path begins with, in the path of the closed level.
Node *Recorder::beside(const Level &closed, uint32_t position) {
  Level &level = levels_[position];
  if (!closed.isScope()) {
    level.joined_anchor = closed.joined_anchor;
    return copyPath(closed.node, closed.base, nullptr) ? closed.node->parent : closed.base;
  }
  if (level.joined_anchor >= Level::kAnchors || !closed.anchors[level.joined_anchor].frame) {
    return closed.base;
  }
  const Anchor &joined = closed.anchors[level.joined_anchor];
  Node *base = closed.node;
  for (uint32_t step = 0; step < joined.height && base != closed.base; ++step) {
    base = base->parent;
  }
  if (base != closed.base) { // inside the path of the closed level
    level.joined_anchor = closed.joined_anchor;
    return base;
  }
  level.joined_anchor = Level::kNoAnchor;
  if (position > 0 && levels_[position - 1].isScope()) {
    const Anchor *anchors = levels_[position - 1].anchors;
    const Anchor *same =
        std::find_if(anchors, anchors + Level::kAnchors, [&joined](const Anchor &anchor) {
          return anchor.frame == joined.frame && anchor.code == joined.code;
        });
    level.joined_anchor = static_cast<uint8_t>(same - anchors); // kAnchors for none
  }
  return base;
}

/// Repeat the path from `base`, exclusive, down to `node` below `to`. Null where `node` is not
/// below `base`. Without `to`, only says whether it is.
Node *Recorder::copyPath(Node *node, const Node *base, Node *to) {
  uint32_t count = 0;
  for (const Node *each = node; each != base; each = each->parent) {
    if (!each->parent || count == kMaxPath) {
      return nullptr;
    }
    copied_[count++] = each;
  }
  if (!to) {
    return count > 0 ? node : nullptr;
  }
  while (count > 0) {
    const Node *next = copied_[--count];
    Node *copy = tree.child(to, next->kind, next->a, next->b);
    if (copy != to) { // not when the tree is full
      copy->setFlag(static_cast<NodeFlag>(next->flags.load(std::memory_order_relaxed)));
    }
    to = copy;
  }
  return to;
}

/// Move the level's own path below `to`, which is at or below its new base, so that a path has the
/// scopes that are open and no others: else ranges that overlap hand over hand would make the tree
/// deeper for ever. What ran so far stays where it is; the call is counted where it ends. False
/// when the node stays.
bool Recorder::rebase(uint32_t position, Node *to, Node *base, uint64_t now) {
  Level &level = levels_[position];
  Node *moved = level.base == to ? nullptr : copyPath(level.node, level.base, to);
  level.base = base;
  if (!moved || moved == level.node) {
    return false;
  }
  uint64_t until = position + 1 < level_count_ ? levels_[position + 1].start_ticks : now;
  uint64_t elapsed = until - std::min(level.start_ticks, until);
  uint64_t own = elapsed - std::min(level.nested_ticks, elapsed);
  if (level.charged == level.node) {
    tree.cost(level.charged).addExclusive(own);
    level.nested_ticks += own; // else it would be charged again at the end
    level.charged = moved;
  }
  Node *context = level.kind == LevelKind::kWrapper ? moved : moved->parent;
  level.folded = context->hasFlag(kFlagFolding) ? context : nullptr;
  level.node = moved;
  return true;
}

uint64_t Recorder::closeStep(const void *owner, uint64_t now, uint64_t earlier_ticks,
                             bool is_last) {
  Level *level = find(owner);
  if (!level) {
    close(owner, now);
    return 0;
  }
  uint64_t elapsed = now - std::min(level->start_ticks, now) + level->earlier_ticks;
  level->earlier_ticks += earlier_ticks;
  level->kind = is_last ? level->kind : LevelKind::kStep;
  close(owner, now);
  return elapsed;
}

void Recorder::parkInnermost(uint64_t now) {
  Level &level = levels_[level_count_ - 1];
  uint64_t elapsed = ticksSince(level.start_ticks, now);
  if (level.charged) {
    tree.cost(level.charged).addExclusive(elapsed - std::min(level.nested_ticks, elapsed));
  }
  if (level_count_ > 1) {
    levels_[level_count_ - 2].nested_ticks += elapsed;
  }
  if (level.charged) {
    spans.add(level.start_ticks, now, level.charged->id);
  }
  level.earlier_ticks += elapsed;
  level.nested_ticks = 0;
  level.start_ticks = now;
  path_length = std::min(path_length, level.path_length);
  if (!parked.park(level)) {
    RecorderCounters::bump(counters.scopes_refused);
  }
  __atomic_store_n(&level_count_, level_count_ - 1, __ATOMIC_RELEASE);
}

void Recorder::unpark(const void *frame, uint64_t now) {
  parked.take(frame, [this, now](const Level &level) {
    if (level_count_ >= kMaxScopes && !hasRoomFor(level.kind)) {
      return;
    }
    const Level *outer = innermost();
    Level &again = levels_[level_count_];
    again = level;
    again.earlier_ticks += now - std::min(level.start_ticks, now);
    again.start_ticks = now;
    again.path_length = path_length = outer ? outer->path_length : 0;
    again.is_inside_operator = outer && (outer->is_inside_operator || outer->isOperator());
    Node *base = outer ? outer->context() : tree.root();
    rebase(level_count_, base, base, now);
    __atomic_store_n(&level_count_, level_count_ + 1, __ATOMIC_RELEASE);
  });
}

void Recorder::closeEndedElsewhere() {
  EndedElsewhere::End end;
  uint64_t oldest =
      EndedElsewhere::count() - std::min(EndedElsewhere::count(), EndedElsewhere::kMost);
  ends_seen_ = std::max(ends_seen_, oldest);
  for (; hasEndedElsewhere() && EndedElsewhere::instance().read(ends_seen_, &end); ++ends_seen_) {
    const Level *level = end.owner ? find(end.owner) : nullptr;
    if (level && level->openedTicks() <= end.ticks) {
      closeUnderneath(static_cast<uint32_t>(level - levels_.data()), end.ticks);
    }
  }
}

bool Recorder::hasRoomFor(LevelKind kind) {
  bool is_scope = kind == LevelKind::kScope;
  if (level_count_ == kMaxLevels || is_scope) {
    RecorderCounters::bump(is_scope ? counters.scopes_refused : counters.levels_refused);
    return false;
  }
  return true;
}

/// The outermost operator around `level` since the last Python that an operator called.
const Level *Recorder::outermostOperator(const Level *level) const {
  const Level *outermost = level;
  while (outermost->is_inside_operator && outermost > levels_.data()) {
    --outermost;
  }
  while (outermost < level && !outermost->isOperator()) {
    ++outermost; // the operator ended before what it contains
  }
  return outermost;
}

uint64_t Recorder::operatorBegan() {
  const Level *level = innermost();
  bool is_inside = level && (level->is_inside_operator || level->isOperator());
  return is_inside ? outermostOperator(level)->start_ticks : 0;
}

uint64_t Recorder::suspendOperator(uint64_t now) {
  uint64_t began = operatorBegan();
  if (began == 0) {
    return 0;
  }
  operator_ticks_.store(operator_ticks_.load(std::memory_order_relaxed) + ticksSince(began, now),
                        std::memory_order_relaxed);
  return began;
}

/// Take back what the operator's end will add.
void Recorder::resumeOperator(uint64_t began, uint64_t now) {
  if (began != 0) {
    operator_ticks_.store(operator_ticks_.load(std::memory_order_relaxed) - ticksSince(began, now),
                          std::memory_order_relaxed);
  }
}

LevelView Recorder::view(uint64_t now) const {
  uint32_t count = __atomic_load_n(&level_count_, __ATOMIC_ACQUIRE);
  if (count > 0 && levels_[count - 1].start_ticks == 0) {
    --count; // being opened
  }
  LevelView seen;
  seen.operator_ticks = operator_ticks_.load(std::memory_order_relaxed);
  if (count == 0) {
    return seen;
  }
  seen.innermost = &levels_[count - 1];
  seen.outermost = &levels_[0];
  seen.is_in_operator = seen.innermost->is_inside_operator || seen.innermost->isOperator();
  if (seen.is_in_operator) {
    uint64_t began = outermostOperator(seen.innermost)->start_ticks;
    seen.operator_ticks += now > began ? now - began : 0;
  }
  return seen;
}

void Recorder::dropDeadLevels(const void *address) {
  while (level_count_ > 0) {
    const Level &level = levels_[level_count_ - 1];
    if (!isOnStack(level.owner) || level.owner > address) {
      return;
    }
    path_length = std::min(path_length, level.path_length);
    --level_count_;
    if (level_count_ > 0) { // time nested in it was nested in the outer level, too
      levels_[level_count_ - 1].nested_ticks += level.nested_ticks;
    }
  }
}

void Recorder::closeAll() {
  level_count_ = 0;
  path_length = 0;
  parked.clear();
  ends_seen_ = EndedElsewhere::count();
}

void Recorder::reset(uint64_t new_generation) {
  tree.clear();
  ring_.clear();
  closeAll();
  stepped_at = 0;
  noted_collective = device_collective = {};
  operator_ticks_.store(0, std::memory_order_relaxed);
  has_own_operators.store(false, std::memory_order_relaxed);
  for (auto *counter :
       {&counters.operators, &counters.links_found, &counters.links_missed,
        &counters.levels_refused, &counters.scopes_refused, &counters.paths_cut,
        &counters.clock_steps_back, &counters.address_lookups, &counters.hook_samples,
        &counters.hook_ticks, &counters.native_walks, &counters.native_frames,
        &counters.native_by_libgcc, &counters.native_no_rule, &counters.native_bad_stack,
        &counters.native_too_deep}) {
    counter->store(0, std::memory_order_relaxed);
  }
  generation.store(new_generation, std::memory_order_release);
}

void Recorder::adoptThread() {
  closeAll();
  noted_collective = device_collective = {};
  operator_ticks_.store(0, std::memory_order_relaxed);
  thread_state = nullptr;
  is_main_thread = isMainThread() && g_is_first_thread_main.load(std::memory_order_relaxed);
  thread_handle.store(pthread_self(), std::memory_order_relaxed);
  kernel_thread.store(kernelThread(), std::memory_order_relaxed);
  framework_thread.store(0, std::memory_order_relaxed);
  // What the thread before ran is in the tree, so that nothing tells when this one runs it, too.
  if (counters.operators.load(std::memory_order_relaxed) > 0) {
    has_own_operators.store(true, std::memory_order_relaxed);
  }
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    void *low = nullptr;
    size_t bytes = 0;
    pthread_attr_getstack(&attributes, &low, &bytes);
    pthread_attr_destroy(&attributes);
    stack_low = reinterpret_cast<uintptr_t>(low);
    stack_high = stack_low + bytes;
  }
}

namespace {

/// "MainThread" for the process's first thread.
std::string labelOfThisThread() {
  if (isMainThread()) {
    return "MainThread";
  }
  char name[17] = {};
  prctl(PR_GET_NAME, name);
  std::string process;
  std::getline(std::ifstream("/proc/self/comm"), process);
  return threadLabel(name, process);
}

pthread_key_t releaseKey(void (*release)(void *)) {
  static const pthread_key_t key = [release] {
    pthread_key_t made;
    pthread_key_create(&made, release);
    return made;
  }();
  return key;
}

} // namespace

RecorderRegistry &RecorderRegistry::instance() {
  // never destroyed: outlives every thread
  static RecorderRegistry *const registry = new RecorderRegistry();
  return *registry;
}

void RecorderRegistry::begin(uint32_t node_limit, bool takes_spans) {
  std::lock_guard<Mutex> lock(mutex_);
  if (is_forked_) {
    replaceOrphans();
  }
  node_limit_ = node_limit;
  takes_spans_ = takes_spans;
  threads_joined_.store(0, std::memory_order_relaxed);
  clock_ = TickClock();
  StepClock::begin();
  Steps::instance().begin();
  generation_.fetch_add(1, std::memory_order_relaxed);
  LostEvents::clear();
  recording_.store(true, std::memory_order_release);
}

void RecorderRegistry::prepareFork() {
  is_forking_on_main_ = isMainThread();
}

void RecorderRegistry::abandonInChild() {
  recording_.store(false, std::memory_order_relaxed);
  is_forked_ = true;
  survivor_ = current_;
  if (survivor_) {
    survivor_->kernel_thread.store(getpid(), std::memory_order_relaxed); // the child's only thread
  }
  if (!is_forking_on_main_) {
    g_is_first_thread_main.store(false, std::memory_order_relaxed);
  }
}

/// Replace the recorders whose threads do not exist in this child. Their threads may have been
/// writing when the process forked, so the old ones are neither used nor destroyed.
void RecorderRegistry::replaceOrphans() {
  for (auto &recorder : recorders_) {
    if (recorder.get() == survivor_) {
      continue;
    }
    auto fresh = std::make_unique<Recorder>(recorder->index());
    fresh->label = recorder->label;
    fresh->is_detached = recorder->is_detached;
    fresh->is_rewritten = recorder->is_rewritten;
    recorder->spans.abandon();
    static_cast<void>(recorder.release());
    recorder = std::move(fresh);
  }
  is_forked_ = false;
}

/// A recorder without a thread, for a thread with this label. Prefers a recorder with the same
/// label from this session, which avoids another tree; otherwise one whose data is from an earlier
/// session.
Recorder *RecorderRegistry::takeFree(const std::string &label) {
  Recorder *best = nullptr;
  for (const auto &each : recorders_) {
    Recorder *recorder = each.get();
    if (recorder->is_detached || recorder->kernel_thread.load(std::memory_order_relaxed) != 0) {
      continue;
    }
    bool is_same = recorder->label == label;
    bool is_of_session = recorder->isOf(generation());
    if (is_same && is_of_session) {
      return recorder;
    }
    if (!is_of_session && (is_same || !best)) {
      best = recorder;
    }
  }
  return best;
}

size_t RecorderRegistry::idleBytes() const {
  size_t bytes = 0;
  for (const auto &recorder : recorders_) {
    bool has_thread = recorder->kernel_thread.load(std::memory_order_relaxed) != 0;
    bytes += has_thread || recorder->is_detached ? 0 : recorder->bytes();
  }
  return bytes;
}

Recorder &RecorderRegistry::assign(std::string label) {
  Recorder *recorder = takeFree(label);
  if (!recorder && idleBytes() >= kMostIdleBytes) {
    label = kOtherThreads;
    threads_joined_.fetch_add(1, std::memory_order_relaxed);
    recorder = takeFree(label);
  }
  if (!recorder) {
    recorders_.push_back(std::make_unique<Recorder>(static_cast<uint32_t>(recorders_.size())));
    recorder = recorders_.back().get();
  }
  if (recorder->label != label) { // else a reader of the session may be reading it
    recorder->label = std::move(label);
  }
  return *recorder;
}

Recorder &RecorderRegistry::attach() {
  std::lock_guard<Mutex> lock(mutex_);
  Recorder *recorder = current_;
  if (!recorder) {
    recorder = &assign(labelOfThisThread());
    recorder->adoptThread();
    recorder->is_of_one_thread = false;
    current_ = recorder;
    pthread_setspecific(releaseKey([](void *ended) {
                          guarded([&] { instance().release(static_cast<Recorder *>(ended)); });
                        }),
                        recorder);
  } else if (recorder == survivor_) {
    survivor_ = nullptr;
    recorder->adoptThread();
    recorder->label = labelOfThisThread();
  }
  if (!recorder->isOf(generation())) {
    recorder->spans.begin(takes_spans_);
    recorder->reset(generation());
    recorder->tree.setLimit(node_limit_);
    recorder->is_of_one_thread = true;
  }
  return *recorder;
}

Recorder &RecorderRegistry::makeDetached(const std::string &label, bool is_rewritten) {
  std::lock_guard<Mutex> lock(mutex_);
  auto same = std::find_if(recorders_.begin(), recorders_.end(), [&](const auto &recorder) {
    return recorder->is_detached && recorder->label == label;
  });
  if (same == recorders_.end()) {
    recorders_.push_back(std::make_unique<Recorder>(static_cast<uint32_t>(recorders_.size())));
    same = recorders_.end() - 1;
    (*same)->is_detached = true;
    (*same)->is_rewritten = is_rewritten;
    (*same)->label = label;
  }
  Recorder &recorder = **same;
  recorder.reset(generation());
  recorder.tree.setLimit(node_limit_);
  return recorder;
}

void RecorderRegistry::release(Recorder *recorder) {
  std::lock_guard<Mutex> lock(mutex_);
  current_ = nullptr;
  recorder->thread_handle.store(0, std::memory_order_relaxed);
  recorder->kernel_thread.store(0, std::memory_order_relaxed);
}

std::vector<Recorder *> RecorderRegistry::active() const {
  std::lock_guard<Mutex> lock(mutex_);
  std::vector<Recorder *> found;
  for (const auto &recorder : recorders_) {
    if (recorder->isOf(generation())) {
      found.push_back(recorder.get());
    }
  }
  return found;
}

Recorder *RecorderRegistry::ofThread(int kernel_thread) const {
  std::lock_guard<Mutex> lock(mutex_);
  for (const auto &recorder : recorders_) {
    if (recorder->kernel_thread.load(std::memory_order_relaxed) == kernel_thread &&
        recorder->isOf(generation())) {
      return recorder.get();
    }
  }
  return nullptr;
}

Recorder *RecorderRegistry::at(uint32_t index) const {
  std::lock_guard<Mutex> lock(mutex_);
  return index < recorders_.size() ? recorders_[index].get() : nullptr;
}

} // namespace deepcontext
