// Compile-only: native/abi/nccl.h against NCCL's own headers (src/include/plugin of its sources,
// which no package has). tests/compat/test_abi_gpu.py does it where the sources are at hand.
#include <cstddef>
#include <cstdint>
#include <sys/types.h>
#include <type_traits>

#include "abi/nccl.h"

// What NCCL's headers expect to be declared.
typedef enum { ncclSuccess = 0 } ncclResult_t;
typedef enum { NCCL_LOG_NONE = 0 } ncclDebugLogLevel;
typedef void (*ncclDebugLogger_t)(ncclDebugLogLevel level, unsigned long flags, const char *file,
                                  int line, const char *fmt, ...);
typedef pid_t ncclPid_t;
#include "nccl_profiler.h"

namespace abi = deepcontext::abi::nccl;

#define SAME_FIELD(Mine, mine, True, theirs)                                                       \
  static_assert(offsetof(Mine, mine) == offsetof(True, theirs) &&                                  \
                    sizeof(((Mine *)nullptr)->mine) == sizeof(((True *)nullptr)->theirs),          \
                #Mine "::" #mine " is not where " #True "::" #theirs " is")
#define SAME_VALUE(mine, theirs)                                                                   \
  static_assert(static_cast<long>(mine) == static_cast<long>(theirs), #mine " is not " #theirs)

SAME_VALUE(abi::kSuccess, ncclSuccess);
SAME_VALUE(abi::kColl, ncclProfileColl);
SAME_VALUE(abi::kP2p, ncclProfileP2p);
SAME_VALUE(abi::kProxyOp, ncclProfileProxyOp);
SAME_VALUE(abi::kKernelCh, ncclProfileKernelCh);
SAME_VALUE(abi::kKernelChStop, ncclProfilerKernelChStop);

#define CHECK_EVENT(True)                                                                          \
  SAME_FIELD(abi::Event, parent, True, parentObj);                                                 \
  SAME_FIELD(abi::Event, rank, True, rank);                                                        \
  SAME_FIELD(abi::Event, coll.sequence, True, coll.seqNumber);                                     \
  SAME_FIELD(abi::Event, coll.function, True, coll.func);                                          \
  SAME_FIELD(abi::Event, coll.count, True, coll.count);                                            \
  SAME_FIELD(abi::Event, coll.root, True, coll.root);                                              \
  SAME_FIELD(abi::Event, coll.type, True, coll.datatype);                                          \
  SAME_FIELD(abi::Event, coll.channels, True, coll.nChannels);                                     \
  SAME_FIELD(abi::Event, coll.algorithm, True, coll.algo);                                         \
  SAME_FIELD(abi::Event, coll.protocol, True, coll.proto);                                         \
  SAME_FIELD(abi::Event, p2p.function, True, p2p.func);                                            \
  SAME_FIELD(abi::Event, p2p.type, True, p2p.datatype);                                            \
  SAME_FIELD(abi::Event, p2p.count, True, p2p.count);                                              \
  SAME_FIELD(abi::Event, p2p.channels, True, p2p.nChannels);                                       \
  SAME_FIELD(abi::Event, proxy_op.pid, True, proxyOp.pid);                                         \
  SAME_FIELD(abi::Event, proxy_op.is_send, True, proxyOp.isSend);                                  \
  SAME_FIELD(abi::Event, kernel_ch.start_ns, True, kernelCh.pTimer)

CHECK_EVENT(ncclProfilerEventDescr_v4_t);
CHECK_EVENT(ncclProfilerEventDescr_v5_t);
CHECK_EVENT(ncclProfilerEventDescr_v6_t);
static_assert(offsetof(abi::Event, type) == 0 && sizeof(ncclProfilerEventDescr_v4_t::type) == 1);
SAME_FIELD(abi::Event, type, ncclProfilerEventDescr_v5_t, type);
SAME_FIELD(abi::StateArguments, kernel_end_ns, ncclProfilerEventStateArgs_v4_t, kernelCh.pTimer);
SAME_FIELD(abi::StateArguments, kernel_end_ns, ncclProfilerEventStateArgs_v5_t, kernelCh.pTimer);

#define CHECK_TABLE(Mine, True)                                                                    \
  static_assert(sizeof(Mine) == sizeof(True));                                                     \
  SAME_FIELD(Mine, init, True, init);                                                              \
  SAME_FIELD(Mine, start, True, startEvent);                                                       \
  SAME_FIELD(Mine, stop, True, stopEvent);                                                         \
  SAME_FIELD(Mine, record, True, recordEventState);                                                \
  SAME_FIELD(Mine, finalize, True, finalize)

CHECK_TABLE(abi::Profiler4, ncclProfiler_v4_t);
CHECK_TABLE(abi::Profiler5, ncclProfiler_v5_t);
CHECK_TABLE(abi::Profiler5, ncclProfiler_v6_t);
static_assert(std::is_same_v<decltype(ncclProfiler_v4_t::init),
                             ncclResult_t (*)(void **, int *, const char *, uint64_t, int, int, int,
                                              ncclDebugLogger_t)>);
static_assert(std::is_same_v<decltype(ncclProfiler_v5_t::init),
                             ncclResult_t (*)(void **, uint64_t, int *, const char *, int, int, int,
                                              ncclDebugLogger_t)>);
static_assert(std::is_same_v<decltype(ncclProfiler_v6_t::init), decltype(ncclProfiler_v5_t::init)>);

int main() {}
