// The tables by which NCCL calls the profiler. Outside of a session nothing is recorded, and NCCL
// is asked for no event.
#include <unistd.h>

#include "core/clock.h"
#include "core/recorder.h"
#include "nccl/calls.h"

namespace deepcontext::nccl {

namespace {

using namespace abi::nccl;

constexpr char kName[] = "deepcontext";

// A context is a communicator's index plus one, and a handle a number: no address.
void *asPointer(uint64_t value) {
  return reinterpret_cast<void *>(static_cast<uintptr_t>(value));
}

uint64_t asNumber(const void *pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

int init5(void **context, uint64_t communicator, int *mask, const char *, int nodes, int ranks,
          int rank, Logger) {
  *context = asPointer(Calls::instance().open({communicator, ranks, rank, nodes}, mask));
  return kSuccess;
}

int init4(void **context, int *mask, const char *name, uint64_t communicator, int nodes, int ranks,
          int rank, Logger log) {
  return init5(context, communicator, mask, name, nodes, ranks, rank, log);
}

uint64_t begun(uint32_t communicator, uint64_t type, const Event &event) {
  Calls &calls = Calls::instance();
  switch (type) {
  case kColl:
    return calls.collective(communicator, event.coll);
  case kP2p:
    return calls.transfer(communicator, event.p2p);
  case kKernelCh:
    return calls.beginChannel(asNumber(event.parent), event.kernel_ch.start_ns);
  case kProxyOp: // of another process, the parent is a number of that process
    return event.proxy_op.pid == getpid() ? calls.beginProxy(asNumber(event.parent), monotonicNs())
                                          : 0;
  default:
    return 0;
  }
}

/// The handle is always set: NCCL passes it back, whatever was there before.
int start(void *context, void **handle, uint64_t type, const Event *event) {
  *handle = nullptr;
  if (RecorderRegistry::isRecording()) {
    *handle = asPointer(begun(static_cast<uint32_t>(asNumber(context)), type, *event));
  }
  return kSuccess;
}

int start5(void *context, void **handle, Event *event) {
  return start(context, handle, event->type, event);
}

int start4(void *context, void **handle, Event *event) {
  return start(context, handle, event->type & 0xFF, event);
}

int stop(void *handle) {
  if (Calls::isProxy(asNumber(handle)) && RecorderRegistry::isRecording()) {
    Calls::instance().endProxy(asNumber(handle), monotonicNs());
  }
  return kSuccess;
}

int record(void *handle, int state, StateArguments *arguments) {
  if (state == kKernelChStop && handle && arguments && RecorderRegistry::isRecording()) {
    Calls::instance().endChannel(asNumber(handle), arguments->kernel_end_ns);
  }
  return kSuccess;
}

int finalize(void *) {
  Calls::instance().close();
  return kSuccess;
}

} // namespace

} // namespace deepcontext::nccl

// NCCL looks for these names. No version before 4 has times of kernels.
#define DEEPCONTEXT_TABLE extern "C" __attribute__((visibility("default")))
DEEPCONTEXT_TABLE const deepcontext::abi::nccl::Profiler4 ncclProfiler_v4 = {
    deepcontext::nccl::kName, deepcontext::nccl::init4,  deepcontext::nccl::start4,
    deepcontext::nccl::stop,  deepcontext::nccl::record, deepcontext::nccl::finalize};
DEEPCONTEXT_TABLE const deepcontext::abi::nccl::Profiler5 ncclProfiler_v5 = {
    deepcontext::nccl::kName, deepcontext::nccl::init5,  deepcontext::nccl::start5,
    deepcontext::nccl::stop,  deepcontext::nccl::record, deepcontext::nccl::finalize};
DEEPCONTEXT_TABLE const deepcontext::abi::nccl::Profiler5 ncclProfiler_v6 = {
    deepcontext::nccl::kName, deepcontext::nccl::init5,  deepcontext::nccl::start5,
    deepcontext::nccl::stop,  deepcontext::nccl::record, deepcontext::nccl::finalize};
