#pragma once
// The part of roctracer's binary interface (libroctracer64.so.4, ROCm 6 and older) that the
// collector uses, declared without AMD's headers. native/abi/check/rocm_check.cpp compares it with
// the true headers.
#include <cstddef>
#include <cstdint>

namespace deepcontext::abi::roctracer {

using Status = int;
enum : Status { kSuccess = 0, kError = -1 };
enum Domain : uint32_t { kDomainHipOps = 2, kDomainHipApi = 3, kDomainRoctx = 6 };
enum : uint32_t { kOpDispatch = 0, kOpCopy = 1, kOpBarrier = 2 };
enum : uint32_t { kPhaseEnter = 0, kPhaseExit = 1 };
enum : uint32_t { kRoctxRangePush = 1, kRoctxRangePop = 2 };

struct Record {
  uint32_t domain, kind, op;
  uint64_t correlation, start, end;
  int32_t device;
  uint64_t queue;
  union {
    size_t bytes;
    const char *kernel_name;
  };
};

struct Properties {
  uint32_t mode;
  size_t buffer_bytes;
  void (*allocate)(char **memory, size_t bytes, void *user);
  void *allocate_user;
  void (*buffer_filled)(const char *begin, const char *end, void *user);
  void *buffer_user;
};

/// The beginning of hip_api_data_t; the union of arguments follows.
struct HipCall {
  uint64_t correlation;
  uint32_t phase;
  union {
    struct {
      void *stream;
      void **graph;
    } end_capture;
    struct {
      void **executable;
      void *executable_copy;
      void *graph;
    } instantiate;
    struct {
      void *executable;
    } graph_launch;
    struct {
      void *graph;
    } destroy;
  };
};
struct RoctxCall {
  const char *message;
};

using ApiCallback = void (*)(uint32_t domain, uint32_t id, const void *data, void *user);

} // namespace deepcontext::abi::roctracer
