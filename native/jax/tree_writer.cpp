#include "jax/tree_writer.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include "core/metric_registry.h"
#include "core/recorder.h"
#include "jax/attribution.h"
#include "jax/dispatch.h"
#include "jax/live_arrays.h"
#include "jax/operation_path.h"

namespace deepcontext::jax {

namespace {

constexpr double kMuchLonger = 2; // time of the parts of runs, by the time of whole ones

/// A dispatch node and how often it launched.
struct LaunchCount {
  NodeRef node;
  uint32_t function;
  uint64_t launches;
};

uint64_t totalOf(const Node &node, uint16_t metric) {
  for (const MetricSlot *slot = node.firstMetric(); slot;
       slot = slot->next.load(std::memory_order_acquire)) {
    if (slot->metric == metric) {
      return slot->row.read().total;
    }
  }
  return 0;
}

/// An operator node with `b` set is a jitted function's; PyTorch's have 0.
std::vector<LaunchCount> countLaunches() {
  std::vector<LaunchCount> counts;
  const DispatchMetrics &metrics = dispatchMetrics();
  for (Recorder *recorder : RecorderRegistry::instance().active()) {
    uint32_t size = recorder->tree.size();
    for (uint32_t id = 0; id < size; ++id) {
      const Node &node = *recorder->tree.node(id);
      if (node.kind != FrameKind::kOperator || node.b == 0) {
        continue;
      }
      uint64_t calls = node.calls();
      uint64_t not_launched = totalOf(node, metrics.not_launched);
      uint64_t launches = (calls > not_launched ? calls - not_launched : 0) +
                          totalOf(node, metrics.launched_inside);
      if (launches > 0) {
        counts.push_back({{recorder->index(), id}, static_cast<uint32_t>(node.b - 1), launches});
      }
    }
  }
  return counts;
}

class Writer {
public:
  Writer(Recorder &recorder, const Attribution &attribution)
      : tree_(recorder.tree), attribution_(attribution) {
    MetricRegistry &registry = MetricRegistry::instance();
    device_time_ = registry.id("device_time_ns");
    launch_count_ = registry.id("program_launch_count");
    flops_ = registry.id("flops");
    bytes_ = registry.id("bytes_moved");
    for (const auto &[node, programs] : attribution.totals()) {
      for (const auto &[program, totals] : programs) {
        whole_[program].add(totals);
      }
    }
    for (const auto &[node, programs] : attribution.firstRuns()) {
      for (const auto &[program, totals] : programs) {
        if (whole_[program].runs == 0) {
          whole_[program].add(totals); // for other launchers there is nothing better
        }
      }
    }
    parts_ = attribution.parts();
    for (auto &[program, sum] : parts_) {
      sum.totals.weight = 0; // becomes the number of launches
    }
  }

  WrittenCounts run() {
    std::vector<std::pair<LaunchCount, Shares>> launched;
    for (const LaunchCount &count : countLaunches()) {
      launched.emplace_back(count, split(count));
      for (const auto &[program, share] : launched.back().second) {
        auto parts = parts_.find(program);
        if (parts != parts_.end()) {
          parts->second.totals.weight += static_cast<double>(share);
        }
      }
    }
    dropUnneeded();
    for (const auto &[count, shares] : launched) {
      write(count, shares);
    }
    return counts_;
  }

private:
  using Shares = std::map<uint32_t, uint64_t>; // launches by program

  /// Parts are rough, so they count only where runs that were seen whole cannot stand for the rest:
  /// a part was longer than they are, and all parts together than they all.
  void dropUnneeded() {
    for (auto parts = parts_.begin(); parts != parts_.end();) {
      const RunTotals &whole = whole_[parts->first];
      const RunParts::Sum &sum = parts->second;
      double mean_ns = whole.runs > 0 ? whole.totalNs() / whole.weight : 0;
      bool is_needed = sum.longest_ns > kMuchLonger * mean_ns &&
                       sum.totals.totalNs() > kMuchLonger * mean_ns * sum.totals.weight;
      parts = is_needed ? std::next(parts) : parts_.erase(parts);
    }
  }

  void write(const LaunchCount &count, const Shares &shares) {
    counts_.launches += count.launches;
    Node *node = tree_.child(tree_.root(), FrameKind::kLink, count.node.recorder, count.node.node);
    MetricValues launches;
    launches.count = launches.total = count.launches;
    launches.minimum = launches.maximum = 1;
    tree_.metric(node, launch_count_).assign(launches);
    for (auto [program, share] : shares) {
      Node *parent = node;
      if (shares.size() > 1) {
        parent = tree_.child(node, FrameKind::kHlo, programName(program), 0);
        MetricValues part;
        part.count = share;
        // without a total, which is counted at the function
        tree_.metric(parent, launch_count_).assign(part);
      }
      writeProgram(parent, count.node, program, share);
    }
  }

  /// Divide a node's launches among programs, as the windows saw them at this node; without such
  /// windows, as they saw the programs that the node may have run.
  Shares split(const LaunchCount &count) {
    Shares shares;
    auto sampled = attribution_.totals().find(count.node);
    uint64_t seen = 0;
    if (sampled != attribution_.totals().end()) {
      for (const auto &[program, totals] : sampled->second) {
        seen += totals.launches;
      }
    }
    Shares weights;
    if (seen > 0) {
      for (const auto &[program, totals] : sampled->second) {
        weights[program] = totals.launches;
      }
    } else {
      std::vector<uint32_t> candidates = attribution_.programs().candidates(count.function, 0);
      for (uint32_t program : candidates) {
        auto whole = whole_.find(program);
        if (whole != whole_.end() && whole->second.runs > 0) {
          weights[program] = whole->second.runs;
        } else if (parts_.count(program)) {
          weights[program] = 1;
        }
      }
    }
    share(count.launches, weights, &shares);
    if (shares.empty()) {
      counts_.unsampled_launches += count.launches;
    }
    return shares;
  }

  /// Divide `launches` by weight; the rounding rest goes to the heaviest.
  static void share(uint64_t launches, const Shares &weights, Shares *shares) {
    uint64_t sum = 0;
    for (const auto &[program, weight] : weights) {
      sum += weight;
    }
    uint64_t left = launches;
    auto heaviest = weights.begin();
    for (auto weight = weights.begin(); weight != weights.end(); ++weight) {
      uint64_t part = launches * weight->second / sum;
      left -= part;
      if (part > 0) {
        (*shares)[weight->first] = part;
      }
      heaviest = weight->second > heaviest->second ? weight : heaviest;
    }
    if (left > 0 && heaviest != weights.end()) {
      (*shares)[heaviest->first] += left;
    }
  }

  uint32_t programName(uint32_t program) {
    const std::string &label = attribution_.programs()[program].label;
    std::string name = attribution_.programs()[program].program->module;
    name += label.empty() ? "#" + std::to_string(program) : label;
    return Interner::instance().intern(name);
  }

  using TotalsByNode = std::map<NodeRef, std::map<uint32_t, RunTotals>>;

  /// Measurements of a program for one launcher, or null.
  static const RunTotals *measured(const TotalsByNode &totals, NodeRef launcher, uint32_t program) {
    auto node = totals.find(launcher);
    if (node == totals.end()) {
      return nullptr;
    }
    auto found = node->second.find(program);
    return found != node->second.end() && found->second.runs > 0 ? &found->second : nullptr;
  }

  /// The first run represents only itself. The other runs represent the launches that were not
  /// measured. Runs of the same node are used if there are any, otherwise runs of the whole
  /// program.
  void writeProgram(Node *parent, NodeRef launcher, uint32_t program, uint64_t launches) {
    auto parts = parts_.find(program);
    if (parts != parts_.end()) {
      counts_.launches_by_parts += launches;
      writeTotals(parent, program, parts->second.totals, launches, /*is_of_parts=*/true);
      return;
    }
    const RunTotals *first = measured(attribution_.firstRuns(), launcher, program);
    const RunTotals *others = measured(attribution_.totals(), launcher, program);
    uint64_t first_runs = first ? std::min(first->runs, launches) : 0;
    if (!others && launches > first_runs) {
      auto whole = whole_.find(program);
      if (whole != whole_.end() && whole->second.runs > 0) {
        others = &whole->second;
        counts_.borrowed_launches += launches - first_runs;
      }
    }
    if (!first && !others) {
      counts_.unsampled_launches += launches;
      return;
    }
    if (!others) { // only the first run was measured
      writeTotals(parent, program, *first, launches);
      return;
    }
    if (first) {
      writeTotals(parent, program, *first, first_runs);
    }
    writeTotals(parent, program, *others, launches - first_runs);
  }

  void writeTotals(Node *parent, uint32_t program, const RunTotals &totals, uint64_t launches,
                   bool is_of_parts = false) {
    if (launches == 0) {
      return;
    }
    double scale = static_cast<double>(launches) / totals.weight;
    const Program &written = *attribution_.programs()[program].program;
    for (uint32_t i = 0; i < totals.operations.size(); ++i) {
      if (totals.operations[i].count > 0) {
        OperationTime &sum = counts_.operations[{program, i}];
        const Operation &operation = written.operations[i];
        // Parts of runs tell times, and not how often an operation ran.
        uint64_t count =
            is_of_parts && operation.runs > 0
                ? launches * operation.runs * written.devices
                : static_cast<uint64_t>(std::llround(totals.operations[i].count * scale));
        sum.is_count_estimated = sum.is_count_estimated ||
                                 (operation.runs == 0 && (is_of_parts || totals.runs < launches));
        writeOperation(parent, operation, totals.operations[i], scale, count, &sum);
      }
    }
  }

  void writeOperation(Node *parent, const Operation &operation, const OperationTotals &totals,
                      double scale, uint64_t count, OperationTime *sum) {
    MetricValues time;
    time.count = std::max<uint64_t>(count, 1);
    time.total = static_cast<uint64_t>(std::llround(totals.total_ns * scale));
    time.minimum = static_cast<uint64_t>(std::llround(totals.minimum_ns));
    time.maximum = static_cast<uint64_t>(std::llround(totals.maximum_ns));
    double mean = totals.total_ns / totals.count;
    time.m2 = std::max(0.0, totals.squares_ns - mean * totals.total_ns) * scale;
    sum->executions += time.count;
    sum->device_ns += time.total;
    sum->is_callback = operation.isCallback();
    if (sum->is_callback) {
      return; // the tree has the Python that it called
    }
    counts_.device_ns += static_cast<double>(time.total);
    Node *node = writeOperationPath(tree_, parent, operation);
    addTo(node, device_time_, time);
    addEach(node, flops_, operation.flops, time.count);
    addEach(node, bytes_, operation.bytes, time.count);
  }

  void addEach(Node *node, uint16_t metric, uint64_t value, uint64_t count) {
    if (value > 0) {
      addTo(node, metric, {count, value * count, value, value, 0});
    }
  }

  /// Two programs of one node may share a node when their frames are equal.
  void addTo(Node *node, uint16_t metric, const MetricValues &values) {
    MetricRow &row = tree_.metric(node, metric);
    row.assign(combine(row.read(), values));
  }

  ThreadTree &tree_;
  const Attribution &attribution_;
  std::map<uint32_t, RunTotals> whole_;     // by program, over all nodes
  std::map<uint32_t, RunParts::Sum> parts_; // of programs without enough whole runs
  uint16_t device_time_, launch_count_, flops_, bytes_;
  WrittenCounts counts_;
};

/// Write at the maker's node, or at the root when the maker is unknown.
void writeAt(ThreadTree &tree, NodeRef maker, uint16_t metric, uint64_t count, uint64_t total) {
  bool is_known = maker.recorder != NodeRef::unknown().recorder;
  Node *node = is_known ? tree.child(tree.root(), FrameKind::kLink, maker.recorder, maker.node)
                        : tree.root();
  MetricValues values;
  values.count = count;
  values.total = total;
  tree.metric(node, metric).assign(values);
}

void writeArrays(ThreadTree &tree, const HeldByNode &held, uint16_t metric) {
  for (const auto &[maker, arrays] : held) {
    writeAt(tree, maker, metric, arrays.count, arrays.bytes);
  }
}

void writeGrowth(ThreadTree &tree, const ArrayGrowth &growth, uint16_t metric) {
  for (const auto &[maker, grown] : growth.grown()) {
    writeAt(tree, maker, metric, grown.looks, grown.bytes);
  }
}

} // namespace

WrittenCounts writeOperationTimes(WithoutGil without_gil) {
  Recorder &recorder = RecorderRegistry::instance().makeDetached("jax", /*is_rewritten=*/true);
  MetricRegistry &registry = MetricRegistry::instance();
  writeArrays(recorder.tree, heldNow(), registry.id("jax_live_bytes"));
  writeArrays(recorder.tree, heldAtPeak(), registry.id("jax_peak_bytes"));
  writeGrowth(recorder.tree, arrayGrowth(/*is_device=*/false), registry.id("growth_bytes"));
  writeGrowth(recorder.tree, arrayGrowth(/*is_device=*/true), registry.id("gpu_growth_bytes"));
  const Attribution &attribution = Attribution::instance();
  std::unique_lock<Mutex> lock = attribution.lock(without_gil);
  return Writer(recorder, attribution).run();
}

} // namespace deepcontext::jax
