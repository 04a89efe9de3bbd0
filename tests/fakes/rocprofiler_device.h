#pragma once
// The device behind the fake rocprofiler-sdk: who listens to it, and the records that wait for them.
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "abi/rocprofiler.h"
#include "hip_device.h"

namespace fake::rocprofiler {

namespace abi = deepcontext::abi::rocprofiler;

// Operations of the HIP run-time domain, numbered as this fake pleases: tools go by name.
inline constexpr const char *kFunctions[] = {
    "hipApiName",          "hipLaunchKernel",      "hipMemcpy",          "hipMemcpyAsync",
    "hipMemsetAsync",      "hipDeviceSynchronize", "hipStreamSynchronize", "hipStreamBeginCapture",
    "hipStreamEndCapture", "hipGraphInstantiate",  "hipGraphLaunch",     "hipGraphExecDestroy",
    "hipGraphDestroy",     "hipMalloc",            "hipHostMalloc",     "hipGetDevice",
    "hipGraphCreate",      "hipGraphAddKernelNode", "hipGraphExecUpdate",
    "hipGraphExecKernelNodeSetParams", "hipMemPrefetchAsync",
    "hipExtLaunchKernel",  "hipModuleLaunchKernel", "hipExtModuleLaunchKernel",
    "hipLaunchCooperativeKernel", "hipModuleLaunchCooperativeKernel",
    "hipLaunchKernelExC",  "hipDrvLaunchKernelEx"};
constexpr uint64_t kAgent = 0x77; // of the first GPU; the others follow
constexpr uint64_t kUuid = 0xA100000000000000;
constexpr uint64_t kCpu = 0x11;

struct Tracing {
  uint32_t kind;
  std::set<int32_t> operations;
  abi::TracingCallback callback;
  void *user;
};

struct Context {
  bool is_started = false;
  std::vector<Tracing> tracings;
  std::set<uint32_t> buffered; // kinds
  std::set<uint32_t> requests;
  abi::ExternalCallback external = nullptr;
  void *external_user = nullptr;
};

struct Record {
  uint32_t kind;
  std::vector<uint8_t> bytes;
};

/// Records as the library keeps them: one behind the other, with headers that point to them.
class Buffer {
public:
  void put(const Record &record) {
    if (chunks_.empty() || chunks_.back().size() + record.bytes.size() > kChunkBytes) {
      chunks_.emplace_back();
      chunks_.back().reserve(kChunkBytes);
    }
    std::vector<uint8_t> &chunk = chunks_.back();
    uint8_t *payload = chunk.data() + chunk.size(); // stays: the chunk never grows
    chunk.insert(chunk.end(), record.bytes.begin(), record.bytes.end());
    headers_.push_back({abi::kCategoryTracing, record.kind, payload});
    pointers_.push_back(&headers_.back());
  }
  std::vector<abi::RecordHeader *> &headers() { return pointers_; }
  size_t size() const { return pointers_.size(); }

private:
  static constexpr size_t kChunkBytes = 4u << 20;
  std::vector<std::vector<uint8_t>> chunks_;
  std::deque<abi::RecordHeader> headers_;
  std::vector<abi::RecordHeader *> pointers_;
};

struct State {
  fake::HipDevice hip;
  std::mutex mutex;
  uint32_t version = 10201;
  std::vector<Context> contexts;
  abi::BufferCallback filled = nullptr;
  void *filled_user = nullptr;
  Buffer records;
  std::atomic<size_t> most_records{10'000};
  bool is_locked = false;
  bool is_holding = false;
  bool has_profiler = false; // torch.profiler registered first
  uint64_t dropped_untold = 0;
  std::map<std::string, uint64_t> kernels;
  std::atomic<uint64_t> next_dispatch{1};
};

State &state();

#define FAIL_IF_ASKED(function)                                                                    \
  do {                                                                                             \
    if (int code = fake::rocprofiler::state().hip.device.fault(function)) {                        \
      return code;                                                                                 \
    }                                                                                              \
  } while (0)

/// Tracing callbacks of a kind and operation in started contexts.
std::vector<Tracing> listeners(uint32_t kind, int32_t operation);
/// Let the tool give a launch its number.
void askForNumber(Work &work);
/// Put a record into the buffer, and hand that over when it is full.
void keep(const Record &record);
/// Call the tool with what is in the buffer.
void handOver();
/// Write records of finished work.
void deliver(const std::vector<Work> &works);

} // namespace fake::rocprofiler
