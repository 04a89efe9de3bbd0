#pragma once
// The part of rocprofiler-sdk's binary interface (librocprofiler-sdk.so.1, version 1.0 and newer)
// that the collector uses, declared without AMD's headers. native/abi/check/rocm_check.cpp compares
// it with the true headers.
//
// Structures begin with their size and only grow at the end.
#include <cstddef>
#include <cstdint>

namespace deepcontext::abi::rocprofiler {

using Status = int;
enum : Status {
  kSuccess = 0,
  kErrorBufferBusy = 14,
  kErrorConfigurationLocked = 16,
  kErrorIncompatibleAbi = 18,
  kErrorFinalized = 21,
  kErrorPermissionDenied = 40,
};
/// First version with today's record layout: 1.0.0, as the library passes it (major * 10000 + ...).
constexpr uint32_t kFirstVersion = 10000;

enum : uint32_t { kCategoryTracing = 1 };
enum BufferKind : uint32_t { kBufferMemoryCopy = 10, kBufferKernelDispatch = 11 };
enum CallbackKind : uint32_t {
  kCallbackHipRuntime = 5,
  kCallbackMarkerCore = 7,
  kCallbackCodeObject = 10,
  kCallbackAllocation = 16,
};
enum : int32_t { kCodeObjectKernelSymbol = 2 };
enum : int32_t { kAllocate = 1, kAllocateVirtual = 2 };
enum : int32_t { kMarkerRangePush = 1, kMarkerRangePop = 2 };
enum : uint32_t { kPhaseEnter = 1, kPhaseExit = 2 };
enum : uint32_t { kPolicyLossless = 2 };
enum ExternalRequest : uint32_t { kRequestMemoryCopy = 10, kRequestKernelDispatch = 11 };
enum CopyDirection : uint32_t {
  kCopyHostToHost = 1,
  kCopyHostToDevice = 2,
  kCopyDeviceToHost = 3,
  kCopyDeviceToDevice = 4,
};
enum : uint32_t { kAgentVersion = 1 };
enum : int32_t { kAgentCpu = 1, kAgentGpu = 2 };

struct Id {
  uint64_t handle;
};
union UserData {
  uint64_t value;
  void *pointer;
};
struct Correlation {
  uint64_t internal;
  UserData external;
  uint64_t ancestor;
};
struct AsyncCorrelation {
  uint64_t internal;
  UserData external;
};
struct CallbackRecord {
  Id context;
  uint64_t thread;
  Correlation correlation;
  uint32_t kind;
  int32_t operation;
  uint32_t phase;
  void *payload;
};
struct RecordHeader {
  uint32_t category, kind;
  void *payload;
};
struct DispatchInfo {
  uint64_t size;
  Id agent, queue;
  uint64_t kernel, dispatch;
  uint32_t private_bytes, group_bytes;
  uint32_t workgroup[3], grid[3]; // grid: work items, not groups
  uint8_t reserved[56];
};
struct KernelDispatch {
  uint64_t size;
  uint32_t kind, operation;
  AsyncCorrelation correlation;
  uint64_t thread, start, end;
  DispatchInfo info;
};
struct MemoryCopy {
  uint64_t size;
  uint32_t kind, operation;
  AsyncCorrelation correlation;
  uint64_t thread, start, end;
  Id target, source;
  uint64_t bytes;
};
struct KernelSymbol {
  uint64_t size, kernel, code_object;
  const char *name;
  uint64_t object;
  uint32_t kernarg_bytes, kernarg_alignment, group_bytes, private_bytes;
  uint32_t scalar_registers, vector_registers, accumulation_registers;
};
/// Arguments and result of a HIP call; the union of arguments comes right after the size.
struct HipCall {
  uint64_t size;
  union {
    uint64_t words[8];
    struct {
      void *stream;
      void **graph;
    } end_capture;
    struct {
      void **executable;
      void *graph;
    } instantiate;
    struct {
      void **node;
      void *graph;
    } add_node;
    struct {
      void *executable;
    } graph_launch;
    struct {
      void *graph;
    } destroy; // of a graph or an executable
  };
};
struct AllocationCall {
  uint64_t size, start, end;
  Id agent;
  uint64_t address, bytes;
};
struct MarkerCall {
  uint64_t size;
  const char *message;
};
/// The part of rocprofiler_agent_v0_t that is read.
struct Agent {
  uint64_t size;
  Id id;
  int32_t type;
  uint8_t skipped[268];
  int32_t type_ordinal; // among all agents of its type, hidden ones included
  uint32_t visibility;
  uint64_t uuid[2];
};

struct ClientId {
  size_t size;
  const char *name;
  const uint32_t handle;
};
using Finalize = void (*)(ClientId);
struct ConfigureResult {
  size_t size;
  int (*initialize)(Finalize, void *);
  void (*finalize)(void *);
  void *data;
};
using Configure = ConfigureResult *(*)(uint32_t version, const char *runtime, uint32_t priority,
                                       ClientId *client);
using BufferCallback = void (*)(Id context, Id buffer, RecordHeader **headers, size_t count,
                                void *user, uint64_t dropped);
using TracingCallback = void (*)(CallbackRecord record, UserData *data, void *user);
using ExternalCallback = int (*)(uint64_t thread, Id context, uint32_t kind, int32_t operation,
                                 uint64_t internal, UserData *external, void *user);
using AgentsCallback = Status (*)(uint32_t version, const void **agents, size_t count, void *user);

} // namespace deepcontext::abi::rocprofiler
