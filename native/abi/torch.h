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

/// A string and a vector of libstdc++ with its C++11 ABI; wheels are built with another library.
struct String {
  const char *data;
  size_t size;
  char local[16]; // where `data` points if the text is short
};
static_assert(sizeof(String) == 32);
struct Vector {
  const void *begin = nullptr;
  const void *end = nullptr;
  const void *room = nullptr;
};

/// torch::ParamCommsDebugInfo: what a process group says of a collective that it is about to run.
/// This is its constructor, by which the layout is found. What is not trivial is passed by address:
/// the names of the group (a tuple, whose last element comes first) and the vectors. Before
/// torch 2.9 there was no last parameter, and no last letter in the symbol. Source:
/// torch/csrc/distributed/c10d/ParamCommsUtils.hpp, torch 2.7 to 2.13.
using ParamCommsConstructor = void (*)(void *info, String *description_and_group, int rank,
                                       String *name, int64_t in_elements, int64_t out_elements,
                                       int8_t type, Vector *in_splits, Vector *out_splits,
                                       int first_rank, int rank_stride, int ranks,
                                       bool is_asynchronous);
constexpr char kParamCommsConstructor[] =
    "_ZN5torch19ParamCommsDebugInfoC1ESt5tupleIJNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE"
    "ES7_EEiOS7_llN3c1010ScalarTypeESt6vectorIlSaIlEESE_iiib";

/// Byte offsets inside it.
struct ParamCommsLayout {
  int group = -1;        // String
  int name = -1;         // String
  int ranks = -1;        // int32_t
  int in_elements = -1;  // int64_t
  int out_elements = -1; // int64_t
  int type = -1;         // at::ScalarType, one byte

  constexpr bool operator==(const ParamCommsLayout &other) const {
    return group == other.group && name == other.name && ranks == other.ranks &&
           in_elements == other.in_elements && out_elements == other.out_elements &&
           type == other.type;
  }
};
/// The one verified on real builds.
constexpr ParamCommsLayout kParamCommsLayout = {40, 80, 76, 112, 120, 128};

/// c10::DebugInfoKind: in torch 2.13 a class of one pointer, whose value is a symbol; before, an
/// enumeration with this value.
constexpr uintptr_t kParamCommsKind = 4;

template <typename T> T readAt(const void *object, int offset) {
  return *reinterpret_cast<const T *>(static_cast<const char *>(object) + offset);
}

} // namespace deepcontext::abi
