#pragma once
// The part of NCCL's profiler interface that the plugin uses; RCCL has the same.
//
// NCCL opens the library that NCCL_PROFILER_PLUGIN names and looks for the newest table it knows:
// `ncclProfiler_v6`, then v5, v4. `abi/check/nccl_check.cpp` compares these declarations with
// NCCL's own headers. Source: NCCL 2.27 to 2.30, src/include/plugin/profiler/profiler_v4.h to
// profiler_v6.h.
#include <cstddef>
#include <cstdint>

namespace deepcontext::abi::nccl {

/// ncclResult_t, the one value that a plugin should return.
constexpr int kSuccess = 0;

/// Types of events, of which a plugin asks for some by a mask.
enum EventType : uint32_t {
  kColl = 1 << 1,
  kP2p = 1 << 2,
  kProxyOp = 1 << 3,
  kKernelCh = 1 << 6,
};
/// State of a kernel channel: its work has ended.
constexpr int kKernelChStop = 22;

/// A collective. Texts are NCCL's own; "Unknown" algorithms and protocols are possible.
struct Coll {
  uint64_t sequence; // among those of this function in the communicator
  const char *function;
  const void *send;
  void *receive;
  size_t count;
  int root;
  const char *type; // "ncclFloat32"
  uint8_t channels;
  uint8_t warps;
  const char *algorithm;
  const char *protocol;
};

struct P2p {
  const char *function;
  void *buffer;
  const char *type;
  size_t count;
  int peer;
  uint8_t channels;
};

/// Work of a proxy thread for one channel. Proxies also work for other processes.
struct ProxyOp {
  int pid;
  uint8_t channel;
  int peer;
  int steps;
  int chunk_bytes;
  int is_send;
};

/// One channel of a kernel, timed by the device's clock.
struct KernelCh {
  uint8_t channel;
  uint64_t start_ns;
};

/// What an event begins with. In version 4 `type` is one byte; the bytes behind are not set.
struct Event {
  uint64_t type;
  void *parent; // of ProxyOp and KernelCh: what the plugin returned for the Coll or P2p
  int rank;
  union {
    Coll coll;
    P2p p2p;
    ProxyOp proxy_op;
    KernelCh kernel_ch;
  };
};

union StateArguments {
  uint64_t kernel_end_ns;
};

using Logger = void (*)(int level, unsigned long flags, const char *file, int line,
                        const char *format, ...);

/// ncclProfiler_v4_t.
struct Profiler4 {
  const char *name;
  int (*init)(void **context, int *mask, const char *communicator_name, uint64_t communicator,
              int nodes, int ranks, int rank, Logger log);
  int (*start)(void *context, void **handle, Event *event);
  int (*stop)(void *handle);
  int (*record)(void *handle, int state, StateArguments *arguments);
  int (*finalize)(void *context);
};

/// ncclProfiler_v5_t and ncclProfiler_v6_t.
struct Profiler5 {
  const char *name;
  int (*init)(void **context, uint64_t communicator, int *mask, const char *communicator_name,
              int nodes, int ranks, int rank, Logger log);
  int (*start)(void *context, void **handle, Event *event);
  int (*stop)(void *handle);
  int (*record)(void *handle, int state, StateArguments *arguments);
  int (*finalize)(void *context);
};

} // namespace deepcontext::abi::nccl
