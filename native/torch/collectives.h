#pragma once
// Numbers the collectives of a process and keeps how long each took, to compare with other ranks.
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/collective_sample.h"
#include "core/spin_lock.h"

namespace deepcontext::torch {

/// Index of a process group, see `CollectiveGroups`.
using GroupIndex = uint16_t;

/// A collective from its call to its end.
struct Collective {
  uint64_t start_ticks = 0;
  uint64_t duration_ticks = 0;
  uint64_t own_ticks = 0; // from the group's collective before to the call: see `Collectives`
  uint32_t order = 0;     // among all calls of the process: 0, 1, 2 ...
  uint32_t number = 0;    // the same among those of its group
  GroupIndex group = 0;
  uint8_t operation = 0; // index of `Collectives::kOperations`
  bool is_numbered = false;
};

/// The collectives of a session, in bounded memory (below 64 kB). Any thread.
///
/// Only operations that no rank leaves before the last rank has come are numbered; not, for
/// example, a broadcast. Gloo opens its scope on a thread of its own, where the work begins. A
/// group begins its works in the order of the calls, on threads of its own; so a scope belongs to
/// the oldest call of its thread's group that has no scope yet. A thread's group is known from a
/// scope that began while the only calls without a scope were one group's.
///
/// A stretch is what the process did by itself before a collective: it begins with the last call of
/// a collective, or with the last end of one, whichever was later. A collective's own time is that
/// of all stretches since the last collective of its group.
class Collectives {
public:
  using Sample = CollectiveSample<Collective>;
  static constexpr GroupIndex kMostGroups = 64;
  /// Operators of torch's namespace "c10d" that are numbered.
  static constexpr std::array<const char *, 9> kOperations = {
      "allreduce_", "allreduce_coalesced_", "allgather_",      "_allgather_base_",
      "alltoall_",  "alltoall_base_",       "reduce_scatter_", "_reduce_scatter_base_",
      "barrier",
  };

  struct Reading {
    uint64_t ended = 0;
    uint64_t unmatched = 0;       // calls and scopes that have no counterpart for certain
    std::vector<uint32_t> called; // by group
    std::vector<Collective> rows;
    std::vector<StretchSample> samples;
  };

  static Collectives &instance() {
    static Collectives *const table = new Collectives();
    return *table;
  }
  /// Which of `kOperations` an operator is; none when its calls are not numbered.
  static std::optional<uint8_t> operationOf(const char *name);
  /// Whether an asynchronous scope is the work of such a call.
  static bool isWork(const char *name);

  /// Forget everything. One thread.
  void clear();
  /// A call in a group below `kMostGroups`.
  void call(GroupIndex group, uint8_t operation, uint64_t now);
  /// The call whose work begins on the thread with this number.
  Collective begin(int thread);
  void end(Collective collective, uint64_t now);
  Reading read();

private:
  static constexpr uint32_t kMostPending = 64;
  static constexpr uint32_t kMostThreads = 128;

  struct WorkThread {
    int number = 0;
    GroupIndex group = 0;
  };

  Collective *oldestPending(int thread);
  const WorkThread *find(int thread) const;
  void learn(int thread);

  SpinLock lock_;
  int process_ = 0; // that cleared the table last
  uint64_t calls_ = 0;
  uint64_t first_pending_ = 0; // all calls before have a work, or none
  uint64_t ended_ = 0;
  uint64_t unmatched_ = 0;
  uint64_t last_ticks_ = 0;                        // of a call or an end
  uint64_t own_ticks_ = 0;                         // of all stretches
  std::array<uint64_t, kMostGroups> own_before_{}; // the same at the group's last call
  std::array<uint32_t, kMostGroups> called_{};
  std::array<Collective, kMostPending> pending_;
  std::array<WorkThread, kMostThreads> threads_;
  uint32_t thread_count_ = 0;
  Sample sample_;
};

} // namespace deepcontext::torch
