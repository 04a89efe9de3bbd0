#include "gpu/rocprofiler/collector.h"

#include <chrono>
#include <cstring>
#include <thread>

#include "core/guard.h"
#include "core/interner.h"
#include "gpu/deadline.h"

namespace deepcontext::gpu::rocprofiler {

namespace {

constexpr size_t kBufferBytes = 4u << 20;
constexpr size_t kWatermark = kBufferBytes - kBufferBytes / 8;
constexpr int32_t kMostOperations = 2048;

} // namespace

RocprofilerCollector &RocprofilerCollector::instance() {
  static RocprofilerCollector *const collector = new RocprofilerCollector();
  return *collector;
}

ProbeResult RocprofilerCollector::probe(const Libraries &libraries) {
  Library library;
  std::string reason = library.load(libraries.profiler);
  return {library.version, reason};
}

std::string RocprofilerCollector::start(const Libraries &libraries,
                                        const CollectorOptions &options) {
  std::string refusal = refusalOf("rocprofiler-sdk");
  if (!refusal.empty()) {
    return refusal;
  }
  options_ = options;
  if (is_registered_) {
    flushWithDeadline(); // drop records from between the sessions
  } else {
    std::string reason = library_.load(libraries.profiler);
    if (reason.empty()) {
      was_used_.store(true);
      reason = configure();
    }
    if (!reason.empty()) {
      return reason;
    }
  }
  hip_.find(libraries.driver);
  are_gpus_numbered_.store(false);
  beginAttribution();
  hip_graphs_.clear();
  foreign_launches_.store(0);
  if (options.with_stalls) {
    note("stalls are not sampled: PC sampling is a beta of rocprofiler-sdk that can "
         "freeze the GPU, and its interface differs between releases");
  }
  if (options.with_calls && !is_every_call_declared_) {
    note("only calls that launch or wait are timed: rocprofiler-sdk asks once a "
         "program which calls to follow, and the first session did not want all");
  }
  if (!are_allocations_declared_) {
    note("memory taken from the driver is not recorded: rocprofiler-sdk refuses it");
  }
  is_running_.store(true);
  return "";
}

std::string RocprofilerCollector::configure() {
  problem_.clear();
  library_.nameToRuntime();
  Status status = library_.force_configure(Guarded<onConfigure>::call);
  if (status != abi::rocprofiler::kSuccess) {
    return explain(library_, "registering with rocprofiler-sdk", status);
  }
  if (!problem_.empty()) {
    return problem_;
  }
  if (!is_registered_) {
    return "rocprofiler-sdk accepted the registration but did not ask for services; another tool "
           "may have registered before";
  }
  return "";
}

abi::rocprofiler::ConfigureResult *
RocprofilerCollector::onConfigure(uint32_t version, const char *, uint32_t,
                                  abi::rocprofiler::ClientId *client) {
  RocprofilerCollector &self = instance();
  if (version < abi::rocprofiler::kFirstVersion) {
    self.problem_ = "rocprofiler-sdk is older than 1.0; upgrade to ROCm 7";
    return nullptr;
  }
  client->name = "deepcontext";
  static abi::rocprofiler::ConfigureResult result{sizeof result, Guarded<onInitialize>::call,
                                                  Guarded<onFinalize>::call, nullptr};
  return &result;
}

int RocprofilerCollector::onInitialize(abi::rocprofiler::Finalize, void *) {
  RocprofilerCollector &self = instance();
  self.is_registered_ = self.declareServices();
  return self.is_registered_ ? 0 : -1;
}

void RocprofilerCollector::onFinalize(void *) {
  instance().is_running_.store(false);
}

bool RocprofilerCollector::check(Status status, const char *what) {
  if (status != abi::rocprofiler::kSuccess) {
    problem_ = explain(library_, what, status);
  }
  return status == abi::rocprofiler::kSuccess;
}

/// Everything is declared here: later the library accepts nothing. No HIP or HSA call is allowed.
bool RocprofilerCollector::declareServices() {
  Interner &interner = Interner::instance();
  unknown_kernel_ = interner.intern("<kernel without a name>");
  const char *copies[] = {"Memcpy", "Memcpy HtoH", "Memcpy HtoD", "Memcpy DtoH", "Memcpy DtoD"};
  for (int i = 0; i < 5; ++i) {
    copy_names_[i] = interner.intern(copies[i]);
  }
  const int32_t symbols[] = {abi::rocprofiler::kCodeObjectKernelSymbol};
  const int32_t ranges[] = {abi::rocprofiler::kMarkerRangePush, abi::rocprofiler::kMarkerRangePop};
  const uint32_t requests[] = {abi::rocprofiler::kRequestKernelDispatch,
                               abi::rocprofiler::kRequestMemoryCopy};
  listGpus();
  int is_valid = 0;
  bool is_declared =
      check(library_.create_context(&code_objects_), "rocprofiler_create_context") &&
      check(library_.configure_callback_tracing_service(
                code_objects_, abi::rocprofiler::kCallbackCodeObject, symbols, 1,
                Guarded<onCodeObject>::call, this),
            "asking for kernel names") &&
      check(library_.create_context(&work_), "rocprofiler_create_context") &&
      check(library_.create_buffer(work_, kBufferBytes, kWatermark,
                                   abi::rocprofiler::kPolicyLossless, Guarded<onBuffer>::call, this,
                                   &buffer_),
            "rocprofiler_create_buffer") &&
      check(library_.configure_buffer_tracing_service(
                work_, abi::rocprofiler::kBufferKernelDispatch, nullptr, 0, buffer_),
            "asking for kernels") &&
      check(library_.configure_buffer_tracing_service(work_, abi::rocprofiler::kBufferMemoryCopy,
                                                      nullptr, 0, buffer_),
            "asking for copies") &&
      check(library_.configure_external_correlation_id_request_service(
                work_, requests, 2, Guarded<onExternalId>::call, this),
            "asking for launches") &&
      check(library_.configure_callback_tracing_service(work_,
                                                        abi::rocprofiler::kCallbackMarkerCore,
                                                        ranges, 2, Guarded<onMarker>::call, this),
            "asking for roctx ranges") &&
      declareHipCalls() &&
      check(library_.create_callback_thread(&thread_), "rocprofiler_create_callback_thread") &&
      check(library_.assign_callback_thread(buffer_, thread_),
            "rocprofiler_assign_callback_thread") &&
      check(library_.context_is_valid(work_, &is_valid), "rocprofiler_context_is_valid") &&
      check(library_.start_context(code_objects_), "rocprofiler_start_context") &&
      check(library_.start_context(work_), "rocprofiler_start_context");
  if (is_declared) {
    declareAllocations();
  }
  if (is_declared && !is_valid) {
    problem_ = "rocprofiler-sdk calls the requested services invalid";
  }
  return is_declared && is_valid;
}

/// Memory that the program takes from the driver, which framework allocators do rarely. Optional:
/// the rest works without it.
void RocprofilerCollector::declareAllocations() {
  Id context{};
  const int32_t operations[] = {abi::rocprofiler::kAllocate, abi::rocprofiler::kAllocateVirtual};
  are_allocations_declared_ =
      library_.create_context(&context) == abi::rocprofiler::kSuccess &&
      library_.configure_callback_tracing_service(context, abi::rocprofiler::kCallbackAllocation,
                                                  operations, 2, Guarded<onAllocation>::call,
                                                  this) == abi::rocprofiler::kSuccess &&
      library_.start_context(context) == abi::rocprofiler::kSuccess;
}

/// Callbacks for the HIP functions that launch, wait, capture or replay, found by name; for all
/// functions that do work if their times were requested.
bool RocprofilerCollector::declareHipCalls() {
  std::vector<int32_t> operations;
  functions_.assign(kMostOperations, HipFunction::kOther);
  function_names_.assign(kMostOperations, 0);
  for (int32_t operation = 0; operation < kMostOperations; ++operation) {
    const char *name = nullptr;
    uint64_t length = 0;
    if (library_.query_callback_tracing_kind_operation_name(abi::rocprofiler::kCallbackHipRuntime,
                                                            operation, &name, &length) !=
            abi::rocprofiler::kSuccess ||
        !name) {
      continue;
    }
    HipFunction function = classifyHip(name);
    bool is_needed = function != HipFunction::kOther && function != HipFunction::kAsyncCopy;
    if (is_needed || (options_.with_calls && isWorthATime(name))) {
      functions_[static_cast<size_t>(operation)] = function;
      function_names_[static_cast<size_t>(operation)] = Interner::instance().intern(name);
      operations.push_back(operation);
    }
  }
  is_every_call_declared_ = options_.with_calls;
  return check(library_.configure_callback_tracing_service(
                   work_, abi::rocprofiler::kCallbackHipRuntime, operations.data(),
                   operations.size(), Guarded<onHipCall>::call, this),
               "asking for HIP calls");
}

void RocprofilerCollector::listGpus() {
  gpus_.clear();
  library_.query_available_agents(
      abi::rocprofiler::kAgentVersion,
      [](uint32_t, const void **agents, size_t count, void *user) -> Status {
        auto &gpus = *static_cast<std::vector<HipGpu> *>(user);
        for (size_t i = 0; i < count; ++i) {
          auto *agent = static_cast<const abi::rocprofiler::Agent *>(agents[i]);
          if (agent->type == abi::rocprofiler::kAgentGpu) {
            gpus.push_back({agent->id.handle, agent->size >= sizeof *agent ? agent->uuid[0] : 0});
          }
        }
        return abi::rocprofiler::kSuccess;
      },
      sizeof(abi::rocprofiler::Agent), &gpus_);
}

std::string RocprofilerCollector::flushWithDeadline() {
  return callWithDeadline("rocprofiler-sdk", "rocprofiler_flush_buffer", [] {
    RocprofilerCollector &self = instance();
    auto end = std::chrono::steady_clock::now() +
               std::chrono::duration<double>(self.options_.deadline_s / 2);
    Status status = self.library_.flush_buffer(self.buffer_);
    // Busy while the callback thread reads the buffer.
    while (status == abi::rocprofiler::kErrorBufferBusy && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      status = self.library_.flush_buffer(self.buffer_);
    }
    return status == abi::rocprofiler::kSuccess
               ? ""
               : explain(self.library_, "rocprofiler_flush_buffer", status);
  });
}

void RocprofilerCollector::addFigures(std::map<std::string, uint64_t> &figures) {
  figures["version"] = library_.version;
  figures["graph_nodes_known"] = attribution_.graphs.size();
  figures["foreign_launches"] = foreign_launches_.load();
  figures["graphs_out_of_order"] = hip_graphs_.outOfOrder();
}

} // namespace deepcontext::gpu::rocprofiler
