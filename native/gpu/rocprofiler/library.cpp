#include "gpu/rocprofiler/library.h"

#include <cstdlib>
#include <dlfcn.h>

namespace deepcontext::gpu::rocprofiler {

std::string Library::load(const std::string &path) {
  // With queue interposition, 1.3.0 to 1.3.2 wait for signals that never come: programs hang
  // (vllm-project/vllm 54087, ROCm/rocm-systems 11623). The library may read the variable when it
  // is loaded.
  setenv("ROCPROFILER_QUEUE_INTERPOSITION", "0", /*overwrite=*/0);
  std::string why;
  if (!sdk_.open(path, &why)) {
    return "rocprofiler-sdk cannot be loaded from '" + path + "': " + why +
           "; it comes with ROCm 7 (package rocprofiler-sdk)";
  }
#define BIND(name)                                                                                 \
  if (!sdk_.bind(&name, "rocprofiler_" #name)) {                                                   \
    return "'" + path +                                                                            \
           "' cannot be used as rocprofiler-sdk: it lacks rocprofiler_" #name                      \
           "; version 1.0 or newer (ROCm 7) is needed";                                            \
  }
  BIND(force_configure)
  BIND(create_context)
  BIND(start_context)
  BIND(context_is_valid)
  BIND(create_buffer)
  BIND(flush_buffer)
  BIND(create_callback_thread)
  BIND(assign_callback_thread)
  BIND(configure_buffer_tracing_service)
  BIND(configure_callback_tracing_service)
  BIND(configure_external_correlation_id_request_service)
  BIND(query_callback_tracing_kind_operation_name)
  BIND(query_available_agents)
  BIND(get_timestamp)
  BIND(get_status_string)
  BIND(get_version)
#undef BIND
  uint32_t major = 0, minor = 0, patch = 0;
  Status status = get_version(&major, &minor, &patch);
  if (status != abi::rocprofiler::kSuccess) {
    return explain(*this, "rocprofiler_get_version", status);
  }
  version = major * 10000 + minor * 100 + patch;
  if (version < abi::rocprofiler::kFirstVersion) {
    return "rocprofiler-sdk " + std::to_string(major) + "." + std::to_string(minor) + "." +
           std::to_string(patch) +
           " is older than 1.0, which is the first with a stable record "
           "layout; upgrade to ROCm 7";
  }
  return "";
}

void Library::nameToRuntime() const {
  Dl_info info;
  if (dladdr(reinterpret_cast<void *>(force_configure), &info) && info.dli_fname) {
    setenv("ROCPROFILER_REGISTER_LIBRARY", info.dli_fname, 0);
  }
}

std::string explain(const Library &library, const char *what, Status status) {
  const char *text = library.get_status_string ? library.get_status_string(status) : nullptr;
  std::string message = std::string(what) + " failed with '" + (text ? text : "no text") + "' (" +
                        std::to_string(status) + ")";
  switch (status) {
  case abi::rocprofiler::kErrorConfigurationLocked:
    return message +
           ": too late, the ROCm runtime was initialised, or another tool (torch.profiler) "
           "registered, before the profiler did; start the program with 'deepcontext profile', or "
           "call deepcontext.start() "
           "before anything uses the GPU";
  case abi::rocprofiler::kErrorIncompatibleAbi:
    return message + ": this rocprofiler-sdk is of another major version than 1";
  case abi::rocprofiler::kErrorPermissionDenied:
    return message + ": this user may not profile; be a member of the groups 'video' and 'render'";
  case abi::rocprofiler::kErrorFinalized:
    return message + ": the ROCm runtime has shut down already";
  default:
    return message;
  }
}

} // namespace deepcontext::gpu::rocprofiler
