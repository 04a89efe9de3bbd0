#include "gpu/hip/collector.h"

namespace deepcontext::gpu {

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
    problem = joined(problem, flushWithDeadline());
  }
  is_running_.store(false);
  if (!is_stuck_.load()) {
    disable();
  }
  publish(true);
  return problem;
}

void HipCollector::afterFork(bool is_child) {
  if (is_child) {
    is_running_.store(false);
    loseInChild();
  }
}

} // namespace deepcontext::gpu
