// A stand-in for librocprofiler-sdk.so.1 with the true binary interface of 1.x: services are declared
// once, launches ask the tool for a number, records come in a buffer. This file is the library's
// side of it; the test's is rocprofiler_scenario.cpp.
#include <cstring>
#include <iterator>

#include "rocprofiler_device.h"

using namespace fake::rocprofiler;

FAKE_API int rocprofiler_get_version(uint32_t *major, uint32_t *minor, uint32_t *patch) {
  FAIL_IF_ASKED("rocprofiler_get_version");
  *major = state().version / 10000;
  *minor = state().version / 100 % 100;
  *patch = state().version % 100;
  return abi::kSuccess;
}

FAKE_API int rocprofiler_get_timestamp(uint64_t *now) {
  *now = fake::nowNs();
  return abi::kSuccess;
}

FAKE_API const char *rocprofiler_get_status_string(int status) {
  switch (status) {
  case abi::kErrorConfigurationLocked:
    return "Configuration request occurred outside of valid rocprofiler configuration period";
  case abi::kErrorPermissionDenied:
    return "Permission denied";
  default:
    return "fake error";
  }
}

FAKE_API int rocprofiler_force_configure(abi::Configure configure) {
  if (int code = fake::faultOfEnvironment("rocprofiler_force_configure")) {
    return code;
  }
  FAIL_IF_ASKED("rocprofiler_force_configure");
  State &s = state();
  if (s.is_locked) {
    return abi::kErrorConfigurationLocked;
  }
  abi::ClientId client{sizeof client, nullptr, 1};
  abi::ConfigureResult *result = configure(s.version, "fake", 0, &client);
  if (result && result->initialize && result->initialize([](abi::ClientId) {}, result->data) != 0) {
    s.contexts.clear();
  } else {
    s.is_locked = true;
  }
  return abi::kSuccess;
}

FAKE_API int rocprofiler_is_initialized(int *status) {
  *status = state().is_locked;
  return abi::kSuccess;
}

FAKE_API int rocprofiler_create_context(abi::Id *context) {
  if (int code = fake::faultOfEnvironment("rocprofiler_create_context")) {
    return code;
  }
  FAIL_IF_ASKED("rocprofiler_create_context");
  state().contexts.emplace_back();
  context->handle = state().contexts.size();
  return abi::kSuccess;
}

FAKE_API int rocprofiler_start_context(abi::Id context) {
  FAIL_IF_ASKED("rocprofiler_start_context");
  std::lock_guard<std::mutex> lock(state().mutex);
  state().contexts.at(context.handle - 1).is_started = true;
  return abi::kSuccess;
}

FAKE_API int rocprofiler_context_is_valid(abi::Id context, int *is_valid) {
  *is_valid = context.handle > 0 && context.handle <= state().contexts.size();
  return abi::kSuccess;
}

FAKE_API int rocprofiler_create_buffer(abi::Id, size_t, size_t, uint32_t policy,
                                       abi::BufferCallback filled, void *user, abi::Id *buffer) {
  FAIL_IF_ASKED("rocprofiler_create_buffer");
  if (policy != abi::kPolicyLossless) {
    return 19;
  }
  state().filled = filled;
  state().filled_user = user;
  buffer->handle = 1;
  return abi::kSuccess;
}

FAKE_API int rocprofiler_flush_buffer(abi::Id) {
  FAIL_IF_ASKED("rocprofiler_flush_buffer");
  handOver();
  return abi::kSuccess;
}

FAKE_API int rocprofiler_create_callback_thread(abi::Id *thread) {
  thread->handle = 1;
  return abi::kSuccess;
}
FAKE_API int rocprofiler_assign_callback_thread(abi::Id, abi::Id) { return abi::kSuccess; }

FAKE_API int rocprofiler_configure_buffer_tracing_service(abi::Id context, uint32_t kind,
                                                          const int32_t *, size_t, abi::Id) {
  FAIL_IF_ASKED("rocprofiler_configure_buffer_tracing_service:" + std::to_string(kind));
  state().contexts.at(context.handle - 1).buffered.insert(kind);
  return state().is_locked ? int{abi::kErrorConfigurationLocked} : int{abi::kSuccess};
}

FAKE_API int rocprofiler_configure_callback_tracing_service(abi::Id context, uint32_t kind,
                                                            const int32_t *operations, size_t count,
                                                            abi::TracingCallback callback,
                                                            void *user) {
  FAIL_IF_ASKED("rocprofiler_configure_callback_tracing_service:" + std::to_string(kind));
  state().contexts.at(context.handle - 1)
      .tracings.push_back({kind, {operations, operations + count}, callback, user});
  return state().is_locked ? int{abi::kErrorConfigurationLocked} : int{abi::kSuccess};
}

FAKE_API int rocprofiler_configure_external_correlation_id_request_service(
    abi::Id context, const uint32_t *kinds, size_t count, abi::ExternalCallback callback,
    void *user) {
  FAIL_IF_ASKED("rocprofiler_configure_external_correlation_id_request_service");
  Context &asked = state().contexts.at(context.handle - 1);
  asked.requests = {kinds, kinds + count};
  asked.external = callback;
  asked.external_user = user;
  return abi::kSuccess;
}

FAKE_API int rocprofiler_query_callback_tracing_kind_operation_name(uint32_t kind,
                                                                    int32_t operation,
                                                                    const char **name,
                                                                    uint64_t *length) {
  if (kind != abi::kCallbackHipRuntime || operation < 0 ||
      operation >= static_cast<int32_t>(std::size(kFunctions))) {
    return 5; // no such operation
  }
  *name = kFunctions[operation];
  *length = std::strlen(*name);
  return abi::kSuccess;
}

FAKE_API int rocprofiler_query_available_agents(uint32_t, abi::AgentsCallback callback, size_t,
                                                void *user) {
  std::vector<abi::Agent> agents(1 + fake::kDevices);
  std::vector<const void *> pointers;
  for (abi::Agent &agent : agents) {
    auto place = static_cast<int32_t>(&agent - agents.data());
    agent.size = sizeof agent;
    agent.id = {place == 0 ? kCpu : kAgent + static_cast<uint64_t>(place) - 1};
    agent.type = place == 0 ? int32_t{abi::kAgentCpu} : int32_t{abi::kAgentGpu};
    agent.type_ordinal = place == 0 ? 0 : place - 1;
    agent.uuid[0] = place == 0 ? 0 : kUuid + static_cast<uint64_t>(place) - 1;
    pointers.push_back(&agent);
  }
  return callback(abi::kAgentVersion, pointers.data(), pointers.size(), user);
}
