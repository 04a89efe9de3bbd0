#pragma once
// Fetches records before their call paths are forgotten.
#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/condition.h"
#include "gpu/correlation.h"

namespace deepcontext::gpu::cupti {

/// CUPTI hands a thread's buffer over when the buffer is full: records of a thread that launches
/// rarely would come after the ring of call paths has gone round. So a thread of the profiler asks
/// for complete records after every kEvery ids, because CUPTI may not be asked on a launching
/// thread.
class EarlyFlush {
public:
  using Flush = void (*)();
  static constexpr uint32_t kEvery = CorrelationTable::kDefaultSlots / 4;

  /// No launch may be in progress.
  void begin(Flush flush);
  /// On launching threads.
  void noteLaunch(uint32_t correlation) {
    // Threads may come a little out of order, and ids wrap.
    uint32_t last = last_.load(std::memory_order_relaxed);
    if (__builtin_expect(correlation - last + kEvery >= 2 * kEvery, 0)) {
      request(correlation);
    }
  }
  /// No flush begins from now on. False when one has not returned after `seconds`.
  bool end(double seconds);

private:
  void request(uint32_t correlation);
  void run();

  std::atomic<uint32_t> last_{0}; // id at which records were last asked for
  std::mutex mutex_;
  Condition done_;
  Flush flush_ = nullptr; // null: none begins
  bool is_flushing_ = false;
};

} // namespace deepcontext::gpu::cupti
