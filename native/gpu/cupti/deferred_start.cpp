#include "gpu/cupti/deferred_start.h"

#include <chrono>
#include <cstdlib>
#include <new>

#include "core/guard.h"
#include "gpu/cupti/collector.h"

namespace deepcontext::gpu::cupti {

namespace {

constexpr char kVariable[] = "CUDA_INJECTION64_PATH";

} // namespace

DeferredStart &DeferredStart::instance() {
  static DeferredStart *const start = new DeferredStart();
  return *start;
}

std::string DeferredStart::arm(const std::string &injection, const Libraries &libraries,
                               const CollectorOptions &options, bool prefers_mapped) {
  std::lock_guard<std::mutex> lock(mutex_);
  state_ = State::kIdle;
  const char *named = std::getenv(kVariable);
  if (named && injection != named) {
    return std::string("$") + kVariable + " names another tool's library, '" + named + "'";
  }
  std::string why;
  if (!library_.open(injection, &why) ||
      !library_.bind(&set_function_, "deepcontextSetInjection")) {
    return "the injection library '" + injection + "' cannot be loaded: " + why;
  }
  CuptiCollector::instance(); // whose fork handlers this needs
  libraries_ = libraries;
  options_ = options;
  prefers_mapped_ = prefers_mapped;
  reason_.clear();
  state_ = State::kWaiting;
  set_function_(onInjection);
  setenv(kVariable, injection.c_str(), 1);
  variable_ = injection;
  return "";
}

void DeferredStart::disarm(double seconds) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (set_function_) {
      set_function_(nullptr);
    }
    const char *named = std::getenv(kVariable);
    if (named && variable_ == named) {
      unsetenv(kVariable);
    }
    variable_.clear();
    if (state_ == State::kWaiting) {
      state_ = State::kIdle;
    }
  }
  std::unique_lock<std::timed_mutex> beginning(beginning_, std::defer_lock);
  static_cast<void>(beginning.try_lock_for(std::chrono::duration<double>(seconds)));
}

std::pair<DeferredStart::State, std::string> DeferredStart::state() {
  std::lock_guard<std::mutex> lock(mutex_);
  return {state_, reason_};
}

std::pair<std::string, std::vector<std::string>> DeferredStart::used() {
  std::lock_guard<std::mutex> lock(mutex_);
  return {libraries_.profiler, copies_};
}

void DeferredStart::forget() {
  new (&beginning_) std::timed_mutex();
  new (&mutex_) std::mutex();
  if (set_function_) {
    set_function_(nullptr);
  }
  state_ = State::kIdle;
}

void DeferredStart::onInjection() {
  if (!guarded([] { instance().begin(); })) {
    std::lock_guard<std::mutex> lock(instance().mutex_);
    instance().state_ = State::kRefused;
    instance().reason_ = "memory ran out while the collector started";
  }
}

void DeferredStart::begin() {
  std::lock_guard<std::timed_mutex> beginning(beginning_);
  Libraries libraries;
  CollectorOptions options;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (state_ != State::kWaiting) {
      return;
    }
    std::vector<std::string> mapped;
    if (prefers_mapped_) {
      mapped = mappedLibraries("libcupti.so");
    }
    if (!mapped.empty() && mapped.front() != libraries_.profiler) {
      libraries_.others.insert(libraries_.others.begin(), libraries_.profiler);
      libraries_.profiler = mapped.front();
    }
    libraries = libraries_;
    options = options_;
  }
  std::string reason = CuptiCollector::instance().start(libraries, options);
  std::vector<std::string> copies = mappedLibraries("libcupti.so");
  std::lock_guard<std::mutex> lock(mutex_);
  copies_ = copies;
  state_ = reason.empty() ? State::kBegun : State::kRefused;
  reason_ = reason;
}

} // namespace deepcontext::gpu::cupti
