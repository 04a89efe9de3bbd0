#pragma once
// Living allocations by the context that made them.
#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/allocation_table.h"
#include "core/growth.h"
#include "core/merge.h"
#include "core/recorder.h"
#include "core/spin_lock.h"
#include "core/sums.h"

namespace deepcontext {

class LedgerReading;

/// What the program was doing in a context; decides the role of its allocations.
enum class Stage : uint8_t { kOther, kForward, kBackward, kOptimizer, kLoading };

/// The role of an allocation; the values are equal to those in collectors/torch/memory.py.
enum class TensorRole : uint8_t {
  kUnknown = 0,
  kParameter = 1,
  kGradient = 2,
  kOptimizerState = 3,
  kActivation = 4, // made in a forward and still held when a backward ran
  kInput = 5,
  kTemporary = 6,
};
constexpr size_t kTensorRoles = 7;
using RoleBytes = std::array<uint64_t, kTensorRoles>;
using RolesOfSites = std::unordered_map<uint32_t, RoleBytes>; // by the index of a site

/// What counts as a step; a later one takes the place of an earlier one.
enum class StepKind : uint8_t { kCall, kOptimizer, kMark };

/// The memory of the host, or of one device.
struct MemoryPool {
  std::string name; // "cpu", "cuda:0"
  bool is_device = false;
  uint64_t live_bytes = 0;
  uint64_t peak_bytes = 0;
  uint64_t peak_ticks = 0;
  uint32_t peak_step = 0; // steps that had ended before the peak
  uint32_t epoch = 0;     // number of new peaks so far
  uint64_t allocations = 0;
  uint64_t allocated_bytes = 0;
  Growth growth; // of live bytes
  // Peak size of the framework's cache; 0 if the framework does not report it.
  uint64_t reserved_peak_bytes = 0;
};

/// What a site remembers beyond the present. Few sites have it: most give back what they allocated
/// within a step, and before the next peak.
struct SiteHistory {
  RoleBytes freed_since_peak{}; // of what was held at the peak, by role; valid as at_peak_bytes
  Growth growth;                // of live bytes; brought up to date before they change
};

/// What one context allocated from one pool. Under the ledger's lock. A program may have one for
/// every third node of its tree.
///
/// The composition of the peak is never copied as a whole: the pool numbers its peaks (epochs), and
/// a site saves what it held at the last peak just before its first change after that peak. A site
/// that has not changed since still holds what it held at the peak.
struct AllocationSite {
  AllocationSite *next_of_node = nullptr; // the same context in another pool
  MemoryPool *pool = nullptr;
  SiteHistory *history = nullptr; // null: all zero
  MetricRow allocated;            // bytes of each allocation
  uint64_t live_bytes = 0;
  uint64_t own_peak_bytes = 0;
  uint64_t at_peak_bytes = 0; // valid while `epoch` is the pool's
  uint32_t at_peak_blocks = 0;
  uint32_t blocks = 0; // living allocations
  uint32_t recorder = 0;
  uint32_t node = 0;
  uint32_t index = 0;
  uint32_t epoch = 0;
  uint32_t steps = 0; // of any kind, that its growth takes into account
  Stage stage = Stage::kOther;
  bool is_in_module = false; // in a forward of it
  bool is_seen = false;      // equal to the ledger's mark: the last reading has it
};
static_assert(sizeof(AllocationSite) <= 128);

/// Counters of what the ledger could not track.
struct LedgerCounters {
  std::atomic<uint64_t> untracked{0}; // allocations made while the table was full
  std::atomic<uint64_t> untracked_bytes{0};
  std::atomic<uint64_t> replaced{0}; // addresses handed out again whose free was not seen
};

/// Living allocations of the running session. Any thread; one lock, held for tens of nanoseconds
/// (for microseconds while the ledger is read, see LedgerReading), inside which no other lock is
/// taken. The lock is not sharded, because the composition of a peak needs all changes in one
/// order.
class AllocationLedger {
public:
  /// The stage of a node of the calling thread. `is_device`: the allocation is on a device, where a
  /// copy from the host makes an input. Takes a lock only in this case.
  using StageOf = Stage (*)(const Node *node, bool is_device);
  static constexpr size_t kMaxPools = 64;

  static AllocationLedger &instance();
  explicit AllocationLedger(size_t most_slots = AllocationTable::kMaxSlots) : table_(most_slots) {}

  /// Forget everything and record in session `session`; `stage_of` reads a context's stage.
  void begin(uint64_t session, StageOf stage_of);
  /// Record nothing more; what was recorded stays readable. Living allocations are forgotten.
  void freeze();

  /// The pool with this key, made at the first call; null when there are too many. Key 0 is the
  /// host.
  MemoryPool *pool(uint16_t key, const char *kind);

  /// `bytes` were handed out at `address` while `node`, of the caller's own recorder, was current.
  void allocated(const Recorder &recorder, Node *node, MemoryPool *pool, const void *address,
                 uint64_t bytes);
  /// Call this before the memory is given back: afterwards another thread may get the address.
  void freed(const void *address);
  /// The framework's cache holds this much of the pool.
  void noteReserved(MemoryPool *pool, uint64_t bytes);
  /// A step of the program's main loop ends. Growth is counted from the first of these marks on.
  void markStep();
  /// A step of an optimizer begins: the end of a step, in a program that marks none. Without an
  /// optimizer, each call of the model ends a step.
  void markOptimizerStep();
  /// Say what living allocations are for.
  void setRole(const std::vector<uintptr_t> &addresses, TensorRole role);

  /// What living allocations are and where they were made.
  struct Place {
    uint32_t recorder;
    uint32_t node;
    uint64_t blocks = 0;
    uint64_t size_bytes = 0;
    uint64_t all_living = 0; // of the context, those of other addresses included
    uint64_t all_made = 0;
  };
  /// The allocations that begin at these addresses, by the context that made them; those that are
  /// not known are left out.
  std::vector<Place> placesOf(const std::vector<uintptr_t> &addresses);

  /// Rows for the tree of a session, as of now.
  ForeignRows rows(uint64_t session);
  static ForeignRows rowsOf(const LedgerReading &reading);
  /// Append what each site has allocated so far; the site's number takes the place of a node.
  void copyAllocated(uint64_t session, Sums *sums);
  /// Recorder and node of each site, by its number.
  std::vector<std::pair<uint32_t, uint32_t>> nodesOfSites(uint64_t session);
  struct Summary {
    std::vector<MemoryPool> pools;
    std::vector<RoleBytes> peak_roles; // by pool
    uint32_t steps = 0;
    StepKind step_kind = StepKind::kCall;
    uint32_t growth_since_step = 0; // growth is counted from the end of this step; 0: too few steps
  };
  Summary summary();
  LedgerCounters counters;

  /// Around a fork. The child has a copy of the parent's ledger, which records nothing.
  void lockForFork() { lock_.lock(); }
  void unlockAfterFork() { lock_.unlock(); }
  /// In a forked child, where the thread that read the ledger does not exist.
  void abandonReadingInChild();

private:
  template <typename Visit> void forEachSite(uint64_t session, Visit visit);
  friend class LedgerReading;

  MemoryPool *findPool(uint16_t key) const;
  AllocationSite *siteOf(const Recorder &recorder, Node *node, MemoryPool *pool);
  AllocationSite *makeSite(const Recorder &recorder, Node *node, MemoryPool *pool, Stage stage);
  /// Call before a site changes.
  void touch(AllocationSite &site);
  /// Call before a site or an allocation changes.
  template <typename Part> void keepForReading(Part &part);
  bool isRecording() const { return session_.load(std::memory_order_relaxed) != 0; }
  static void keepPeak(AllocationSite &site);
  void passSteps(AllocationSite &site);
  Growth growthOf(const AllocationSite &site, uint32_t steps) const;
  uint32_t countedSteps() const { return steps_ - uncounted_steps_; }
  uint32_t countedSteps(const AllocationSite &site) const {
    return isOfEarlierKind(site) ? 0 : site.steps - uncounted_steps_;
  }
  bool isOfEarlierKind(const AllocationSite &site) const { return site.steps < uncounted_steps_; }
  SiteHistory &historyOf(AllocationSite &site);
  void release(Allocation *entry);
  static TensorRole roleOf(const Allocation &entry, Stage freed_in, uint32_t turn);
  /// Count one more step, unless steps of a later kind are counted. The lock is held.
  void passStep(StepKind kind);

  SpinLock readings_; // held by the thread that reads; taken before `lock_`
  SpinLock lock_;
  LedgerReading *reading_ = nullptr; // under way
  bool seen_mark_ = false;           // of what the last reading has, and of what came later
  std::atomic<uint64_t> session_{0}; // 0: nothing is recorded
  uint64_t last_session_ = 0;        // the session of the data
  std::atomic<StageOf> stage_of_{nullptr};
  AllocationTable table_;
  std::deque<AllocationSite> sites_; // a deque never moves its elements
  std::deque<SiteHistory> histories_;
  std::array<MemoryPool, kMaxPools> pools_; // never move or end: a late reader may still use one
  size_t pool_count_ = 0;
  std::array<uint16_t, kMaxPools> pool_keys_{};
  std::array<std::atomic<MemoryPool *>, kMaxPools> pool_of_{};
  RolesOfSites frozen_roles_; // of the allocations that lived when the ledger was frozen
  bool is_frozen_ = false;
  uint32_t steps_ = 0;           // that have ended, of any kind
  uint32_t uncounted_steps_ = 0; // those before the first one of the present kind
  StepKind step_kind_ = StepKind::kCall;
  uint32_t turn_ = 0; // rises with each allocation of a backward
};

} // namespace deepcontext
