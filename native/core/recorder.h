#pragma once
// What one thread records: its tree, the operators it is inside of, its last Python path.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/ended_elsewhere.h"
#include "core/interner.h"
#include "core/lazy_array.h"
#include "core/level.h"
#include "core/mutex.h"
#include "core/parked_levels.h"
#include "core/recorder_extension.h"
#include "core/sequence_ring.h"
#include "core/span_ring.h"
#include "core/thread_tree.h"

namespace deepcontext {

/// What a sample of a thread needs of its open levels.
struct LevelView {
  const Level *innermost = nullptr;
  const Level *outermost = nullptr; // levels are contiguous, outermost first
  bool is_in_operator = false;
  uint64_t operator_ticks = 0; // of the session so far, up to the moment of the sample
};

/// One Python or native frame of the last path, as opaque addresses, and its node. The
/// instruction's address lies inside one code object and so identifies the code object, too.
struct PathEntry {
  const void *instruction;
  const void *instance; // the module whose call this frame is, or null
  Node *node;
  bool is_folded;               // everything below is one marker
  const void *caller = nullptr; // the address of the caller's frame at the last comparison
  const void *code = nullptr;   // null for a native frame
};

/// A frame as the walk found it.
struct WalkedFrame {
  const void *code;
  const void *instruction; // of a native frame: its return address, and `code` is null
  const void *instance;
  uint32_t function = 0; // of a native frame, see unwind/address_table.h
};

class Recorder;

/// Counters of one thread's recording; any thread reads them.
struct RecorderCounters {
  std::atomic<uint64_t> operators{0};
  std::atomic<uint64_t> links_found{0};
  std::atomic<uint64_t> links_missed{0};
  std::atomic<uint64_t> levels_refused{0}; // of operators
  std::atomic<uint64_t> scopes_refused{0};
  std::atomic<uint64_t> paths_cut{0};
  std::atomic<uint64_t> clock_steps_back{0};
  std::atomic<uint64_t> address_lookups{0}; // of code objects and modules that were not cached
  std::atomic<uint64_t> hook_samples{0};
  std::atomic<uint64_t> hook_ticks{0};
  std::atomic<uint64_t> native_walks{0};
  std::atomic<uint64_t> native_frames{0};
  std::atomic<uint64_t> native_by_libgcc{0};
  std::atomic<uint64_t> native_no_rule{0};
  std::atomic<uint64_t> native_bad_stack{0};
  std::atomic<uint64_t> native_too_deep{0};

  static void bump(std::atomic<uint64_t> &counter, uint64_t by = 1) {
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
  static uint64_t sum(const std::vector<Recorder *> &recorders,
                      std::atomic<uint64_t> RecorderCounters::*counter);
};

/// A call of a collective that a thread is in.
struct CollectiveCall {
  const void *owner = nullptr; // the framework's object of its operator; null: in none
  uint32_t order = 0;          // among all calls of the process
};

/// Everything one thread writes while it records. Owner thread only, except the tree's readers, the
/// counters and `ring()`. Outlives its thread: the registry gives it to the next thread with the
/// same label, so that memory depends on how many threads live at once, not on how many were made.
/// A label has N for numbers: "worker 7" and "worker 8" share one.
class Recorder {
public:
  static constexpr uint32_t kMaxLevels = 1024;
  // fewer, because scopes may be left open, and operators must have room then
  static constexpr uint32_t kMaxScopes = kMaxLevels / 2;
  static constexpr uint32_t kMaxPath = 2048;

  explicit Recorder(uint32_t index);

  uint32_t index() const { return index_; }
  ThreadTree tree;
  NameCache names;
  RecorderCounters counters;
  SpanRing spans;

  // -- levels, innermost last
  Level *innermost() { return level_count_ ? &levels_[level_count_ - 1] : nullptr; }
  uint32_t levelCount() const { return level_count_; }
  /// The level opened before `level`, or null.
  const Level *levelBefore(const Level *level) const {
    return level > levels_.data() ? level - 1 : nullptr;
  }
  /// The level that `owner` has just closed as the innermost one, or null. Valid until a level
  /// opens.
  const Level *justClosed(const void *owner) const {
    if (__builtin_expect(level_count_ == kMaxLevels, 0)) {
      return nullptr;
    }
    const Level *level = &levels_[level_count_];
    return level->owner == owner ? level : nullptr;
  }
  /// A new innermost level with kind, node, owner and path length set, or null when too deep.
  Level *push(LevelKind kind, Node *node, const void *owner) {
    if (__builtin_expect(level_count_ >= kMaxScopes, 0) && !hasRoomFor(kind)) {
      return nullptr;
    }
    const Level *outer = innermost();
    Level *level = &levels_[level_count_];
    level->node = node;
    level->charged = node;
    level->base = outer ? outer->context() : tree.root();
    level->owner = owner;
    level->nested_ticks = 0;
    level->earlier_ticks = 0;
    Node *context = kind == LevelKind::kWrapper ? node : node->parent;
    level->folded = context && context->hasFlag(kFlagFolding) ? context : nullptr;
    level->path_length = path_length;
    level->kind = kind;
    level->is_inside_operator = outer && (outer->is_inside_operator || outer->isOperator());
    level->joined_anchor = joined_anchor;
    level->start_ticks = 0;
    // Last: a sample, which may be taken at any moment and from another thread, sees complete
    // levels only.
    __atomic_store_n(&level_count_, level_count_ + 1, __ATOMIC_RELEASE);
    return level;
  }
  /// Push a level, let `note_frames(level)` say which frames it was opened in, and start its clock.
  template <typename NoteFrames>
  Level *open(LevelKind kind, Node *node, const void *owner, NoteFrames note_frames) {
    Level *level = push(kind, node, owner);
    if (__builtin_expect(level != nullptr, 1)) {
      note_frames(level);
      level->start_ticks = ticks();
    }
    return level;
  }
  /// Close the level of `owner`, charging `now - start` to it. An owner that has no level here may
  /// have one on another thread, which then hears of it; one whose start was not seen is ignored.
  void close(const void *owner, uint64_t now) {
    if (__builtin_expect(level_count_ > 0 && levels_[level_count_ - 1].owner == owner, 1)) {
      closeAt(--level_count_, now);
    } else {
      closeBelowTop(owner, now);
    }
  }
  /// Close the level of `owner`, which is one step of a scope that runs in steps: the duration is
  /// recorded with the last step and includes the `earlier_ticks` of the others. Returns the ticks
  /// of this step.
  uint64_t closeStep(const void *owner, uint64_t now, uint64_t earlier_ticks, bool is_last);
  /// Python that an operator calls begins: until `resumeOperator`, time is not the operator's.
  /// Returns when the operator began; 0 outside operators.
  uint64_t suspendOperator(uint64_t now);
  /// When the outermost operator began that the thread is inside; 0 outside operators, and in the
  /// Python that they call.
  uint64_t operatorBegan();
  void resumeOperator(uint64_t began, uint64_t now);

  // -- levels of strands that do not run
  /// Put the innermost level, a scope, aside until its strand runs again.
  void parkInnermost(uint64_t now);
  /// Open the levels of this strand again, inside the innermost one.
  void unpark(const void *frame, uint64_t now);
  ParkedLevels parked;
  bool hasEndedElsewhere() const { return ends_seen_ != EndedElsewhere::count(); }
  /// Close the levels whose ends other threads saw.
  void closeEndedElsewhere();

  /// The open levels at `now`, for a sample: called from a signal handler on the owner's thread, or
  /// from another thread while the owner does not run. Async-signal-safe.
  LevelView view(uint64_t now) const;
  /// Drop levels whose owner was at a lower stack address than `address`: their stack frames are
  /// gone.
  void dropDeadLevels(const void *address);

  // -- last Python path
  LazyArray<PathEntry> path{kMaxPath}; // entries from `path_length` on are invalid
  uint32_t path_length = 0;
  uint8_t joined_anchor = 0; // of the innermost scope: the frame that the path below begins with
  // the interpreter's; kept for the main thread only, whose state stays
  const void *thread_state = nullptr;
  bool is_main_thread = false;
  LazyArray<WalkedFrame> walked{kMaxPath}; // scratch of the frame walk, innermost first

  RecorderExtensions extensions;

  SequenceRing &ring() { return ring_; }
  /// Count an operator and run the hook's part for it, timed once in 256 events.
  template <typename Hook> void countOperator(Hook hook) {
    constexpr uint64_t kTimedMask = 255;
    uint64_t seen = counters.operators.load(std::memory_order_relaxed) + 1;
    counters.operators.store(seen, std::memory_order_relaxed);
    if (__builtin_expect((seen & kTimedMask) != 0, 1)) {
      hook();
      return;
    }
    uint64_t before = ticks();
    hook();
    RecorderCounters::bump(counters.hook_ticks, ticksSince(before, ticks()));
    RecorderCounters::bump(counters.hook_samples);
  }

  // -- steps
  uint64_t stepped_at = 0;     // operators that had been counted when its last optimizer step ended
  bool continues_step = false; // the optimizer that is stepping follows another one at once
  uint64_t stepped_call = 0;   // the last outermost call of a module whose beginning ended a step

  // -- collectives
  CollectiveCall noted_collective;  // its work may still turn out to run on a device
  CollectiveCall device_collective; // what the thread launches is its work

  // -- identity of the thread
  std::atomic<uint64_t> thread_handle{0}; // pthread_self(): Python's Thread.ident
  std::atomic<uint64_t> framework_thread{0};
  // Operators of its own, not only parts of one that another thread waits in, as far as is known.
  std::atomic<bool> has_own_operators{false};
  std::atomic<int> kernel_thread{0}; // its number in the kernel; 0 when the thread has ended
  uintptr_t stack_low = 0;
  uintptr_t stack_high = 0;
  std::string label;
  bool is_detached = false;
  // Its tree is made anew at each reading: its nodes' ids change, and only the maker reads it.
  bool is_rewritten = false;
  std::atomic<bool> calls_collectives{false};
  std::atomic<bool> is_of_one_thread{true}; // all data of this session is from the owner
  std::atomic<uint64_t> generation{0};
  bool isOnStack(const void *address) const {
    auto value = reinterpret_cast<uintptr_t>(address);
    return value >= stack_low && value < stack_high;
  }

  /// Approximate memory, for a thread of usual depth.
  size_t bytes() const {
    return kUsualBytes + tree.size() * ThreadTree::kNodeBytes + spans.bytes();
  }
  /// A thread that sees the session's number also sees the effect of `reset` (acquire).
  bool isOf(uint64_t session) const {
    return generation.load(std::memory_order_acquire) == session;
  }
  /// Forget the last session's data. Owner only.
  void reset(uint64_t new_generation);
  /// Make the calling thread the owner: take its stack and identity, with no open level and no
  /// path.
  void adoptThread();

  /// Ticks from `start` to `now`. If the clock has stepped back, because the thread moved to a
  /// processor whose clock is behind, returns 0 and counts the step.
  uint64_t ticksSince(uint64_t start, uint64_t now) {
    return __builtin_expect(now >= start, 1) ? now - start : countStepBack();
  }

private:
  static constexpr size_t kUsualBytes = 256 << 10; // without the tree; at most 750 KiB

  void closeAt(uint32_t position, uint64_t now) {
    Level &level = levels_[position];
    uint64_t elapsed = ticksSince(level.start_ticks, now);
    if (!level.is_inside_operator && level.isOperator()) {
      operator_ticks_.store(operator_ticks_.load(std::memory_order_relaxed) + elapsed,
                            std::memory_order_relaxed);
    }
    if (level.charged) {
      NodeCost &cost = tree.cost(level.charged);
      cost.addExclusive(elapsed > level.nested_ticks ? elapsed - level.nested_ticks : 0);
      if (level.kind <= LevelKind::kScope) {
        cost.duration.add(elapsed + level.earlier_ticks);
      }
      if (level.kind != LevelKind::kWrapper) {
        spans.add(level.start_ticks, now, level.charged->id);
      }
    }
    path_length = path_length < level.path_length ? path_length : level.path_length;
    if (position > 0) {
      levels_[position - 1].nested_ticks += elapsed;
    }
  }
  const Level *outermostOperator(const Level *level) const;
  uint64_t countStepBack();
  void closeBelowTop(const void *owner, uint64_t now);
  void closeUnderneath(uint32_t position, uint64_t now);
  void closeAll();
  bool hasRoomFor(LevelKind kind);
  Level *find(const void *owner);
  Node *beside(const Level &closed, uint32_t position);
  bool rebase(uint32_t position, Node *to, Node *base, uint64_t now);
  Node *copyPath(Node *node, const Node *base, Node *to);

  uint32_t index_;
  uint32_t level_count_ = 0;
  LazyArray<Level> levels_{kMaxLevels};
  uint64_t ends_seen_ = 0;                   // of EndedElsewhere
  LazyArray<const Node *> copied_{kMaxPath}; // scratch
  std::atomic<uint64_t> operator_ticks_{0};  // of outermost operators that have ended
  SequenceRing ring_;
};

/// All recorders of the process. Any thread; the mutex is taken when a thread first records, when
/// it ends, and by readers, never per event.
///
/// There is one for each living thread, plus those of ended threads with other labels. The latter
/// take at most kMostIdleBytes; past this limit, threads with new labels share kOtherThreads.
class RecorderRegistry {
public:
  static constexpr size_t kMostIdleBytes = 64 << 20;
  static constexpr char kOtherThreads[] = "other threads";

  static RecorderRegistry &instance();

  /// The calling thread's recorder for the running session, made or reused at the first call.
  static Recorder &current() {
    Recorder *recorder = current_;
    if (__builtin_expect(recorder != nullptr, 1) &&
        __builtin_expect(recorder->isOf(generation_.load(std::memory_order_relaxed)), 1)) {
      return *recorder;
    }
    return instance().attach();
  }
  static Recorder *currentOrNull() { return current_; }
  static uint64_t generation() { return generation_.load(std::memory_order_relaxed); }
  /// A hook asks this first: where it is true, the hook also sees the session's number and all that
  /// was set up before `begin`.
  static bool isRecording() { return recording_.load(std::memory_order_acquire); }

  /// Begin a session. Each recorder forgets the last session when its thread next records.
  /// `takes_spans`: whether threads keep their last events.
  void begin(uint32_t node_limit, bool takes_spans = false);
  void end() { recording_.store(false, std::memory_order_relaxed); }
  /// On the thread that is about to fork, with `forkLock` held.
  void prepareFork();
  /// In a forked child, on the thread that forked, with `forkLock` held: stop recording; the other
  /// recorders' threads do not exist here. Async-signal-safe.
  void abandonInChild();

  /// A recorder of the running session without a thread, for a collector that writes from threads
  /// of its own: below the root of its tree are kLink nodes, and what it measured is below those.
  /// The collector is the owner and asks for the recorder in each session, or, `is_rewritten`, at
  /// each reading.
  Recorder &makeDetached(const std::string &label, bool is_rewritten = false);

  /// Recorders that took part in the running or last session, by index.
  std::vector<Recorder *> active() const;
  /// The recorder of a living thread by its number in the kernel; null when it recorded nothing.
  Recorder *ofThread(int kernel_thread) const;
  /// Recorder by index, which never changes; null when there is none.
  Recorder *at(uint32_t index) const;
  /// Threads of this session that shared kOtherThreads.
  uint64_t threadsJoined() const { return threads_joined_.load(std::memory_order_relaxed); }
  const TickClock &clock() const { return clock_; }
  /// Whether recorders of the session keep their last spans.
  bool takesSpans() const { return takes_spans_; }
  Mutex &forkLock() { return mutex_; }

private:
  Recorder &attach();
  void release(Recorder *recorder);
  Recorder &assign(std::string label);
  Recorder *takeFree(const std::string &label);
  size_t idleBytes() const;
  void replaceOrphans();

  // One pointer of initial-exec TLS, because little static TLS is left for a library that is loaded
  // late. `__thread`, because `thread_local` checks for an initialiser at each access.
  static __thread Recorder *current_ __attribute__((tls_model("initial-exec")));
  static std::atomic<uint64_t> generation_;
  static std::atomic<bool> recording_;

  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Recorder>> recorders_;
  std::atomic<uint64_t> threads_joined_{0};
  bool is_forked_ = false; // since the last `begin`
  // the recorder of the thread that forked, until that thread adopts it again
  Recorder *survivor_ = nullptr;
  bool is_forking_on_main_ = true;
  TickClock clock_;
  uint32_t node_limit_ = ThreadTree::kChunkNodes * ThreadTree::kMaxChunks;
  bool takes_spans_ = false;
};

} // namespace deepcontext
