#include "torch/type_windows.h"

#include <algorithm>

#include "core/guard.h"
#include "core/metric_registry.h"
#include "core/recorder.h"
#include "torch/ignored_targets.h"
#include "torch/inputs.h"
#include "torch/library.h"
#include "torch/padding.h"

namespace deepcontext::torch {

namespace {

// One operator in a window costs some 250 ns more, a costly one 2 us. The time between windows is
// proportional to the operators that were in the last one: of 100,000 operators a second, one in 50
// is in a window; of operators that take milliseconds, most.
constexpr uint64_t kBetweenNsAnOperator = 500'000;
constexpr uint64_t kLeastBetweenNs = 10'000'000;
constexpr uint64_t kLongestNs = 60'000'000;
constexpr int64_t kMostOperators = 500;
// Until then, other threads that run operators have been seen.
constexpr uint64_t kFirstNs = 5'000'000;

abi::ObserverContextPtr onStart(const void *record_function) {
  TypeWindows::instance().note(record_function);
  return nullptr;
}

/// Threads that work on parts of another's operators take PyTorch's lock only while that one waits,
/// and does not fork.
size_t threadsWithOperators() {
  size_t threads = 0;
  for (const Recorder *recorder : RecorderRegistry::instance().active()) {
    threads += recorder->has_own_operators.load(std::memory_order_relaxed);
  }
  return threads;
}

/// The types among an operator's tensors, without single numbers: PyTorch passes Python's numbers
/// as tensors of float64.
struct Types {
  bool has_double = false;
  bool has_half = false;
  bool has_bfloat = false;
  bool has_single = false;
  bool has_integers = false; // in two dimensions or more

  void add(const Form &form) {
    std::string_view name = form.dimensions > 0 ? elementType(form.type).name : "";
    has_double |= name == "f64";
    has_half |= name == "f16";
    has_bfloat |= name == "bf16";
    has_single |= name == "f32";
    has_integers |= form.dimensions > 1 && (name == "i64" || name == "i32" || name == "bool");
  }
  bool isNarrow() const { return has_half || has_bfloat || has_single; }
  bool isFloat() const { return has_double || isNarrow(); }
};

} // namespace

void TypeWindows::begin(const abi::RecordFunctionLayout &layout) {
  constexpr const char *kNames[kMetrics] = {
      "float_input_count",    "float64_input_count",  "float16_input_count",
      "bfloat16_input_count", "widened_input_count",  "integer_input_count",
      "loss_target_count",    "ignored_target_count", "index_count",
      "padding_count",        "shared_padding_count", "comparison_window_count",
      "repeated_input_count"};
  if (inputs_offset_ != layout.inputs) { // once: a late call of an earlier window may read these
    for (int i = 0; i < kMetrics; ++i) {
      metrics_[i] = MetricRegistry::instance().id(kNames[i]);
    }
    inputs_offset_ = layout.inputs;
  }
  std::lock_guard<Mutex> lock(mutex_);
  closeLocked(ticks()); // a forked child has its parent's window
  repeated_.forget();
  is_on_ = true;
  next_.store(ticks() + toTicks(kFirstNs), std::memory_order_relaxed);
}

void TypeWindows::end() {
  std::lock_guard<Mutex> lock(mutex_);
  endLocked();
}

void TypeWindows::endLocked() {
  is_on_ = false;
  closeLocked(ticks());
}

void TypeWindows::open(uint64_t now) {
  if (Library::instance().isInParallelRegion()) {
    return;
  }
  size_t threads = threadsWithOperators();
  std::lock_guard<Mutex> lock(mutex_);
  if (!is_on_ || handle_ != 0 || now < next_.load(std::memory_order_relaxed)) {
    return;
  }
  if (threads > 1) {
    endLocked();
  } else {
    openLocked(now, RecorderRegistry::currentOrNull());
  }
}

void TypeWindows::openLocked(uint64_t now, const Recorder *opener) {
  opener_.store(opener, std::memory_order_relaxed);
  window_.fetch_add(1, std::memory_order_relaxed);
  next_.store(kNever, std::memory_order_relaxed);
  operators_left_.store(kMostOperators, std::memory_order_relaxed);
  closes_.store(now + toTicks(kLongestNs), std::memory_order_relaxed);
  abi::RecordFunctionCallback callback;
  callback.start = Guarded<onStart>::call;
  callback.end = nullptr;
  callback.scopes[abi::kScopeFunction] = true;
  callback.scopes[abi::kScopeBackward] = true;
  callback.needs_inputs = true;
  handle_ = Library::instance().add_global_callback(callback);
}

void TypeWindows::close(uint64_t now) {
  std::lock_guard<Mutex> lock(mutex_);
  closeLocked(now);
}

void TypeWindows::closeLocked(uint64_t now) {
  if (handle_ != 0) {
    Library::instance().remove_callback(handle_);
    handle_ = 0;
  }
  int64_t left = std::max<int64_t>(operators_left_.load(std::memory_order_relaxed), 0);
  auto used = static_cast<uint64_t>(kMostOperators - left);
  uint64_t between = std::max(used * kBetweenNsAnOperator, kLeastBetweenNs);
  // Uneven, so that windows and the steps of a program do not keep the same distance. Source of the
  // constants: Knuth's generator MMIX.
  random_ = random_ * 6364136223846793005U + 1442695040888963407U;
  between = between / 2 + (random_ >> 33) % between;
  next_.store(is_on_ ? now + toTicks(between) : kNever, std::memory_order_relaxed);
}

void TypeWindows::note(const void *record_function) {
  if (Library::instance().isInParallelRegion()) {
    return;
  }
  uint64_t now = ticks();
  bool is_recording = RecorderRegistry::isRecording(); // not in a forked child
  Recorder *recorder = is_recording ? RecorderRegistry::currentOrNull() : nullptr;
  if (recorder && recorder != opener_.load(std::memory_order_relaxed)) {
    end();
    return;
  }
  bool is_last = operators_left_.fetch_sub(1, std::memory_order_relaxed) <= 1 ||
                 now >= closes_.load(std::memory_order_relaxed);
  if (is_last || !is_recording) {
    close(now);
  }
  const Level *level = recorder ? recorder->innermost() : nullptr;
  // A tree that is full has no node for the operator.
  if (!level || level->owner != record_function || level->kind != LevelKind::kOperator ||
      level->node->kind != FrameKind::kOperator) {
    return;
  }
  Types types;
  forEachTensor(record_function, inputs_offset_, [&](void *tensor) {
    Form form;
    if (form.readType(tensor)) {
      types.add(form);
    }
  });
  const char *name = Library::instance().name(record_function);
  IgnoredTargets labels;
  labels.read(name, record_function, inputs_offset_);
  Padding padding;
  padding.read(name, record_function, inputs_offset_);
  using Answer = RepeatedInputs::Answer;
  Answer answer = repeated_.compare(level->node, name, record_function, inputs_offset_);
  uint64_t window = window_.load(std::memory_order_relaxed);
  const uint64_t counted[kMetrics] = {types.isFloat(),
                                      types.has_double,
                                      types.has_half,
                                      types.has_bfloat,
                                      types.has_double && types.isNarrow(),
                                      types.has_integers && !types.isFloat(),
                                      labels.targets,
                                      labels.ignored,
                                      padding.positions,
                                      padding.padded,
                                      padding.shared,
                                      answer != Answer::kUnknown ? window : 0,
                                      answer == Answer::kSame};
  for (int i = 0; i < kMetrics; ++i) {
    if (counted[i] > 0) {
      recorder->tree.metric(level->node, metrics_[i]).add(counted[i]);
    }
  }
}

} // namespace deepcontext::torch
