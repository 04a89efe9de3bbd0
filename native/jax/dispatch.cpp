#include "jax/dispatch.h"

#include <algorithm>

#include "core/guard.h"
#include "core/metric_registry.h"
#include "core/steps.h"
#include "core/thread.h"
#include "jax/arguments.h"
#include "jax/callable_map.h"
#include "jax/collectives.h"
#include "jax/function_table.h"
#include "jax/live_arrays.h"
#include "python/frame_walk.h"

namespace deepcontext::jax {

namespace {

constexpr char kTracingMarker[] = "jax: tracing";

// One pointer of initial-exec TLS, as in the recorder.
thread_local ActiveCall *t_innermost __attribute__((tls_model("initial-exec"))) = nullptr;

vectorcallfunc g_original = nullptr;
bool g_are_marks_told = false;                                // GIL held
PyObject *g_is_jit_disabled = nullptr;                        // GIL held
uint64_t g_window_start_ns = 0;                               // 0 while no window is open; GIL held
std::vector<Launch> &g_launches = *new std::vector<Launch>(); // GIL held; never destroyed

/// The clock of XLA's tracer.
uint64_t realtimeNs() {
  return clockNs(CLOCK_REALTIME);
}

CallableMap &callables() {
  static CallableMap *const map = new CallableMap();
  return *map;
}

vectorcallfunc *slotOf(PyObject *callable) {
  PyTypeObject *type = Py_TYPE(callable);
  if (!(type->tp_flags & Py_TPFLAGS_HAVE_VECTORCALL) || type->tp_vectorcall_offset <= 0) {
    return nullptr;
  }
  return reinterpret_cast<vectorcallfunc *>(reinterpret_cast<char *>(callable) +
                                            type->tp_vectorcall_offset);
}

/// The calling thread's innermost call, or null. Drops calls whose begin was reported in an earlier
/// session and whose end was not.
ActiveCall *innermost() {
  while (t_innermost && t_innermost->told_in != 0 &&
         t_innermost->told_in != RecorderRegistry::generation()) {
    ActiveCall *call = t_innermost;
    t_innermost = call->outer;
    delete call;
  }
  return t_innermost;
}

Node *functionNode(Recorder &recorder, Node *parent, uint32_t function) {
  const Function &known = FunctionTable::instance().at(function);
  return recorder.tree.child(parent, FrameKind::kOperator, known.frame_name, function + 1);
}

/// Whether a call is a level of the tree. Calls inside a call that traces are not. Inside a call
/// that does not trace, jax distributes arguments over devices, or the function runs as Python
/// because the program has disabled jit.
bool isOutermost(const ActiveCall &call) {
  if (!call.outer) {
    return true;
  }
  bool runs_plainly = g_are_marks_told && !call.outer->is_slow && call.outer->launches == 0;
  call.outer->has_inner = call.outer->has_inner || runs_plainly;
  return runs_plainly && call.outer->node;
}

/// Open an outermost call: a level of the tree.
void open(Recorder &recorder, ActiveCall &call, uint32_t frame_name) {
  if (recorder.levelCount() > 0) {
    recorder.dropDeadLevels(&call);
  }
  const InterpreterFrame *top = currentFrame(recorder);
  Node *parent = pythonContext(recorder, top, recorder.innermost());
  call.node = recorder.tree.child(parent, FrameKind::kOperator, frame_name, call.function + 1);
  openLevel(recorder, LevelKind::kOperator, call.node, &call, top);
}

/// The node of a launch inside another call. If it is the same function on its slow path, which
/// launches through an internal object, this is the node of that call; otherwise a node below it.
Node *insideNode(Recorder &recorder, const ActiveCall &call) {
  const ActiveCall *outer = call.outer;
  const std::string &name = FunctionTable::instance().at(call.function).name;
  bool is_same = true;
  for (; outer; outer = outer->outer) {
    is_same =
        is_same && outer->is_slow && FunctionTable::instance().at(outer->function).name == name;
    if (outer->node) {
      break;
    }
  }
  if (!outer) {
    return nullptr;
  }
  if (is_same) {
    return outer->node;
  }
  Node *parent = outer->node;
  if (outer->is_slow) {
    parent = recorder.tree.child(parent, FrameKind::kMarker,
                                 Interner::instance().intern(kTracingMarker), 0);
  }
  return functionNode(recorder, parent, call.function);
}

/// The function of a launch; the node may be an outer call's and carries that call's function.
uint32_t launchedFunction(const ActiveCall &call, const Node &node) {
  return static_cast<uint32_t>(node.b ? node.b - 1 : call.function);
}

void note(Recorder &recorder, const ActiveCall &call, Node *node, uint64_t start_ns,
          LaunchNumber number) {
  Launch launch;
  launch.number = number;
  launch.start_ns = start_ns;
  launch.end_ns = realtimeNs();
  launch.thread = kernelThread();
  launch.node = {recorder.index(), node->id};
  launch.calls = node->calls();
  launch.function = launchedFunction(call, *node);
  if (FunctionTable::instance().at(launch.function).program_count.load() > 1) {
    launch.signature = signatureOf(call.arguments, call.argument_count, call.keywords);
  }
  g_launches.push_back(launch);
  if (call.arguments) {
    size_t names = call.keywords ? static_cast<size_t>(PyTuple_GET_SIZE(call.keywords)) : 0;
    noteArguments(launch.function, launch.node, call.arguments, call.argument_count + names);
  }
}

bool isJitDisabled() {
  PyObject *answer = g_is_jit_disabled ? PyObject_CallNoArgs(g_is_jit_disabled) : nullptr;
  bool is_disabled = answer && PyObject_IsTrue(answer) == 1;
  PyErr_Clear();
  Py_XDECREF(answer);
  return is_disabled;
}

/// After the call returned, count its launches at their node. A call that neither traced nor
/// launched through Python was served by jaxlib's cache and launched once.
void settle(Recorder &recorder, ActiveCall &call, bool has_failed, uint64_t start_ns) {
  uint64_t launches = call.launches;
  bool has_run_plainly = call.has_inner && isJitDisabled();
  if (launches == 0 && !call.is_slow && !has_run_plainly && !has_failed) {
    launches = 1;
  }
  Node *node = call.node;
  if (node && launches == 0) {
    recorder.tree.metric(node, dispatchMetrics().not_launched).add(1);
  } else if (node && launches > 1) {
    recorder.tree.metric(node, dispatchMetrics().launched_inside).add(launches - 1);
  } else if (!node && launches > 0) {
    node = insideNode(recorder, call);
    if (node) {
      recorder.tree.metric(node, dispatchMetrics().launched_inside).add(launches);
    }
  }
  if (launches == 0 || !node) {
    return;
  }
  LaunchNumber number = Collectives::instance().launched(launchedFunction(call, *node),
                                                         static_cast<uint32_t>(launches));
  if (g_window_start_ns != 0) {
    // A window that was opened inside the call, by its compilation, covers the launch.
    note(recorder, call, node, std::max(start_ns, g_window_start_ns), number);
  }
}

/// A call has ended at `now`, after compiling or, like most, after launching at once.
void endStep(Recorder &recorder, const ActiveCall &call, uint64_t now) {
  const Level *closed = recorder.justClosed(&call);
  if (closed && !call.is_slow) {
    Steps::instance().passProgram({StepSource::kProgram, recorder.index(), call.node},
                                  recorder.ticksSince(closed->start_ticks, now), now);
  }
}

PyObject *onCall(PyObject *callable, PyObject *const *arguments, size_t flags_and_count,
                 PyObject *keywords) {
  if (__builtin_expect(!RecorderRegistry::isRecording(), 0)) {
    return g_original(callable, arguments, flags_and_count, keywords);
  }
  uint32_t function = callables().find(callable);
  if (__builtin_expect(function == CallableMap::kNone, 0)) {
    return g_original(callable, arguments, flags_and_count, keywords);
  }
  Recorder *recorder = nullptr;
  ActiveCall call{nullptr,
                  callable,
                  function,
                  arguments,
                  static_cast<size_t>(PyVectorcall_NARGS(flags_and_count)),
                  keywords,
                  nullptr,
                  false,
                  0,
                  false,
                  0};
  guarded([&] {
    recorder = &RecorderRegistry::current();
    call.outer = innermost();
    if (__builtin_expect(isOutermost(call), 1)) {
      recorder->countOperator(
          [&] { open(*recorder, call, FunctionTable::instance().frameName(function)); });
      if (Collectives::instance().isWatched(function)) {
        Collectives::instance().begin(*recorder);
      }
    }
  });
  if (__builtin_expect(!recorder, 0)) {
    return g_original(callable, arguments, flags_and_count, keywords);
  }
  uint64_t start_ns = __builtin_expect(g_window_start_ns != 0, 0) ? realtimeNs() : 0;
  t_innermost = &call;
  PyObject *result = g_original(callable, arguments, flags_and_count, keywords);
  t_innermost = call.outer;
  uint64_t now = ticks();
  if (call.node) {
    recorder->close(&call, now);
    if (result && recorder->isOf(RecorderRegistry::generation())) {
      guarded([&] {
        endStep(*recorder, call, now);
        noteMade(result, recorder->index(), call.node->id);
        noteHostArguments(*recorder, call.node, arguments, call.argument_count);
      });
    }
  }
  if (__builtin_expect(call.is_slow || call.launches || call.has_inner || !result || !call.node ||
                           g_window_start_ns || Collectives::instance().watchedCount(),
                       0) &&
      RecorderRegistry::isRecording() && recorder->isOf(RecorderRegistry::generation())) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback); // reading the arguments must not change it
    guarded([&] { settle(*recorder, call, !result, start_ns); });
    PyErr_Restore(type, value, traceback);
  }
  return result;
}

} // namespace

const DispatchMetrics &dispatchMetrics() {
  static const DispatchMetrics metrics{
      MetricRegistry::instance().id("jax_calls_not_launched"),
      MetricRegistry::instance().id("jax_launches_inside"),
  };
  return metrics;
}

bool hook(PyObject *callable, uint32_t function, std::string *reason) {
  vectorcallfunc *slot = slotOf(callable);
  if (!slot) {
    *reason = std::string("type '") + Py_TYPE(callable)->tp_name + "' has no vectorcall slot";
    return false;
  }
  dispatchMetrics();
  callables().store(callable, function);
  if (*slot == onCall) {
    return true;
  }
  if (!g_original) {
    g_original = *slot;
  }
  if (*slot != g_original) {
    *reason = "the call slot of a jitted function was replaced by another tool";
    return false;
  }
  *slot = onCall;
  return true;
}

void unhook(PyObject *callable) {
  vectorcallfunc *slot = slotOf(callable);
  if (slot && *slot == onCall) {
    *slot = g_original;
  }
}

bool isHooked(PyObject *callable) {
  vectorcallfunc *slot = slotOf(callable);
  return slot && *slot == onCall;
}

void setMarks(bool are_told, PyObject *is_jit_disabled) {
  g_are_marks_told = are_told;
  Py_XINCREF(is_jit_disabled);
  Py_XSETREF(g_is_jit_disabled, is_jit_disabled);
}

void markSlow() {
  if (ActiveCall *call = innermost()) {
    call->is_slow = true;
  }
}

bool markLaunch() {
  ActiveCall *call = innermost();
  if (call) {
    ++call->launches;
  }
  return call != nullptr;
}

const ActiveCall *innermostCall() {
  return innermost();
}

ActiveCall *exchangeInnermostCall(ActiveCall *call) {
  ActiveCall *before = innermost();
  t_innermost = call;
  return before;
}

std::vector<const ActiveCall *> openCallsOfFunction() {
  std::vector<const ActiveCall *> calls;
  FunctionTable &functions = FunctionTable::instance();
  for (const ActiveCall *call = innermostCall(); call; call = call->outer) {
    if (!calls.empty() &&
        functions.at(call->function).name != functions.at(calls.front()->function).name) {
      break;
    }
    calls.push_back(call);
  }
  return calls;
}

void beginCall(PyObject *callable, uint32_t function) {
  if (!RecorderRegistry::isRecording()) {
    return;
  }
  auto *call = new ActiveCall{innermost(),
                              callable,
                              function,
                              nullptr,
                              0,
                              nullptr,
                              nullptr,
                              false,
                              0,
                              false,
                              RecorderRegistry::generation()};
  if (isOutermost(*call)) {
    open(RecorderRegistry::current(), *call, FunctionTable::instance().frameName(function));
  }
  t_innermost = call;
}

void endCall(PyObject *callable, bool has_failed) {
  uint64_t now = ticks();
  ActiveCall *call = innermost();
  if (!call || call->callable != callable) {
    return; // its start was not seen
  }
  t_innermost = call->outer;
  Recorder *recorder = RecorderRegistry::currentOrNull();
  if (recorder && RecorderRegistry::isRecording()) {
    if (call->node) {
      recorder->close(call, now);
    }
    settle(*recorder, *call, has_failed, 0);
  }
  delete call;
}

void countCall(uint32_t function) {
  if (!RecorderRegistry::isRecording()) {
    return;
  }
  Recorder &recorder = RecorderRegistry::current();
  Node *parent = pythonContext(recorder, currentFrame(recorder), recorder.innermost());
  recorder.tree.cost(functionNode(recorder, parent, function)).duration.add(0);
}

void openWindow() {
  g_launches.clear();
  g_window_start_ns = realtimeNs();
}

std::vector<Launch> closeWindow() {
  g_window_start_ns = 0;
  std::vector<Launch> launches;
  launches.swap(g_launches);
  return launches;
}

} // namespace deepcontext::jax
