#include "gpu/hip/collector.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/clock.h"

namespace deepcontext::gpu {

namespace {

constexpr uint64_t kQuietNs = 500'000'000;

} // namespace

std::string HipCollector::flush() {
  if (!isRunning()) {
    return "";
  }
  std::string problem = flushWithDeadline();
  noteDueLaunches();
  publish(false);
  return problem;
}

std::string HipCollector::stop() {
  if (!isRunning()) {
    return "";
  }
  std::string problem = flushWithDeadline(); // its records say which devices to wait for
  if (problem.empty()) {
    problem = hip_.synchronize(usedDevices(), options_.deadline_s);
    problem = joined(problem, awaitRecords());
  }
  is_running_.store(false);
  if (!is_stuck_.load()) {
    disable();
  }
  publish(true);
  return problem;
}

/// Flush until each launch has left a record, or none has come for a while. A wait for the device
/// does not wait for the library's thread that takes a record from a finished signal
/// (pytorch/kineto PRs 824 and 1564).
std::string HipCollector::awaitRecords() {
  std::string problem = flushWithDeadline();
  uint64_t end_ns = monotonicNs() + static_cast<uint64_t>(options_.deadline_s * 1e9);
  uint64_t quiet_ns = monotonicNs() + kQuietNs;
  uint64_t missing = unansweredLaunches();
  while (problem.empty() && missing > 0 && monotonicNs() < std::min(quiet_ns, end_ns)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    problem = flushWithDeadline();
    if (uint64_t still = unansweredLaunches(); still < missing) {
      missing = still;
      quiet_ns = monotonicNs() + kQuietNs;
    }
  }
  return problem;
}

void HipCollector::afterFork(bool is_child) {
  if (is_child) {
    is_running_.store(false);
    loseInChild();
  }
}

} // namespace deepcontext::gpu
