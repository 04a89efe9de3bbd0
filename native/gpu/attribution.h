#pragma once
// Device activity under the call paths that launched it.
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/probe_table.h"
#include "core/recorder.h"
#include "gpu/activity.h"
#include "gpu/answered_launches.h"
#include "gpu/correlation.h"
#include "gpu/counters.h"
#include "gpu/device_clock.h"
#include "gpu/graphs.h"
#include "gpu/idle.h"
#include "gpu/silent_graphs.h"
#include "gpu/stalls.h"

namespace deepcontext::gpu {

/// Aggregates records into a separate tree: below its root links to the launching nodes, below
/// those kernels, copies and memsets. One vendor's draining thread at a time, under `mutex()`,
/// which is taken once a buffer and by readers of the totals, never on a launching thread.
///
/// Records are processed in batches, so that the cache misses of their steps overlap: call site,
/// then slot, then metric rows.
class Attribution {
public:
  explicit Attribution(const CorrelationTable &table);

  std::mutex &mutex() { return mutex_; }
  GraphTable graphs;
  SilentGraphs silent_graphs; // any thread
  Counters counters;
  DeviceClock clock;
  StallTable stalls; // any thread

  /// Start over, writing into the detached recorder `recorder`.
  void begin(Recorder &recorder);
  /// Launches get numbers again that earlier ones had.
  void forgetAnswers();
  /// The place for one more record; complete it before the next call.
  Activity &next() {
    if (__builtin_expect(count_ == kBatch, 0)) {
      flush();
    }
    return batch_[count_++];
  }
  /// Attribute pending records; call at the end of every buffer.
  void finishBuffer();
  /// Bring the tree up to date; `is_final` when no more records will come.
  void publish(bool is_final);
  std::map<uint32_t, DeviceTotals> deviceTotals() const { return idle_.totals(); }

private:
  static constexpr uint32_t kBatch = 64;
  /// The metrics of one (call path, kernel). One cache line.
  struct alignas(64) Slot {
    uint64_t key = 0;
    Node *node = nullptr;
    MetricRow *time = nullptr;
    MetricRow *delay = nullptr;
    // of copies their bytes, of kernels that communicate their exposed time
    MetricRow *more = nullptr;
    uint64_t shape = 0;
    uint64_t launches = 0; // rows of time when the launch count was last written

    bool isFree() const { return !node; }
    bool isOf(uint64_t other) const { return key == other; }
    uint64_t hash() const { return hashOf(key); }
    static uint64_t hashOf(uint64_t key);
  };

  void flush();
  uint64_t keyOf(const Activity &activity, bool is_known, const CallSite &site);
  uint64_t parentOfGraphRecord(const Activity &activity, const CallSite &site);
  Slot &slotOf(uint64_t key, const Activity &activity);
  Slot makeSlot(uint64_t key, const Activity &activity);
  void describe(Slot &slot, const LaunchShape &shape);
  void addTimes(const Activity &activity, Slot &slot, bool is_known, const CallSite &site);

  Node *link(uint32_t recorder, uint32_t node);
  Node *parentNode(uint64_t key);
  static uint64_t unattributedKey();
  /// Three ids as one exact key: 15 + 22 + 22 bits.
  static uint64_t pathKey(uint32_t recorder, uint32_t node, uint32_t other) {
    return static_cast<uint64_t>(recorder) << 44 | static_cast<uint64_t>(node) << 22 | other;
  }
  Node *copyPath(Node *parent, TreePlace place);
  Recorder *recorderAt(uint32_t index);

  void publishStalls(bool is_final);
  void shareStalls(const StallTable::Places &places, const std::vector<Node *> &nodes,
                   const std::vector<uint64_t> &times);

  void onGap(const IdleGap &gap);
  void chargeIdle(const CallSite &site, uint32_t correlation, int64_t from_ns, int64_t to_ns);
  Node *hostLocation(const CallSite &before, const CallSite &after);
  bool callBefore(const CallSite &site, uint32_t *correlation, CallSite *before) const;

  const CorrelationTable &table_;
  AnsweredLaunches answered_;
  std::mutex mutex_;
  Recorder *recorder_ = nullptr;
  Activity batch_[kBatch];
  uint32_t count_ = 0;
  ProbeTable<Slot> slots_;
  std::vector<Recorder *> recorders_; // by index
  std::unordered_map<uint64_t, uint32_t> graph_parents_;
  std::unordered_map<uint64_t, uint32_t> host_locations_;
  IdleTracker idle_;
  StallTable::Kernels waiting_stalls_; // of kernels whose records have not come

  uint16_t time_metric_, delay_metric_, bytes_metric_, launch_metric_, idle_metric_, gap_metric_;
  uint16_t stall_metric_, exposed_metric_;
  uint16_t grid_metric_, block_metric_, register_metric_, shared_metric_;
  uint32_t unattributed_name_, communication_name_, replay_name_, unseen_replay_name_;
};

} // namespace deepcontext::gpu
