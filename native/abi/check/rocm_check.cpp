// Compile-only: native/abi/rocprofiler.h and roctracer.h against AMD's true headers (MIT licence),
// as the triton wheels carry them. Some of rocprofiler-sdk's headers are pruned there; what they
// lack is not checked.
#define __HIP_PLATFORM_AMD__ 1
#include <cstddef>
#include <cstdint>

#include <rocprofiler-sdk/agent.h>
#include <rocprofiler-sdk/buffer.h>
#include <rocprofiler-sdk/buffer_tracing.h>
#include <rocprofiler-sdk/callback_tracing.h>
#include <rocprofiler-sdk/external_correlation.h>
#include <rocprofiler-sdk/fwd.h>
#include <rocprofiler-sdk/marker/api_id.h>
#include <rocprofiler-sdk/registration.h>

#include <roctracer/roctracer_hip.h>
#include <roctracer/roctracer_roctx.h>

#include "abi/rocprofiler.h"
#include "abi/roctracer.h"

namespace sdk = deepcontext::abi::rocprofiler;
namespace old = deepcontext::abi::roctracer;

#define SAME_AS(Mine, mine, True, theirs)                                                          \
  static_assert(offsetof(Mine, mine) == offsetof(True, theirs) &&                                  \
                    sizeof(((Mine *)nullptr)->mine) == sizeof(((True *)nullptr)->theirs),          \
                #Mine "::" #mine)
#define STARTS_AS(Mine, mine, True, theirs)                                                        \
  static_assert(offsetof(Mine, mine) == offsetof(True, theirs), #Mine "::" #mine)
#define SAME_SIZE(Mine, True) static_assert(sizeof(Mine) == sizeof(True), #Mine)
#define SAME_VALUE(mine, theirs)                                                                   \
  static_assert(static_cast<long>(mine) == static_cast<long>(theirs), #mine)

// -- rocprofiler-sdk
SAME_SIZE(sdk::CallbackRecord, rocprofiler_callback_tracing_record_t);
SAME_AS(sdk::CallbackRecord, thread, rocprofiler_callback_tracing_record_t, thread_id);
SAME_AS(sdk::CallbackRecord, correlation, rocprofiler_callback_tracing_record_t, correlation_id);
SAME_AS(sdk::CallbackRecord, kind, rocprofiler_callback_tracing_record_t, kind);
SAME_AS(sdk::CallbackRecord, operation, rocprofiler_callback_tracing_record_t, operation);
SAME_AS(sdk::CallbackRecord, phase, rocprofiler_callback_tracing_record_t, phase);
SAME_AS(sdk::CallbackRecord, payload, rocprofiler_callback_tracing_record_t, payload);
SAME_SIZE(sdk::RecordHeader, rocprofiler_record_header_t);
SAME_AS(sdk::RecordHeader, category, rocprofiler_record_header_t, category);
SAME_AS(sdk::RecordHeader, kind, rocprofiler_record_header_t, kind);
SAME_AS(sdk::RecordHeader, payload, rocprofiler_record_header_t, payload);
using TrueDispatch = rocprofiler_buffer_tracing_kernel_dispatch_record_t;
SAME_SIZE(sdk::KernelDispatch, TrueDispatch);
SAME_AS(sdk::KernelDispatch, correlation, TrueDispatch, correlation_id);
SAME_AS(sdk::KernelDispatch, start, TrueDispatch, start_timestamp);
SAME_AS(sdk::KernelDispatch, end, TrueDispatch, end_timestamp);
SAME_AS(sdk::KernelDispatch, info, TrueDispatch, dispatch_info);
SAME_AS(sdk::DispatchInfo, agent, rocprofiler_kernel_dispatch_info_t, agent_id);
SAME_AS(sdk::DispatchInfo, queue, rocprofiler_kernel_dispatch_info_t, queue_id);
SAME_AS(sdk::DispatchInfo, kernel, rocprofiler_kernel_dispatch_info_t, kernel_id);
SAME_AS(sdk::DispatchInfo, group_bytes, rocprofiler_kernel_dispatch_info_t, group_segment_size);
SAME_AS(sdk::DispatchInfo, workgroup, rocprofiler_kernel_dispatch_info_t, workgroup_size);
SAME_AS(sdk::DispatchInfo, grid, rocprofiler_kernel_dispatch_info_t, grid_size);
using TrueSymbol = rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t;
SAME_AS(sdk::KernelSymbol, kernel, TrueSymbol, kernel_id);
SAME_AS(sdk::KernelSymbol, name, TrueSymbol, kernel_name);
SAME_AS(sdk::KernelSymbol, vector_registers, TrueSymbol, arch_vgpr_count);
SAME_AS(sdk::KernelSymbol, accumulation_registers, TrueSymbol, accum_vgpr_count);
using TrueHipCall = rocprofiler_callback_tracing_hip_api_data_t;
STARTS_AS(sdk::HipCall, end_capture.graph, TrueHipCall, args.hipStreamEndCapture.pGraph);
STARTS_AS(sdk::HipCall, instantiate.executable, TrueHipCall, args.hipGraphInstantiate.pGraphExec);
STARTS_AS(sdk::HipCall, instantiate.graph, TrueHipCall, args.hipGraphInstantiate.graph);
STARTS_AS(sdk::HipCall, instantiate.graph, TrueHipCall, args.hipGraphInstantiateWithFlags.graph);
STARTS_AS(sdk::HipCall, instantiate.graph, TrueHipCall, args.hipGraphInstantiateWithParams.graph);
STARTS_AS(sdk::HipCall, instantiate.executable, TrueHipCall,
          args.hipGraphInstantiateWithParams.pGraphExec);
STARTS_AS(sdk::HipCall, add_node.graph, TrueHipCall, args.hipGraphAddKernelNode.graph);
STARTS_AS(sdk::HipCall, add_node.graph, TrueHipCall, args.hipGraphAddMemsetNode.graph);
STARTS_AS(sdk::HipCall, graph_launch.executable, TrueHipCall, args.hipGraphLaunch.graphExec);
STARTS_AS(sdk::HipCall, destroy.graph, TrueHipCall, args.hipGraphDestroy.graph);
STARTS_AS(sdk::HipCall, destroy.graph, TrueHipCall, args.hipGraphExecDestroy.graphExec);
using TrueMarker = rocprofiler_callback_tracing_marker_api_data_t;
STARTS_AS(sdk::MarkerCall, message, TrueMarker, args.roctxRangePushA.message);
SAME_AS(sdk::Agent, id, rocprofiler_agent_t, id);
SAME_AS(sdk::Agent, type, rocprofiler_agent_t, type);
SAME_AS(sdk::Agent, type_ordinal, rocprofiler_agent_t, logical_node_type_id);
SAME_AS(sdk::Agent, visibility, rocprofiler_agent_t, runtime_visibility);
SAME_AS(sdk::Agent, uuid, rocprofiler_agent_t, uuid);
SAME_SIZE(sdk::Agent, rocprofiler_agent_t);
SAME_SIZE(sdk::ClientId, rocprofiler_client_id_t);
SAME_SIZE(sdk::ConfigureResult, rocprofiler_tool_configure_result_t);
SAME_AS(sdk::ConfigureResult, data, rocprofiler_tool_configure_result_t, tool_data);
SAME_VALUE(sdk::kErrorBufferBusy, ROCPROFILER_STATUS_ERROR_BUFFER_BUSY);
SAME_VALUE(sdk::kErrorConfigurationLocked, ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED);
SAME_VALUE(sdk::kErrorIncompatibleAbi, ROCPROFILER_STATUS_ERROR_INCOMPATIBLE_ABI);
SAME_VALUE(sdk::kErrorFinalized, ROCPROFILER_STATUS_ERROR_FINALIZED);
SAME_VALUE(sdk::kErrorPermissionDenied, ROCPROFILER_STATUS_ERROR_PERMISSION_DENIED);
SAME_VALUE(sdk::kCategoryTracing, ROCPROFILER_BUFFER_CATEGORY_TRACING);
SAME_VALUE(sdk::kBufferMemoryCopy, ROCPROFILER_BUFFER_TRACING_MEMORY_COPY);
SAME_VALUE(sdk::kBufferKernelDispatch, ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH);
SAME_VALUE(sdk::kCallbackHipRuntime, ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API);
SAME_VALUE(sdk::kCallbackMarkerCore, ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API);
SAME_VALUE(sdk::kCallbackAllocation, ROCPROFILER_CALLBACK_TRACING_MEMORY_ALLOCATION);
SAME_VALUE(sdk::kAllocate, ROCPROFILER_MEMORY_ALLOCATION_ALLOCATE);
SAME_VALUE(sdk::kAllocateVirtual, ROCPROFILER_MEMORY_ALLOCATION_VMEM_ALLOCATE);
SAME_VALUE(sdk::kCallbackCodeObject, ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT);
SAME_VALUE(sdk::kCodeObjectKernelSymbol, ROCPROFILER_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER);
SAME_VALUE(sdk::kMarkerRangePush, ROCPROFILER_MARKER_CORE_API_ID_roctxRangePushA);
SAME_VALUE(sdk::kMarkerRangePop, ROCPROFILER_MARKER_CORE_API_ID_roctxRangePop);
SAME_VALUE(sdk::kPhaseEnter, ROCPROFILER_CALLBACK_PHASE_ENTER);
SAME_VALUE(sdk::kPhaseExit, ROCPROFILER_CALLBACK_PHASE_EXIT);
SAME_VALUE(sdk::kPolicyLossless, ROCPROFILER_BUFFER_POLICY_LOSSLESS);
SAME_VALUE(sdk::kRequestMemoryCopy, ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MEMORY_COPY);
SAME_VALUE(sdk::kRequestKernelDispatch, ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_KERNEL_DISPATCH);
SAME_VALUE(sdk::kCopyHostToHost, ROCPROFILER_MEMORY_COPY_HOST_TO_HOST);
SAME_VALUE(sdk::kCopyHostToDevice, ROCPROFILER_MEMORY_COPY_HOST_TO_DEVICE);
SAME_VALUE(sdk::kCopyDeviceToHost, ROCPROFILER_MEMORY_COPY_DEVICE_TO_HOST);
SAME_VALUE(sdk::kCopyDeviceToDevice, ROCPROFILER_MEMORY_COPY_DEVICE_TO_DEVICE);
SAME_VALUE(sdk::kAgentVersion, ROCPROFILER_AGENT_INFO_VERSION_0);
SAME_VALUE(sdk::kAgentGpu, ROCPROFILER_AGENT_TYPE_GPU);

// -- roctracer
SAME_SIZE(old::Record, activity_record_t);
SAME_AS(old::Record, domain, activity_record_t, domain);
SAME_AS(old::Record, kind, activity_record_t, kind);
SAME_AS(old::Record, op, activity_record_t, op);
SAME_AS(old::Record, correlation, activity_record_t, correlation_id);
SAME_AS(old::Record, start, activity_record_t, begin_ns);
SAME_AS(old::Record, end, activity_record_t, end_ns);
SAME_AS(old::Record, device, activity_record_t, device_id);
SAME_AS(old::Record, queue, activity_record_t, queue_id);
SAME_AS(old::Record, kernel_name, activity_record_t, kernel_name);
SAME_AS(old::Record, bytes, activity_record_t, bytes);
SAME_SIZE(old::Properties, roctracer_properties_t);
SAME_AS(old::Properties, buffer_bytes, roctracer_properties_t, buffer_size);
SAME_AS(old::Properties, allocate, roctracer_properties_t, alloc_fun);
SAME_AS(old::Properties, buffer_filled, roctracer_properties_t, buffer_callback_fun);
SAME_AS(old::HipCall, correlation, hip_api_data_t, correlation_id);
SAME_AS(old::HipCall, phase, hip_api_data_t, phase);
STARTS_AS(old::HipCall, end_capture.graph, hip_api_data_t, args.hipStreamEndCapture.pGraph);
STARTS_AS(old::HipCall, instantiate.executable, hip_api_data_t,
          args.hipGraphInstantiate.pGraphExec);
STARTS_AS(old::HipCall, instantiate.graph, hip_api_data_t, args.hipGraphInstantiate.graph);
STARTS_AS(old::HipCall, graph_launch.executable, hip_api_data_t, args.hipGraphLaunch.graphExec);
STARTS_AS(old::HipCall, destroy.graph, hip_api_data_t, args.hipGraphExecDestroy.graphExec);
STARTS_AS(old::RoctxCall, message, roctx_api_data_t, args.roctxRangePushA.message);
SAME_VALUE(old::kDomainHipOps, ACTIVITY_DOMAIN_HIP_OPS);
SAME_VALUE(old::kDomainHipApi, ACTIVITY_DOMAIN_HIP_API);
SAME_VALUE(old::kDomainRoctx, ACTIVITY_DOMAIN_ROCTX);
SAME_VALUE(old::kOpDispatch, HIP_OP_ID_DISPATCH);
SAME_VALUE(old::kOpCopy, HIP_OP_ID_COPY);
SAME_VALUE(old::kOpBarrier, HIP_OP_ID_BARRIER);
SAME_VALUE(old::kPhaseEnter, ACTIVITY_API_PHASE_ENTER);
SAME_VALUE(old::kPhaseExit, ACTIVITY_API_PHASE_EXIT);
SAME_VALUE(old::kRoctxRangePush, ROCTX_API_ID_roctxRangePushA);
SAME_VALUE(old::kRoctxRangePop, ROCTX_API_ID_roctxRangePop);
