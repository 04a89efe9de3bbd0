#pragma once
// Begins to collect inside the program's own cuInit.
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "gpu/collector.h"
#include "gpu/dynlib.h"

namespace deepcontext::gpu::cupti {

/// CUPTI lists the devices and starts threads when it is first used, so that it must not be used
/// before the program uses CUDA. The driver calls the injection library inside cuInit, on the
/// program's thread, which may hold the GIL; the other functions are called without it.
class DeferredStart {
public:
  enum class State { kIdle, kWaiting, kBegun, kRefused };

  static DeferredStart &instance();

  /// Begin when the driver is initialised, or change what is begun with. Returns why that cannot be
  /// waited for, or "".
  ///
  /// `injection`: path of the injection library. `prefers_mapped`: use a libcupti that the program
  /// has loaded by then.
  std::string arm(const std::string &injection, const Libraries &libraries,
                  const CollectorOptions &options, bool prefers_mapped);
  /// Begin no more; waits at most `seconds` for a start in progress.
  void disarm(double seconds);
  /// What became of it, and the reason of a refusal.
  std::pair<State, std::string> state();
  /// The libcupti that was used, and the copies that were mapped then.
  std::pair<std::string, std::vector<std::string>> used();
  /// In a forked child: neither the wait nor another thread's lock goes on.
  void forget();

private:
  static void onInjection();
  void begin();

  DynLib library_;
  void (*set_function_)(void (*)()) = nullptr;
  std::timed_mutex beginning_; // held while the collector starts
  std::mutex mutex_;           // of all below
  State state_ = State::kIdle;
  std::string reason_;
  std::string variable_; // what the environment variable was set to; "" when it was not
  Libraries libraries_;
  CollectorOptions options_;
  std::vector<std::string> copies_;
  bool prefers_mapped_ = false;
};

} // namespace deepcontext::gpu::cupti
