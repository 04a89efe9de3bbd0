#pragma once
// librocprofiler-sdk as a loaded library.
#include <string>

#include "abi/rocprofiler.h"
#include "gpu/dynlib.h"

namespace deepcontext::gpu::rocprofiler {

using abi::rocprofiler::Id;
using abi::rocprofiler::Status;

/// rocprofiler-sdk's functions by their names without the prefix.
struct Library {
  /// Load the library. Returns the reason for a failure, or "". Sets a variable of the environment
  /// without which programs hang below some releases, unless the program has set it.
  std::string load(const std::string &path);
  /// Let the ROCm run time use this library when it starts, not one on its search path: the run
  /// time ends the program if it cannot load the library it is told to load.
  void nameToRuntime() const;

  uint32_t version = 0; // major * 10000 + minor * 100 + patch

  Status (*get_version)(uint32_t *, uint32_t *, uint32_t *);
  Status (*force_configure)(abi::rocprofiler::Configure);
  Status (*create_context)(Id *);
  Status (*start_context)(Id);
  Status (*context_is_valid)(Id, int *);
  Status (*create_buffer)(Id, size_t, size_t, uint32_t, abi::rocprofiler::BufferCallback, void *,
                          Id *);
  Status (*flush_buffer)(Id);
  Status (*create_callback_thread)(Id *);
  Status (*assign_callback_thread)(Id, Id);
  Status (*configure_buffer_tracing_service)(Id, uint32_t, const int32_t *, size_t, Id);
  Status (*configure_callback_tracing_service)(Id, uint32_t, const int32_t *, size_t,
                                               abi::rocprofiler::TracingCallback, void *);
  Status (*configure_external_correlation_id_request_service)(Id, const uint32_t *, size_t,
                                                              abi::rocprofiler::ExternalCallback,
                                                              void *);
  Status (*query_callback_tracing_kind_operation_name)(uint32_t, int32_t, const char **,
                                                       uint64_t *);
  Status (*query_available_agents)(uint32_t, abi::rocprofiler::AgentsCallback, size_t, void *);
  Status (*get_timestamp)(uint64_t *);
  const char *(*get_status_string)(Status);

private:
  DynLib sdk_;
};

/// "<what> failed with <the library's text> (<number>): <advice>".
std::string explain(const Library &library, const char *what, Status status);

} // namespace deepcontext::gpu::rocprofiler
