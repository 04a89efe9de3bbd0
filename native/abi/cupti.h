#pragma once
// The part of CUPTI's binary interface that the collector uses, declared without NVIDIA's headers.
//
// Every record is the prefix that is equal from CUDA 11.1 to 13.5; newer libraries only append, and
// cuptiActivityGetNextRecord knows the true sizes. native/abi/check/cupti_check.cpp compares each
// offset and value with the true headers of several CUDA releases.
#include <cstddef>
#include <cstdint>

namespace deepcontext::abi::cupti {

using Result = int;
enum : Result {
  kSuccess = 0,
  kInvalidParameter = 1,
  kOutOfMemory = 8,
  kMaxLimitReached = 12,
  kNotCompatible = 14,
  kNotInitialized = 15,
  kInvalidKind = 21,
  kHardwareBusy = 26,
  kNotSupported = 27,
  kVirtualizedDeviceNotSupported = 33,
  kInsufficientPrivileges = 35,
  kMultipleSubscribers = 39,
  kVirtualizedDeviceInsufficientPrivileges = 40,
  kConfidentialComputing = 41,
  kMigDevice = 43,
  kWslDevice = 45,
  kUnknown = 999,
};

enum ActivityKind : uint32_t {
  kKindMemcpy = 1,
  kKindMemset = 2,
  kKindKernel = 3,
  kKindConcurrentKernel = 10,
  kKindOverhead = 17,
  kKindMemcpyPeer = 22,
  kKindSynchronization = 38,
};

enum CallbackDomain : uint32_t { kDomainDriver = 1, kDomainResource = 3 };
enum CallbackSite : uint32_t { kSiteEnter = 0, kSiteExit = 1 };
enum ResourceCallback : uint32_t {
  kResourceContextCreated = 1,
  kResourceContextDestroy = 2,
  kResourceModuleLoaded = 6,
  kResourceModuleUnload = 7,
  kResourceGraphCreated = 9,
  kResourceGraphDestroy = 10,
  kResourceGraphNodeCreateStarting = 12, // alone says which type the node has
  kResourceGraphNodeCreated = 13,
  kResourceGraphNodeDestroy = 14,
  kResourceGraphExecCreated = 18, // `graph` is the one that it was made from
  kResourceGraphExecDestroy = 19,
  kResourceGraphNodeCloned = 20,
};
/// Of CUDA: CUgraphNodeType.
enum GraphNodeType : uint32_t {
  kNodeKernel = 0,
  kNodeMemcpy = 1,
  kNodeMemset = 2,
  kNodeHost = 3,
  kNodeChildGraph = 4,
  kNodeEventRecord = 7,
  kNodeMemoryAllocation = 10,
  kNodeConditional = 13,
};
enum MemcpyKind : uint8_t { kMemcpyPeerToPeer = 10 };
/// Where the two ends of a copy are.
enum MemoryKind : uint8_t {
  kMemoryPageable = 1,
  kMemoryPinned = 2,
  kMemoryDevice = 3,
  kMemoryManaged = 5,
  kMemoryManagedStatic = 7,
};
constexpr uint32_t kFlushForced = 1;
/// The most buffers that CUPTI takes on the device for a context; a size_t.
constexpr uint32_t kAttributeDevicePoolLimit = 2;

/// First CUPTI whose request for a buffer may be declined (CUDA 12.9).
constexpr uint32_t kVersionDeclinedBuffers = 27;
/// First CUPTI that was seen to tell of a graph's end before that of its nodes, whose handles are
/// valid until then.
constexpr uint32_t kVersionEndOfGraphFirst = 130000;
/// First CUPTI whose records name the graph node that was captured.
constexpr uint32_t kVersionSourceGraphNode = 130400;
/// First CUPTI whose second API family shares the device between subscribers.
constexpr uint32_t kVersionManySubscribers = 130300;
constexpr int kDriverManySubscribers = 13030; // of cuDriverGetVersion: r610

struct alignas(8) Activity {
  uint32_t kind;
};

struct alignas(8) Kernel {
  uint32_t kind;
  uint8_t cache_config, shared_memory_config;
  uint16_t registers_per_thread;
  uint32_t partitioned_cache[2];
  uint64_t start, end, completed; // ns
  uint32_t device, context, stream;
  int32_t grid[3], block[3];
  int32_t static_shared_bytes, dynamic_shared_bytes;
  uint32_t local_bytes_per_thread, local_bytes_total;
  uint32_t correlation;
  int64_t grid_id;
  const char *name;
  void *reserved;
  uint64_t queued, submitted;
  uint8_t launch_type, carveout_requested, carveout, padding;
  uint32_t shared_bytes_executed;
  uint64_t graph_node;
  uint32_t shared_limit_config, graph; // graph: the executable graph, not the template
};
/// Where a kernel record of 13.4 and newer has the captured node's id.
constexpr size_t kKernelSourceGraphNode = 240;

struct alignas(8) Memcpy {
  uint32_t kind;
  uint8_t copy_kind, source_kind, target_kind, flags;
  uint64_t bytes, start, end;
  uint32_t device, context, stream, correlation, runtime_correlation, padding;
  void *reserved;
  uint64_t graph_node;
  uint32_t graph;
};

struct alignas(8) MemcpyPeer {
  uint32_t kind;
  uint8_t copy_kind, source_kind, target_kind, flags;
  uint64_t bytes, start, end;
  uint32_t device, context, stream, source_device, source_context, target_device, target_context;
  uint32_t correlation;
  void *reserved;
  uint64_t graph_node;
  uint32_t graph;
};

struct alignas(8) Memset {
  uint32_t kind, value;
  uint64_t bytes, start, end;
  uint32_t device, context, stream, correlation;
  uint16_t flags, memory_kind;
  uint32_t padding;
  void *reserved;
  uint64_t graph_node;
  uint32_t graph;
};

struct alignas(8) Overhead {
  uint32_t kind, overhead_kind, object_kind, object_id[3];
  uint64_t start, end;
};

struct CallbackData {
  uint32_t site;
  const char *function;
  const void *parameters;
  void *return_value;
  const char *symbol;
  void *context;
  uint32_t context_id;
  uint64_t *correlation_data; // the subscriber's; the same on enter and exit of one call
  uint32_t correlation;
};
struct ResourceData {
  void *context;
  void *handle;
  void *descriptor;
};
struct GraphData {
  void *graph, *original_graph, *node, *original_node;
  uint32_t node_type;
  void *dependency, *graph_exec;
};
/// Parameters of cuGraphLaunch and cuGraphLaunch_ptsz, in NVIDIA's generated_cuda_meta.h.
struct GraphLaunchParameters {
  void *executable;
  void *stream;
};
/// Parameters of cuGraphInstantiateWithFlags, which has the flags itself, and of
/// cuGraphInstantiateWithParams, in the same file.
struct GraphInstantiateParameters {
  void **executable;
  void *graph;
  union {
    uint64_t flags;
    const uint64_t *flags_and_more; // CUDA_GRAPH_INSTANTIATE_PARAMS
  };
};
/// Of CUDA: CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH.
constexpr uint64_t kFlagDeviceLaunch = 4;
/// Parameters of the functions that copy one row (cuMemcpyHtoD_v2, ...) or set one (cuMemsetD8_v2,
/// ...), in the same file.
struct SizedParameters {
  uint64_t target;
  uint64_t source; // an address, or a value of one to four bytes and padding
  size_t count;    // bytes, or values
};
struct ModuleData {
  uint32_t module;
  size_t cubin_bytes;
  const char *cubin;
};

/// Of cuptiSubscribe_v2; `bytes` is its size: 32 up to 13.1, then 40.
struct SubscriberParameters {
  size_t bytes;
  const char *name;
  char *old_name; // receives the name of the present subscriber
  size_t old_name_bytes;
  uint8_t allow_multiple;
  uint8_t padding[7];
};
constexpr uint32_t kVersionSubscribeV2 = 130000;
constexpr size_t kSubscriberParametersV1 = 32;
constexpr uint32_t kVersionSubscriberParametersV2 = 130200;

using Subscriber = void *;
using Callback = void (*)(void *user, uint32_t domain, uint32_t id, const void *data);
using Timestamp = uint64_t (*)(); // ns
using BufferRequested = void (*)(uint8_t **buffer, size_t *bytes, size_t *most_records);
using BufferCompleted = void (*)(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                                 size_t valid_bytes);
using BufferRequestedV2 = void (*)(uint8_t **buffer, size_t *bytes, size_t *most_records,
                                   void *information);
using BufferCompletedV2 = void (*)(uint8_t *buffer, size_t bytes, size_t valid_bytes,
                                   void *information);

// -- PC sampling; each parameter block begins with its own size

enum PcAttribute : uint32_t {
  kPcSamplingPeriod = 1, // 2^value cycles
  kPcStallReasons = 2,
  kPcScratchBytes = 3,
  kPcHardwareBufferBytes = 4,
  kPcCollectionMode = 5,
  kPcStartStopControl = 6,
  kPcOutputFormat = 7,
  kPcDataBuffer = 8,
};
/// First CUPTI with PcData as below (CUDA 12.4).
constexpr uint32_t kVersionPcDataCorrelation = 22;
constexpr uint32_t kPcModeContinuous = 1;
constexpr uint32_t kPcModeSerialized = 2;
constexpr uint32_t kPcFormatParsed = 1;
constexpr size_t kStallNameBytes = 128; // CUPTI_STALL_REASON_STRING_SIZE

struct PcConfiguration {
  uint32_t attribute;
  Result status;
  union {
    uint64_t words[3];
    uint32_t value;
    size_t bytes;
    void *buffer;
    struct {
      size_t count;
      uint32_t *indices;
    } stall_reasons;
  };
};
struct PcConfigurationParameters {
  size_t bytes;
  void *reserved;
  void *context;
  size_t count;
  PcConfiguration *attributes;
};
/// Enable, disable, start and stop take the same block.
struct PcContextParameters {
  size_t bytes;
  void *reserved;
  void *context;
};
struct PcGetDataParameters {
  size_t bytes;
  void *reserved;
  void *context;
  void *data;
};
struct PcStallCountParameters {
  size_t bytes;
  void *reserved;
  void *context;
  size_t *count;
};
struct PcStallNamesParameters {
  size_t bytes;
  void *reserved;
  void *context;
  size_t count;
  uint32_t *indices;
  char **names;
};
struct PcStall {
  uint32_t reason;
  uint32_t samples;
};
struct PcData {
  size_t bytes;
  uint64_t cubin_crc;
  uint64_t offset;
  uint32_t function_index;
  uint32_t padding;
  char *function; // the client frees it
  size_t stall_count;
  PcStall *stalls;
  uint32_t correlation; // since 12.4, and only in serialized mode
};
struct PcSamplingData {
  size_t bytes;
  size_t capacity;
  uint64_t samples;
  uint64_t dropped_samples;
  size_t count;
  size_t remaining;
  uint64_t range;
  PcData *pcs;
  uint64_t foreign_samples;
  uint8_t is_hardware_buffer_full;
};
struct CubinCrcParameters {
  size_t bytes;
  size_t cubin_bytes;
  const void *cubin;
  uint64_t crc;
};
struct SourceParameters {
  size_t bytes;
  const void *cubin;
  const char *function;
  size_t cubin_bytes;
  uint32_t line;
  uint64_t offset;
  char *file; // the client frees both
  char *folder;
};

} // namespace deepcontext::abi::cupti
