#include "gpu/cupti/stall_sampler.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "core/clock.h"
#include "core/interner.h"
#include "core/text.h"
#include "gpu/deadline.h"

namespace deepcontext::gpu::cupti {

namespace {

constexpr double kReadingS = 0.005;   // at the end of a call of the program
constexpr double kReadingAtStopS = 1; // of the session
constexpr double kOtherThreadS = 5;   // then another thread ends the window
constexpr double kRetryS = 0.001;     // after a window that could not begin
constexpr uint64_t kLongCallNs = 1'000'000'000;
constexpr std::chrono::milliseconds kGatePatience{200}; // where a context or the session ends
constexpr size_t kMostNames = 1u << 20;
constexpr char kStalled[] = "issue_stalled_";
constexpr char kNotIssued[] = "_not_issued";

thread_local const char t_thread = 0; // its address names the thread

/// An earlier version, with a thread of its own, hung three of seven programs on an H100 with CUDA
/// 13.0 (decision 100). This one has run on no GPU.
bool mayHang() {
  const char *consent = std::getenv("DEEPCONTEXT_GPU_STALLS");
  return consent && std::string_view(consent) == "may-hang";
}

/// The right to call CUPTI, if it can be had within `patience`.
Serial serialWithin(const Library &library, std::chrono::milliseconds patience) {
  auto end = std::chrono::steady_clock::now() + patience;
  Serial cupti = library.trySerial();
  while (!cupti && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    cupti = library.trySerial();
  }
  return cupti;
}

uint64_t nsOf(double seconds) {
  return static_cast<uint64_t>(seconds * 1e9);
}

} // namespace

std::string shortReason(const std::string &name) {
  size_t found = name.find(kStalled);
  if (found == std::string::npos || endsWith(name, kNotIssued)) {
    return "";
  }
  return name.substr(found + sizeof kStalled - 1);
}

StallSampler::Output::Output(size_t reasons) : pcs(kPcs), stalls(kPcs * reasons) {
  for (size_t i = 0; i < kPcs; ++i) {
    pcs[i].bytes = sizeof(abi::cupti::PcData);
    pcs[i].stalls = stalls.data() + i * reasons; // CUPTI does not know the size
  }
  data.bytes = sizeof data;
  data.capacity = kPcs;
  data.pcs = pcs.data();
}

/// A change of the sampling, by one thread at a time, while no other one is inside a call of the
/// driver. False where it is not possible now.
class StallSampler::Step {
public:
  Step(StallSampler &sampler, Serial cupti, std::chrono::milliseconds patience)
      : sampler_(sampler), cupti_(std::move(cupti)) {
    if (cupti_) {
      closed_.emplace(sampler.gate_, patience);
    }
    if (*this) {
      sampler_.inside_since_ns_.store(monotonicNs());
    }
  }
  ~Step() {
    if (*this) {
      sampler_.inside_since_ns_.store(0);
    }
  }
  Step(const Step &) = delete;
  Step &operator=(const Step &) = delete;
  explicit operator bool() const { return closed_ && *closed_; }
  const Serial &cupti() const { return cupti_; }

private:
  StallSampler &sampler_;
  Serial cupti_;
  std::optional<CallGate::Closed> closed_;
  OwnCalls own_; // the calls of the driver that CUPTI and the step make
};

std::string StallSampler::start(const Pace &pace, std::function<void(const Serial &)> on_enabled) {
  if (!mayHang()) {
    return "stalls are not sampled: CUPTI's sampling hung programs on an H100 with CUDA 13.0; "
           "DEEPCONTEXT_GPU_STALLS=may-hang samples in spite of it";
  }
  Serial cupti = library_.serial();
  if (!cupti->hasPcSampling()) {
    return "stalls are not sampled: this libcupti has no PC sampling";
  }
  if (library_.version < abi::cupti::kVersionPcDataCorrelation) {
    return "stalls are not sampled: CUPTI " + releaseOf(library_.version) +
           " lays its samples out in another way; CUDA 12.4 or newer is needed";
  }
  pace_ = pace;
  on_enabled_ = std::move(on_enabled);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    refusal_.clear();
  }
  lines_.clear();
  samples_ = dropped_ = windows_ = missed_windows_ = 0;
  has_recovered_ = false;
  is_refused_.store(false);
  state_.store(State::kClosed);
  due_ns_.store(0);
  gate_.reset();
  is_running_.store(true);
  return "";
}

void StallSampler::stop() {
  if (!isRunning()) {
    return;
  }
  is_refused_.store(true);
  {
    Step step(*this, library_.serial(), kGatePatience);
    if (isLost()) {
      static_cast<void>(sampled_.release()); // CUPTI may go on with the buffers
    } else if (step) {
      release(step.cupti());
    } else if (isArmed()) {
      static_cast<void>(sampled_.release());
      armed_.store(nullptr);
      refuse("the last samples of stalls were not read: a thread is inside a call of CUDA");
    }
  }
  is_running_.store(false);
  std::lock_guard<std::mutex> lock(mutex_);
  cubins_.clear();
  cubin_bytes_ = 0;
}

void StallSampler::enter(void *context) {
  if (context && state_.load() == State::kClosed && !is_refused_.load() && gate_.isOutside() &&
      monotonicNs() >= due_ns_.load()) {
    begin(context);
  }
  gate_.enter();
  if (__builtin_expect(gate_.isOpenForGood(), 0)) {
    abandon();
  }
}

void StallSampler::leave(bool may_end) {
  gate_.leave();
  if (!may_end || state_.load() == State::kClosed || !gate_.isOutside()) {
    return;
  }
  double late_s = owner_.load() == &t_thread ? 0 : kOtherThreadS;
  if (monotonicNs() >= due_ns_.load() + nsOf(late_s)) {
    end();
  }
}

void StallSampler::begin(void *context) {
  Step step(*this, library_.trySerial(), {});
  if (!step) {
    missed_windows_.fetch_add(1, std::memory_order_relaxed);
    due_ns_.store(monotonicNs() + nsOf(kRetryS));
    return;
  }
  if (state_.load() != State::kClosed || is_refused_.load() || captures_.load() > 0 ||
      !(sampled_ || enable(step.cupti(), context)) || sampled_->context != context) {
    return;
  }
  // Otherwise CUPTI waits for the device, with its locks.
  inside_since_ns_.store(0);
  if (library_.CtxSynchronize) {
    library_.CtxSynchronize();
  }
  inside_since_ns_.store(monotonicNs());
  if (gate_.isOpenForGood()) {
    return;
  }
  abi::cupti::PcContextParameters parameters{sizeof parameters, nullptr, context};
  Result result = step.cupti()->PCSamplingStart(&parameters);
  if (result != abi::cupti::kSuccess) {
    fail("cuptiPCSamplingStart", result);
    disable(step.cupti());
    return;
  }
  owner_.store(&t_thread);
  due_ns_.store(monotonicNs() + nsOf(pace_.window_s));
  state_.store(State::kOpen);
}

void StallSampler::end() {
  Step step(*this, library_.trySerial(), {});
  if (!step || state_.load() == State::kClosed) {
    return; // the turn of a later call
  }
  if (isLost()) {
    state_.store(State::kClosed);
    return;
  }
  if (!readAll(step.cupti(), kReadingS)) {
    return;
  }
  windows_.fetch_add(1, std::memory_order_relaxed);
  due_ns_.store(monotonicNs() + nsOf(pace_.pause_s));
  state_.store(State::kClosed);
  if (is_refused_.load()) {
    disable(step.cupti());
  }
}

/// End the window, and read its samples before the next begins, or their addresses would be
/// ambiguous. False when some are left after `seconds`.
bool StallSampler::readAll(const Serial &cupti, double seconds) {
  abi::cupti::PcContextParameters parameters{sizeof parameters, nullptr, sampled_->context};
  if (state_.load() == State::kOpen) {
    cupti->PCSamplingStop(&parameters);
    state_.store(State::kReading);
  }
  uint64_t until = monotonicNs() + nsOf(seconds);
  Output &output = *sampled_->read;
  do {
    output.data.count = output.data.dropped_samples = output.data.remaining = 0;
    abi::cupti::PcGetDataParameters reading{sizeof reading, nullptr, sampled_->context,
                                            &output.data};
    Result result = cupti->PCSamplingGetData(&reading);
    take(output);
    if (result == abi::cupti::kOutOfMemory) {
      return recover(cupti);
    }
    if (result != abi::cupti::kSuccess) {
      fail("cuptiPCSamplingGetData", result);
      return true;
    }
    if (output.data.remaining == 0) {
      return true;
    }
  } while (monotonicNs() < until);
  return false;
}

/// The device's buffer was full. Sampling that goes on then finds nothing any more (seen by others
/// on a GB10) until it is enabled again.
bool StallSampler::recover(const Serial &cupti) {
  void *context = sampled_->context;
  disable(cupti);
  if (has_recovered_) {
    fail("cuptiPCSamplingGetData", abi::cupti::kOutOfMemory);
  } else if (!is_refused_.load()) {
    has_recovered_ = true;
    enable(cupti, context);
  }
  return true;
}

void StallSampler::contextCreated(void *context) {
  Step step(*this, library_.trySerial(), {}); // else a launch enables the context
  if (step && !sampled_ && !is_refused_.load()) {
    enable(step.cupti(), context);
  }
}

void StallSampler::contextDestroyed(void *context) {
  if (armed_.load() != context) {
    return;
  }
  Step step(*this, serialWithin(library_, kGatePatience), kGatePatience);
  if (step) {
    release(step.cupti());
  } else {
    armed_.store(nullptr);
    refuse("stalls are sampled no more: a context of CUDA was destroyed while another thread was "
           "inside a call of CUDA or CUPTI");
  }
}

void StallSampler::refuse(const std::string &reason) {
  is_refused_.store(true);
  std::lock_guard<std::mutex> lock(mutex_);
  if (refusal_.empty()) {
    refusal_ = reason;
  }
}

void StallSampler::watch() {
  uint64_t since = inside_since_ns_.load();
  if (since != 0 && monotonicNs() > since + kLongCallNs) {
    gate_.openForGood();
  }
  if (gate_.isOpenForGood()) {
    abandon();
  }
}

void StallSampler::abandon() {
  if (!is_refused_.load()) {
    refuse("sampling of stalls was abandoned: to begin or end a window took longer than 1 s, and "
           "calls "
           "of CUDA waited for it");
  }
}

std::string StallSampler::refusal() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return refusal_;
}

bool StallSampler::fail(const char *what, Result result) {
  refuse("stalls are not sampled: " + explain(what, result));
  return false;
}

bool StallSampler::enable(const Serial &cupti, void *context) {
  abi::cupti::PcContextParameters parameters{sizeof parameters, nullptr, context};
  Result result = cupti->PCSamplingEnable(&parameters);
  if (result != abi::cupti::kSuccess) {
    return fail("cuptiPCSamplingEnable", result);
  }
  armed_.store(context);
  sampled_ = std::make_unique<Sampled>();
  sampled_->context = context;
  bool is_ready = readReasons(cupti, *sampled_) && configure(cupti, *sampled_);
  on_enabled_(cupti);
  if (!is_ready) {
    disable(cupti);
  }
  return is_ready;
}

bool StallSampler::readReasons(const Serial &cupti, Sampled &sampled) {
  size_t count = 0;
  abi::cupti::PcStallCountParameters asking{sizeof asking, nullptr, sampled.context, &count};
  Result result = cupti->PCSamplingGetNumStallReasons(&asking);
  if (result != abi::cupti::kSuccess) {
    return fail("cuptiPCSamplingGetNumStallReasons", result);
  }
  sampled.all_reasons = count;
  std::vector<uint32_t> indices(count);
  std::vector<std::vector<char>> texts(count, std::vector<char>(abi::cupti::kStallNameBytes));
  std::vector<char *> names;
  for (std::vector<char> &text : texts) {
    names.push_back(text.data());
  }
  abi::cupti::PcStallNamesParameters parameters{
      sizeof parameters, nullptr, sampled.context, count, indices.data(), names.data()};
  result = cupti->PCSamplingGetStallReasons(&parameters);
  if (result != abi::cupti::kSuccess) {
    return fail("cuptiPCSamplingGetStallReasons", result);
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

/// The period and the sizes of buffers stay CUPTI's: with other values nothing is sampled on
/// Blackwell (seen by others).
bool StallSampler::configure(const Serial &cupti, Sampled &sampled) {
  sampled.own = std::make_unique<Output>(sampled.all_reasons);
  sampled.read = std::make_unique<Output>(sampled.all_reasons);
  abi::cupti::PcConfiguration wanted[4] = {};
  wanted[0].attribute = abi::cupti::kPcCollectionMode;
  wanted[0].value = abi::cupti::kPcModeSerialized; // the other needs records of serialized kernels
  wanted[1].attribute = abi::cupti::kPcStallReasons;
  wanted[1].stall_reasons = {sampled.reason_indices.size(), sampled.reason_indices.data()};
  wanted[2].attribute = abi::cupti::kPcStartStopControl;
  wanted[2].value = 1;
  wanted[3].attribute = abi::cupti::kPcDataBuffer;
  wanted[3].buffer = &sampled.own->data;
  abi::cupti::PcConfigurationParameters parameters{sizeof parameters, nullptr, sampled.context,
                                                   std::size(wanted), wanted};
  Result result = cupti->PCSamplingSetConfigurationAttribute(&parameters);
  return result == abi::cupti::kSuccess || fail("cuptiPCSamplingSetConfigurationAttribute", result);
}

void StallSampler::disable(const Serial &cupti) {
  if (sampled_) {
    abi::cupti::PcContextParameters parameters{sizeof parameters, nullptr, sampled_->context};
    cupti->PCSamplingDisable(&parameters);
    sampled_.reset();
  }
  state_.store(State::kClosed);
  armed_.store(nullptr);
}

/// Read what is left, and let the context go.
void StallSampler::release(const Serial &cupti) {
  if (sampled_ && state_.load() != State::kClosed) {
    windows_.fetch_add(1, std::memory_order_relaxed);
    static_cast<void>(readAll(cupti, kReadingAtStopS));
  }
  disable(cupti);
}

/// Count the samples of a reading.
void StallSampler::take(const Output &output) {
  for (size_t i = 0; i < output.data.count && i < kPcs; ++i) {
    const abi::cupti::PcData &pc = output.pcs[i];
    if (!pc.function) {
      continue;
    }
    names_.insert(pc.function);
    uint32_t kernel = Interner::instance().intern(pc.function);
    Line line = lineOf(pc);
    for (size_t j = 0; j < pc.stall_count && j < sampled_->all_reasons; ++j) {
      const abi::cupti::PcStall &stall = pc.stalls[j];
      auto reason = sampled_->reason_names.find(stall.reason);
      if (stall.samples > 0 && reason != sampled_->reason_names.end()) {
        table_.add(kernel, {reason->second, line.file, line.line}, stall.samples);
        samples_.fetch_add(stall.samples, std::memory_order_relaxed);
      }
    }
  }
  dropped_.fetch_add(output.data.dropped_samples, std::memory_order_relaxed);
  if (names_.size() >= kMostNames) {
    refuse("stalls are sampled no more: CUPTI has named a million functions");
  }
}

} // namespace deepcontext::gpu::cupti
