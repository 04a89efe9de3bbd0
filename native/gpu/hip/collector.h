#pragma once
// What the two collectors of AMD's devices share: flush, stop and fork.
#include <atomic>
#include <string>

#include "gpu/collector.h"
#include "gpu/hip/runtime.h"

namespace deepcontext::gpu {

/// Runs from `is_running_` set by `start` to `stop`.
class HipCollector : public Collector {
public:
  const char *vendor() const override { return "amd"; }
  std::string flush() override;
  std::string stop() override;
  bool isRunning() const override { return is_running_.load(std::memory_order_acquire); }
  void afterFork(bool is_child) override;

protected:
  /// Have the library deliver complete records. Returns what went wrong, or "".
  virtual std::string flushWithDeadline() = 0;
  /// Called when all records have come and no call hangs.
  virtual void disable() {}

  std::string awaitRecords();

  HipRuntime hip_;
  std::atomic<bool> is_running_{false};
};

} // namespace deepcontext::gpu
