#pragma once
// Opens and closes the threads' counters.
#include <cstdint>
#include <vector>

#include "sampling/perf_counters.h"
#include "sampling/sampled_thread.h"

namespace deepcontext {

/// Opens counters of threads as long as there is room for their files. Sampler's thread only,
/// except `choose`, `begin` and `counts`.
class CountedThreads {
public:
  /// What is counted in sessions that start from now on. GIL held.
  void choose(std::vector<PerfAnswer> events) { events_ = std::move(events); }
  /// A session begins.
  void begin() { counts_.clear(); }
  void open(SampledThread &thread);
  /// Read the thread's counters and close their files.
  void close(SampledThread &thread);
  /// Read the thread's counters.
  void read(SampledThread &thread) { thread.counters.read(&counts_); }
  const PerfCounts &counts() const { return counts_; }

private:
  std::vector<PerfAnswer> events_;
  PerfCounts counts_;
  uint32_t open_ = 0; // threads
};

} // namespace deepcontext
