#pragma once
// AMD, ROCm 7 and newer: rocprofiler-sdk. Records carry the number that the launching thread
// assigned.
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "gpu/hip/calls.h"
#include "gpu/hip/collector.h"
#include "gpu/rocprofiler/library.h"

namespace deepcontext::gpu::rocprofiler {

/// One per process, never destroyed. Services can be declared once, before the ROCm runtime starts,
/// and a stopped context cannot be restarted reliably. So the context stays after the first
/// session, and its callbacks return at once.
class RocprofilerCollector final : public HipCollector {
public:
  static RocprofilerCollector &instance();

  ProbeResult probe(const Libraries &libraries) override;
  std::string start(const Libraries &libraries, const CollectorOptions &options) override;

protected:
  std::string flushWithDeadline() override;
  void addFigures(std::map<std::string, uint64_t> &figures) override;

private:
  struct Kernel {
    uint32_t name = 0;
    uint32_t registers = 0;
  };

  RocprofilerCollector() = default;

  // -- registration, once
  std::string configure();
  static abi::rocprofiler::ConfigureResult *onConfigure(uint32_t version, const char *runtime,
                                                        uint32_t priority,
                                                        abi::rocprofiler::ClientId *client);
  static int onInitialize(abi::rocprofiler::Finalize, void *);
  static void onFinalize(void *);
  bool declareServices();
  bool declareHipCalls();
  void declareAllocations();
  bool check(Status status, const char *what);
  void listGpus();

  // -- the program's threads
  void numberGpus();
  static int onExternalId(uint64_t thread, Id context, uint32_t kind, int32_t operation,
                          uint64_t internal, abi::rocprofiler::UserData *external, void *user);
  static void onHipCall(abi::rocprofiler::CallbackRecord record, abi::rocprofiler::UserData *data,
                        void *user);
  static void onMarker(abi::rocprofiler::CallbackRecord record, abi::rocprofiler::UserData *data,
                       void *user);
  static void onCodeObject(abi::rocprofiler::CallbackRecord record,
                           abi::rocprofiler::UserData *data, void *user);
  static void onAllocation(abi::rocprofiler::CallbackRecord record,
                           abi::rocprofiler::UserData *data, void *user);
  void noteForeignLaunch();
  void hipCallBegins(HipFunction function, const abi::rocprofiler::HipCall &call);
  void hipCallEnds(HipFunction function, const abi::rocprofiler::HipCall &call);

  // -- the library's callback thread
  static void onBuffer(Id context, Id buffer, abi::rocprofiler::RecordHeader **headers,
                       size_t count, void *user, uint64_t dropped);
  void decodeKernel(const abi::rocprofiler::KernelDispatch &record);
  void decodeCopy(const abi::rocprofiler::MemoryCopy &record);
  uint32_t deviceOf(Id agent);

  Library library_;
  std::atomic<uint64_t> foreign_launches_{0};
  std::string problem_; // of the registration
  bool is_registered_ = false;
  bool is_every_call_declared_ = false;
  bool are_allocations_declared_ = false;
  Id code_objects_{}, work_{}, buffer_{}, thread_{};
  std::vector<HipFunction> functions_; // by operation
  std::vector<uint32_t> function_names_;
  std::vector<HipGpu> gpus_;
  std::atomic<bool> are_gpus_numbered_{false};
  std::mutex devices_mutex_;
  std::unordered_map<uint64_t, uint32_t> devices_; // from agent to HIP's ordinal
  uint64_t last_agent_ = 0;                        // its ordinal is last_device_
  uint32_t last_device_ = 0;
  uint64_t last_items_ = 0, last_threads_ = 0, last_blocks_ = 0; // the last kernel's shape
  std::mutex kernels_mutex_;
  std::vector<Kernel> kernels_; // by kernel id, which the library assigns in order
  HipGraphs hip_graphs_{attribution_.graphs};
  uint32_t unknown_kernel_ = 0;
  uint32_t copy_names_[5] = {};
};

} // namespace deepcontext::gpu::rocprofiler
