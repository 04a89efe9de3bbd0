// Compile-only: native/abi/torch.h against the true headers of an installed torch. Compiled with
// -fno-access-control (most fields are private); tests/native/test_abi_torch.py does it.
#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>

#include <ATen/SequenceNumber.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>

#include "abi/torch.h"

namespace abi = deepcontext::abi;

#define SAME_FIELD(Mine, mine, True, theirs)                                                       \
  static_assert(offsetof(Mine, mine) == offsetof(True, theirs) &&                                  \
                    sizeof(((Mine *)nullptr)->mine) == sizeof(((True *)nullptr)->theirs),          \
                #Mine "::" #mine " is not where " #True "::" #theirs " is")
#define SAME_VALUE(mine, theirs)                                                                   \
  static_assert(static_cast<long>(mine) == static_cast<long>(theirs), #mine " is not " #theirs)

// -- at::RecordFunctionCallback, passed by value
using Callback = at::RecordFunctionCallback;
static_assert(sizeof(abi::RecordFunctionCallback) == sizeof(Callback));
static_assert(alignof(abi::RecordFunctionCallback) == alignof(Callback));
static_assert(std::is_trivially_copyable_v<Callback>); // so it is passed as a block of bytes
static_assert(std::is_trivially_copyable_v<abi::RecordFunctionCallback>);
SAME_FIELD(abi::RecordFunctionCallback, start, Callback, start_);
SAME_FIELD(abi::RecordFunctionCallback, end, Callback, end_);
SAME_FIELD(abi::RecordFunctionCallback, sampling_probability, Callback, sampling_prob_);
SAME_FIELD(abi::RecordFunctionCallback, scopes, Callback, scopes_);
SAME_FIELD(abi::RecordFunctionCallback, needs_inputs, Callback, needs_inputs_);
SAME_FIELD(abi::RecordFunctionCallback, needs_outputs, Callback, needs_outputs_);
SAME_FIELD(abi::RecordFunctionCallback, needs_ids, Callback, needs_ids_);
static_assert(std::is_same_v<Callback::StartCallback,
                             std::unique_ptr<at::ObserverContext> (*)(const at::RecordFunction &)>);
static_assert(std::is_same_v<Callback::EndCallback,
                             void (*)(const at::RecordFunction &, at::ObserverContext *)>);

// -- at::ObserverContext: torch deletes the observer's context through its own declaration
static_assert(sizeof(abi::ObserverContext) == sizeof(at::ObserverContext));
static_assert(std::is_polymorphic_v<at::ObserverContext>);
static_assert(std::has_virtual_destructor_v<at::ObserverContext>);
static_assert(sizeof(abi::ObserverContextPtr) == sizeof(std::unique_ptr<at::ObserverContext>));
// That the destructor is the only virtual function is checked in the compiler's dump of both
// tables.

// -- at::RecordScope
SAME_VALUE(abi::kScopeFunction, at::RecordScope::FUNCTION);
SAME_VALUE(abi::kScopeBackward, at::RecordScope::BACKWARD_FUNCTION);
SAME_VALUE(abi::kScopeUser, at::RecordScope::USER_SCOPE);
SAME_VALUE(abi::kRecordScopes, at::RecordScope::NUM_SCOPES);
static_assert(sizeof(abi::RecordScope) == sizeof(at::RecordScope));

// -- c10::IValue
static_assert(sizeof(abi::IValue) == sizeof(c10::IValue));
SAME_FIELD(abi::IValue, tag, c10::IValue, tag);
static_assert(offsetof(abi::IValue, payload) == offsetof(c10::IValue, payload));
SAME_VALUE(abi::kTensorTag, c10::IValue::Tag::Tensor);
static_assert(sizeof(at::Tensor) == sizeof(void *)); // a tensor's payload is one pointer

// -- fields inside at::RecordFunction
constexpr abi::RecordFunctionLayout kTrueLayout = {
    offsetof(at::RecordFunction, sequence_nr_),
    offsetof(at::RecordFunction, step_callbacks_) + offsetof(at::StepCallbacks, thread_id_),
    offsetof(at::RecordFunction, step_callbacks_) + offsetof(at::StepCallbacks, scope_),
    offsetof(at::RecordFunction, fwd_thread_id_),
    offsetof(at::RecordFunction, inputs_),
};
constexpr bool isSame(const abi::RecordFunctionLayout &left,
                      const abi::RecordFunctionLayout &right) {
  return left.sequence == right.sequence && left.thread == right.thread &&
         left.scope == right.scope && left.forward_thread == right.forward_thread &&
         left.inputs == right.inputs;
}
constexpr bool isKnown() {
  for (const abi::RecordFunctionLayout &known : abi::kKnownLayouts) {
    if (isSame(known, kTrueLayout)) {
      return true;
    }
  }
  return false;
}
static_assert(isKnown(), "at::RecordFunction has a layout that is not in kKnownLayouts");
SAME_VALUE(abi::kForwardThreadAfterSequence, kTrueLayout.forward_thread - kTrueLayout.sequence);
SAME_VALUE(abi::kScopeAfterThread, kTrueLayout.scope - kTrueLayout.thread);
static_assert(sizeof(at::RecordFunction::sequence_nr_) == 8);
static_assert(sizeof(at::RecordFunction::fwd_thread_id_) == 8);
static_assert(sizeof(at::StepCallbacks::thread_id_) == 8);
static_assert(sizeof(at::StepCallbacks::scope_) == 1);

// -- functions found by name: their parameters and results
static_assert(std::is_same_v<decltype(&at::addGlobalCallback),
                             at::CallbackHandle (*)(at::RecordFunctionCallback)>);
static_assert(std::is_same_v<decltype(&at::removeCallback), void (*)(at::CallbackHandle)>);
static_assert(std::is_same_v<at::CallbackHandle, uint64_t>);
static_assert(std::is_same_v<decltype(&at::RecordFunction::name),
                             const char *(at::RecordFunction::*)() const>);
static_assert(
    std::is_same_v<decltype(&at::RecordFunction::isAsync), bool (at::RecordFunction::*)() const>);
static_assert(std::is_same_v<decltype(&at::sequence_number::peek), uint64_t (*)()>);
static_assert(std::is_same_v<decltype(&at::RecordFunction::currentThreadId), uint64_t (*)()>);

// -- torch::ParamCommsDebugInfo
using Info = torch::ParamCommsDebugInfo;
constexpr abi::ParamCommsLayout kTrueParamComms = {
    // The last element of libstdc++'s tuple comes first.
    offsetof(Info, pgName_) + sizeof(std::string),
    offsetof(Info, collectiveName_),
    offsetof(Info, worldSize_),
    offsetof(Info, inMessageNelems_),
    offsetof(Info, outMessageNelems_),
    offsetof(Info, dType_),
};
static_assert(kTrueParamComms == abi::kParamCommsLayout,
              "torch::ParamCommsDebugInfo has another layout than kParamCommsLayout");
static_assert(sizeof(abi::String) == sizeof(std::string));
static_assert(sizeof(abi::Vector) == sizeof(std::vector<int64_t>));
static_assert(sizeof(Info::dType_) == 1 && sizeof(Info::worldSize_) == 4);
static_assert(std::is_polymorphic_v<Info>); // so its virtual table comes first
static_assert(!std::is_trivially_copyable_v<std::tuple<std::string, std::string>>);
static_assert(!std::is_trivially_copyable_v<std::vector<int64_t>>); // passed by address
static_assert(sizeof(c10::DebugInfoKind) <= sizeof(uintptr_t) &&
              std::is_trivially_copyable_v<c10::DebugInfoKind>); // passed in a register
