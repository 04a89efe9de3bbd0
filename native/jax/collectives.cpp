#include "jax/collectives.h"

#include <algorithm>
#include <mutex>
#include <string_view>
#include <unistd.h>

namespace deepcontext::jax {

namespace {

// Launches are kept in runs of 64 / 4, because a launch may have several rows.
constexpr uint32_t kNumbersOfLaunch = 4;

// The stretch before the watched call that the thread is in. Initial-exec, as in the recorder, so
// that reading it never allocates.
thread_local Stretch::Parts t_parts __attribute__((tls_model("initial-exec")));

} // namespace

size_t Collectives::operationOf(std::string_view opcode) {
  return static_cast<size_t>(std::find(kOperations.begin(), kOperations.end(), opcode) -
                             kOperations.begin());
}

void Collectives::clear() {
  bool is_forked = process_ != getpid();
  process_ = getpid();
  if (is_forked) { // its holder does not exist in a forked child
    lock_.unlock();
  }
  Stretch::instance().clear(is_forked);
  std::lock_guard<SpinLock> guard(lock_);
  watched_count_.store(0);
  launches_.store(0);
  launches_of_ = {};
  sample_.clear();
}

uint32_t Collectives::watch(uint32_t function) {
  std::lock_guard<SpinLock> guard(lock_);
  uint32_t index = indexOf(function);
  uint32_t count = watched_count_.load(std::memory_order_relaxed);
  if (index < kMostFunctions || count == kMostFunctions) {
    return index;
  }
  watched_[count].store(function, std::memory_order_relaxed);
  watched_count_.store(count + 1, std::memory_order_release);
  return count;
}

uint32_t Collectives::indexOf(uint32_t function) const {
  uint32_t count = watched_count_.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i) {
    if (watched_[i].load(std::memory_order_relaxed) == function) {
      return i;
    }
  }
  return kMostFunctions;
}

void Collectives::begin(Recorder &recorder) {
  recorder.calls_collectives.store(true, std::memory_order_relaxed);
  t_parts = Stretch::instance().take();
}

LaunchNumber Collectives::launched(uint32_t function, uint32_t count) {
  uint32_t index = indexOf(function);
  if (index == kMostFunctions) {
    return {};
  }
  Stretch::Parts parts = t_parts;
  t_parts = {};
  if (!Stretch::instance().isOpen()) { // the call in which the function was compiled
    Stretch::instance().take();
  }
  std::lock_guard<SpinLock> guard(lock_);
  LaunchNumber number = {launches_of_[index], launches_.load(std::memory_order_relaxed)};
  launches_of_[index] += count;
  launches_.store(number.order + count, std::memory_order_relaxed);
  sample_.add(number.order * kOrdersOfRun, number.of_function * kNumbersOfLaunch, parts);
  return number;
}

void Collectives::add(const ProgramCollective &row) {
  ProgramCollective kept = row;
  kept.number = row.number * kNumbersOfLaunch;
  std::lock_guard<SpinLock> guard(lock_);
  sample_.add(kept);
}

void Collectives::add(uint32_t order, uint32_t number, const Stretch::Parts &parts) {
  std::lock_guard<SpinLock> guard(lock_);
  sample_.add(order, number * kNumbersOfLaunch, parts);
}

void Collectives::forgetRows(uint16_t group) {
  std::lock_guard<SpinLock> guard(lock_);
  sample_.forgetRows([group](const ProgramCollective &row) { return row.group == group; });
}

Collectives::Reading Collectives::read() {
  Reading reading;
  reading.rows.reserve(Sample::kMostRows); // memory is not asked for under the lock
  reading.samples.reserve(Sample::kMostSamples);
  std::lock_guard<SpinLock> guard(lock_);
  reading.launches = launches_of_;
  sample_.copyTo(&reading.rows, &reading.samples);
  return reading;
}

} // namespace deepcontext::jax
