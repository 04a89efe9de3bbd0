#pragma once
// What a GPU collector counts, so that a reader can tell a zero that was measured from one missed.
#include <atomic>
#include <cstdint>

namespace deepcontext::gpu {

/// Records received = matched + unmatched. Written under the attribution's mutex
/// unless said otherwise.
struct Counters {
  std::atomic<uint64_t> kernels{0}, copies{0}, memsets{0}; // received, by kind
  std::atomic<uint64_t> matched{0};                        // under the call path that launched them
  std::atomic<uint64_t> unmatched{0}; // no call path known: before the start, or long forgotten
  std::atomic<uint64_t> dropped{0};   // any thread: lost by the vendor, by its own count
  std::atomic<uint64_t> unknown_records{0};
  std::atomic<uint64_t> bad_times{0}; // ended before they began, or no times: counted, without time
  std::atomic<uint64_t> early_starts{0}; // began before their launch, by the clocks
  std::atomic<uint64_t> after_stop{0};   // any thread: buffers that came when nobody was listening
  std::atomic<uint64_t> graph_captured{0}; // of a graph, under the path that captured them
  std::atomic<uint64_t> graph_launched{0}; // of a graph whose capture was not seen
  std::atomic<uint64_t> buffers{0};
  std::atomic<uint64_t> broken_buffers{0};
  std::atomic<uint64_t> declined_buffers{0}; // any thread
  std::atomic<uint64_t> overhead_ns{0};      // as the vendor reports it
  std::atomic<uint64_t> late_idle_ns{0};     // of busy time that came after its gap was counted

  /// Of the counters that one thread writes: no locked instruction a record.
  static void bump(std::atomic<uint64_t> &counter, uint64_t by = 1) {
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
  static void bumpShared(std::atomic<uint64_t> &counter, uint64_t by = 1) {
    counter.fetch_add(by, std::memory_order_relaxed);
  }
  void reset();
};

} // namespace deepcontext::gpu
