#pragma once
// Reasons for which instructions wait, sampled by the device in short windows.
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "gpu/cupti/call_gate.h"
#include "gpu/cupti/library.h"
#include "gpu/stalls.h"

namespace deepcontext::gpu::cupti {

/// CUPTI's PC sampling, on for one window, off for ten. Only on request, because it needs
/// privileges that ordinary users often lack, device memory, and runs the kernels of a window one
/// after the other.
///
/// It has no thread: the program's threads step it where they call the driver, before CUPTI and the
/// driver have taken a lock and after they have released it. Who has a `Serial` may read and write
/// what belongs to sampling.
class StallSampler {
public:
  struct Pace {
    double window_s = 0.03;
    double pause_s = 0.3;
  };

  /// `captures`: streams that capture a graph, which a wait for the device would end.
  StallSampler(const Library &library, StallTable &table, const std::atomic<uint32_t> &captures)
      : library_(library), table_(table), captures_(captures) {}

  /// Begin. Returns the reason for a failure, or "".
  ///
  /// `on_enabled` runs after CUPTI was asked to sample a context, which may switch off the records
  /// of kernels.
  std::string start(const Pace &pace, std::function<void(const Serial &)> on_enabled);
  /// Read and disable what is enabled. May wait for CUPTI.
  void stop();
  bool isRunning() const { return is_running_.load(std::memory_order_acquire); }

  // -- on the program's threads, at each call of the driver while this runs
  /// `context`: of a launch, at which a window may begin; null elsewhere.
  void enter(void *context);
  /// `may_end`: the call is one at which a window may end.
  void leave(bool may_end);

  /// A context is new: enable sampling before it has modules, because CUPTI takes what runs in
  /// modules that were loaded earlier for none of the program's kernels.
  void contextCreated(void *context);
  /// The context is about to be destroyed.
  void contextDestroyed(void *context);
  void addModule(const abi::cupti::ModuleData &module);

  /// No window begins from now on.
  void refuse(const std::string &reason);
  /// Refuse if a call of CUPTI has not returned for a second. It cannot be ended.
  void watch();

  /// Whether CUPTI may sample: a forced flush then loses kernels.
  bool isArmed() const { return armed_.load() != nullptr; }
  /// The first reason for not sampling; "" when there is none.
  std::string refusal() const;
  uint64_t samples() const { return samples_.load(std::memory_order_relaxed); }
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }
  uint64_t windows() const { return windows_.load(std::memory_order_relaxed); }
  /// Times that a window was due and another thread was inside a call of the driver.
  uint64_t missedWindows() const { return missed_windows_.load(std::memory_order_relaxed); }

private:
  static constexpr size_t kPcs = 4096; // of one reading
  using Image = std::shared_ptr<const std::vector<char>>;
  enum class State : uint32_t { kClosed, kOpen, kReading };
  /// Room for what CUPTI hands over.
  struct Output {
    std::vector<abi::cupti::PcData> pcs;
    std::vector<abi::cupti::PcStall> stalls;
    abi::cupti::PcSamplingData data{};
    explicit Output(size_t reasons);
  };
  /// The configuration of the context; CUPTI keeps pointers into it.
  struct Sampled {
    void *context = nullptr;
    size_t all_reasons = 0;                    // of the device
    std::vector<uint32_t> reason_indices;      // requested
    std::map<uint32_t, uint32_t> reason_names; // CUPTI's index -> interned
    std::unique_ptr<Output> own;               // CUPTI's; not to be touched
    std::unique_ptr<Output> read;
  };
  struct Line {
    uint32_t file; // interned; 0 for unknown
    uint32_t line;
  };
  class Step;

  void begin(void *context);
  void end();
  bool enable(const Serial &cupti, void *context);
  bool readReasons(const Serial &cupti, Sampled &sampled);
  bool configure(const Serial &cupti, Sampled &sampled);
  bool readAll(const Serial &cupti, double seconds);
  bool recover(const Serial &cupti);
  void take(const Output &output);
  void disable(const Serial &cupti);
  void release(const Serial &cupti);
  void abandon();
  bool isLost() const { return sampled_ && !isArmed(); }
  bool fail(const char *what, Result result);
  Line lineOf(const abi::cupti::PcData &pc);

  const Library &library_;
  StallTable &table_;
  const std::atomic<uint32_t> &captures_;
  CallGate gate_;
  Pace pace_;
  std::function<void(const Serial &)> on_enabled_;

  mutable std::mutex mutex_;         // never held while CUPTI is called
  std::map<uint64_t, Image> cubins_; // by CRC
  size_t cubin_bytes_ = 0;
  std::string refusal_;

  // -- with a Serial only
  std::unique_ptr<Sampled> sampled_;
  bool has_recovered_ = false;
  std::map<std::tuple<uint64_t, uint32_t, uint64_t>, Line> lines_; // cubin, function, offset
  std::unordered_set<const char *> names_; // CUPTI shares them between records: never freed

  std::atomic<State> state_{State::kClosed};
  std::atomic<const void *> owner_{nullptr}; // the thread that began the window
  std::atomic<uint64_t> due_ns_{0};          // for the next change of the state
  std::atomic<uint64_t> inside_since_ns_{0}; // a step; 0: none
  std::atomic<void *> armed_{nullptr};       // the context that CUPTI may sample
  std::atomic<bool> is_running_{false}, is_refused_{false};
  std::atomic<uint64_t> samples_{0}, dropped_{0}, windows_{0}, missed_windows_{0};
};

/// "smsp__pcsamp_warps_issue_stalled_long_scoreboard" becomes "long_scoreboard". "" for counters
/// that are no reason to wait: sample counts, and the not-issued subsets, which would be counted
/// twice.
std::string shortReason(const std::string &name);

} // namespace deepcontext::gpu::cupti
