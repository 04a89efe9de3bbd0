#include "gpu/cupti/stall_sampler.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "core/guard.h"
#include "core/internal_thread.h"
#include "core/interner.h"
#include "core/text.h"
#include "gpu/deadline.h"

namespace deepcontext::gpu::cupti {

namespace {

constexpr double kWindowS = 0.03;
constexpr double kPauseS = 0.3;
constexpr double kPatienceS = 1;
constexpr std::chrono::milliseconds kGatePatience{200};
constexpr uint32_t kPeriodExponent = 12; // one sample each 2^12 cycles
constexpr size_t kScratchBytes = 16u << 20;
constexpr size_t kHardwareBytes = 64u << 20;
constexpr size_t kMostNames = 1u << 20;
constexpr int kMostReadings = 256; // after one window
constexpr char kStalled[] = "issue_stalled_";
constexpr char kNotIssued[] = "_not_issued";

/// PC sampling hung three of seven programs on an H100 with CUDA 13.0 (decision 100): one without
/// the gate and with it, but with records of overlapping kernels; one, after that, with all that is
/// done here. So it runs only where the user has said that the program may hang.
bool mayHang() {
  const char *consent = std::getenv("DEEPCONTEXT_GPU_STALLS");
  return consent && std::string_view(consent) == "may-hang";
}

} // namespace

std::string shortReason(const std::string &name) {
  size_t found = name.find(kStalled);
  if (found == std::string::npos || endsWith(name, kNotIssued)) {
    return "";
  }
  return name.substr(found + sizeof kStalled - 1);
}

std::string StallSampler::start() {
  if (!mayHang()) {
    return "stalls are not sampled: CUPTI's sampling hung programs on an H100 with CUDA 13.0; "
           "DEEPCONTEXT_GPU_STALLS=may-hang samples in spite of it";
  }
  if (!library_.hasPcSampling()) {
    return "stalls are not sampled: this libcupti has no PC sampling";
  }
  if (library_.version < abi::cupti::kVersionPcDataCorrelation) {
    return "stalls are not sampled: CUPTI " + releaseOf(library_.version) +
           " lays its samples out in another way; CUDA 12.4 or newer is needed";
  }
  std::lock_guard<std::mutex> lock(mutex_);
  refusal_.clear();
  sampled_.clear();
  gone_.clear();
  lines_.clear();
  fresh_.clear();
  samples_ = dropped_ = windows_ = missed_windows_ = 0;
  gate_.reset();
  startThread();
  is_running_.store(has_thread_);
  return has_thread_ ? "" : "stalls are not sampled: the process may have no more threads";
}

void StallSampler::startThread() {
  if (thread_.joinable()) {
    thread_.join(); // it has ended since `endThread` timed out
  }
  is_ending_ = false;
  thread_ = startInternalThread([this] { run(); });
  has_thread_ = thread_.joinable();
}

/// False when the thread has not ended after `seconds`: it remains inside CUPTI.
bool StallSampler::endThread(std::unique_lock<std::mutex> &lock, double seconds) {
  is_ending_ = true;
  wake_.notifyAll();
  if (!changed_.waitFor(lock, seconds, [this] { return !has_thread_; })) {
    return false;
  }
  lock.unlock();
  thread_.join();
  lock.lock();
  return true;
}

void StallSampler::stop() {
  if (!isRunning()) {
    return;
  }
  std::unique_lock<std::mutex> lock(mutex_);
  constexpr double kLong = 1e6; // the caller has a deadline
  if (has_thread_) {
    endThread(lock, kLong);
  }
  is_running_.store(false);
  takeOver();
  forgetGone();
  lock.unlock();
  bool is_apart = apart([this] {
    for (auto &[context, sampled] : sampled_) {
      if (sampled.is_enabled) {
        readAll(context, sampled);
        disable(context, sampled);
      }
    }
  });
  lock.lock();
  if (!is_apart && refusal_.empty()) {
    refusal_ = "the last samples of stalls were not read: a thread is inside a call of CUDA";
  }
  sampled_.clear();
  contexts_.clear();
  cubins_.clear();
  cubin_bytes_ = 0;
}

/// Call CUPTI while no other thread is inside a call of the driver. False where one always was.
template <typename Call> bool StallSampler::apart(Call call) {
  if (!gate_.close(kGatePatience)) {
    return false;
  }
  call();
  gate_.open();
  return true;
}

void StallSampler::disable(void *context, Sampled &sampled) {
  abi::cupti::PcContextParameters parameters{sizeof parameters, nullptr, context};
  library_.PCSamplingDisable(&parameters);
  take(sampled); // disabling delivers the remaining samples
  sampled.is_enabled = sampled.is_begun = false;
}

/// Whether no other context is of the same device, as far as CUPTI tells.
bool StallSampler::isAlone(void *context, const std::set<void *> &contexts) const {
  auto deviceOf = [this](void *each) {
    uint32_t device = 0; // shared, where it is unknown
    return library_.GetDeviceId && library_.GetDeviceId(each, &device) == abi::cupti::kSuccess
               ? device
               : 0;
  };
  return contexts.size() <= 1 || std::none_of(contexts.begin(), contexts.end(), [&](void *other) {
           return other != context && deviceOf(other) == deviceOf(context);
         });
}

void StallSampler::addContext(void *context) {
  std::lock_guard<std::mutex> lock(mutex_);
  contexts_.insert(context);
}

void StallSampler::contextCreated(void *context) {
  Sampled *sampled = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!fresh_.empty() || !contexts_.empty()) {
      return; // one context of a device at a time: they take turns
    }
    sampled = &fresh_[context];
  }
  if (enable(context, *sampled)) {
    addContext(context);
  } else {
    std::lock_guard<std::mutex> lock(mutex_);
    fresh_.erase(context);
  }
}

void StallSampler::dropContext(void *context) {
  std::unique_lock<std::mutex> lock(mutex_);
  contexts_.erase(context);
  gone_.insert(context);
  wake_.notifyAll();
  changed_.waitFor(lock, kPatienceS, [&] { return in_use_ != context; });
}

bool StallSampler::pause() {
  std::unique_lock<std::mutex> lock(mutex_);
  return !has_thread_ || endThread(lock, kPatienceS);
}

void StallSampler::resume() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!isRunning()) {
    return;
  }
  is_ending_ = false; // a thread that did not end in time continues
  if (!has_thread_) {
    startThread();
  }
}

std::string StallSampler::refusal() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return refusal_;
}

/// Stop sampling a context.
void StallSampler::refuse(void *context, const char *what, Result result) {
  std::lock_guard<std::mutex> lock(mutex_);
  refusal_ = "stalls are not sampled: " + explain(what, result);
  contexts_.erase(context);
}

void StallSampler::run() {
  markInternalThread();
  std::unique_lock<std::mutex> lock(mutex_);
  guarded([&] { sampleInTurn(lock); });
  if (!lock.owns_lock()) {
    lock.lock();
  }
  in_use_ = nullptr;
  has_thread_ = false;
  changed_.notifyAll();
}

void StallSampler::sampleInTurn(std::unique_lock<std::mutex> &lock) {
  while (!is_ending_) {
    takeOver();
    forgetGone();
    std::set<void *> contexts = contexts_;
    for (void *context : contexts) {
      if (is_ending_ || !contexts_.count(context) || gone_.count(context)) {
        continue;
      }
      in_use_ = context;
      lock.unlock();
      Sampled &sampled = sampled_[context];
      window(context, sampled);
      if (sampled.is_enabled && !isAlone(context, contexts)) {
        apart(
            [&] { disable(context, sampled); }); // CUPTI samples one context of a device at a time
      }
      lock.lock();
      in_use_ = nullptr;
      changed_.notifyAll();
    }
    wake_.waitFor(lock, kPauseS, [this] { return is_ending_; });
  }
}

/// CUPTI keeps pointers into the entries, so that they stay where they are.
void StallSampler::takeOver() {
  for (auto fresh = fresh_.begin(); fresh != fresh_.end();) {
    auto next = std::next(fresh);
    if (contexts_.count(fresh->first)) { // else its thread is about to enable it
      sampled_.insert(fresh_.extract(fresh));
    }
    fresh = next;
  }
}

/// A destroyed context has ended its sampling; a new context may have its address.
void StallSampler::forgetGone() {
  for (void *context : gone_) {
    sampled_.erase(context);
    fresh_.erase(context);
  }
  gone_.clear();
}

bool StallSampler::enable(void *context, Sampled &sampled) {
  abi::cupti::PcContextParameters parameters{sizeof parameters, nullptr, context};
  Result result = library_.PCSamplingEnable(&parameters);
  if (result != abi::cupti::kSuccess) {
    refuse(context, "cuptiPCSamplingEnable", result);
    return false;
  }
  sampled.is_enabled = readReasons(context, sampled) && configure(context, sampled);
  if (!sampled.is_enabled) {
    library_.PCSamplingDisable(&parameters);
  }
  return sampled.is_enabled;
}

bool StallSampler::readReasons(void *context, Sampled &sampled) {
  size_t count = 0;
  abi::cupti::PcStallCountParameters asking{sizeof asking, nullptr, context, &count};
  Result result = library_.PCSamplingGetNumStallReasons(&asking);
  if (result != abi::cupti::kSuccess) {
    refuse(context, "cuptiPCSamplingGetNumStallReasons", result);
    return false;
  }
  sampled.all_reasons = count;
  sampled.reason_indices.clear();
  std::vector<uint32_t> indices(count);
  std::vector<std::vector<char>> texts(count, std::vector<char>(abi::cupti::kStallNameBytes));
  std::vector<char *> names;
  for (std::vector<char> &text : texts) {
    names.push_back(text.data());
  }
  abi::cupti::PcStallNamesParameters parameters{sizeof parameters, nullptr,     context, count,
                                                indices.data(),    names.data()};
  result = library_.PCSamplingGetStallReasons(&parameters);
  if (result != abi::cupti::kSuccess) {
    refuse(context, "cuptiPCSamplingGetStallReasons", result);
    return false;
  }
  for (size_t i = 0; i < count; ++i) {
    texts[i].back() = '\0';
    std::string reason = shortReason(names[i]);
    if (!reason.empty()) {
      sampled.reason_indices.push_back(indices[i]);
      sampled.reason_names[indices[i]] = Interner::instance().intern(reason);
    }
  }
  return true;
}

bool StallSampler::configure(void *context, Sampled &sampled) {
  size_t reasons = sampled.reason_indices.size();
  sampled.pcs.assign(kPcs, abi::cupti::PcData{});
  // Room for all reasons, because CUPTI is not told the size.
  sampled.stalls.assign(kPcs * sampled.all_reasons, abi::cupti::PcStall{});
  for (size_t i = 0; i < kPcs; ++i) {
    sampled.pcs[i].bytes = sizeof(abi::cupti::PcData);
    sampled.pcs[i].stalls = sampled.stalls.data() + i * sampled.all_reasons;
  }
  sampled.data = {};
  sampled.data.bytes = sizeof sampled.data;
  sampled.data.capacity = kPcs;
  sampled.data.pcs = sampled.pcs.data();
  abi::cupti::PcConfiguration wanted[7] = {};
  wanted[0].attribute = abi::cupti::kPcCollectionMode;
  wanted[0].value = abi::cupti::kPcModeContinuous;
  wanted[1].attribute = abi::cupti::kPcSamplingPeriod;
  wanted[1].value = kPeriodExponent;
  wanted[2].attribute = abi::cupti::kPcStallReasons;
  wanted[2].stall_reasons = {reasons, sampled.reason_indices.data()};
  wanted[3].attribute = abi::cupti::kPcScratchBytes;
  wanted[3].bytes = kScratchBytes;
  wanted[4].attribute = abi::cupti::kPcHardwareBufferBytes;
  wanted[4].bytes = kHardwareBytes;
  wanted[5].attribute = abi::cupti::kPcStartStopControl;
  wanted[5].value = 1;
  wanted[6].attribute = abi::cupti::kPcDataBuffer;
  wanted[6].buffer = &sampled.data;
  abi::cupti::PcConfigurationParameters parameters{sizeof parameters, nullptr, context, 7, wanted};
  Result result = library_.PCSamplingSetConfigurationAttribute(&parameters);
  if (result != abi::cupti::kSuccess) {
    refuse(context, "cuptiPCSamplingSetConfigurationAttribute", result);
  }
  return result == abi::cupti::kSuccess;
}

void StallSampler::window(void *context, Sampled &sampled) {
  bool is_begun = false;
  bool is_apart = apart([&] {
    is_begun = (sampled.is_enabled || enable(context, sampled)) && begin(context, sampled);
  });
  if (!is_begun) {
    missed_windows_.fetch_add(!is_apart, std::memory_order_relaxed);
    return;
  }
  {
    std::unique_lock<std::mutex> lock(mutex_);
    wake_.waitFor(lock, kWindowS, [&] { return is_ending_ || gone_.count(context) > 0; });
  }
  // A window that cannot be ended now ends with one of the next.
  apart([&] { end(context, sampled); });
}

bool StallSampler::begin(void *context, Sampled &sampled) {
  abi::cupti::PcContextParameters parameters{sizeof parameters, nullptr, context};
  if (sampled.is_begun) {
    return true;
  }
  Result result = library_.PCSamplingStart(&parameters);
  if (result != abi::cupti::kSuccess) {
    refuse(context, "cuptiPCSamplingStart", result);
    library_.PCSamplingDisable(&parameters);
    sampled.is_enabled = false;
  }
  sampled.is_begun = result == abi::cupti::kSuccess;
  return sampled.is_begun;
}

void StallSampler::end(void *context, Sampled &sampled) {
  abi::cupti::PcContextParameters parameters{sizeof parameters, nullptr, context};
  library_.PCSamplingStop(&parameters);
  sampled.is_begun = false;
  // Stopping writes samples into the buffer, and reading overwrites them (seen with CUDA 13.0).
  bool is_going_on = take(sampled);
  if (!is_going_on || !readAll(context, sampled)) {
    library_.PCSamplingDisable(&parameters);
    sampled.is_enabled = false;
  }
  windows_.fetch_add(1, std::memory_order_relaxed);
}

/// A window's samples are read before the next begins, or their addresses would be ambiguous. False
/// when sampling of the context has stopped.
bool StallSampler::readAll(void *context, Sampled &sampled) {
  for (int i = 0; i < kMostReadings; ++i) {
    abi::cupti::PcGetDataParameters reading{sizeof reading, nullptr, context, &sampled.data};
    Result result = library_.PCSamplingGetData(&reading);
    bool is_more = sampled.data.remaining > 0;
    if (!take(sampled)) {
      return false;
    }
    // Out of memory means that the device's buffer was full; its content can still be read.
    if (result != abi::cupti::kSuccess && result != abi::cupti::kOutOfMemory) {
      refuse(context, "cuptiPCSamplingGetData", result);
      return false;
    }
    if (!is_more) {
      return true;
    }
  }
  return true;
}

/// Count the samples of the buffer, and empty it. False when sampling must stop.
bool StallSampler::take(Sampled &sampled) {
  for (size_t i = 0; i < sampled.data.count && i < kPcs; ++i) {
    const abi::cupti::PcData &pc = sampled.pcs[i];
    if (!pc.function) {
      continue;
    }
    names_.insert(pc.function);
    uint32_t kernel = Interner::instance().intern(pc.function);
    Line line = lineOf(pc);
    for (size_t j = 0; j < pc.stall_count && j < sampled.all_reasons; ++j) {
      const abi::cupti::PcStall &stall = pc.stalls[j];
      auto reason = sampled.reason_names.find(stall.reason);
      if (stall.samples > 0 && reason != sampled.reason_names.end()) {
        table_.add(kernel, {reason->second, line.file, line.line}, stall.samples);
        samples_.fetch_add(stall.samples, std::memory_order_relaxed);
      }
    }
  }
  dropped_.fetch_add(sampled.data.dropped_samples, std::memory_order_relaxed);
  sampled.data.count = 0;
  sampled.data.dropped_samples = 0;
  sampled.data.remaining = 0;
  if (names_.size() < kMostNames) {
    return true;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  refusal_ = "stalls are sampled no more: CUPTI has named a million functions";
  contexts_.clear();
  return false;
}

} // namespace deepcontext::gpu::cupti
