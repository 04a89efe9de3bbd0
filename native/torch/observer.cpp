#include "torch/observer.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>

#include "core/allocation_ledger.h"
#include "core/collective_launches.h"
#include "core/guard.h"
#include "core/metric_registry.h"
#include "core/recorder.h"
#include "core/step_clock.h"
#include "core/steps.h"
#include "core/text.h"
#include "python/frame_walk.h"
#include "python/module_calls.h"
#include "torch/collective_groups.h"
#include "torch/collectives.h"
#include "torch/group_calls.h"
#include "torch/library.h"
#include "torch/param_comms.h"
#include "torch/shapes.h"
#include "torch/thread_index.h"
#include "torch/type_windows.h"

namespace deepcontext::torch {

namespace {

constexpr char kWrapperPrefix[] = "autograd::engine::evaluate_function: ";

ObserverOptions g_options;
uint64_t g_handle = 0;
uint16_t g_bytes_metric = 0;
uint16_t g_graph_metric = 0;

/// Carries an asynchronous scope from the thread that starts it to the one that ends it.
struct AsyncContext final : abi::ObserverContext {
  AsyncContext(uint32_t recorder, uint32_t node, uint64_t start)
      : session(RecorderRegistry::generation()), recorder_index(recorder), node_id(node),
        start_ticks(start) {}
  uint64_t session;
  uint32_t recorder_index;
  uint32_t node_id;
  uint64_t start_ticks;
  Collective collective;
};

/// An operator that changes a view in place wraps its autograd node in another one. This is the
/// outer node; it takes the next number, which no operator shows. Source:
/// torch/csrc/autograd/variable.cpp, rebase_history.
constexpr const char *kCopySlices = "torch::autograd::CopySlices";

bool isWrapper(const char *name) {
  return std::strncmp(name, kWrapperPrefix, sizeof kWrapperPrefix - 1) == 0;
}

/// The parent of a backward operator: the forward operator that made its autograd node. The forward
/// may be another thread's node, so this thread's tree gets a link to it.
Node *forwardLink(Recorder &recorder, const void *record_function, const char *name,
                  int64_t sequence) {
  uint64_t thread = abi::readAt<uint64_t>(record_function, g_options.layout.forward_thread);
  Recorder *maker = ThreadIndex::instance().find(thread);
  auto number = static_cast<uint64_t>(sequence);
  Node *forward = maker ? maker->ring().find(thread, number) : nullptr;
  if (maker && !forward && number > 0 && std::strcmp(name, kCopySlices) == 0) {
    forward = maker->ring().find(thread, number - 1);
  }
  if (!forward) {
    RecorderCounters::bump(recorder.counters.links_missed);
    return nullptr;
  }
  RecorderCounters::bump(recorder.counters.links_found);
  return recorder.tree.child(recorder.tree.root(), FrameKind::kLink, maker->index(), forward->id);
}

__attribute__((noinline)) uint32_t nameWithShapes(Recorder &recorder, const void *record_function,
                                                  const char *name) {
  return recorder.extensions.get<ShapeNames>().lookup(recorder.names, record_function,
                                                      g_options.layout.inputs, name);
}

uint32_t operatorName(Recorder &recorder, const void *record_function, const char *name) {
  return __builtin_expect(g_options.with_shapes, 0)
             ? nameWithShapes(recorder, record_function, name)
             : recorder.names.lookup(name);
}

/// The thread's id as torch numbers it, registered for look-ups by backward threads.
uint64_t frameworkThread(Recorder &recorder) {
  uint64_t thread = recorder.framework_thread.load(std::memory_order_relaxed);
  if (__builtin_expect(thread == 0, 0)) {
    thread = Library::instance().current_thread();
    recorder.framework_thread.store(thread, std::memory_order_relaxed);
    ThreadIndex::instance().store(thread, &recorder);
  }
  return thread;
}

abi::ObserverContextPtr startAsync(Recorder &recorder, const void *record_function) {
  Level *outer = recorder.innermost();
  Node *parent = pythonContext(recorder, currentFrame(recorder), outer);
  const char *name = Library::instance().name(record_function);
  Node *node = recorder.tree.child(parent, FrameKind::kScope, recorder.names.lookup(name), 0);
  auto context = std::make_unique<AsyncContext>(recorder.index(), node->id, ticks());
  if (Collectives::isWork(name)) {
    context->collective =
        Collectives::instance().begin(recorder.kernel_thread.load(std::memory_order_relaxed));
  }
  return context;
}

/// Scopes that run once in each iteration of an engine (vLLM's, PyTorch's profiler's).
constexpr const char *kIterations[] = {"gpu_model_runner: forward", "ProfilerStep#"};

/// Fewer operators and scopes than this between two steps of optimizers: the program steps several
/// optimizers in turn, and has computed no gradient in between.
constexpr uint64_t kNothingBetween = 8;

/// Flag the scopes that PyTorch opens around an optimizer's step and data loading.
void flagStage(Recorder &recorder, Node *node, const char *name) {
  if (startsWith(name, "Optimizer.step#")) {
    node->setFlag(kFlagOptimizer);
    uint64_t seen = recorder.counters.operators.load(std::memory_order_relaxed);
    recorder.continues_step =
        recorder.stepped_at > 0 && seen < recorder.stepped_at + kNothingBetween;
    StepClock::tick();
    AllocationLedger::instance().markOptimizerStep();
  } else if (startsWith(name, "enumerate(DataLoader)#")) {
    node->setFlag(kFlagLoading);
  } else if (std::any_of(std::begin(kIterations), std::end(kIterations),
                         [&](const char *iteration) { return startsWith(name, iteration); })) {
    node->setFlag(kFlagStep);
  }
}

/// A scope has ended at `now`: count the step that ends with it.
__attribute__((noinline)) void endStep(Recorder &recorder, const void *record_function,
                                       uint64_t now) {
  const Level *closed = recorder.justClosed(record_function);
  Node *node = closed && closed->isScope() ? closed->node : nullptr;
  if (!node || !node->hasFlag(NodeFlag(kFlagOptimizer | kFlagStep))) {
    return;
  }
  bool is_optimizer = node->hasFlag(kFlagOptimizer);
  if (is_optimizer) {
    recorder.stepped_at = recorder.counters.operators.load(std::memory_order_relaxed);
    if (recorder.continues_step) {
      return;
    }
  }
  StepSource source = is_optimizer ? StepSource::kOptimizer : StepSource::kEngine;
  Steps::instance().pass({source, recorder.index(), node}, now);
}

/// The first time that `node` runs: notes whether the thread runs operators of its own
/// (`type_windows.h`); if it is the first operator inside an outermost module, its first run in a
/// call of the module stands for the call.
__attribute__((noinline)) void firstRun(Recorder &recorder, Node *node) {
  if (!recorder.has_own_operators.load(std::memory_order_relaxed) &&
      !Library::instance().isInParallelRegion()) {
    recorder.has_own_operators.store(true, std::memory_order_relaxed);
  }
  if (!Steps::instance().wantsModules()) {
    return;
  }
  Node *module = nullptr;
  for (Node *each = node->parent; each; each = each->parent) {
    if (each->hasFlag(NodeFlag(kFlagOptimizer | kFlagLoading | kFlagBackward))) {
      return;
    }
    module = each->kind == FrameKind::kModule ? each : module;
  }
  if (module && !module->hasFlag(kFlagStep)) {
    module->setFlag(kFlagStep);
    node->setFlag(kFlagStep);
    recorder.stepped_call = ModuleCalls::current();
  }
}

/// A flagged operator runs again, at `now`: if it is in another call of the module, the one before
/// has ended. Without a number of calls, each run counts.
__attribute__((noinline)) void passCall(Recorder &recorder, const Node *node, uint64_t now) {
  uint64_t call = ModuleCalls::current();
  if (call == 0 || call != recorder.stepped_call) {
    recorder.stepped_call = call;
    Steps::instance().pass({StepSource::kModule, recorder.index(), node}, now);
  }
}

/// Open a scope. A Python scope is opened through helper functions and continues in their caller. A
/// C++ scope is on the stack, like an operator.
void openScope(Recorder &recorder, const void *record_function, const InterpreterFrame *top,
               const char *name) {
  Level *outer = recorder.innermost();
  bool is_native = recorder.isOnStack(record_function);
  Node *parent = nullptr;
  if (is_native) {
    parent = callContext(recorder, top, outer, record_function);
  } else {
    top = skipScopePlumbing(recorder, top);
    parent = pythonContext(recorder, top, outer);
  }
  Node *node = recorder.tree.child(parent, FrameKind::kScope, recorder.names.lookup(name), 0);
  if (node != parent) { // not when the tree is full
    flagStage(recorder, node, name);
  }
  LevelKind kind = is_native ? LevelKind::kOperator : LevelKind::kScope;
  openLevel(recorder, kind, node, record_function, top);
}

/// A dispatch mode's Python code, which PyTorch announces like an operator. It runs outside all
/// operators (where the mode sees a range begin) or inside the one that it handles.
constexpr const char *kDispatchMode = "PythonDispatchMode";

bool isMode(const Level *level) {
  return level && level->kind == LevelKind::kOperator && level->node->kind == FrameKind::kScope &&
         Interner::instance().text(static_cast<uint32_t>(level->node->a)) == kDispatchMode;
}

/// The mode's Python, such as the imports of its first call, is no time of the operator that it
/// handles: samples measure it.
void openMode(Recorder &recorder, const void *record_function, const InterpreterFrame *top,
              const char *name) {
  uint64_t now = ticks();
  uint64_t began = recorder.suspendOperator(now);
  openScope(recorder, record_function, top, name);
  Level *level = recorder.innermost();
  if (level && level->owner == record_function) {
    level->is_inside_operator = false;
    level->charged = nullptr;
  } else {
    recorder.resumeOperator(began, now);
  }
}

__attribute__((noinline)) void closeMode(Recorder &recorder, const Level &mode, uint64_t now) {
  recorder.resumeOperator(recorder.operatorBegan(), now);
  recorder.tree.cost(mode.node).duration.add(recorder.ticksSince(mode.start_ticks, now));
}

/// Whether the operator of this name is the one that a dispatch mode handles, which the mode calls
/// again.
bool isSecondPass(const Recorder &recorder, const Level *mode, uint32_t name_id) {
  const Level *handled = mode ? recorder.levelBefore(mode) : nullptr;
  return handled && handled->node->kind == FrameKind::kOperator && handled->node->a == name_id &&
         isMode(mode);
}

void openWrapper(Recorder &recorder, const void *record_function, const InterpreterFrame *top) {
  Node *parent = pythonContext(recorder, top, recorder.innermost());
  if (Level *level = openLevel(recorder, LevelKind::kWrapper, parent, record_function, top)) {
    level->charged = nullptr; // known when the wrapped operator starts
  }
}

/// The parent of an operator that belongs to no forward operator. Native frames of a wrapper are
/// added with the wrapped operator, which may have another parent.
Node *operatorContext(Recorder &recorder, const void *record_function, const InterpreterFrame *top,
                      const Level *outer) {
  bool is_wrapped = outer && outer->kind == LevelKind::kWrapper && !outer->charged;
  if (is_wrapped && NativeFrames::isOn()) {
    outer = recorder.levelCount() > 1 ? outer - 1 : nullptr;
  }
  return callContext(recorder, top, outer, record_function);
}

/// `name_id`: of the name that the node gets.
void openOperator(Recorder &recorder, const void *record_function, const InterpreterFrame *top,
                  const char *name, uint32_t name_id, uint8_t scope) {
  Level *outer = recorder.innermost();
  int64_t sequence = abi::readAt<int64_t>(record_function, g_options.layout.sequence);
  bool is_backward = scope == abi::kScopeBackward;
  Node *parent = nullptr;
  if (outer && outer->folded) {
    is_backward = false; // a compiler traces gradients, which is no backward
  } else if (is_backward && sequence >= 0) {
    parent = forwardLink(recorder, record_function, name, sequence);
  }
  if (!parent) {
    parent = operatorContext(recorder, record_function, top, outer);
  }
  Node *node = recorder.tree.child(parent, FrameKind::kOperator, name_id, 0);
  bool is_full = node == parent; // then `node` is not this operator
  if (scope == abi::kScopeBackward) {
    if (is_backward && !is_full) {
      node->setFlag(kFlagBackward);
    }
    if (outer && outer->kind == LevelKind::kWrapper) {
      // From now on the wrapper represents this operator: its own time, and what it runs
      // afterwards.
      outer->node = node;
      outer->charged = node;
      recorder.path_length = outer->path_length;
    }
  } else if (sequence >= 0) {
    // A composite operator shows the number of the autograd node that will be made inside it; the
    // last operator to show the number makes the node.
    if (!is_full) {
      node->setFlag(kFlagSequenced);
    }
    recorder.ring().store(frameworkThread(recorder), static_cast<uint64_t>(sequence), node);
  }
  Level *level = openLevel(recorder, LevelKind::kOperator, node, record_function, top);
  if (__builtin_expect(level && outer && outer->node->kind == FrameKind::kScope, 0) &&
      isSecondPass(recorder, outer, name_id)) {
    level->kind = LevelKind::kWrapper; // the call is counted already
  }
  if (__builtin_expect(node->hasFlag(kFlagStep), 0) && level && node->calls() > 0) {
    passCall(recorder, node, level->start_ticks);
  } else if (__builtin_expect(node->calls() == 0, 0) && !is_full) {
    firstRun(recorder, node);
  }
}

__attribute__((noinline)) void noteCollective(Recorder &recorder, const void *record_function,
                                              const char *name) {
  std::optional<uint8_t> operation = Collectives::operationOf(name);
  if (!operation) {
    return;
  }
  GroupIndex group = CollectiveGroups::instance().of(record_function, g_options.layout.inputs);
  if (group != CollectiveGroups::kUnknown) {
    recorder.calls_collectives.store(true, std::memory_order_relaxed);
    recorder.noted_collective = {record_function,
                                 Collectives::instance().call(group, *operation, ticks())};
  }
}

/// What NCCL's process group opens inside an operator of c10d.
__attribute__((noinline)) void openGroupCall(Recorder &recorder, const void *record_function,
                                             const InterpreterFrame *top, uint8_t scope) {
  std::optional<GroupCall> call = ParamComms::instance().current();
  uint32_t name_id = recorder.names.lookup(ParamComms::kOperator);
  if (call) {
    noteDeviceCollective(recorder, record_function, *call);
    name_id = nameOf(recorder, *call);
  }
  openOperator(recorder, record_function, top, ParamComms::kOperator, name_id, scope);
  Level *level = recorder.innermost();
  uint64_t bytes = call ? sizeOf(*call) : 0;
  if (bytes > 0 && level && level->owner == record_function) {
    recorder.tree.metric(level->node, g_bytes_metric).add(bytes);
  }
}

void open(Recorder &recorder, const void *record_function, uint8_t scope) {
  if (recorder.levelCount() > 0 && recorder.isOnStack(record_function)) {
    recorder.dropDeadLevels(record_function);
  }
  const InterpreterFrame *top = currentFrame(recorder);
  const char *name = Library::instance().name(record_function);
  if (__builtin_expect(name[0] == 'P', 0) && std::strcmp(name, kDispatchMode) == 0) {
    openMode(recorder, record_function, top, name);
  } else if (scope == abi::kScopeUser) {
    openScope(recorder, record_function, top, name);
  } else if (name[0] == 'a' && name[1] == 'u' && isWrapper(name)) {
    openWrapper(recorder, record_function, top);
  } else {
    if (__builtin_expect(name[0] == 'c' && name[1] == '1', 0)) { // c10d
      noteCollective(recorder, record_function, name);
    } else if (__builtin_expect(name[0] == 'r', 0) &&
               std::strcmp(name, ParamComms::kOperator) == 0) {
      openGroupCall(recorder, record_function, top, scope);
      return;
    }
    openOperator(recorder, record_function, top, name,
                 operatorName(recorder, record_function, name), scope);
  }
}

abi::ObserverContextPtr observeStart(const void *record_function) {
  Recorder &recorder = RecorderRegistry::current();
  uint8_t scope = abi::readAt<uint8_t>(record_function, g_options.layout.scope);
  if (__builtin_expect(scope == abi::kScopeUser, 0) &&
      Library::instance().is_async(record_function)) {
    return startAsync(recorder, record_function);
  }
  recorder.countOperator([&] { open(recorder, record_function, scope); });
  return nullptr;
}

abi::ObserverContextPtr onStart(const void *record_function) {
  return RecorderRegistry::isRecording() ? observeStart(record_function) : nullptr;
}

void endAsync(const AsyncContext &context, uint64_t now) {
  if (!RecorderRegistry::isRecording() || context.session != RecorderRegistry::generation()) {
    return;
  }
  Collectives::instance().end(context.collective, now);
  Recorder &recorder = RecorderRegistry::current();
  // The node belongs to the starting thread; this thread's tree links to it.
  Node *link = recorder.tree.child(recorder.tree.root(), FrameKind::kLink, context.recorder_index,
                                   context.node_id);
  // A duration, but no exclusive time: it elapses beside the program, on no thread.
  recorder.tree.cost(link).duration.add(recorder.ticksSince(context.start_ticks, now));
}

/// Note at the first call that builds a graph that a path does; not for an operator of a backward.
inline void noteGraph(Recorder &recorder, const void *record_function) {
  const Level *closed = recorder.justClosed(record_function);
  Node *node = closed && closed->kind == LevelKind::kOperator ? closed->node : nullptr;
  if (!node || node->kind != FrameKind::kOperator ||
      node->hasFlag(NodeFlag(kFlagGraph | kFlagBackward))) {
    return;
  }
  node->setFlag(kFlagGraph);
  recorder.tree.metric(node, g_graph_metric).add(1);
}

/// An operator shows the number of the next autograd node, whether it makes one or not. If it made
/// none, a later taker of the number (a TorchScript graph, for example) must not be linked to it.
void settleNumber(Recorder &recorder, const void *record_function) {
  Level *outer = recorder.innermost();
  if (outer && outer->kind == LevelKind::kOperator) {
    return;
  }
  int64_t sequence = abi::readAt<int64_t>(record_function, g_options.layout.sequence);
  if (sequence < 0) {
    return;
  }
  uint64_t next = Library::instance().sequence_peek();
  recorder.ring().forget(frameworkThread(recorder), next);
  if (next > static_cast<uint64_t>(sequence)) {
    noteGraph(recorder, record_function);
  }
}

void onEnd(const void *record_function, abi::ObserverContext *context) {
  uint64_t now = ticks();
  if (__builtin_expect(context != nullptr, 0)) {
    endAsync(*static_cast<AsyncContext *>(context), now);
    return;
  }
  Recorder *recorder = RecorderRegistry::currentOrNull();
  if (recorder) {
    recorder->close(record_function, now);
    const Level *closed = recorder->justClosed(record_function);
    if (__builtin_expect(closed && closed->node->kind == FrameKind::kScope, 0) && isMode(closed)) {
      closeMode(*recorder, *closed, now);
    }
    if (__builtin_expect(recorder->device_collective.owner == record_function, 0)) {
      recorder->device_collective = {};
    }
    settleNumber(*recorder, record_function);
    if (__builtin_expect(
            abi::readAt<uint8_t>(record_function, g_options.layout.scope) == abi::kScopeUser, 0)) {
      endStep(*recorder, record_function, now);
    }
    TypeWindows::tick(now);
  } else if (abi::readAt<uint8_t>(record_function, g_options.layout.scope) == abi::kScopeUser) {
    EndedElsewhere::instance().note(record_function, now);
  }
}

void add(bool needs_inputs) {
  abi::RecordFunctionCallback callback;
  callback.start = Guarded<onStart>::call;
  callback.end = Guarded<onEnd>::call;
  callback.scopes[abi::kScopeFunction] = true;
  callback.scopes[abi::kScopeBackward] = true;
  callback.scopes[abi::kScopeUser] = true;
  callback.needs_inputs = needs_inputs;
  g_handle = Library::instance().add_global_callback(callback);
}

void remove() {
  if (g_handle != 0) {
    Library::instance().remove_callback(g_handle);
    g_handle = 0;
  }
}

} // namespace

void startObserver(const ObserverOptions &options) {
  g_options = options;
  g_bytes_metric = MetricRegistry::instance().id("communication_bytes");
  CollectiveLaunches::instance().setSink([](uint32_t order, const DeviceWork &work) {
    Collectives::instance().endOnDevice(order, work);
  });
  g_graph_metric = MetricRegistry::instance().id("built_graph_count");
  Collectives::instance().clear();
  CollectiveGroups::instance().clear();
  add(options.with_shapes);
  if (options.with_type_windows) {
    TypeWindows::instance().begin(options.layout);
  }
}

bool tellGroupsApart(const void *default_group) {
  if (g_handle == 0 || CollectiveGroups::instance().isWatched()) {
    return g_handle != 0;
  }
  if (!CollectiveGroups::instance().watch(default_group)) {
    return false;
  }
  if (!g_options.with_shapes) { // an observer cannot ask for inputs later
    remove();
    add(true);
  }
  return true;
}

void stopObserver() {
  TypeWindows::instance().end();
  remove();
}

bool isObserverRunning() {
  return g_handle != 0;
}

} // namespace deepcontext::torch
