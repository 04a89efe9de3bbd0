// The callbacks of the fake CUPTI: on the launching thread, to the subscriber.
#include "cupti_device.h"
#include "cupti_stalls.h"

namespace fake::cupti {

namespace {

struct CallName {
  uint32_t id;
  const char *name;
};
constexpr CallName kCalls[] = {{17, "cuCtxSynchronize"},       {126, "cuStreamSynchronize"},
                               {220, "cuMemsetD32Async"},      {276, "cuMemcpyHtoD_v2"},
                               {277, "cuMemcpyHtoDAsync_v2"},  {278, "cuMemcpyDtoH_v2"},
                               {279, "cuMemcpyDtoHAsync_v2"},  {281, "cuMemcpyDtoDAsync_v2"},
                               {307, "cuLaunchKernel"},        {514, "cuGraphLaunch"},
                               {497, "cuStreamEndCapture"},    {539, "cuStreamBeginCapture_v2"},
                               {652, "cuLaunchKernelEx"},      {319, "cuMemcpyPeerAsync"},
                               {442, "cuLaunchKernel_ptsz"},   {653, "cuLaunchKernelEx_ptsz"},
                               {477, "cuLaunchCooperativeKernel"},
                               {478, "cuLaunchCooperativeKernel_ptsz"},
                               {527, "cuLaunchHostFunc"},      {528, "cuLaunchHostFunc_ptsz"},
                               {689, "cuGraphAddKernelNode_v2"},
                               {692, "cuGraphExecKernelNodeSetParams_v2"},
                               {696, "cuGraphExecUpdate_v2"},  {723, "cuGraphAddNode_v2"},
                               {720, "cuStreamBeginCaptureToGraph"},
                               {716, "cuMemPrefetchAsync_v2"},
                               {643, "cuGraphInstantiateWithFlags"},
                               {656, "cuGraphInstantiateWithParams"},
                               {kKernelGetFunction, "cuKernelGetFunction"},
                               {kCtxCreate, "cuCtxCreate_v4"},   {kCtxDestroy, "cuCtxDestroy_v2"}};

} // namespace

State &state() {
  static State *const state = new State();
  return *state;
}


const char *nameOfCall(uint32_t id) {
  for (const CallName &call : kCalls) {
    if (call.id == id) {
      return call.name;
    }
  }
  return nullptr;
}

uint32_t idOfCall(const std::string &name) {
  for (const CallName &call : kCalls) {
    if (name == call.name) {
      return call.id;
    }
  }
  return 0;
}

std::shared_ptr<Subscription> listener(uint32_t domain, uint32_t id) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  return s.callbacks.count({domain, id}) ? s.subscription : nullptr;
}

Call::Call(uint32_t id, const void *parameters, bool is_locked)
    : id(id), correlation(state().next_correlation.fetch_add(1)), parameters(parameters) {
  tell(abi::kSiteEnter);
  if (is_locked) {
    lock();
  }
}

void Call::lock() {
  ++state().calls_inside;
  lock_.emplace(DriverLock::For::kReading);
  touchCuptiLock();
}

Call::~Call() {
  lock_.reset();
  --state().calls_inside;
  tell(abi::kSiteExit);
}

void Call::tell(uint32_t site) {
  auto subscription = listener(abi::kDomainDriver, id);
  if (!subscription) {
    return;
  }
  abi::CallbackData data{};
  data.site = site;
  data.function = "";
  data.parameters = parameters;
  data.return_value = &result;
  data.context = currentContext();
  data.context_id = 1;
  data.correlation_data = &slot;
  data.correlation = correlation;
  ++state().device.callbacks;
  subscription->callback(subscription->user, abi::kDomainDriver, id, &data);
}

namespace {

void tellOfGraph(uint32_t id, abi::GraphData data) {
  auto subscription = listener(abi::kDomainResource, id);
  if (!subscription) {
    return;
  }
  abi::ResourceData resource{};
  resource.context = kContext;
  resource.descriptor = &data;
  ++state().device.callbacks;
  subscription->callback(subscription->user, abi::kDomainResource, id, &resource);
}

void *handle(uint64_t number) { return reinterpret_cast<void *>(static_cast<uintptr_t>(number)); }

} // namespace

void tellGraph(uint32_t id, uint32_t graph, uint32_t executable) {
  abi::GraphData data{};
  data.graph = handle(graph);
  data.graph_exec = handle(executable);
  tellOfGraph(id, data);
}

void tellGraphNode(uint32_t id, uint32_t graph, uint64_t node, uint64_t original, uint32_t type) {
  abi::GraphData data{};
  data.graph = handle(graph);
  data.node = handle(node);
  data.original_node = handle(original);
  data.node_type = type;
  tellOfGraph(id, data);
}

void tellNewNode(uint32_t graph, uint64_t node, uint32_t type) {
  tellGraphNode(abi::kResourceGraphNodeCreateStarting, graph, node, 0, type);
  tellGraphNode(abi::kResourceGraphNodeCreated, graph, node, 0); // without its type
}

void tellOfContext(uint32_t id) {
  auto subscription = listener(abi::kDomainResource, id);
  if (!subscription) {
    return;
  }
  abi::ResourceData resource{};
  resource.context = currentContext();
  ++state().device.callbacks;
  subscription->callback(subscription->user, abi::kDomainResource, id, &resource);
}

} // namespace fake::cupti

namespace fake {

int faultOf(const char *function) { return cupti::state().device.fault(function); }
const char *sharedName(const char *name) { return cupti::state().device.intern(name); }

void tellModuleLoaded(uint32_t module, const char *cubin, size_t bytes) {
  auto subscription = cupti::listener(cupti::abi::kDomainResource, cupti::abi::kResourceModuleLoaded);
  if (!subscription) {
    return;
  }
  cupti::abi::ModuleData data{module, bytes, cubin};
  cupti::abi::ResourceData resource{};
  resource.context = cupti::kContext;
  resource.descriptor = &data;
  ++cupti::state().device.callbacks;
  subscription->callback(subscription->user, cupti::abi::kDomainResource, cupti::abi::kResourceModuleLoaded,
                         &resource);
}

} // namespace fake
