// Sessions, trees and scopes, as Python sees them (typed in _native.pyi).
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <memory>
#include <type_traits>
#include <unordered_map>

#include "bindings/bindings.h"
#include "bindings/node_paths.h"
#include "bindings/text.h"
#include "core/exemplars.h"
#include "core/guard.h"
#include "core/steps.h"
#include "python/callable_names.h"
#include "python/code_table.h"
#include "python/gil_release.h"
#include "python/scopes.h"
#include "session/tree_reading.h"
#include "session/window_cutter.h"

namespace nb = nanobind;

namespace deepcontext {

namespace {

/// A column as bytes, little-endian like this machine. Without numpy, which must not be imported
/// into the program under test.
template <typename Values> nb::bytes toBytes(const Values &values) {
  using T = typename Values::value_type;
  static_assert(std::is_trivially_copyable_v<T>);
  return nb::bytes(values.data(), values.size() * sizeof(T));
}

/// Dense ids for the interned texts that a tree uses.
class StringColumn {
public:
  uint32_t add(uint32_t interned) {
    auto [place, is_new] = ids_.emplace(interned, static_cast<uint32_t>(ids_.size()));
    if (is_new) {
      texts_.append(Interner::instance().text(interned));
    }
    return place->second;
  }
  nb::list texts() const { return texts_; }

private:
  std::unordered_map<uint32_t, uint32_t> ids_;
  nb::list texts_;
};

nb::dict frameColumns(const TreeReading &reading) {
  StringColumn strings;
  std::vector<uint8_t> kind;
  std::vector<uint32_t> name, file, line;
  for (const FrameRecord &frame : reading.tree().frames) {
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

nb::bytes metricColumn(const TreeReading &reading, const std::string &metric,
                       const std::string &field) {
  if (field == "node") {
    return toBytes(reading.rowNodes(metric));
  }
  if (field == "m2") {
    return toBytes(reading.rowSpreads(metric));
  }
  return toBytes(reading.rowField(metric, field == "count"     ? &MetricValues::count
                                          : field == "total"   ? &MetricValues::total
                                          : field == "minimum" ? &MetricValues::minimum
                                                               : &MetricValues::maximum));
}

nb::list metricFields(const TreeReading &reading, const std::string &metric) {
  nb::list fields;
  for (const char *field : {"node", "count", "total", "minimum", "maximum", "m2"}) {
    if (fields.size() < 3 || reading.hasSpread(metric)) {
      fields.append(field);
    }
  }
  return fields;
}

nb::dict nodeColumns(const TreeReading &reading, nb::bytes frame_phase) {
  auto *phases = reinterpret_cast<const uint8_t *>(frame_phase.c_str());
  nb::dict columns;
  columns["parent"] = toBytes(reading.tree().parent);
  columns["frame"] = toBytes(reading.tree().frame);
  columns["phase"] = toBytes(phasesOf(reading.tree(), {phases, phases + frame_phase.size()}));
  columns["subtree_end"] = toBytes(reading.tree().subtree_end);
  return columns;
}

/// Counters of the recording threads, summed.
nb::dict counters() {
  const RecorderRegistry &registry = RecorderRegistry::instance();
  std::vector<Recorder *> recorders = registry.active();
  auto sum = [&](std::atomic<uint64_t> RecorderCounters::*counter) {
    return RecorderCounters::sum(recorders, counter);
  };
  uint64_t refused = 0, nodes = 0;
  for (const Recorder *recorder : recorders) {
    refused += recorder->tree.refused();
    nodes += recorder->tree.size();
  }
  nb::dict values;
  values["operator_events"] = sum(&RecorderCounters::operators);
  values["backward_links_found"] = sum(&RecorderCounters::links_found);
  values["backward_links_missed"] = sum(&RecorderCounters::links_missed);
  values["levels_refused"] = sum(&RecorderCounters::levels_refused);
  values["scopes_refused"] = sum(&RecorderCounters::scopes_refused);
  values["lost_events"] = LostEvents::read();
  values["paths_cut"] = sum(&RecorderCounters::paths_cut);
  values["clock_steps_back"] = sum(&RecorderCounters::clock_steps_back);
  values["address_lookups"] = sum(&RecorderCounters::address_lookups);
  values["contexts_refused"] = refused;
  values["names_refused"] = Interner::instance().refused();
  values["functions_refused"] = CodeTable::instance().refused();
  values["nodes"] = nodes;
  values["threads"] = recorders.size();
  values["threads_joined"] = registry.threadsJoined();
  values["hook_samples"] = sum(&RecorderCounters::hook_samples);
  values["hook_ns"] =
      static_cast<double>(sum(&RecorderCounters::hook_ticks)) * registry.clock().nsPerTick();
  return values;
}

/// The windows up to the last cut, without their rows; times in ns since the first one began.
nb::list windowList(const TreeReading &reading) {
  auto toNs = [&](uint64_t ticks) {
    return static_cast<uint64_t>(std::llround(static_cast<double>(ticks) * reading.nsPerTick()));
  };
  nb::list windows;
  for (const Window &window : reading.windows().windows) {
    const MetricValues &durations = window.durations;
    nb::dict values;
    values["first_step"] = window.first_step;
    values["end_step"] = window.end_step;
    values["begin_ns"] = toNs(window.begin_ticks - reading.windows().begin_ticks);
    values["end_ns"] = toNs(window.end_ticks - reading.windows().begin_ticks);
    values["cpu_user_ns"] = window.cpu_user_ns;
    values["cpu_system_ns"] = window.cpu_system_ns;
    values["timed_steps"] = durations.count;
    values["step_total_ns"] = toNs(durations.total);
    values["step_minimum_ns"] = toNs(durations.minimum);
    values["step_maximum_ns"] = toNs(durations.maximum);
    values["step_m2"] = durations.m2 * reading.nsPerTick() * reading.nsPerTick();
    windows.append(values);
  }
  return windows;
}

/// (metric, node_step, count, total) of each metric with rows in a window; the last three as
/// columns. `node_step`: how far the node is from that of the row before.
nb::list windowRows(const TreeReading &reading, size_t place) {
  nb::list metrics;
  for (const auto &[name, rows] : reading.windowRows(place)) {
    if (rows.empty()) {
      continue;
    }
    std::vector<uint32_t> node;
    std::vector<int64_t> count, total;
    uint32_t before = 0;
    for (const TreeReading::WindowRow &row : rows) {
      node.push_back(row.node - before);
      before = row.node;
      count.push_back(row.count);
      total.push_back(row.total);
    }
    metrics.append(nb::make_tuple(name, toBytes(node), toBytes(count), toBytes(total)));
  }
  return metrics;
}

/// What cutting has cost, and how exact it is.
nb::dict cutCosts(const TreeReading &reading) {
  const CutCosts &costs = reading.windows().costs;
  nb::dict values;
  values["window_cuts"] = costs.cuts;
  values["window_cut_ns"] = costs.cpu_ns;
  values["window_longest_cut_ns"] = costs.most_cpu_ns;
  values["window_lag_ns"] =
      static_cast<uint64_t>(static_cast<double>(costs.most_lag_ticks) * reading.nsPerTick());
  values["window_nodes"] = costs.nodes;
  return values;
}

/// The steps that were kept whole, without their spans; times in ns since the session's start.
nb::list exemplarList(const TreeReading &reading) {
  const TickClock &clock = RecorderRegistry::instance().clock();
  nb::list exemplars;
  for (const Exemplar &exemplar : reading.exemplars().exemplars) {
    const StepHistory::Step &step = exemplar.step;
    nb::dict values;
    values["number"] = step.number;
    values["begin_ns"] = clock.nsSinceStart(step.end_ticks - step.duration);
    values["end_ns"] = clock.nsSinceStart(step.end_ticks);
    values["reasons"] = static_cast<uint32_t>(exemplar.reasons);
    exemplars.append(values);
  }
  return exemplars;
}

/// (facts, node_step, end_step, duration_ns) of each thread and stream of an exemplar; the last
/// three as columns in the order in which the spans ended. Steps are from the span before; ends are
/// counted from the begin of the exemplar.
nb::list exemplarLanes(const TreeReading &reading, size_t place) {
  const Exemplar &exemplar = reading.exemplars().exemplars.at(place);
  uint64_t begin_ticks = exemplar.step.end_ticks - exemplar.step.duration;
  auto toNs = [&](uint64_t ticks) {
    return static_cast<int64_t>(std::llround(
        static_cast<double>(static_cast<int64_t>(ticks - begin_ticks)) * reading.nsPerTick()));
  };
  nb::list lanes;
  for (const Exemplar::Lane &lane : exemplar.lanes) {
    Column<int32_t> node_step;
    Column<int64_t> end_step, duration_ns;
    int64_t last_end = 0;
    uint32_t last_node = 0;
    lane.spans.forEach([&](const Span &span) {
      uint32_t node = reading.placeOf(lane.recorder, span.node);
      if (node == UINT32_MAX) {
        return;
      }
      int64_t end = toNs(span.end_ticks);
      node_step.push_back(static_cast<int32_t>(node - last_node));
      end_step.push_back(end - last_end);
      duration_ns.push_back(end - toNs(span.begin_ticks));
      last_node = node;
      last_end = end;
    });
    nb::dict facts;
    facts["name"] = reading.labelOf(lane.recorder);
    facts["recorder"] = lane.recorder;
    facts["is_device"] = lane.lane != 0;
    facts["device"] = lane.lane != 0 ? Span::deviceOf(lane.lane) : 0;
    facts["stream"] = lane.lane != 0 ? Span::streamOf(lane.lane) : 0;
    facts["known_from_ns"] = lane.known_from > begin_ticks ? toNs(lane.known_from) : 0;
    lanes.append(
        nb::make_tuple(facts, toBytes(node_step), toBytes(end_step), toBytes(duration_ns)));
  }
  return lanes;
}

/// What keeping steps has cost.
nb::dict exemplarCosts(const TreeReading &reading) {
  const ExemplarCosts &costs = reading.exemplars().costs;
  uint64_t without_spans = 0;
  for (const Recorder *recorder : RecorderRegistry::instance().active()) {
    without_spans += recorder->spans.isRefused();
  }
  nb::dict values;
  values["exemplar_copies"] = costs.copies;
  values["exemplar_copy_ns"] = costs.cpu_ns;
  values["exemplars_refused"] = costs.refused;
  values["timeline_threads_refused"] = without_spans;
  return values;
}

/// What ends steps, where, and what is known about their durations, in ns.
nb::dict steps() {
  StepsSeen seen = Steps::instance().read();
  double ns_per_tick = RecorderRegistry::instance().clock().nsPerTick();
  auto toNs = [&](uint64_t ticks) { return static_cast<double>(ticks) * ns_per_tick; };
  nb::dict values;
  values["source"] = static_cast<int>(seen.end.source);
  values["path"] = seen.end.node ? pathAsList(*seen.end.node, RecorderRegistry::instance().active())
                                 : nb::list();
  values["steps"] = seen.count;
  values["count"] = seen.durations.count;
  values["total_ns"] = toNs(seen.durations.total);
  values["minimum_ns"] = toNs(seen.durations.minimum);
  values["maximum_ns"] = toNs(seen.durations.maximum);
  values["m2"] = seen.durations.m2 * ns_per_tick * ns_per_tick;
  auto wholeNs = [&](uint64_t ticks) {
    return static_cast<uint64_t>(std::llround(static_cast<double>(ticks) * ns_per_tick));
  };
  auto history = std::make_unique<StepHistory>(Steps::instance().history());
  nb::list bins, parts, slowest, slow;
  SlowSteps::Facts slow_steps = Steps::instance().slowSteps();
  auto step = [&](const StepHistory::Step &each) {
    return nb::make_tuple(each.number,
                          RecorderRegistry::instance().clock().nsSinceStart(each.end_ticks),
                          wholeNs(each.duration));
  };
  for (size_t place = 0; place < StepHistory::kBins; ++place) {
    if (uint64_t count = history->bins()[place]) {
      double end = std::pow(StepHistory::growth(), static_cast<double>(place));
      bins.append(nb::make_tuple(end * (1 - StepHistory::kError) * ns_per_tick, count));
    }
  }
  for (const StepHistory::Part &part : history->parts()) {
    if (part.count > 0) {
      parts.append(nb::make_tuple(part.count, wholeNs(part.total), wholeNs(part.minimum),
                                  wholeNs(part.maximum)));
    }
  }
  for (const StepHistory::Step &each : history->slowest()) {
    if (each.duration > 0) {
      slowest.append(step(each));
    }
  }
  for (const SlowSteps::Slow &each : slow_steps.slowest) {
    if (each.step.duration > 0) {
      slow.append(step(each.step) + nb::make_tuple(wholeNs(each.work)));
    }
  }
  values["bins"] = bins;
  values["parts"] = parts;
  values["slowest"] = slowest;
  values["slow"] = slow;
  values["slow_count"] = slow_steps.count;
  values["slow_total_ns"] = wholeNs(slow_steps.total);
  return values;
}

} // namespace

void bindSession(nb::module_ &module) {
  module.def(
      "begin",
      [](uint32_t node_limit, bool takes_spans) {
        Interner::instance().clearRefused();
        CodeTable::instance().clearRefused();
        RecorderRegistry::instance().begin(node_limit, takes_spans);
      },
      nb::arg("node_limit"), nb::arg("takes_spans") = false);
  module.def("end", [] { RecorderRegistry::instance().end(); });
  module.def("is_recording", [] { return RecorderRegistry::isRecording(); });
  nb::class_<TreeReading>(module, "TreeReading")
      .def("frame_columns", frameColumns)
      .def("node_columns", nodeColumns)
      .def("metric_names", &TreeReading::metricNames)
      .def("metric_fields", metricFields)
      .def("metric_column", metricColumn)
      .def("windows", windowList)
      .def("window_rows", windowRows)
      .def("cut_costs", cutCosts)
      .def("exemplars", exemplarList)
      .def("exemplar_lanes", exemplarLanes)
      .def("exemplar_costs", exemplarCosts)
      .def("estimated_metrics", &TreeReading::estimatedMetrics);
  module.def("start_windows", [](std::vector<std::string> metrics) {
    Windows::instance().begin(std::move(metrics));
    Exemplars::instance().begin();
    WindowCutter::instance().start();
  });
  module.def("stop_windows", [] {
    WindowCutter::instance().stop();
    Windows::instance().end();
    Exemplars::instance().end();
  });
  module.def("are_windows_refused", [] { return WindowCutter::instance().isRefused(); });
  module.def("read_tree", [](const std::vector<std::pair<uint64_t, std::string>> &thread_names) {
    nameCallables();
    GilRelease release;
    return TreeReading(thread_names);
  });
  module.def("counters", counters);
  module.def("steps", steps);
  module.def("enter_scope", enterScope);
  module.def("pause_scope", pauseScope);
  module.def("leave_scope", leaveScope, nb::arg("token"), nb::arg("earlier_ticks") = 0);
  module.def("count_event", countEvent);
}

} // namespace deepcontext
