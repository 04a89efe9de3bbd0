#pragma once
// The part of PyTorch's binary interface that the observer uses.
//
// No torch header and no torch library is needed to build. `abi/check/torch_check.cpp` compares
// these declarations with the true headers of an installed torch; the offsets inside
// at::RecordFunction are found at run time (torch/calibration.cpp).
// Source: aten/src/ATen/record_function.h, torch 2.4 to 2.15 (identical layout).
#include <cstddef>
#include <cstdint>
#include <memory>

namespace deepcontext::abi {

/// at::ObserverContext: a virtual destructor and nothing else (Itanium C++ ABI).
struct ObserverContext {
  virtual ~ObserverContext() = default;
};
using ObserverContextPtr = std::unique_ptr<ObserverContext>;

/// at::RecordScope
enum RecordScope : uint8_t { kScopeFunction = 0, kScopeBackward = 1, kScopeUser = 7 };
constexpr int kRecordScopes = 10;

/// at::RecordFunctionCallback, passed by value to at::addGlobalCallback.
struct RecordFunctionCallback {
  ObserverContextPtr (*start)(const void *record_function);
  void (*end)(const void *record_function, ObserverContext *context);
  double sampling_probability = 1.0;
  bool scopes[kRecordScopes] = {};
  bool needs_inputs = false;
  bool needs_outputs = false;
  bool needs_ids = false;
};
static_assert(sizeof(RecordFunctionCallback) == 40);
static_assert(offsetof(RecordFunctionCallback, scopes) == 24);

/// Byte offsets inside at::RecordFunction.
struct RecordFunctionLayout {
  int sequence = -1;       // int64_t sequence_nr_
  int thread = -1;         // uint64_t thread id of the thread that runs it
  int scope = -1;          // RecordScope, one byte
  int forward_thread = -1; // uint64_t, the thread whose sequence number it is
  int inputs = -1;         // c10::ArrayRef<const c10::IValue>: pointer, length

  bool operator==(const RecordFunctionLayout &other) const {
    return sequence == other.sequence && thread == other.thread && scope == other.scope &&
           forward_thread == other.forward_thread && inputs == other.inputs;
  }
};

/// Layouts verified on real builds: calibration must find one of them.
constexpr RecordFunctionLayout kKnownLayouts[] = {
    {200, 88, 96, 304, 208}, // 2.4 to 2.15 with the C++11 string ABI
    {176, 88, 96, 280, 184}, // PyPI wheels up to 2.6: strings of 8 bytes
};
/// forwardThreadId follows inputs (16), kwinputs (56), outputs (24) and one word after sequence.
constexpr int kForwardThreadAfterSequence = 104;
constexpr int kScopeAfterThread = 8;

/// c10::Device, passed by value in one register.
/// Source: c10/core/Device.h, torch 2.4 to 2.15.
struct Device {
  int8_t type;
  int8_t index;
};
static_assert(sizeof(Device) == 2);

/// c10::IValue: payload, tag. A tensor's IValue is also a valid AtenTensorHandle of the AOTI C ABI.
struct IValue {
  void *payload;
  uint32_t tag;
};
static_assert(sizeof(IValue) == 16);
constexpr uint32_t kTensorTag = 1;

template <typename T> T readAt(const void *object, int offset) {
  return *reinterpret_cast<const T *>(static_cast<const char *>(object) + offset);
}

} // namespace deepcontext::abi
