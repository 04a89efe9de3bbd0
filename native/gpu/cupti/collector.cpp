#include "gpu/cupti/collector.h"

#include <new>

#include "core/guard.h"
#include "core/interner.h"
#include "gpu/cupti/deferred_start.h"
#include "gpu/deadline.h"

namespace deepcontext::gpu::cupti {

namespace {

constexpr char kOurName[] = "deepcontext";
constexpr size_t kNameBytes = 256;

} // namespace

CuptiCollector &CuptiCollector::instance() {
  static CuptiCollector *const collector = new CuptiCollector();
  return *collector;
}

ProbeResult CuptiCollector::probe(const Libraries &libraries) {
  Library library;
  std::string reason = library.load(libraries.profiler, libraries.driver);
  return {library.version, reason};
}

std::string CuptiCollector::start(const Libraries &libraries, const CollectorOptions &options) {
  std::string reason = refusalOf("CUPTI");
  if (!reason.empty()) {
    return reason;
  }
  std::vector<std::string> candidates = libraries.others;
  candidates.insert(candidates.begin(), libraries.profiler);
  for (const std::string &candidate : candidates) {
    Result result = abi::cupti::kSuccess;
    std::string why = startWith({candidate, libraries.driver}, options, &result);
    if (why.empty()) {
      return "";
    }
    reason = reason.empty() ? why : reason;
    // Where CUPTI is newer than the driver, that of an older release may do.
    if (result != abi::cupti::kNotInitialized && result != abi::cupti::kUnknown) {
      break;
    }
  }
  return reason;
}

/// `result`: of the subscription, if that failed.
std::string CuptiCollector::startWith(const Libraries &libraries, const CollectorOptions &options,
                                      Result *result) {
  std::string reason = library_.load(libraries.profiler, libraries.driver);
  if (!reason.empty()) {
    return reason;
  }
  was_used_.store(true);
  CallTable calls;
  calls.build(library_);
  if (calls.ids().empty()) {
    return "CUPTI " + releaseOf(library_.version) +
           " names none of the driver's functions, so "
           "launches cannot be followed; check that nvidia-smi lists a GPU in this environment";
  }
  if (driver_calls_.ids().empty()) { // once, because a late callback may still be reading
    driver_calls_ = calls;
  }
  options_ = options;
  Interner &interner = Interner::instance();
  memset_name_ = interner.intern("Memset");
  copy_names_.clear();
  for (std::string name :
       {"Memcpy", "Memcpy HtoD", "Memcpy DtoH", "Memcpy HtoA", "Memcpy AtoH", "Memcpy AtoA",
        "Memcpy AtoD", "Memcpy DtoA", "Memcpy DtoD", "Memcpy HtoH", "Memcpy PtoP"}) {
    for (const char *memory : {"", " (pageable)", " (managed)"}) {
      copy_names_.push_back(interner.intern(name + memory));
    }
  }
  peer_copy_name_ = interner.intern("Memcpy PtoP");
  captures_.store(0);
  for (std::atomic<uint64_t> *counter :
       {&taken_launches_, &blinded_runs_, &regains_, &clocks_set_, &device_graphs_}) {
    counter->store(0);
  }
  launches_before_ = answered_before_ = buffers_before_ = overdue_before_ = 0;
  beginAttribution();
  moved_nodes_.clear();
  buffers_.configure(options.buffer_bytes, options.pool_bytes,
                     [this](const FilledBuffer &buffer) { read(buffer); });
  is_running_.store(true);
  // Where another tool has CUPTI for itself, this happens when it has stopped.
  reason = is_released_.load() ? "" : attach(library_.serial(), result);
  is_running_.store(reason.empty());
  if (reason.empty() && options.with_stalls) {
    startStalls();
  }
  return reason;
}

/// Subscribe, and ask for records and callbacks. `result`: of the subscription, if that failed.
std::string CuptiCollector::attach(const Serial &cupti, Result *result) {
  std::string reason = subscribe(cupti, result);
  if (!reason.empty()) {
    return reason;
  }
  early_flush_.begin([] { instance().fetchEarly(); });
  Result enabling = abi::cupti::kSuccess;
  reason = enable(cupti, &enabling);
  // Another tool, without callbacks, may use the other family of functions; and the second one may
  // be refused although library and driver have it.
  bool is_other_tried =
      is_second_family_ ? enabling != abi::cupti::kSuccess
                        : enabling == abi::cupti::kNotCompatible && library_.hasManySubscribers();
  if (is_other_tried) {
    cupti->Unsubscribe(subscriber_);
    std::string again =
        is_second_family_ ? subscribeAlone(cupti, &enabling) : subscribeBeside(cupti, &enabling);
    again = again.empty() ? enable(cupti, &enabling) : again;
    reason = again.empty() ? "" : reason;
  }
  if (!reason.empty()) {
    device_pool_.restore(cupti);
    if (subscriber_) {
      cupti->Unsubscribe(subscriber_);
    }
    subscriber_ = nullptr;
    return reason;
  }
  enableCallbacks(cupti);
  return "";
}

std::string CuptiCollector::subscribe(const Serial &cupti, Result *result) {
  // A tool that comes later then finds room. Kineto, of PyTorch, uses the first family, which CUPTI
  // does not mix with the second.
  if (library_.hasManySubscribers() && library_.driverHasManySubscribers() &&
      mappedLibraries("libtorch_cpu.so").empty() && subscribeBeside(cupti, result).empty()) {
    return "";
  }
  std::string reason = subscribeAlone(cupti, result);
  bool is_held =
      *result == abi::cupti::kMultipleSubscribers || *result == abi::cupti::kNotCompatible;
  return is_held ? subscribeBeside(cupti, result) : reason;
}

std::string CuptiCollector::subscribeAlone(const Serial &cupti, Result *result) {
  is_second_family_ = false;
  subscriber_ = nullptr;
  *result = cupti->Subscribe(&subscriber_, Guarded<onCallback>::call, this);
  return *result == abi::cupti::kSuccess ? "" : explain("cuptiSubscribe", *result);
}

/// Another tool has subscribed: share CUPTI where the library can, else name that tool.
std::string CuptiCollector::subscribeBeside(const Serial &cupti, Result *result) {
  if (!cupti->Subscribe_v2 || library_.version < abi::cupti::kVersionSubscribeV2) {
    return explain("cuptiSubscribe", *result);
  }
  char holder[kNameBytes] = "";
  abi::cupti::SubscriberParameters parameters{};
  parameters.bytes = library_.version >= abi::cupti::kVersionSubscriberParametersV2
                         ? sizeof parameters
                         : abi::cupti::kSubscriberParametersV1;
  parameters.name = kOurName;
  parameters.old_name = holder;
  parameters.old_name_bytes = sizeof holder;
  parameters.allow_multiple = library_.hasManySubscribers();
  subscriber_ = nullptr;
  *result = cupti->Subscribe_v2(&subscriber_, Guarded<onCallback>::call, this, &parameters);
  if (*result == abi::cupti::kSuccess) {
    is_second_family_ = library_.hasManySubscribers();
    return "";
  }
  holder[sizeof holder - 1] = '\0';
  std::string who = holder[0] ? std::string(" (CUPTI names it: '") + holder + "')" : "";
  return explain("cuptiSubscribe", *result) + who;
}

Result CuptiCollector::enableKind(const Serial &cupti, uint32_t kind) {
  Result result = is_second_family_ ? cupti->ActivityEnable_v2(subscriber_, kind, nullptr)
                                    : cupti->ActivityEnable(kind);
  if (result == abi::cupti::kSuccess) {
    kinds_.push_back(kind);
  }
  return result;
}

std::string CuptiCollector::enable(const Serial &cupti, Result *result) {
  kinds_.clear();
  *result = abi::cupti::kSuccess;
  if (is_yielded_.load()) { // until the other tool has stopped
    return "";
  }
  std::string clock = checkClock(cupti);
  if (!clock.empty()) {
    return clock;
  }
  *result =
      is_second_family_
          ? cupti->ActivityRegisterCallbacks_v2(subscriber_, Guarded<onBufferRequestedV2>::call,
                                                Guarded<onBufferCompletedV2>::call)
          : cupti->ActivityRegisterCallbacks(Guarded<onBufferRequested>::call,
                                             Guarded<onBufferCompleted>::call);
  if (*result != abi::cupti::kSuccess) {
    return explain("cuptiActivityRegisterCallbacks", *result);
  }
  if (!is_second_family_) { // which has no attributes of its own
    device_pool_.bound(library_, cupti);
  }
  *result = enableKind(cupti, abi::cupti::kKindConcurrentKernel);
  if (*result != abi::cupti::kSuccess) {
    return explain("cuptiActivityEnable(KERNEL)", *result);
  }
  const std::pair<uint32_t, const char *> optional[] = {
      {abi::cupti::kKindMemcpy, "copies"},
      {abi::cupti::kKindMemcpyPeer, "copies between devices"},
      {abi::cupti::kKindMemset, "memsets"},
      {abi::cupti::kKindOverhead, "CUPTI's own overhead"},
  };
  uint32_t refused = 0;
  for (const auto &[kind, what] : optional) {
    Result refusal = enableKind(cupti, kind);
    refused |= uint32_t{refusal != abi::cupti::kSuccess} << kind;
    if (refusal != abi::cupti::kSuccess) {
      note(std::string(what) + " are not recorded: CUPTI refuses them with " + nameOf(refusal));
    }
  }
  refused_kinds_.store(refused);
  return "";
}

void CuptiCollector::enableCallbacks(const Serial &cupti) {
  uint32_t refused = 0;
  for (uint32_t id : driver_calls_.ids()) {
    refused += cupti->EnableCallback(1, subscriber_, abi::cupti::kDomainDriver, id) !=
               abi::cupti::kSuccess;
  }
  if (refused == driver_calls_.ids().size()) {
    note("launches cannot be followed: CUPTI refuses its driver callbacks");
  }
  bool has_graphs = enableGraphCallbacks(cupti);
  sees_graph_nodes_.store(has_graphs);
  cupti->EnableCallback(1, subscriber_, abi::cupti::kDomainResource,
                        abi::cupti::kResourceContextDestroy);
  if (!has_graphs) {
    note("kernels of CUDA graphs appear under the replay only: CUPTI refuses "
         "callbacks for graph nodes");
  }
}

/// A failure leaves the rest of the collector running.
void CuptiCollector::startStalls() {
  if (is_released_.load()) {
    note("stalls are not sampled: another tool had CUPTI when the session began");
    return;
  }
  std::string problem =
      stalls_.start({options_.stall_window_s, options_.stall_pause_s}, [this](const Serial &cupti) {
        enableKind(cupti, abi::cupti::kKindConcurrentKernel);
      });
  if (!problem.empty()) {
    note(problem);
    return;
  }
  Serial cupti = library_.serial();
  // For source lines; kernels of modules that were loaded earlier have none.
  cupti->EnableCallback(1, subscriber_, abi::cupti::kDomainResource,
                        abi::cupti::kResourceModuleLoaded);
  cupti->EnableCallback(1, subscriber_, abi::cupti::kDomainResource,
                        abi::cupti::kResourceContextCreated);
  for (uint32_t id : driver_calls_.otherIds()) {
    cupti->EnableCallback(1, subscriber_, abi::cupti::kDomainDriver, id);
  }
}

/// Report what PC sampling lacks.
void CuptiCollector::noteStalls(bool is_final) {
  if (!options_.with_stalls) {
    return;
  }
  stalls_.watch();
  std::string problem = stalls_.refusal();
  if (problem.empty() && is_final && stalls_.samples() == 0) {
    if (stalls_.windows() > 0) {
      problem = "no stall was sampled in " + std::to_string(stalls_.windows()) +
                " windows of 30 ms: the device may have been idle in them";
    } else if (stalls_.missedWindows() > 0) {
      problem = "no stall was sampled: whenever a window was due, another thread was inside a call "
                "of CUDA";
    }
  }
  if (!problem.empty()) {
    note(problem);
  }
}

/// Run a call that may hang, as `Collector::callWithDeadline`.
std::string CuptiCollector::callWithDeadline(const char *what,
                                             void (*work)(CuptiCollector &, Result *)) {
  return Collector::callWithDeadline("CUPTI", what, [what, work] {
    Result result = abi::cupti::kSuccess;
    work(instance(), &result);
    return result == abi::cupti::kSuccess ? "" : explain(what, result);
  });
}

void CuptiCollector::beforeFork() {
  buffers_.beforeFork();
}

void CuptiCollector::afterFork(bool is_child) {
  if (is_child) {
    is_running_.store(false);
    loseInChild();
    DeferredStart::instance().forget();
    new (&control_mutex_) std::mutex(); // a thread that held it does not exist here
  }
  buffers_.afterFork();
}

void CuptiCollector::addFigures(std::map<std::string, uint64_t> &figures) {
  figures["version"] = library_.version;
  figures["graph_nodes_known"] = attribution_.graphs.size();
  figures["is_shared"] = is_second_family_;
  figures["taken_launches"] = taken_launches_.load();
  figures["blinded_runs"] = blinded_runs_.load();
  figures["regains"] = regains_.load();
  figures["clocks_set"] = clocks_set_.load();
  figures["device_graphs"] = device_graphs_.load();
  figures["foreign_buffers"] = buffers_.foreign();
  bool has_stalls = options_.with_stalls;
  figures["stall_samples"] = has_stalls ? stalls_.samples() : 0;
  figures["stall_samples_dropped"] = has_stalls ? stalls_.dropped() : 0;
  figures["stall_windows"] = has_stalls ? stalls_.windows() : 0;
}

} // namespace deepcontext::gpu::cupti
