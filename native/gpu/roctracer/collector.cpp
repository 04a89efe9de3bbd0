#include "gpu/roctracer/collector.h"

#include <string_view>
#include <utility>

#include "core/guard.h"
#include "core/interner.h"
#include "core/text.h"
#include "gpu/deadline.h"
#include "gpu/ranges.h"

namespace deepcontext::gpu::roctracer {

namespace {

/// Functions that launch device work or wait for it; those that the installed ROCm lacks are
/// skipped.
constexpr const char *kFunctions[] = {"hipLaunchKernel",
                                      "hipExtLaunchKernel",
                                      "hipModuleLaunchKernel",
                                      "hipExtModuleLaunchKernel",
                                      "hipHccModuleLaunchKernel",
                                      "hipLaunchCooperativeKernel",
                                      "hipLaunchCooperativeKernelMultiDevice",
                                      "hipModuleLaunchCooperativeKernel",
                                      "hipLaunchKernelExC",
                                      "hipDrvLaunchKernelEx",
                                      "hipGraphLaunch",
                                      "hipStreamBeginCapture",
                                      "hipStreamEndCapture",
                                      "hipMemcpy",
                                      "hipMemcpyWithStream",
                                      "hipMemcpyAsync",
                                      "hipMemcpyHtoD",
                                      "hipMemcpyHtoDAsync",
                                      "hipMemcpyDtoH",
                                      "hipMemcpyDtoHAsync",
                                      "hipMemcpyDtoD",
                                      "hipMemcpyDtoDAsync",
                                      "hipMemcpy2D",
                                      "hipMemcpy2DAsync",
                                      "hipMemcpy3D",
                                      "hipMemcpy3DAsync",
                                      "hipMemcpyPeer",
                                      "hipMemcpyPeerAsync",
                                      "hipMemset",
                                      "hipMemsetAsync",
                                      "hipMemsetD8",
                                      "hipMemsetD8Async",
                                      "hipMemsetD16",
                                      "hipMemsetD16Async",
                                      "hipMemsetD32",
                                      "hipMemsetD32Async",
                                      "hipMemset2D",
                                      "hipMemset2DAsync",
                                      "hipDeviceSynchronize",
                                      "hipStreamSynchronize",
                                      "hipEventSynchronize"};
constexpr size_t kPoolBytes = 2u << 20;

/// Whether RCCL has made the kernel; RCCL names its kernels as NCCL does.
bool isOfCollective(const char *kernel) {
  std::string_view name = kernel ? kernel : "";
  return contains(name, "ncclDevKernel") || contains(name, "ncclKernel") ||
         contains(name, "mscclKernel");
}

} // namespace

RoctracerCollector &RoctracerCollector::instance() {
  static RoctracerCollector *const collector = new RoctracerCollector();
  return *collector;
}

std::string RoctracerCollector::load(const std::string &path) {
  std::string why;
  if (!library_.open(path, &why)) {
    return "roctracer cannot be loaded from '" + path + "': " + why +
           "; it comes with ROCm 6 and older, ROCm 7 has rocprofiler-sdk instead";
  }
#define BIND(name)                                                                                 \
  if (!library_.bind(&name, "roctracer_" #name)) {                                                 \
    return "'" + path + "' cannot be used as roctracer: it lacks roctracer_" #name;                \
  }
  BIND(version_major)
  BIND(version_minor)
  BIND(error_string)
  BIND(op_string)
  BIND(op_code)
  BIND(enable_op_callback)
  BIND(disable_op_callback)
  BIND(next_record)
  BIND(open_pool_expl)
  BIND(close_pool_expl)
  BIND(enable_domain_activity_expl)
  BIND(disable_domain_activity)
  BIND(flush_activity_expl)
  BIND(get_timestamp)
#undef BIND
  version_ = version_major() * 100 + version_minor();
  return "";
}

std::string RoctracerCollector::explain(const char *what, Status status) const {
  const char *text = error_string ? error_string() : nullptr;
  return std::string(what) + " failed with '" + (text ? text : "no text") + "' (" +
         std::to_string(status) + ")";
}

ProbeResult RoctracerCollector::probe(const Libraries &libraries) {
  std::string reason = load(libraries.profiler);
  return {version_, reason};
}

std::string RoctracerCollector::start(const Libraries &libraries, const CollectorOptions &options) {
  std::string reason = refusalOf("roctracer");
  if (reason.empty()) {
    reason = load(libraries.profiler);
  }
  if (!reason.empty()) {
    return reason;
  }
  was_used_.store(true);
  hip_.find(libraries.driver);
  options_ = options;
  copy_names_.clear();
  beginAttribution();
  if (options.with_stalls) {
    note("stalls are not sampled: roctracer cannot");
  }
  is_running_.store(true);
  reason = enable();
  if (!reason.empty()) {
    is_running_.store(false);
    disable();
  }
  return reason;
}

std::string RoctracerCollector::enable() {
  enabled_.clear();
  abi::roctracer::Properties properties{};
  properties.buffer_bytes = kPoolBytes;
  properties.buffer_filled = Guarded<onBuffer>::call;
  properties.buffer_user = this;
  Status status = open_pool_expl(&properties, &pool_);
  if (status != abi::roctracer::kSuccess) {
    pool_ = nullptr;
    return explain("roctracer_open_pool", status);
  }
  status = enable_domain_activity_expl(abi::roctracer::kDomainHipOps, pool_);
  if (status != abi::roctracer::kSuccess) {
    return explain("asking for kernels and copies", status);
  }
  if (calls_by_id_.empty()) { // once, because a late callback may still be reading
    listCalls();
  }
  enabled_ = known_;
  size_t refused = 0;
  for (uint32_t id : enabled_) {
    refused += enable_op_callback(abi::roctracer::kDomainHipApi, id, Guarded<onCall>::call, this) !=
               abi::roctracer::kSuccess;
  }
  if (enabled_.empty() || refused == enabled_.size()) {
    return "roctracer refuses callbacks for HIP functions, so launches cannot be followed";
  }
  for (uint32_t id : {abi::roctracer::kRoctxRangePush, abi::roctracer::kRoctxRangePop}) {
    enable_op_callback(abi::roctracer::kDomainRoctx, id, Guarded<onCall>::call, this); // optional
  }
  return "";
}

void RoctracerCollector::listCalls() {
  for (const char *function : kFunctions) {
    uint32_t id = 0, kind = 0;
    if (op_code(abi::roctracer::kDomainHipApi, function, &id, &kind) != abi::roctracer::kSuccess ||
        id > UINT16_MAX) {
      continue;
    }
    if (id >= calls_by_id_.size()) {
      calls_by_id_.resize(id + 1);
    }
    calls_by_id_[id] = {classifyHip(function), Interner::instance().intern(function)};
    known_.push_back(id);
  }
}

void RoctracerCollector::disable() {
  for (uint32_t id : enabled_) {
    disable_op_callback(abi::roctracer::kDomainHipApi, id);
  }
  for (uint32_t id : {abi::roctracer::kRoctxRangePush, abi::roctracer::kRoctxRangePop}) {
    disable_op_callback(abi::roctracer::kDomainRoctx, id);
  }
  enabled_.clear();
  if (pool_) {
    disable_domain_activity(abi::roctracer::kDomainHipOps);
    close_pool_expl(pool_);
    pool_ = nullptr;
  }
}

std::string RoctracerCollector::flushWithDeadline() {
  return callWithDeadline("roctracer", "roctracer_flush_activity", [] {
    RoctracerCollector &self = instance();
    Status status = self.flush_activity_expl(self.pool_);
    return status == abi::roctracer::kSuccess ? ""
                                              : self.explain("roctracer_flush_activity", status);
  });
}

void RoctracerCollector::addFigures(std::map<std::string, uint64_t> &figures) {
  figures["version"] = version_;
  figures["graph_nodes_known"] = 0;
}

// -- the program's threads

void RoctracerCollector::onCall(uint32_t domain, uint32_t id, const void *data, void *user) {
  auto &self = *static_cast<RoctracerCollector *>(user);
  if (!self.isRunning() || isInternalThread()) {
    return;
  }
  if (domain == abi::roctracer::kDomainHipApi) {
    self.onHipCall(id, *static_cast<const abi::roctracer::HipCall *>(data));
  } else if (domain == abi::roctracer::kDomainRoctx && id == abi::roctracer::kRoctxRangePush) {
    pushRange(static_cast<const abi::roctracer::RoctxCall *>(data)->message);
  } else if (domain == abi::roctracer::kDomainRoctx && id == abi::roctracer::kRoctxRangePop) {
    popRange();
  }
}

void RoctracerCollector::onHipCall(uint32_t id, const abi::roctracer::HipCall &call) {
  if (id >= calls_by_id_.size()) {
    return;
  }
  // Of the thread's innermost call; a call with another inside is not timed.
  static thread_local uint64_t begun = 0;
  static thread_local bool is_capturing = false;
  const Call &known = calls_by_id_[id];
  bool is_waiting =
      known.function == HipFunction::kWait || known.function == HipFunction::kBlockingCopy;
  auto correlation = static_cast<uint32_t>(call.correlation);
  if (call.phase == abi::roctracer::kPhaseEnter) {
    bool is_capture =
        known.function == HipFunction::kBeginCapture || known.function == HipFunction::kEndCapture;
    is_capturing = is_capture ? known.function == HipFunction::kBeginCapture : is_capturing;
    if (known.function == HipFunction::kWait || is_capture || is_capturing) {
      calls_.noteCall(correlation); // launches nothing
    } else {
      calls_.noteLaunch(correlation);
    }
    begun = is_waiting || isTiming() ? ticks() : 0;
  } else if (begun != 0) {
    noteEnd(known, is_waiting, begun);
    begun = 0;
  }
}

void RoctracerCollector::noteEnd(const Call &known, bool is_waiting, uint64_t begun) {
  if (is_waiting) {
    calls_.noteWait(known.name, begun);
  }
  if (isTiming()) {
    calls_.noteTime(known.name, begun);
  }
}

// -- roctracer's thread

void RoctracerCollector::onBuffer(const char *begin, const char *end, void *user) {
  auto &self = *static_cast<RoctracerCollector *>(user);
  Counters &counters = self.attribution_.counters;
  if (!self.isRunning() || !RecorderRegistry::isRecording()) {
    Counters::bumpShared(counters.after_stop);
    return;
  }
  std::unique_lock<std::mutex> lock = self.beginBuffer([&self] {
    uint64_t now = 0;
    return self.get_timestamp(&now) == abi::roctracer::kSuccess ? now : 0;
  });
  self.names_.age();
  auto *record = reinterpret_cast<const abi::roctracer::Record *>(begin);
  auto *last = reinterpret_cast<const abi::roctracer::Record *>(end);
  while (record < last) {
    self.decode(*record);
    if (self.next_record(record, &record) != abi::roctracer::kSuccess) {
      Counters::bump(counters.broken_buffers);
      break;
    }
  }
  self.attribution_.finishBuffer();
}

/// One name for every vendor: roctracer's "CopyHostToDevice" becomes "Memcpy HtoD".
uint32_t RoctracerCollector::copyName(uint32_t kind) {
  constexpr uint32_t kMostKinds = 1u << 16;
  uint32_t slot = kind < kMostKinds ? kind : 0;
  if (slot >= copy_names_.size()) {
    copy_names_.resize(slot + 1, 0);
  }
  if (copy_names_[slot] == 0) {
    const char *given = op_string(abi::roctracer::kDomainHipOps, abi::roctracer::kOpCopy, kind);
    std::string_view text = given ? given : "";
    std::string name = "Memcpy";
    constexpr std::pair<std::string_view, std::string_view> kNames[] = {
        {"HostToDevice", "Memcpy HtoD"},
        {"DeviceToHost", "Memcpy DtoH"},
        {"DeviceToDevice", "Memcpy DtoD"},
        {"HostToHost", "Memcpy HtoH"},
        {"Fill", "Memset"},
    };
    for (const auto &[part, ours] : kNames) {
      if (contains(text, part)) {
        name = ours;
        break;
      }
    }
    copy_names_[slot] = Interner::instance().intern(name);
  }
  return copy_names_[slot];
}

void RoctracerCollector::decode(const abi::roctracer::Record &record) {
  Counters &counters = attribution_.counters;
  bool is_kernel = record.op == abi::roctracer::kOpDispatch;
  if (record.domain != abi::roctracer::kDomainHipOps ||
      (!is_kernel && record.op != abi::roctracer::kOpCopy)) {
    // Barriers run nothing.
    bool is_barrier =
        record.domain == abi::roctracer::kDomainHipOps && record.op == abi::roctracer::kOpBarrier;
    Counters::bump(counters.unknown_records, is_barrier ? 0 : 1);
    return;
  }
  Activity &activity = attribution_.next();
  activity.kind = is_kernel ? ActivityKind::kKernel : ActivityKind::kCopy;
  activity.correlation = static_cast<uint32_t>(record.correlation);
  activity.name = is_kernel ? names_.lookup(record.kernel_name) : copyName(record.kind);
  activity.device = static_cast<uint32_t>(record.device);
  activity.stream = static_cast<uint32_t>(record.queue);
  activity.start_ns = record.start;
  activity.end_ns = record.end;
  activity.bytes = is_kernel ? 0 : record.bytes;
  activity.graph_node = 0;
  activity.captured_node = 0;
  activity.shape = LaunchShape();
  // ROCm/roctracer issue 100: kernels of RCCL carry no correlation id.
  activity.is_communication =
      is_kernel && activity.correlation == 0 && isOfCollective(record.kernel_name);
  Counters::bump(is_kernel ? counters.kernels : counters.copies);
}

} // namespace deepcontext::gpu::roctracer
