#include "session/tree_reading.h"

#include <cmath>
#include <map>

#include "core/allocation_ledger.h"
#include "core/metric_registry.h"
#include "sampling/thread_names.h"
#include "session/frame_resolver.h"

namespace deepcontext {

namespace {

/// Labels of recorders by their index, for recorders whose thread Python has named.
std::map<uint32_t, std::string>
labelsOf(const std::vector<Recorder *> &recorders,
         const std::vector<std::pair<uint64_t, std::string>> &thread_names) {
  std::map<uint64_t, std::string> names;
  for (const auto &[handle, name] : thread_names) {
    names.emplace(handle, withoutNumbers(name)); // as the recorders' labels
  }
  ThreadNames::instance().name(names);
  std::map<uint32_t, std::string> labels;
  for (Recorder *recorder : recorders) {
    auto named = names.find(recorder->thread_handle.load(std::memory_order_relaxed));
    // Where several threads wrote to a recorder, the name of the last one would be wrong.
    if (named != names.end() && recorder->is_of_one_thread.load(std::memory_order_relaxed)) {
      labels.emplace(recorder->index(), named->second);
    }
  }
  return labels;
}

MergedTree readTree(const std::vector<std::pair<uint64_t, std::string>> &thread_names) {
  std::vector<Recorder *> recorders = RecorderRegistry::instance().active();
  std::map<uint32_t, std::string> labels = labelsOf(recorders, thread_names);
  return mergeTrees(recorders, labels, ProfileFrameResolver(),
                    AllocationLedger::instance().rows(RecorderRegistry::generation()));
}

/// Values in ticks as ns.
MetricValues toNs(const MetricValues &ticks, double ns_per_tick) {
  auto scaled = [&](uint64_t value) {
    return static_cast<uint64_t>(std::llround(static_cast<double>(value) * ns_per_tick));
  };
  return {ticks.count, scaled(ticks.total), scaled(ticks.minimum), scaled(ticks.maximum),
          ticks.m2 * ns_per_tick * ns_per_tick};
}

MetricTable exclusiveTimes(const OrderedTree &tree, double ns_per_tick) {
  MetricTable table{"host_time_ns", false, {}};
  for (uint32_t id = 0; id < tree.parent.size(); ++id) {
    if (tree.exclusive[id] > 0) {
      MetricValues values;
      values.count = tree.duration[id].count;
      values.total = tree.exclusive[id];
      table.rows.emplace_back(id, toNs(values, ns_per_tick));
    }
  }
  return table;
}

MetricTable durations(const OrderedTree &tree, double ns_per_tick) {
  MetricTable table{"call_duration_ns", true, {}};
  for (uint32_t id = 0; id < tree.parent.size(); ++id) {
    if (tree.duration[id].count > 0) {
      table.rows.emplace_back(id, toNs(tree.duration[id], ns_per_tick));
    }
  }
  return table;
}

} // namespace

TreeReading::TreeReading(const std::vector<std::pair<uint64_t, std::string>> &thread_names)
    : tree_(readTree(thread_names)),
      ns_per_tick_(RecorderRegistry::instance().clock().nsPerTick()) {}

NodeTable TreeReading::nodes(const std::vector<uint8_t> &frame_phase) const {
  NodeTable nodes;
  nodes.tree = orderTree(tree_, frame_phase);
  nodes.metrics.push_back(exclusiveTimes(nodes.tree, ns_per_tick_));
  nodes.metrics.push_back(durations(nodes.tree, ns_per_tick_));
  for (auto &[id, rows] : nodes.tree.metrics) {
    MetricRegistry::Metric metric = MetricRegistry::instance().metric(id);
    if (metric.is_ticks) {
      for (auto &[node, values] : rows) {
        values = toNs(values, ns_per_tick_);
      }
    }
    nodes.metrics.push_back({metric.name, !metric.is_gauge, std::move(rows)});
  }
  nodes.tree.metrics.clear();
  return nodes;
}

} // namespace deepcontext
