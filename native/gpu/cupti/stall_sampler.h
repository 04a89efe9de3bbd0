#pragma once
// Reasons for which instructions wait, sampled by the device in short windows.
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "core/condition.h"
#include "gpu/cupti/call_gate.h"
#include "gpu/cupti/library.h"
#include "gpu/stalls.h"

namespace deepcontext::gpu::cupti {

/// CUPTI's PC sampling in continuous mode, controlled by a thread: on for one window, off for ten.
/// Only on request, because it needs privileges that ordinary users often lack, device memory, and
/// records of kernels that run one after the other.
///
/// The mutex is never held while CUPTI is called.
class StallSampler {
public:
  StallSampler(const Library &library, StallTable &table) : library_(library), table_(table) {}

  /// Begin. Returns the reason for a failure, or "". Contexts may be added later.
  std::string start();
  /// End the thread, then the sampling it enabled. May wait for CUPTI.
  void stop();
  bool isRunning() const { return is_running_.load(std::memory_order_acquire); }

  /// To be passed by each call of the driver while this runs.
  CallGate &gate() { return gate_; }

  // -- on the program's threads
  void addContext(void *context);
  /// A context is new: enable sampling before it has modules, because CUPTI takes what runs in
  /// modules that were loaded earlier for none of the program's kernels.
  void contextCreated(void *context);
  /// The context is about to be destroyed: waits until the sampler no longer uses it, one second at
  /// most.
  void dropContext(void *context);
  void addModule(const abi::cupti::ModuleData &module);

  /// Keep no thread across a fork; false when a call of CUPTI does not return.
  bool pause();
  void resume();

  /// CUPTI's last reason for not sampling something; "" when there is none.
  std::string refusal() const;
  uint64_t samples() const { return samples_.load(std::memory_order_relaxed); }
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }
  uint64_t windows() const { return windows_.load(std::memory_order_relaxed); }
  /// Windows that did not begin, because a thread was inside a call of the driver all the time.
  uint64_t missedWindows() const { return missed_windows_.load(std::memory_order_relaxed); }

private:
  static constexpr size_t kPcs = 4096; // of one reading
  using Image = std::shared_ptr<const std::vector<char>>;
  /// The configuration of one context; CUPTI keeps pointers into it.
  struct Sampled {
    size_t all_reasons = 0;                    // of the device
    std::vector<uint32_t> reason_indices;      // requested
    std::map<uint32_t, uint32_t> reason_names; // CUPTI's index -> interned
    std::vector<abi::cupti::PcData> pcs;
    std::vector<abi::cupti::PcStall> stalls;
    abi::cupti::PcSamplingData data{};
    bool is_enabled = false;
    bool is_begun = false; // a window
  };
  struct Line {
    uint32_t file; // interned; 0 for unknown
    uint32_t line;
  };

  void run();
  void sampleInTurn(std::unique_lock<std::mutex> &lock);
  void startThread();
  bool endThread(std::unique_lock<std::mutex> &lock, double seconds);
  void forgetGone();
  void takeOver();
  bool enable(void *context, Sampled &sampled);
  bool readReasons(void *context, Sampled &sampled);
  bool configure(void *context, Sampled &sampled);
  void window(void *context, Sampled &sampled);
  bool begin(void *context, Sampled &sampled);
  void end(void *context, Sampled &sampled);
  void disable(void *context, Sampled &sampled);
  template <typename Call> bool apart(Call call);
  bool isAlone(void *context, const std::set<void *> &contexts) const;
  bool readAll(void *context, Sampled &sampled);
  bool take(Sampled &sampled);
  Line lineOf(const abi::cupti::PcData &pc);
  void refuse(void *context, const char *what, Result result);

  const Library &library_;
  StallTable &table_;
  CallGate gate_;

  mutable std::mutex mutex_;
  Condition wake_, changed_;
  std::thread thread_;
  bool is_ending_ = false;
  bool has_thread_ = false;
  std::set<void *> contexts_;        // to be sampled
  std::set<void *> gone_;            // destroyed since the thread last checked
  void *in_use_ = nullptr;           // the context of the current call of CUPTI
  std::map<uint64_t, Image> cubins_; // by CRC
  size_t cubin_bytes_ = 0;
  std::string refusal_;

  std::map<void *, Sampled> fresh_; // new contexts, until the sampling thread takes them over

  // -- the sampling thread only
  std::map<void *, Sampled> sampled_;
  std::map<std::tuple<uint64_t, uint32_t, uint64_t>, Line> lines_; // cubin, function, offset
  std::unordered_set<const char *> names_; // CUPTI shares them between records: never freed

  std::atomic<bool> is_running_{false};
  std::atomic<uint64_t> samples_{0}, dropped_{0}, windows_{0}, missed_windows_{0};
};

/// "smsp__pcsamp_warps_issue_stalled_long_scoreboard" becomes "long_scoreboard". "" for counters
/// that are no reason to wait: sample counts, and the not-issued subsets, which would be counted
/// twice.
std::string shortReason(const std::string &name);

} // namespace deepcontext::gpu::cupti
