#pragma once
// The interface of a vendor's collector.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "gpu/attribution.h"
#include "gpu/call_recorder.h"

namespace deepcontext::gpu {

/// Paths of the vendor's libraries; "" for one that is missing.
struct Libraries {
  std::string profiler; // libcupti, librocprofiler-sdk, libroctracer64
  std::string driver;   // libcuda, libamdhip64
  // Of the profiler, to be tried in turn where it cannot reach the driver.
  std::vector<std::string> others = {};
};

struct CollectorOptions {
  size_t buffer_bytes = 1u << 20;
  size_t pool_bytes = 64u << 20; // of all buffers together
  double deadline_s = 10;        // for each call of the vendor that may hang
  double backlog_s = 10;         // a launch this old should have left a record
  bool with_stalls = false;
  double stall_window_s = 0.03, stall_pause_s = 0.3; // of sampling
  bool with_calls = false;                           // measure calls of the device's API, too
};

/// What a library look-up found.
struct ProbeResult {
  uint64_t version = 0;
  std::string reason; // why the devices cannot be observed; "" when they can
};

/// Collects from one vendor's devices. start, flush and stop are called by one thread at a time,
/// without the GIL; everything else runs on threads of the program and of the vendor.
class Collector {
public:
  virtual ~Collector() = default;
  virtual const char *vendor() const = 0;

  /// Load the libraries and query them; changes nothing.
  virtual ProbeResult probe(const Libraries &libraries) = 0;
  /// Begin to collect into the running session. Returns the reason for a failure, or "".
  virtual std::string start(const Libraries &libraries, const CollectorOptions &options) = 0;
  /// Bring the vendor's complete records into the tree. Returns what went wrong, or "".
  virtual std::string flush() = 0;
  /// End, with all records of what was launched so far. Returns what went wrong, or "".
  virtual std::string stop() = 0;
  virtual bool isRunning() const = 0;

  /// Keep no thread across a fork.
  virtual void beforeFork() {}
  virtual void afterFork(bool is_child) { (void)is_child; }

  /// Counters and versions by name, for the trust report.
  std::map<std::string, uint64_t> figures();
  std::map<uint32_t, DeviceTotals> deviceTotals();
  /// Requested parts that are missing, as sentences.
  std::vector<std::string> lacking() const;

protected:
  Collector();
  virtual void addFigures(std::map<std::string, uint64_t> &figures) { (void)figures; }
  /// Attribute pending records and write them to the tree.
  void publish(bool is_final);
  void beginAttribution();
  /// Remember once what the figures lack. Any thread.
  void note(const std::string &lacking);
  /// Remember how many launches there are now; called by each flush. True once in `backlog_s`, when
  /// the launches that are due were counted.
  bool noteDueLaunches();
  /// Launches that should leave a record.
  uint64_t launches() const {
    return calls_.launches() + attribution_.silent_graphs.revealedReplays();
  }
  /// Launches so old that a record is due, and that have left none.
  uint64_t overdueLaunches() { return without(due_launches_.load()); }
  /// Launches that have left no record yet.
  uint64_t unansweredLaunches() { return without(launches()); }
  /// Ordinals of the devices that this session has records of.
  std::vector<uint32_t> usedDevices();
  /// Run a call of the vendor's `library` that may hang; `work` returns what went wrong, or "".
  /// After a call that did not return in time, the library is not called again.
  std::string callWithDeadline(const char *library, const char *what,
                               std::function<std::string()> work);

  /// Begin to read a buffer: pair the clocks, then lock the attribution for as long as the returned
  /// lock exists. `device_now()` returns ns, or 0 on failure.
  template <typename DeviceNow> std::unique_lock<std::mutex> beginBuffer(DeviceNow device_now) {
    DeviceClock clock;
    clock.pair(device_now, RecorderRegistry::instance().clock().nsPerTick());
    std::unique_lock<std::mutex> lock(attribution_.mutex());
    if (clock.isKnown()) {
      attribution_.clock = clock;
    }
    Counters::bump(attribution_.counters.buffers);
    return lock;
  }
  /// Why `library` may not be called (again), or "".
  std::string refusalOf(const std::string &library) const;
  /// In a forked child: no vendor's library survives a fork, but one that was not used may start.
  void loseInChild();
  /// Both problems as one text; either may be "".
  static std::string joined(const std::string &problem, const std::string &further) {
    return problem + (problem.empty() || further.empty() ? "" : "; ") + further;
  }
  bool isTiming() const { return is_timing_.load(std::memory_order_relaxed); }

  CollectorOptions options_;
  CallRecorder calls_;
  Attribution attribution_;
  mutable std::mutex lacking_mutex_;
  std::vector<std::string> lacking_;
  // A call of the vendor's library has not returned, or the process is a forked child.
  std::atomic<bool> is_stuck_{false};
  std::atomic<bool> was_used_{false};  // the library, in this process or before its fork
  std::atomic<bool> is_timing_{false}; // API calls; read on the program's threads

private:
  /// How many of the first `launches` have left no record.
  uint64_t without(uint64_t launches);

  std::atomic<bool> is_in_child_{false}; // and was used before the fork
  // Written by flush.
  std::atomic<uint64_t> due_launches_{0};
  uint64_t next_due_launches_ = 0;
  std::chrono::steady_clock::time_point counted_at_;
};

/// Fork handlers of all collectors made so far.
void beforeFork();
void afterFork(bool is_child);

} // namespace deepcontext::gpu
