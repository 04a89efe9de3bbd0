#include "sampling/native_callees.h"

#include <algorithm>

#include "python/callable_names.h"
#include "unwind/stack_walk.h"

namespace deepcontext {

namespace {

// Of the interpreter's own functions; most pass a call on, and are hidden when they are named.
constexpr size_t kMostOfInterpreter = 8;
// What Python calls, below the function that a library puts in front of all its functions.
constexpr size_t kOthers = 2;

} // namespace

NativeCallees::NativeCallees(std::atomic<uint64_t> &lost) : lost_(lost) {
  hideOwnObjects();
}

bool NativeCallees::walk(const SampledContext &context, const SampledStack &stack) {
  auto activation = reinterpret_cast<uintptr_t>(context.activation);
  unwind::StackCopy copy{stack.at.sp, stack.at.sp + stack.bytes, stack.content};
  unwind::Registers at = stack.at;
  ++at.pc; // rules are looked up for the byte before a return address
  bool is_reached = false;
  walked_.clear();
  walkStackPart(addresses_, at, copy, [&](const unwind::NativeFrame &frame) {
    is_reached = frame.cfa > activation;
    if (!is_reached) {
      walked_.push_back({addresses_.functionOf(*frame.known),
                         frame.known->role() == unwind::ObjectRole::kHidden});
    }
    return !is_reached;
  });
  return is_reached;
}

void NativeCallees::keep(uint32_t function) {
  if (std::find(kept_.begin(), kept_.end(), function) == kept_.end()) {
    kept_.push_back(function);
  }
}

const std::vector<uint32_t> &NativeCallees::of(const SampledContext &context,
                                               const SampledStack &stack) {
  kept_.clear();
  if (!unwind::isSupported() || stack.bytes == 0) {
    return kept_;
  }
  addresses_.refresh();
  if (!walk(context, stack)) {
    lost_.fetch_add(1, std::memory_order_relaxed);
    return kept_;
  }
  size_t others = 0;
  for (auto callee = walked_.rbegin(); callee != walked_.rend() && others < kOthers; ++callee) {
    others += callee->is_interpreter ? 0 : 1;
    if (!callee->is_interpreter || kept_.size() < kMostOfInterpreter) {
      keep(callee->function);
    }
  }
  if (!walked_.empty() && !walked_.front().is_interpreter) {
    keep(walked_.front().function);
  }
  return kept_;
}

} // namespace deepcontext
