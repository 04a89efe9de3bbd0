#pragma once
// Numbers the collectives of a process and keeps how long each took, to compare with other ranks.
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/collective_launches.h"
#include "core/collective_sample.h"
#include "core/spin_lock.h"

namespace deepcontext::torch {

/// Index of a process group, see `CollectiveGroups`.
using GroupIndex = uint16_t;

/// A call of a collective, until its work has ended.
struct Collective {
  uint64_t start_ticks = 0;
  uint64_t own_ticks = 0; // from the group's collective before to the call: see `Collectives`
  uint64_t waited_ns = 0; // Stretch::waitedNs at the call
  uint32_t order = 0;     // among all calls of the process: 0, 1, 2 ...
  uint32_t number = 0;    // the same among those of its group
  GroupIndex group = 0;
  uint8_t operation = 0; // index of `Collectives::kOperations`
  bool is_numbered = false;
};

/// A collective that has ended.
struct CollectiveRow {
  static constexpr uint64_t kMostBytes = (1ull << 48) - 1;

  uint64_t duration_ticks = 0;
  uint64_t own_ticks = 0;
  uint64_t size_bytes : 48; // of one rank's larger side; 0: unknown
  uint64_t exposed : 16;    // see `ExposedShare`
  uint32_t order = 0;
  uint32_t number = 0;
  GroupIndex group = 0;
  uint8_t operation = 0;
  bool is_on_device = false; // then duration and own time are of the device, 0 until it has ended

  CollectiveRow(const Collective &call, uint64_t bytes);
  CollectiveRow() : size_bytes(0), exposed(0) {}
};

/// Which part of a collective's duration the process waited for it, in 16 bits. More than all of it
/// is possible: a sample stands for the time since the sample before, which may be longer than the
/// collective.
class ExposedShare {
public:
  static constexpr uint16_t kUnknown = 0xFFFF;

  static uint16_t of(double share);
  static double value(uint16_t code) { return code / kUnit; }

private:
  static constexpr double kUnit = 64;
};

/// The collectives of a session, in bounded memory (below 64 kB). Any thread.
///
/// Only operations that no rank leaves before the last rank has come are numbered; not, for
/// example, a broadcast. Gloo opens its scope on a thread of its own, where the work begins. A
/// group begins its works in the order of the calls, on threads of its own; so a scope belongs to
/// the oldest call of its thread's group that has no scope yet. A thread's group is known from a
/// scope that began while the only calls without a scope were one group's. NCCL and RCCL say within
/// the call, on its thread, what they are about to run; their work ends on the device.
///
/// A stretch is what the process did by itself before a collective: it begins with the last call of
/// a collective, or with the last end of one, whichever was later. A collective's own time is that
/// of all stretches since the last collective of its group. For work on a device, the same on the
/// device's time line.
class Collectives {
public:
  using Sample = CollectiveSample<CollectiveRow>;
  static constexpr GroupIndex kMostGroups = 64;
  /// Operators of torch's namespace "c10d" that are numbered; the last two on a device only.
  static constexpr std::array<const char *, 11> kOperations = {
      "allreduce_",
      "allreduce_coalesced_",
      "allgather_",
      "_allgather_base_",
      "alltoall_",
      "alltoall_base_",
      "reduce_scatter_",
      "_reduce_scatter_base_",
      "barrier",
      "allgather_into_tensor_coalesced_",
      "reduce_scatter_tensor_coalesced_",
  };
  static constexpr uint8_t kHostOperations = 9;
  static constexpr uint32_t kNoCall = UINT32_MAX;

  struct Reading {
    uint64_t ended = 0;
    uint64_t ended_on_device = 0;
    uint64_t unmatched = 0;       // calls and scopes that have no counterpart for certain
    std::vector<uint32_t> called; // by group
    std::vector<CollectiveRow> rows;
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
  /// Which of `kOperations` a call has that NCCL's process group gives this name.
  static std::optional<uint8_t> operationOnDevice(std::string_view name);

  /// Forget everything. One thread.
  void clear();
  /// A call in a group below `kMostGroups`. Returns its order.
  uint32_t call(GroupIndex group, uint8_t operation, uint64_t now);
  /// A call whose work runs on a device; it may have been noted by `call` before, as `order`, or
  /// else kNoCall. Returns its order.
  uint32_t callOnDevice(uint32_t order, GroupIndex group, uint8_t operation, uint64_t size_bytes,
                        uint64_t now);
  /// A device ran what the call `order` launched; several times for a call of several kernels.
  void endOnDevice(uint32_t order, const DeviceWork &work);
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

  Collective &append(GroupIndex group, uint8_t operation, uint64_t now,
                     const Stretch::Parts &parts);
  void withdraw(Collective *place);
  void dropWithoutWork();
  uint16_t exposedShare(const Collective &collective, uint64_t ticks, double ns_per_tick);
  Collective *oldestPending(int thread);
  const WorkThread *find(int thread) const;
  void learn(int thread);

  SpinLock lock_;
  int process_ = 0; // that cleared the table last
  uint64_t calls_ = 0;
  uint64_t first_pending_ = 0; // all calls before have a work, or none
  uint64_t calls_on_device_ = 0;
  uint64_t ended_ = 0;
  uint64_t ended_on_device_ = 0;
  uint64_t unmatched_ = 0;
  uint64_t charged_ns_ = 0; // of Stretch::waitedNs, to collectives that have ended
  uint64_t last_ticks_ = 0; // of a call or an end
  uint64_t own_ticks_ = 0;  // of all stretches
  std::array<uint64_t, kMostGroups> own_before_{}; // the same at the group's last call
  uint64_t device_end_ns_ = 0;                     // latest end of a collective on the device
  uint64_t device_own_ns_ = 0;
  std::array<uint64_t, kMostGroups> device_own_before_{};
  std::array<uint32_t, kMostGroups> called_{};
  std::array<Collective, kMostPending> pending_;
  std::array<WorkThread, kMostThreads> threads_;
  uint32_t thread_count_ = 0;
  Sample sample_;
};

} // namespace deepcontext::torch
