#pragma once
// What the process groups of NCCL, RCCL and XCCL say of a collective that they are about to run.
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "abi/torch.h"

namespace deepcontext::torch {

/// One call of a process group, while its operator `record_param_comms` is open. The texts are
/// torch's.
struct GroupCall {
  std::string_view name;  // "allreduce", "send", "wait"
  std::string_view group; // torch's name of the process group, the same on all members
  int64_t in_elements;
  int64_t out_elements;
  int8_t type; // see element_types.h
  int32_t ranks;
};

/// Reads torch::ParamCommsDebugInfo, which torch keeps in a variable of the thread.
///
/// Proof: the layout is found by what torch's own constructor writes into a buffer, and must be the
/// one that was verified (`abi/torch.h`). Guard: at each call the virtual table must be that of the
/// object made then, and texts must be short. Fallback: without the constructor, with another
/// layout or table, nothing is read; the call keeps its node and its time.
class ParamComms {
public:
  static constexpr char kOperator[] = "record_param_comms";

  static ParamComms &instance() {
    static ParamComms *const comms = new ParamComms();
    return *comms;
  }

  /// Find functions and layout in the libraries of torch that are loaded; once a process. False
  /// with a reason where nothing can be read. GIL held; hooks may run meanwhile.
  bool load(std::string *reason);
  /// The call that the calling thread is in.
  std::optional<GroupCall> current() const;

private:
  bool calibrate(abi::ParamCommsConstructor construct);

  // Set last: a hook that sees it also sees the rest.
  std::atomic<bool> is_loaded_{false};
  const void *(*get_)(uintptr_t kind) = nullptr;
  uintptr_t kind_ = 0;
  const void *table_ = nullptr; // the virtual table
};

} // namespace deepcontext::torch
