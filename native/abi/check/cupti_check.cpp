// native/abi/cupti.h against NVIDIA's true headers, whichever release is on -I: compiling checks
// it. The program prints the record sizes of the release, for the table of the fake (tests/fakes).
#include <stddef.h>
#include <stdint.h>

#include <cstdio>

#include <cupti_version.h>

#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_pcsampling.h>

#include "abi/cupti.h"

namespace abi = deepcontext::abi::cupti;

// The newest record of each kind that this release writes.
#if CUPTI_API_VERSION >= 130400
using TrueKernel = CUpti_ActivityKernel13;
using TrueMemcpy = CUpti_ActivityMemcpy7;
using TrueMemset = CUpti_ActivityMemset5;
static_assert(offsetof(TrueKernel, sourceGraphNodeId) == abi::kKernelSourceGraphNode, "");
#else
#if CUPTI_API_VERSION >= 130300
using TrueKernel = CUpti_ActivityKernel12;
#elif CUPTI_API_VERSION >= 130100
using TrueKernel = CUpti_ActivityKernel11;
#elif CUPTI_API_VERSION >= 130000
using TrueKernel = CUpti_ActivityKernel10;
#else
using TrueKernel = CUpti_ActivityKernel9;
#endif
#if CUPTI_API_VERSION >= 26
using TrueMemcpy = CUpti_ActivityMemcpy6;
#else
using TrueMemcpy = CUpti_ActivityMemcpy5;
#endif
using TrueMemset = CUpti_ActivityMemset4;
#endif

#define SAME_AS(Mine, mine, True, theirs)                                                          \
  static_assert(offsetof(abi::Mine, mine) == offsetof(True, theirs) &&                             \
                    sizeof(((abi::Mine *)nullptr)->mine) == sizeof(((True *)nullptr)->theirs),     \
                #Mine "::" #mine)
#define STARTS_AS(Mine, mine, True, theirs)                                                        \
  static_assert(offsetof(abi::Mine, mine) == offsetof(True, theirs), #Mine "::" #mine)
#define SAME_SIZE(Mine, True) static_assert(sizeof(abi::Mine) == sizeof(True), #Mine)
#define SAME_VALUE(mine, theirs)                                                                   \
  static_assert(static_cast<long>(abi::mine) == static_cast<long>(theirs), #mine)

SAME_AS(Kernel, registers_per_thread, TrueKernel, registersPerThread);
SAME_AS(Kernel, start, TrueKernel, start);
SAME_AS(Kernel, end, TrueKernel, end);
SAME_AS(Kernel, device, TrueKernel, deviceId);
SAME_AS(Kernel, context, TrueKernel, contextId);
SAME_AS(Kernel, stream, TrueKernel, streamId);
STARTS_AS(Kernel, grid, TrueKernel, gridX);
STARTS_AS(Kernel, block, TrueKernel, blockX);
SAME_AS(Kernel, static_shared_bytes, TrueKernel, staticSharedMemory);
SAME_AS(Kernel, dynamic_shared_bytes, TrueKernel, dynamicSharedMemory);
SAME_AS(Kernel, correlation, TrueKernel, correlationId);
SAME_AS(Kernel, name, TrueKernel, name);
SAME_AS(Kernel, queued, TrueKernel, queued);
SAME_AS(Kernel, submitted, TrueKernel, submitted);
SAME_AS(Kernel, graph_node, TrueKernel, graphNodeId);
SAME_AS(Kernel, graph, TrueKernel, graphId);
static_assert(sizeof(TrueKernel) >= sizeof(abi::Kernel), "");

SAME_AS(Memcpy, copy_kind, TrueMemcpy, copyKind);
SAME_AS(Memcpy, source_kind, TrueMemcpy, srcKind);
SAME_AS(Memcpy, target_kind, TrueMemcpy, dstKind);
SAME_AS(Memcpy, bytes, TrueMemcpy, bytes);
SAME_AS(Memcpy, start, TrueMemcpy, start);
SAME_AS(Memcpy, end, TrueMemcpy, end);
SAME_AS(Memcpy, device, TrueMemcpy, deviceId);
SAME_AS(Memcpy, stream, TrueMemcpy, streamId);
SAME_AS(Memcpy, correlation, TrueMemcpy, correlationId);
SAME_AS(Memcpy, graph_node, TrueMemcpy, graphNodeId);
SAME_AS(Memcpy, graph, TrueMemcpy, graphId);

SAME_AS(MemcpyPeer, copy_kind, CUpti_ActivityMemcpyPtoP4, copyKind);
SAME_AS(MemcpyPeer, bytes, CUpti_ActivityMemcpyPtoP4, bytes);
SAME_AS(MemcpyPeer, start, CUpti_ActivityMemcpyPtoP4, start);
SAME_AS(MemcpyPeer, end, CUpti_ActivityMemcpyPtoP4, end);
SAME_AS(MemcpyPeer, device, CUpti_ActivityMemcpyPtoP4, deviceId);
SAME_AS(MemcpyPeer, stream, CUpti_ActivityMemcpyPtoP4, streamId);
SAME_AS(MemcpyPeer, correlation, CUpti_ActivityMemcpyPtoP4, correlationId);
SAME_AS(MemcpyPeer, graph_node, CUpti_ActivityMemcpyPtoP4, graphNodeId);
SAME_AS(MemcpyPeer, graph, CUpti_ActivityMemcpyPtoP4, graphId);

SAME_AS(Memset, bytes, TrueMemset, bytes);
SAME_AS(Memset, start, TrueMemset, start);
SAME_AS(Memset, end, TrueMemset, end);
SAME_AS(Memset, device, TrueMemset, deviceId);
SAME_AS(Memset, stream, TrueMemset, streamId);
SAME_AS(Memset, correlation, TrueMemset, correlationId);
SAME_AS(Memset, graph_node, TrueMemset, graphNodeId);
SAME_AS(Memset, graph, TrueMemset, graphId);

#if CUPTI_API_VERSION >= 22
using TrueOverhead = CUpti_ActivityOverhead3;
#else
using TrueOverhead = CUpti_ActivityOverhead;
#endif
SAME_AS(Overhead, overhead_kind, TrueOverhead, overheadKind);
SAME_AS(Overhead, start, TrueOverhead, start);
SAME_AS(Overhead, end, TrueOverhead, end);

SAME_SIZE(CallbackData, CUpti_CallbackData);
SAME_AS(CallbackData, site, CUpti_CallbackData, callbackSite);
SAME_AS(CallbackData, function, CUpti_CallbackData, functionName);
SAME_AS(CallbackData, parameters, CUpti_CallbackData, functionParams);
SAME_AS(CallbackData, symbol, CUpti_CallbackData, symbolName);
SAME_AS(CallbackData, context, CUpti_CallbackData, context);
SAME_AS(CallbackData, correlation_data, CUpti_CallbackData, correlationData);
SAME_AS(CallbackData, correlation, CUpti_CallbackData, correlationId);
SAME_SIZE(ResourceData, CUpti_ResourceData);
SAME_AS(ResourceData, context, CUpti_ResourceData, context);
SAME_AS(ResourceData, descriptor, CUpti_ResourceData, resourceDescriptor);
SAME_AS(GraphData, graph, CUpti_GraphData, graph);
SAME_AS(GraphData, node, CUpti_GraphData, node);
SAME_AS(GraphData, node_type, CUpti_GraphData, nodeType);
SAME_AS(GraphData, original_node, CUpti_GraphData, originalNode);
SAME_AS(GraphData, graph_exec, CUpti_GraphData, graphExec);
SAME_AS(ModuleData, module, CUpti_ModuleResourceData, moduleId);
SAME_AS(ModuleData, cubin_bytes, CUpti_ModuleResourceData, cubinSize);
SAME_AS(ModuleData, cubin, CUpti_ModuleResourceData, pCubin);

#if CUPTI_API_VERSION >= 130000
SAME_AS(SubscriberParameters, bytes, CUpti_SubscriberParams, structSize);
SAME_AS(SubscriberParameters, name, CUpti_SubscriberParams, subscriberName);
SAME_AS(SubscriberParameters, old_name, CUpti_SubscriberParams, oldSubscriberName);
SAME_AS(SubscriberParameters, old_name_bytes, CUpti_SubscriberParams, oldSubscriberSize);
#if CUPTI_API_VERSION >= 130200
SAME_AS(SubscriberParameters, allow_multiple, CUpti_SubscriberParams, allowMultipleSubscribers);
SAME_SIZE(SubscriberParameters, CUpti_SubscriberParams);
#else
static_assert(sizeof(CUpti_SubscriberParams) == abi::kSubscriberParametersV1, "");
#endif
#endif

SAME_SIZE(PcConfiguration, CUpti_PCSamplingConfigurationInfo);
SAME_AS(PcConfiguration, attribute, CUpti_PCSamplingConfigurationInfo, attributeType);
SAME_AS(PcConfiguration, status, CUpti_PCSamplingConfigurationInfo, attributeStatus);
STARTS_AS(PcConfiguration, words, CUpti_PCSamplingConfigurationInfo, attributeData);
STARTS_AS(PcConfiguration, stall_reasons.indices, CUpti_PCSamplingConfigurationInfo,
          attributeData.stallReasonData.pStallReasonIndex);
SAME_SIZE(PcConfigurationParameters, CUpti_PCSamplingConfigurationInfoParams);
SAME_AS(PcConfigurationParameters, context, CUpti_PCSamplingConfigurationInfoParams, ctx);
SAME_AS(PcConfigurationParameters, count, CUpti_PCSamplingConfigurationInfoParams, numAttributes);
SAME_AS(PcConfigurationParameters, attributes, CUpti_PCSamplingConfigurationInfoParams,
        pPCSamplingConfigurationInfo);
SAME_SIZE(PcContextParameters, CUpti_PCSamplingEnableParams);
SAME_SIZE(PcContextParameters, CUpti_PCSamplingDisableParams);
SAME_SIZE(PcContextParameters, CUpti_PCSamplingStartParams);
SAME_SIZE(PcContextParameters, CUpti_PCSamplingStopParams);
SAME_AS(PcContextParameters, context, CUpti_PCSamplingStartParams, ctx);
SAME_SIZE(PcGetDataParameters, CUpti_PCSamplingGetDataParams);
SAME_AS(PcGetDataParameters, data, CUpti_PCSamplingGetDataParams, pcSamplingData);
SAME_SIZE(PcStallCountParameters, CUpti_PCSamplingGetNumStallReasonsParams);
SAME_AS(PcStallCountParameters, count, CUpti_PCSamplingGetNumStallReasonsParams, numStallReasons);
SAME_SIZE(PcStallNamesParameters, CUpti_PCSamplingGetStallReasonsParams);
SAME_AS(PcStallNamesParameters, indices, CUpti_PCSamplingGetStallReasonsParams, stallReasonIndex);
SAME_AS(PcStallNamesParameters, names, CUpti_PCSamplingGetStallReasonsParams, stallReasons);
SAME_SIZE(PcStall, CUpti_PCSamplingStallReason);
#if CUPTI_API_VERSION >= 22 // without them, nothing is sampled
SAME_SIZE(PcData, CUpti_PCSamplingPCData);
SAME_AS(PcData, cubin_crc, CUpti_PCSamplingPCData, cubinCrc);
SAME_AS(PcData, offset, CUpti_PCSamplingPCData, pcOffset);
SAME_AS(PcData, function_index, CUpti_PCSamplingPCData, functionIndex);
SAME_AS(PcData, correlation, CUpti_PCSamplingPCData, correlationId);
SAME_AS(PcData, function, CUpti_PCSamplingPCData, functionName);
SAME_AS(PcData, stall_count, CUpti_PCSamplingPCData, stallReasonCount);
SAME_AS(PcData, stalls, CUpti_PCSamplingPCData, stallReason);
#endif
SAME_SIZE(PcSamplingData, CUpti_PCSamplingData);
SAME_AS(PcSamplingData, capacity, CUpti_PCSamplingData, collectNumPcs);
SAME_AS(PcSamplingData, samples, CUpti_PCSamplingData, totalSamples);
SAME_AS(PcSamplingData, dropped_samples, CUpti_PCSamplingData, droppedSamples);
SAME_AS(PcSamplingData, count, CUpti_PCSamplingData, totalNumPcs);
SAME_AS(PcSamplingData, remaining, CUpti_PCSamplingData, remainingNumPcs);
SAME_AS(PcSamplingData, pcs, CUpti_PCSamplingData, pPcData);
SAME_SIZE(CubinCrcParameters, CUpti_GetCubinCrcParams);
SAME_AS(CubinCrcParameters, crc, CUpti_GetCubinCrcParams, cubinCrc);
SAME_SIZE(SourceParameters, CUpti_GetSassToSourceCorrelationParams);
SAME_AS(SourceParameters, line, CUpti_GetSassToSourceCorrelationParams, lineNumber);
SAME_AS(SourceParameters, offset, CUpti_GetSassToSourceCorrelationParams, pcOffset);
SAME_AS(SourceParameters, file, CUpti_GetSassToSourceCorrelationParams, fileName);
SAME_AS(SourceParameters, folder, CUpti_GetSassToSourceCorrelationParams, dirName);

SAME_VALUE(kInvalidParameter, CUPTI_ERROR_INVALID_PARAMETER);
SAME_VALUE(kOutOfMemory, CUPTI_ERROR_OUT_OF_MEMORY);
SAME_VALUE(kHardwareBusy, CUPTI_ERROR_HARDWARE_BUSY);
SAME_VALUE(kMaxLimitReached, CUPTI_ERROR_MAX_LIMIT_REACHED);
SAME_VALUE(kNotCompatible, CUPTI_ERROR_NOT_COMPATIBLE);
SAME_VALUE(kNotInitialized, CUPTI_ERROR_NOT_INITIALIZED);
SAME_VALUE(kInvalidKind, CUPTI_ERROR_INVALID_KIND);
SAME_VALUE(kNotSupported, CUPTI_ERROR_NOT_SUPPORTED);
SAME_VALUE(kVirtualizedDeviceNotSupported, CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED);
SAME_VALUE(kInsufficientPrivileges, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
SAME_VALUE(kMultipleSubscribers, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
SAME_VALUE(kVirtualizedDeviceInsufficientPrivileges,
           CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES);
SAME_VALUE(kConfidentialComputing, CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED);
#if CUPTI_API_VERSION >= 26
SAME_VALUE(kMigDevice, CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED);
SAME_VALUE(kWslDevice, CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED);
#endif
SAME_VALUE(kUnknown, CUPTI_ERROR_UNKNOWN);
SAME_VALUE(kKindMemcpy, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME_VALUE(kKindMemset, CUPTI_ACTIVITY_KIND_MEMSET);
SAME_VALUE(kKindKernel, CUPTI_ACTIVITY_KIND_KERNEL);
SAME_VALUE(kKindConcurrentKernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME_VALUE(kKindOverhead, CUPTI_ACTIVITY_KIND_OVERHEAD);
SAME_VALUE(kKindMemcpyPeer, CUPTI_ACTIVITY_KIND_MEMCPY2);
SAME_VALUE(kKindSynchronization, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
SAME_VALUE(kDomainDriver, CUPTI_CB_DOMAIN_DRIVER_API);
SAME_VALUE(kDomainResource, CUPTI_CB_DOMAIN_RESOURCE);
SAME_VALUE(kSiteEnter, CUPTI_API_ENTER);
SAME_VALUE(kSiteExit, CUPTI_API_EXIT);
SAME_VALUE(kResourceContextCreated, CUPTI_CBID_RESOURCE_CONTEXT_CREATED);
SAME_VALUE(kResourceContextDestroy, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
SAME_VALUE(kResourceModuleLoaded, CUPTI_CBID_RESOURCE_MODULE_LOADED);
SAME_VALUE(kResourceModuleUnload, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING);
SAME_VALUE(kResourceGraphCreated, CUPTI_CBID_RESOURCE_GRAPH_CREATED);
SAME_VALUE(kResourceGraphDestroy, CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING);
SAME_VALUE(kResourceGraphNodeCreateStarting, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATE_STARTING);
SAME_VALUE(kResourceGraphExecCreated, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED);
SAME_VALUE(kResourceGraphExecDestroy, CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING);
SAME_VALUE(kResourceGraphNodeCreated, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
SAME_VALUE(kResourceGraphNodeDestroy, CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING);
SAME_VALUE(kResourceGraphNodeCloned, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
SAME_VALUE(kMemcpyPeerToPeer, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
SAME_VALUE(kMemoryPageable, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE);
SAME_VALUE(kMemoryPinned, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
SAME_VALUE(kMemoryDevice, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
SAME_VALUE(kMemoryManaged, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED);
SAME_VALUE(kMemoryManagedStatic, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC);
SAME_VALUE(kFlushForced, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
SAME_VALUE(kPcSamplingPeriod, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD);
SAME_VALUE(kPcStallReasons, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_STALL_REASON);
SAME_VALUE(kPcScratchBytes, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SCRATCH_BUFFER_SIZE);
SAME_VALUE(kPcHardwareBufferBytes, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE);
SAME_VALUE(kPcCollectionMode, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE);
SAME_VALUE(kPcStartStopControl,
           CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL);
SAME_VALUE(kPcOutputFormat, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_OUTPUT_DATA_FORMAT);
SAME_VALUE(kPcDataBuffer, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER);
SAME_VALUE(kPcModeContinuous, CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS);
SAME_VALUE(kPcModeSerialized, CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED);
SAME_VALUE(kPcFormatParsed, CUPTI_PC_SAMPLING_OUTPUT_DATA_FORMAT_PARSED);
SAME_VALUE(kStallNameBytes, CUPTI_STALL_REASON_STRING_SIZE);
static_assert(sizeof(abi::Timestamp) == sizeof(CUpti_TimestampCallbackFunc), "Timestamp");
SAME_VALUE(kAttributeDevicePoolLimit, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT);

int main() {
  std::printf("%d %zu %zu %zu\n", CUPTI_API_VERSION, sizeof(TrueKernel), sizeof(TrueMemcpy),
              sizeof(TrueMemset));
}
