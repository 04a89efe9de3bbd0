// Sessions, trees, Python call paths and the watcher, as Python sees them (typed in _native.pyi).
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <map>
#include <type_traits>
#include <unordered_map>

#include "bindings/bindings.h"
#include "core/allocation_ledger.h"
#include "core/guard.h"
#include "core/merge.h"
#include "core/metric_registry.h"
#include "core/own_thread.h"
#include "python/code_table.h"
#include "python/exit_status.h"
#include "python/frame_resolver.h"
#include "python/frame_walk.h"
#include "python/gil_release.h"
#include "python/gradient_search.h"
#include "python/location_table.h"
#include "python/module_table.h"
#include "python/object_search.h"
#include "python/watcher.h"
#include "sampling/thread_names.h"

namespace nb = nanobind;

namespace deepcontext {

namespace {

/// A column as bytes, little-endian as this machine is. No numpy: it is not to be imported into the
/// program under test.
template <typename T> nb::bytes toBytes(const std::vector<T> &values) {
  static_assert(std::is_trivially_copyable_v<T>);
  return nb::bytes(values.data(), values.size() * sizeof(T));
}

/// A str of any bytes: names of threads and operators come from C and may be cut inside a
/// character.
nb::object toText(std::string_view text) {
  auto size = static_cast<Py_ssize_t>(text.size());
  PyObject *decoded = PyUnicode_DecodeUTF8(text.data(), size, "replace");
  if (!decoded) {
    throw nb::python_error();
  }
  return nb::steal(decoded);
}

/// Dense ids for the interned texts that a tree uses.
class StringColumn {
public:
  uint32_t add(uint32_t interned) {
    auto [place, is_new] = ids_.emplace(interned, static_cast<uint32_t>(ids_.size()));
    if (is_new) {
      std::string_view text = Interner::instance().text(interned);
      texts_.append(toText(text));
    }
    return place->second;
  }
  nb::list texts() const { return texts_; }

private:
  std::unordered_map<uint32_t, uint32_t> ids_;
  nb::list texts_;
};

/// The merged tree of the running or last session.
struct TreeReading {
  MergedTree tree;
  double ns_per_tick;
};

TreeReading readTree(const std::vector<std::pair<uint64_t, std::string>> &thread_names) {
  GilRelease release;
  RecorderRegistry &registry = RecorderRegistry::instance();
  std::vector<Recorder *> recorders = registry.active();
  std::map<uint64_t, std::string> names;
  for (const auto &[handle, name] : thread_names) {
    names.emplace(handle, withoutNumbers(name)); // as the recorders' labels
  }
  ThreadNames::instance().name(names);
  std::map<uint32_t, std::string> labels;
  for (Recorder *recorder : recorders) {
    auto named = names.find(recorder->thread_handle.load(std::memory_order_relaxed));
    // Under a recorder that more than one thread wrote to, the last one's name would be a lie.
    if (named != names.end() && recorder->is_of_one_thread.load(std::memory_order_relaxed)) {
      labels.emplace(recorder->index(), named->second);
    }
  }
  MergedTree tree = mergeTrees(recorders, labels, PythonFrameResolver(),
                               AllocationLedger::instance().rows(RecorderRegistry::generation()));
  return {std::move(tree), registry.clock().nsPerTick()};
}

nb::dict frameColumns(const TreeReading &reading) {
  StringColumn strings;
  std::vector<uint8_t> kind;
  std::vector<uint32_t> name, file, line;
  for (const FrameRecord &frame : reading.tree.frames) {
    kind.push_back(static_cast<uint8_t>(frame.kind));
    name.push_back(strings.add(frame.name));
    file.push_back(strings.add(frame.file));
    line.push_back(frame.line);
  }
  nb::dict columns;
  columns["strings"] = strings.texts();
  columns["kind"] = toBytes(kind);
  columns["name"] = toBytes(name);
  columns["file"] = toBytes(file);
  columns["line"] = toBytes(line);
  return columns;
}

/// Columns of sparse rows; values in ticks become ns with `scale`.
nb::dict rowColumns(const MetricRows &rows, double scale) {
  std::vector<uint32_t> node;
  std::vector<uint64_t> count;
  std::vector<int64_t> total, minimum, maximum;
  std::vector<double> m2;
  auto scaled = [&](uint64_t value) {
    return scale == 1.0 ? static_cast<int64_t>(value)
                        : static_cast<int64_t>(std::llround(static_cast<double>(value) * scale));
  };
  for (const auto &[id, values] : rows) {
    node.push_back(id);
    count.push_back(values.count);
    total.push_back(scaled(values.total));
    minimum.push_back(scaled(values.minimum));
    maximum.push_back(scaled(values.maximum));
    m2.push_back(values.m2 * scale * scale);
  }
  nb::dict columns;
  columns["node"] = toBytes(node);
  columns["count"] = toBytes(count);
  columns["total"] = toBytes(total);
  columns["minimum"] = toBytes(minimum);
  columns["maximum"] = toBytes(maximum);
  columns["m2"] = toBytes(m2);
  return columns;
}

nb::dict durationRows(const OrderedTree &tree, double ns_per_tick) {
  MetricRows rows;
  for (uint32_t id = 0; id < tree.parent.size(); ++id) {
    if (tree.duration[id].count > 0) {
      rows.emplace_back(id, tree.duration[id]);
    }
  }
  return rowColumns(rows, ns_per_tick);
}

nb::dict exclusiveRows(const OrderedTree &tree, double ns_per_tick) {
  std::vector<uint32_t> node;
  std::vector<uint64_t> count;
  std::vector<int64_t> total;
  for (uint32_t id = 0; id < tree.parent.size(); ++id) {
    if (tree.exclusive[id] == 0) {
      continue;
    }
    node.push_back(id);
    count.push_back(tree.duration[id].count);
    total.push_back(
        static_cast<int64_t>(std::llround(static_cast<double>(tree.exclusive[id]) * ns_per_tick)));
  }
  nb::dict rows;
  rows["node"] = toBytes(node);
  rows["count"] = toBytes(count);
  rows["total"] = toBytes(total);
  return rows;
}

nb::dict nodeColumns(const TreeReading &reading, nb::bytes frame_phase) {
  auto *phases = reinterpret_cast<const uint8_t *>(frame_phase.c_str());
  OrderedTree ordered =
      orderTree(reading.tree, std::vector<uint8_t>(phases, phases + frame_phase.size()));
  nb::dict columns;
  columns["parent"] = toBytes(ordered.parent);
  columns["frame"] = toBytes(ordered.frame);
  columns["phase"] = toBytes(ordered.phase);
  columns["subtree_end"] = toBytes(ordered.subtree_end);
  nb::dict metrics;
  metrics["host_time_ns"] = exclusiveRows(ordered, reading.ns_per_tick);
  metrics["call_duration_ns"] = durationRows(ordered, reading.ns_per_tick);
  const MetricRegistry &registry = MetricRegistry::instance();
  for (const auto &[metric, rows] : ordered.metrics) {
    double scale = registry.isTicks(metric) ? reading.ns_per_tick : 1.0;
    nb::dict row_columns = rowColumns(rows, scale);
    if (registry.isGauge(metric)) {
      for (const char *spread : {"minimum", "maximum", "m2"}) {
        PyDict_DelItemString(row_columns.ptr(), spread);
      }
    }
    metrics[registry.name(metric).c_str()] = row_columns;
  }
  columns["metrics"] = metrics;
  return columns;
}

nb::dict counters() {
  uint64_t operators = 0, found = 0, missed = 0, refused_levels = 0, cut = 0, refused = 0, back = 0;
  uint64_t lookups = 0;
  uint64_t samples = 0, sampled_ticks = 0, nodes = 0, threads = 0;
  for (Recorder *recorder : RecorderRegistry::instance().active()) {
    const RecorderCounters &own = recorder->counters;
    operators += own.operators.load(std::memory_order_relaxed);
    found += own.links_found.load(std::memory_order_relaxed);
    missed += own.links_missed.load(std::memory_order_relaxed);
    refused_levels += own.levels_refused.load(std::memory_order_relaxed);
    cut += own.paths_cut.load(std::memory_order_relaxed);
    lookups += own.address_lookups.load(std::memory_order_relaxed);
    back += own.clock_steps_back.load(std::memory_order_relaxed);
    samples += own.hook_samples.load(std::memory_order_relaxed);
    sampled_ticks += own.hook_ticks.load(std::memory_order_relaxed);
    refused += recorder->tree.refused();
    nodes += recorder->tree.size();
    ++threads;
  }
  double ns_per_tick = RecorderRegistry::instance().clock().nsPerTick();
  nb::dict values;
  values["operator_events"] = operators;
  values["backward_links_found"] = found;
  values["backward_links_missed"] = missed;
  values["levels_refused"] = refused_levels;
  values["lost_events"] = LostEvents::read();
  values["paths_cut"] = cut;
  values["clock_steps_back"] = back;
  values["address_lookups"] = lookups;
  values["contexts_refused"] = refused;
  values["names_refused"] = Interner::instance().refused();
  values["functions_refused"] = CodeTable::instance().refused();
  values["nodes"] = nodes;
  values["threads"] = threads;
  values["threads_joined"] = RecorderRegistry::instance().threadsJoined();
  values["hook_samples"] = samples;
  values["hook_ns"] = static_cast<double>(sampled_ticks) * ns_per_tick;
  return values;
}

CodeRole roleOf(const std::string &name) {
  static const std::map<std::string, CodeRole> roles = {
      {"hidden", CodeRole::kHidden},
      {"scope_plumbing", CodeRole::kScopePlumbing},
      {"module_call", CodeRole::kModuleCall},
      {"folded", CodeRole::kFolded},
  };
  auto found = roles.find(name);
  if (found == roles.end()) {
    throw nb::value_error("role is not one of hidden, scope_plumbing, module_call, folded");
  }
  return found->second;
}

CodeRule::FileMatch matchOf(const std::string &name) {
  if (name == "exact") {
    return CodeRule::FileMatch::kExact;
  }
  if (name == "prefix") {
    return CodeRule::FileMatch::kPrefix;
  }
  if (name == "suffix") {
    return CodeRule::FileMatch::kSuffix;
  }
  throw nb::value_error("match is not one of exact, prefix, suffix");
}

/// Open a scope in the caller's Python frame; the number names it to `leaveScope`.
uint64_t enterScope(const std::string &name) {
  if (!RecorderRegistry::isRecording()) {
    return 0;
  }
  static std::atomic<uint64_t> last_token{0};
  Recorder &recorder = RecorderRegistry::current();
  const InterpreterFrame *top = skipScopePlumbing(recorder, currentFrame(recorder));
  Node *parent = pythonContext(recorder, top, recorder.innermost());
  uint32_t name_id = Interner::instance().internBounded(name);
  Node *node = recorder.tree.child(parent, FrameKind::kScope, name_id, 0);
  // Odd, so that it never equals the address of a framework's object.
  uint64_t token = last_token.fetch_add(2) + 1;
  Level *level = recorder.push(LevelKind::kScope, node, reinterpret_cast<const void *>(token));
  if (!level) {
    return 0;
  }
  setAnchors(level, top);
  level->start_ticks = ticks();
  return token;
}

uint64_t closeScope(uint64_t token, uint64_t earlier_ticks, bool is_last) {
  uint64_t now = ticks();
  Recorder *recorder = RecorderRegistry::currentOrNull();
  if (!recorder || token == 0) {
    return 0;
  }
  return recorder->closeStep(reinterpret_cast<const void *>(token), now, earlier_ticks, is_last);
}

/// Close a scope until its function goes on, which opens another; returns the ticks it was open.
uint64_t pauseScope(uint64_t token) {
  return closeScope(token, 0, false);
}

void leaveScope(uint64_t token, uint64_t earlier_ticks) {
  closeScope(token, earlier_ticks, true);
}

/// Count one instant under the caller's call path.
void countEvent(const std::string &name) {
  if (!RecorderRegistry::isRecording()) {
    return;
  }
  Recorder &recorder = RecorderRegistry::current();
  Node *parent = pythonContext(recorder, currentFrame(recorder), recorder.innermost());
  uint32_t name_id = Interner::instance().internBounded(name);
  recorder.tree.child(parent, FrameKind::kMarker, name_id, 0)->duration.add(0);
}

nb::list walkOwnFrames() {
  nb::list frames;
  for (auto [code, offset] : walkForCheck()) {
    auto *object = reinterpret_cast<PyObject *>(const_cast<PyCodeObject *>(code));
    frames.append(nb::make_tuple(nb::borrow(object), offset));
  }
  return frames;
}

PyObject *orThrow(PyObject *result) {
  if (!result) {
    nb::raise_python_error();
  }
  return result;
}

void bindPython(nb::module_ &module) {
  module.def("add_code_rule", [](const std::string &match, const std::string &file,
                                 const std::string &qualified_name, const std::string &role,
                                 const std::string &marker) {
    CodeTable::instance().addRule({matchOf(match), file, qualified_name, roleOf(role), marker});
  });
  module.def("watch_code", [] {
    std::string reason;
    return CodeTable::instance().watch(&reason) ? std::string() : reason;
  });
  module.def("unwatch_code", [] { CodeTable::instance().unwatch(); });
  module.def("walk_own_frames", walkOwnFrames);
  module.def("line_of_instruction", [](nb::bytes table, int first_line, uint32_t offset) {
    return lineOfInstruction({table.c_str(), table.size()}, first_line, offset);
  });
  module.def("set_module_call", [](nb::object code) {
    // Kept alive for good: frames compare with its address.
    ModuleTable::setCallCode(code.is_none() ? nullptr : code.inc_ref().ptr());
  });
  module.def(
      "set_module_resolver",
      [](nb::object resolver) {
        ModuleTable::instance().start(resolver.is_none() ? nullptr : resolver.ptr());
      },
      nb::arg("resolver").none());
  module.def("resolve_modules", [] { ModuleTable::instance().resolve(); });
  module.def("name_module", [](uintptr_t address, std::string label) {
    ModuleTable::instance().name(reinterpret_cast<const void *>(address), std::move(label));
  });
  module.def("forget_module", [](uintptr_t address) {
    ModuleTable::instance().forget(reinterpret_cast<const void *>(address));
  });
  module.def("unnamed_modules", [] { return ModuleTable::instance().unnamed(); });
  module.def("objects_at", [](const std::vector<uintptr_t> &addresses) {
    return nb::steal<nb::list>(orThrow(objectsAt({addresses.begin(), addresses.end()})));
  });
  module.def("gradient_addresses", [](nb::list tensors, nb::type_object tensor, nb::object strided,
                                      nb::object is_deferred, const nb::args &backward) {
    GradientQuestion question{
        reinterpret_cast<PyTypeObject *>(tensor.ptr()), strided.ptr(), is_deferred.ptr(), {}};
    for (nb::handle code : backward) {
      question.backward.insert(reinterpret_cast<const PyCodeObject *>(code.ptr()));
    }
    return gradientAddresses(tensors.ptr(), question);
  });
  module.def("objects_of", [](const nb::args &types) {
    std::unordered_set<const PyTypeObject *> wanted;
    for (nb::handle type : types) {
      wanted.insert(reinterpret_cast<const PyTypeObject *>(nb::cast<nb::type_object>(type).ptr()));
    }
    return nb::steal<nb::list>(orThrow(objectsOf(wanted)));
  });
  module.def("clear_modules", [] { ModuleTable::instance().stop(); });
}

void bindWatcher(nb::module_ &module) {
  module.def("start_own_thread", [](nb::callable work) {
    OwnThreadInheritance inherited;
    nb::module_::import_("_thread").attr("start_new_thread")(work, nb::make_tuple());
  });
  module.def("start_watcher",
             [](nb::object callback, double first_seconds, double interval_seconds) {
               Watcher::instance().start(callback.ptr(), first_seconds, interval_seconds);
             });
  module.def("set_watcher_interval",
             [](double seconds) { Watcher::instance().setInterval(seconds); });
  module.def("stop_watcher", [] { Watcher::instance().stop(); });
  module.def("watcher_threads_refused", [] { return Watcher::instance().threadsRefused(); });
  module.def("set_exit_status", setExitStatus);
  module.def("pause_watcher", [] { ForkPause::instance().pause(); });
  module.def("resume_watcher", [] { ForkPause::instance().resume(); });
}

} // namespace

void bindSession(nb::module_ &module) {
  module.def("begin", [](uint32_t node_limit) {
    Interner::instance().clearRefused();
    CodeTable::instance().clearRefused();
    RecorderRegistry::instance().begin(node_limit);
  });
  module.def("end", [] { RecorderRegistry::instance().end(); });
  module.def("is_recording", [] { return RecorderRegistry::isRecording(); });
  nb::class_<TreeReading>(module, "TreeReading")
      .def("frame_columns", frameColumns)
      .def("node_columns", nodeColumns)
      .def_prop_ro("node_count",
                   [](const TreeReading &reading) { return reading.tree.parent.size(); });
  module.def("read_tree", readTree);
  module.def("counters", counters);
  module.def("enter_scope", enterScope);
  module.def("pause_scope", pauseScope);
  module.def("leave_scope", leaveScope, nb::arg("token"), nb::arg("earlier_ticks") = 0);
  module.def("count_event", countEvent);
  bindPython(module);
  bindWatcher(module);
}

} // namespace deepcontext
