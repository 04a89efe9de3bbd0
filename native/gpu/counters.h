#pragma once
// What a GPU collector counts, so that a measured zero differs from a missing measurement.
#include <atomic>
#include <cstdint>
#include <utility>

namespace deepcontext::gpu {

/// Records received = matched + unmatched + communication. Written under the attribution's mutex
/// unless said otherwise.
struct Counters {
  std::atomic<uint64_t> kernels{0}, copies{0}, memsets{0}; // received, by kind
  std::atomic<uint64_t> matched{0};                        // under the call path that launched them
  std::atomic<uint64_t> unmatched{0};     // no call path known: before the start, or long forgotten
  std::atomic<uint64_t> communication{0}; // matched to no launch, but known as communication
  std::atomic<uint64_t> answered{0};      // launches of the session that left at least one record
  std::atomic<uint64_t> dropped{0}; // any thread: lost by the vendor, as the vendor counts them
  std::atomic<uint64_t> unknown_records{0};
  std::atomic<uint64_t> bad_times{0}; // without times, or end before start: counted, without time
  std::atomic<uint64_t> early_starts{0};   // start before their launch, as the clocks say
  std::atomic<uint64_t> after_stop{0};     // any thread: buffers that came outside a session
  std::atomic<uint64_t> graph_captured{0}; // of graphs, attributed to the path that captured them
  std::atomic<uint64_t> graph_launched{0}; // of graphs whose capture was not seen
  std::atomic<uint64_t> buffers{0};
  std::atomic<uint64_t> broken_buffers{0};
  std::atomic<uint64_t> declined_buffers{0}; // any thread
  std::atomic<uint64_t> early_flushes{0};    // any thread
  std::atomic<uint64_t> forced_flushes{0};   // while the program runs
  std::atomic<uint64_t> overhead_ns{0};      // as the vendor reports it
  std::atomic<uint64_t> late_idle_ns{0};     // busy time that came after its gap was counted
  std::atomic<uint64_t> crowded{0};          // see Exposure

  /// For counters that one thread writes: no locked instruction.
  static void bump(std::atomic<uint64_t> &counter, uint64_t by = 1) {
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
  static void bumpShared(std::atomic<uint64_t> &counter, uint64_t by = 1) {
    counter.fetch_add(by, std::memory_order_relaxed);
  }
  /// Every counter and its name in the trust report.
  template <typename Visit> void forEach(Visit visit) {
    const std::pair<const char *, std::atomic<uint64_t> *> all[] = {
        {"kernels", &kernels},
        {"copies", &copies},
        {"memsets", &memsets},
        {"matched", &matched},
        {"unmatched", &unmatched},
        {"communication", &communication},
        {"answered", &answered},
        {"dropped", &dropped},
        {"unknown_records", &unknown_records},
        {"bad_times", &bad_times},
        {"early_starts", &early_starts},
        {"after_stop", &after_stop},
        {"graph_captured", &graph_captured},
        {"graph_launched", &graph_launched},
        {"buffers", &buffers},
        {"broken_buffers", &broken_buffers},
        {"declined_buffers", &declined_buffers},
        {"early_flushes", &early_flushes},
        {"forced_flushes", &forced_flushes},
        {"overhead_ns", &overhead_ns},
        {"late_idle_ns", &late_idle_ns},
        {"crowded", &crowded}};
    for (const auto &[name, counter] : all) {
      visit(name, *counter);
    }
  }
};

} // namespace deepcontext::gpu
