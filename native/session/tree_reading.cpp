#include "session/tree_reading.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

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

MergedTree readTree(const std::map<uint32_t, std::string> &labels) {
  return mergeTrees(RecorderRegistry::instance().active(), labels, ProfileFrameResolver(),
                    AllocationLedger::instance().rows(RecorderRegistry::generation()));
}

constexpr char kHostTime[] = "host_time_ns";
constexpr char kDuration[] = "call_duration_ns";

} // namespace

TreeReading::TreeReading(const std::vector<std::pair<uint64_t, std::string>> &thread_names)
    : windows_(Windows::instance().read()), exemplars_(Exemplars::instance().read()),
      labels_(labelsOf(RecorderRegistry::instance().active(), thread_names)),
      tree_(orderTree(readTree(labels_))),
      sites_(AllocationLedger::instance().nodesOfSites(RecorderRegistry::generation())),
      ns_per_tick_(RecorderRegistry::instance().clock().nsPerTick()) {}

std::vector<std::string> TreeReading::metricNames() const {
  std::vector<std::string> names = {kHostTime, kDuration};
  for (const auto &[id, rows] : tree_.metrics) {
    if (!rows.empty()) {
      names.push_back(MetricRegistry::instance().metric(id).name);
    }
  }
  return names;
}

bool TreeReading::hasSpread(const std::string &name) const {
  if (name == kHostTime || name == kDuration) {
    return name == kDuration;
  }
  auto known = std::find_if(tree_.metrics.begin(), tree_.metrics.end(), [&](const auto &rows) {
    return MetricRegistry::instance().metric(rows.first).name == name;
  });
  return known != tree_.metrics.end() && !MetricRegistry::instance().metric(known->first).is_gauge;
}

template <typename Visit> void TreeReading::forEachRow(const std::string &name, Visit visit) const {
  for (uint32_t node = 0; name == kHostTime && node < tree_.parent.size(); ++node) {
    const CostValues &cost = tree_.cost(node);
    if (cost.exclusive > 0) {
      MetricValues values;
      values.count = cost.duration.count;
      values.total = cost.exclusive;
      visit(node, values, true);
    }
  }
  for (uint32_t node = 0; name == kDuration && node < tree_.parent.size(); ++node) {
    const MetricValues &duration = tree_.cost(node).duration;
    if (duration.count > 0) {
      visit(node, duration, true);
    }
  }
  for (const auto &[id, rows] : tree_.metrics) {
    MetricRegistry::Metric metric = MetricRegistry::instance().metric(id);
    if (metric.name != name) {
      continue;
    }
    for (const NodeValues &row : rows) {
      visit(row.node, row.values, metric.is_ticks);
    }
  }
}

Column<uint32_t> TreeReading::rowNodes(const std::string &name) const {
  Column<uint32_t> column;
  column.reserve(tree_.parent.size());
  forEachRow(name, [&](uint32_t node, const MetricValues &, bool) { column.push_back(node); });
  return column;
}

Column<uint64_t> TreeReading::rowField(const std::string &name,
                                       uint64_t MetricValues::*field) const {
  bool is_count = field == &MetricValues::count;
  Column<uint64_t> column;
  column.reserve(tree_.parent.size());
  forEachRow(name, [&](uint32_t, const MetricValues &values, bool is_ticks) {
    uint64_t value = values.*field;
    column.push_back(is_ticks && !is_count ? toNs(value) : value);
  });
  return column;
}

Column<double> TreeReading::rowSpreads(const std::string &name) const {
  Column<double> column;
  column.reserve(tree_.parent.size());
  forEachRow(name, [&](uint32_t, const MetricValues &values, bool is_ticks) {
    column.push_back(is_ticks ? values.m2 * ns_per_tick_ * ns_per_tick_ : values.m2);
  });
  return column;
}

std::string TreeReading::labelOf(uint32_t recorder) const {
  auto named = labels_.find(recorder);
  const Recorder *own = RecorderRegistry::instance().at(recorder);
  return named != labels_.end() ? named->second : own ? own->label : std::string();
}

uint32_t TreeReading::placeOf(uint32_t recorder, uint32_t node) const {
  auto known = tree_.places.find(recorder);
  bool exists = known != tree_.places.end() && node < known->second.size();
  return exists ? known->second[node] : UINT32_MAX;
}

std::map<std::string, std::vector<TreeReading::WindowRow>>
TreeReading::windowRows(size_t place) const {
  std::map<std::string, std::vector<WindowRow>> rows;
  auto &durations = rows[kDuration], &host_times = rows[kHostTime];
  std::vector<std::pair<std::vector<WindowRow> *, bool>> of_metric; // and whether it is in ticks
  for (size_t id = 0; id < MetricRegistry::instance().size(); ++id) {
    MetricRegistry::Metric metric = MetricRegistry::instance().metric(static_cast<uint16_t>(id));
    of_metric.emplace_back(&rows[metric.name], metric.is_ticks);
  }
  for (const auto &[recorder, sums] : windows_.windows[place].sums) {
    bool is_memory = recorder == Windows::kMemory;
    sums.forEach([&, index = recorder](SumRow row) {
      if (is_memory && row.node >= sites_.size()) {
        return;
      }
      uint32_t node = is_memory ? placeOf(sites_[row.node].first, sites_[row.node].second)
                                : placeOf(index, row.node);
      if (node >= tree_.parent.size()) {
        return;
      }
      if (row.code != SumRow::kEvents) {
        auto &[own, is_ticks] = of_metric[row.code - 1u];
        own->push_back({node, row.count, is_ticks ? signedNs(row.total) : row.total});
        return;
      }
      if (row.count != 0 || row.total != 0) {
        // Most operators have no others inside: a column of zeros compresses.
        durations.push_back({node, row.count, signedNs(row.total) - signedNs(row.exclusive)});
      }
      if (row.exclusive != 0) {
        host_times.push_back({node, row.count, signedNs(row.exclusive)});
      }
    });
  }
  for (auto &[name, own] : rows) {
    std::stable_sort(own.begin(), own.end(),
                     [](const auto &left, const auto &right) { return left.node < right.node; });
    size_t kept = 0;
    for (const WindowRow &row : own) {
      if (kept > 0 && own[kept - 1].node == row.node) {
        own[kept - 1].count += row.count;
        own[kept - 1].total += row.total;
      } else {
        own[kept++] = row;
      }
    }
    own.resize(kept);
  }
  return rows;
}

std::vector<std::string> TreeReading::estimatedMetrics() const {
  std::set<uint16_t> found;
  for (const Recorder *recorder : RecorderRegistry::instance().active()) {
    for (uint32_t id = 0; recorder->is_rewritten && id < recorder->tree.size(); ++id) {
      for (const MetricSlot *slot = recorder->tree.node(id)->firstMetric(); slot;
           slot = slot->next.load(std::memory_order_acquire)) {
        found.insert(slot->metric);
      }
    }
  }
  std::vector<std::string> names;
  for (uint16_t id : found) {
    names.push_back(MetricRegistry::instance().metric(id).name);
  }
  return names;
}

} // namespace deepcontext
