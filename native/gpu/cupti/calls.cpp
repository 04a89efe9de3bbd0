#include "gpu/cupti/calls.h"

#include "core/interner.h"
#include "core/text.h"

namespace deepcontext::gpu::cupti {

namespace {

/// The function's name without the suffix of its binary version: _v2, _ptsz, _ptds.
std::string_view plainName(std::string_view function) {
  for (std::string_view suffix : {"_ptsz", "_ptds", "_v2", "_v3"}) {
    if (function.size() > suffix.size() && endsWith(function, suffix)) {
      function.remove_suffix(suffix.size());
    }
  }
  return function;
}

/// Copies of one row and memsets of one, in today's binary versions.
bool isSized(std::string_view function) {
  std::string_view plain = plainName(function);
  bool is_old = plain == function && !endsWith(function, "Async");
  if (plain == "cuMemcpy" || plain == "cuMemcpyAsync") {
    return true;
  }
  for (std::string_view begin : {"cuMemsetD8", "cuMemsetD16", "cuMemsetD32"}) {
    if (startsWith(function, begin)) {
      return !is_old;
    }
  }
  for (std::string_view begin : {"cuMemcpyHtoD", "cuMemcpyDtoH", "cuMemcpyDtoD"}) {
    if (startsWith(function, begin)) {
      return contains(function, "_v2");
    }
  }
  return false;
}

} // namespace

CallClass classify(std::string_view function) {
  CallClass call;
  call.is_sized = isSized(function);
  if (startsWith(function, "cuLaunch")) {
    call.is_launch = function != "cuLaunchHostFunc" && !startsWith(function, "cuLaunchHostFunc_");
  } else if (startsWith(function, "cuGraphLaunch")) {
    call.is_launch = call.is_replay = true;
  } else if (startsWith(function, "cuMemset")) {
    call.is_launch = true;
    call.record_kind = abi::cupti::kKindMemset;
  } else if (startsWith(function, "cuMemcpy")) {
    call.is_launch = true;
    call.is_waiting = !contains(function, "Async");
    call.record_kind =
        contains(function, "Peer") ? abi::cupti::kKindMemcpyPeer : abi::cupti::kKindMemcpy;
  } else if (startsWith(function, "cuStreamBegin")) { // BeginCapture, BeginCaptureToGraph, ...
    call.captures = contains(function, "apture") ? 1 : 0;
  } else if (startsWith(function, "cuStreamEndCapture")) {
    call.captures = -1;
  } else if (startsWith(function, "cuGraphInstantiateWith")) { // ...Flags, ...Params
    call.flags = contains(function, "Flags") ? 1 : 2;
  } else {
    call.is_waiting = startsWith(function, "cuCtxSynchronize") ||
                      startsWith(function, "cuStreamSynchronize") ||
                      startsWith(function, "cuEventSynchronize");
  }
  return call;
}

void CallTable::build(const Library &library) {
  ids_.clear();
  other_ids_.clear();
  for (uint32_t id = 1; id < kMost; ++id) {
    const char *name = nullptr;
    if (library.GetCallbackName(abi::cupti::kDomainDriver, id, &name) != abi::cupti::kSuccess ||
        !name) {
      continue;
    }
    CallClass call = classify(name);
    if (call.is_launch || call.is_waiting || call.captures != 0 || call.flags != 0) {
      call.name = Interner::instance().intern(plainName(name));
      classes_[id] = call;
      ids_.push_back(id);
    } else {
      other_ids_.push_back(id);
    }
  }
}

} // namespace deepcontext::gpu::cupti
