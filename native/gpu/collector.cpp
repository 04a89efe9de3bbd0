#include "gpu/collector.h"

#include <algorithm>
#include <memory>
#include <new>

#include "gpu/deadline.h"

namespace deepcontext::gpu {

namespace {

/// Never destroyed, because a thread may fork while the process exits.
struct Made {
  std::mutex mutex;
  std::vector<Collector *> collectors;
};

Made &made() {
  static Made *const all = new Made();
  return *all;
}

std::vector<Collector *> madeCollectors() {
  std::lock_guard<std::mutex> lock(made().mutex);
  return made().collectors;
}

} // namespace

Collector::Collector() : attribution_(calls_.table) {
  std::lock_guard<std::mutex> lock(made().mutex);
  made().collectors.push_back(this);
}

std::map<std::string, uint64_t> Collector::figures() {
  std::map<std::string, uint64_t> all;
  attribution_.counters.forEach([&](const char *name, const auto &counter) {
    all[name] = counter.load(std::memory_order_relaxed);
  });
  all["received"] = all["kernels"] + all["copies"] + all["memsets"];
  all["launches"] = launches();
  all["silent_replays"] = attribution_.silent_graphs.silentReplays();
  all["due_launches"] = due_launches_.load();
  all["waits"] = calls_.waits();
  all["is_stuck"] = is_stuck_.load();
  addFigures(all);
  return all;
}

std::map<uint32_t, DeviceTotals> Collector::deviceTotals() {
  std::lock_guard<std::mutex> lock(attribution_.mutex());
  return attribution_.deviceTotals();
}

std::vector<std::string> Collector::lacking() const {
  std::lock_guard<std::mutex> lock(lacking_mutex_);
  return lacking_;
}

void Collector::note(const std::string &lacking) {
  std::lock_guard<std::mutex> lock(lacking_mutex_);
  if (std::find(lacking_.begin(), lacking_.end(), lacking) == lacking_.end()) {
    lacking_.push_back(lacking);
  }
}

void Collector::publish(bool is_final) {
  std::lock_guard<std::mutex> lock(attribution_.mutex());
  attribution_.publish(is_final);
}

void Collector::beginAttribution() {
  std::lock_guard<std::mutex> lock(attribution_.mutex());
  Recorder &recorder = RecorderRegistry::instance().makeDetached(std::string("gpu ") + vendor());
  attribution_.begin(recorder);
  calls_.clear();
  {
    std::lock_guard<std::mutex> lacking_lock(lacking_mutex_);
    lacking_.clear();
  }
  is_timing_.store(options_.with_calls);
  due_launches_.store(0);
  next_due_launches_ = 0;
  counted_at_ = std::chrono::steady_clock::now();
}

bool Collector::noteDueLaunches() {
  auto now = std::chrono::steady_clock::now();
  if (std::chrono::duration<double>(now - counted_at_).count() < options_.backlog_s) {
    return false;
  }
  due_launches_.store(next_due_launches_);
  next_due_launches_ = launches();
  counted_at_ = now;
  return true;
}

uint64_t Collector::without(uint64_t launches) {
  Counters &counters = attribution_.counters;
  uint64_t known = counters.answered.load() + counters.unmatched.load() + counters.dropped.load() +
                   counters.communication.load();
  return launches > known ? launches - known : 0;
}

std::vector<uint32_t> Collector::usedDevices() {
  std::vector<uint32_t> devices;
  for (const auto &[device, totals] : deviceTotals()) {
    devices.push_back(device);
  }
  if (devices.empty() && launches() > 0) {
    devices.push_back(0); // the records of the launches have not come yet
  }
  return devices;
}

std::string Collector::callWithDeadline(const char *library, const char *what,
                                        std::function<std::string()> work) {
  if (is_stuck_.load()) {
    return "";
  }
  auto problem = std::make_shared<std::string>();
  if (!runWithDeadline([problem, work = std::move(work)] { *problem = work(); },
                       options_.deadline_s)) {
    is_stuck_.store(true);
    return std::string(what) + " did not return within " +
           std::to_string(static_cast<int>(options_.deadline_s)) +
           " s; records it held are missing, and " + library + " is not called again";
  }
  return *problem;
}

std::string Collector::refusalOf(const std::string &library) const {
  if (is_in_child_.load()) {
    return library + " was used before this process was forked, and does not survive a fork; start "
                     "the child with exec (in multiprocessing: 'spawn' or 'forkserver')";
  }
  if (is_stuck_.load()) {
    return "a call of " + library +
           " from an earlier session has not returned; restart the program";
  }
  return "";
}

void Collector::loseInChild() {
  is_in_child_.store(was_used_.load());
  is_stuck_.store(was_used_.load());
  new (&lacking_mutex_) std::mutex(); // a thread that held it does not exist here
}

void beforeFork() {
  for (Collector *collector : madeCollectors()) {
    collector->beforeFork();
  }
}

void afterFork(bool is_child) {
  for (Collector *collector : madeCollectors()) {
    collector->afterFork(is_child);
  }
}

} // namespace deepcontext::gpu
