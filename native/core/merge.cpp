#include "core/merge.h"

#include <algorithm>
#include <unordered_map>

#include "core/probe_table.h"

namespace deepcontext {

namespace {

constexpr uint32_t kUnmapped = UINT32_MAX;
constexpr uint32_t kNotShown = UINT32_MAX; // in place of a frame id

struct FrameHash {
  size_t operator()(const FrameRecord &frame) const {
    uint64_t hash = (static_cast<uint64_t>(frame.name) << 32 | frame.file) * 0x9E3779B97F4A7C15u;
    hash ^= (static_cast<uint64_t>(frame.line) << 8 | static_cast<uint8_t>(frame.kind)) *
            0xC2B2AE3D27D4EB4Fu;
    return hash ^ (hash >> 31);
  }
};

/// A node without its parent; equal keys of one kind resolve to equal frames.
struct NodeKey {
  uint64_t a;
  uint64_t b;
  FrameKind kind;
  bool operator==(const NodeKey &other) const {
    return a == other.a && b == other.b && kind == other.kind;
  }
};
struct NodeKeyHash {
  size_t operator()(const NodeKey &key) const {
    uint64_t hash = key.a * 0x9E3779B97F4A7C15u ^
                    (key.b + static_cast<uint8_t>(key.kind)) * 0xC2B2AE3D27D4EB4Fu;
    return hash ^ (hash >> 31);
  }
};

/// A node of the merged tree by its parent and its frame.
struct MergedChild {
  struct Key {
    const MergedTree &tree;
    uint32_t parent;
    uint32_t frame;
  };
  uint32_t node = 0; // the root, which is no child: a free slot
  uint32_t kept_hash = 0;
  bool isFree() const { return node == 0; }
  bool isOf(const Key &key) const {
    return key.tree.parent[node] == key.parent && key.tree.frame[node] == key.frame;
  }
  uint64_t hash() const { return kept_hash; }
  static uint32_t hashOf(const Key &key) {
    uint64_t hash = (static_cast<uint64_t>(key.parent) << 32 | key.frame) * 0x9E3779B97F4A7C15u;
    return static_cast<uint32_t>(hash >> 32);
  }
};

/// Sort rows by node, and combine those of one node.
void combineRows(MetricRows &rows) {
  auto is_before = [](const NodeValues &left, const NodeValues &right) {
    return left.node < right.node;
  };
  if (!std::is_sorted(rows.begin(), rows.end(), is_before)) {
    std::stable_sort(rows.begin(), rows.end(), is_before);
  }
  size_t kept = 0;
  for (const NodeValues &row : rows) {
    if (kept > 0 && rows[kept - 1].node == row.node) {
      rows[kept - 1].values = combine(rows[kept - 1].values, row.values);
    } else {
      rows[kept++] = row;
    }
  }
  rows.resize(kept);
}

class Merger {
public:
  Merger(const std::vector<Recorder *> &recorders, const std::map<uint32_t, std::string> &labels,
         const FrameResolver &resolver)
      : labels_(labels), resolver_(resolver) {
    size_t nodes = 1;
    for (Recorder *recorder : recorders) {
      uint32_t index = recorder->index();
      sources_.resize(std::max<size_t>(sources_.size(), index + 1));
      sources_[index].recorder = recorder;
      sources_[index].mapped.resize(recorder->tree.size(), kUnmapped);
      nodes += recorder->tree.size();
    }
    tree_.parent.reserve(nodes);
    tree_.frame.reserve(nodes);
    tree_.flags.reserve(nodes);
    tree_.cost_of.reserve(nodes);
    tree_.costs.reserve(nodes);
    tree_.costs.emplace_back();
    addNode(0, addFrame({FrameKind::kRoot, Interner::instance().intern("root"),
                         Interner::instance().intern(""), 0}));
  }

  MergedTree run(ForeignRows rows) {
    for (uint32_t index = 0; index < sources_.size(); ++index) {
      Recorder *recorder = sources_[index].recorder;
      uint32_t size = recorder ? recorder->tree.size() : 0;
      for (uint32_t id = 0; id < size; ++id) {
        map({index, id});
      }
    }
    for (auto &[metric, foreign] : rows) {
      auto is_lost = [&](const NodeValues &row) { return !exists({row.recorder, row.node}); };
      foreign.erase(std::remove_if(foreign.begin(), foreign.end(), is_lost), foreign.end());
      for (NodeValues &row : foreign) {
        Place place{row.recorder, row.node};
        map(place); // may have been made since the walk above
        row.node = mappedOf(place);
      }
      MetricRows &own = tree_.metrics[metric];
      if (own.empty()) {
        own = std::move(foreign);
      } else {
        own.insert(own.end(), foreign.begin(), foreign.end());
      }
    }
    for (auto &[metric, merged] : tree_.metrics) {
      combineRows(merged);
    }
    for (uint32_t index = 0; index < sources_.size(); ++index) {
      if (sources_[index].recorder) {
        tree_.places.emplace(index, std::move(sources_[index].mapped));
      }
    }
    return std::move(tree_);
  }

private:
  struct Place {
    uint32_t recorder;
    uint32_t id;
  };
  struct Source {
    Recorder *recorder = nullptr;
    Column<uint32_t> mapped; // node id -> merged node
  };

  uint32_t &mappedOf(Place place) {
    Source &source = sources_[place.recorder];
    if (place.id >= source.mapped.size()) {
      // The tree may have grown meanwhile.
      source.mapped.resize(source.recorder->tree.size(), kUnmapped);
    }
    return source.mapped[place.id];
  }

  bool exists(Place place) const {
    const Recorder *recorder =
        place.recorder < sources_.size() ? sources_[place.recorder].recorder : nullptr;
    return recorder && place.id < recorder->tree.size();
  }

  const Node &nodeOf(Place place) {
    return *sources_[place.recorder].recorder->tree.node(place.id);
  }

  /// What must be mapped before `place`: its parent, or what it links to.
  Place dependency(Place place, const Node &node) const {
    if (node.kind == FrameKind::kLink) {
      Place target{static_cast<uint32_t>(node.a), static_cast<uint32_t>(node.b)};
      return exists(target) ? target : Place{place.recorder, 0};
    }
    return {place.recorder, node.parent->id};
  }

  void map(Place wanted) {
    pending_.assign(1, wanted);
    while (!pending_.empty()) {
      Place place = pending_.back();
      if (mappedOf(place) != kUnmapped) {
        pending_.pop_back();
        continue;
      }
      const Node &node = nodeOf(place);
      if (node.kind == FrameKind::kRoot) {
        bool is_thread = !sources_[place.recorder].recorder->is_detached;
        uint32_t merged = is_thread ? child(0, threadFrame(place.recorder)) : 0;
        mappedOf(place) = merged;
        // a full tree charges refused contexts to the parent, which may be the root
        absorb(merged, node);
        continue;
      }
      Place before = dependency(place, node);
      uint32_t base = mappedOf(before);
      if (base == kUnmapped) {
        pending_.push_back(before);
        continue;
      }
      uint32_t frame = node.kind == FrameKind::kLink ? kNotShown : frameOf(node);
      uint32_t merged = frame == kNotShown ? base : child(base, frame);
      mappedOf(place) = merged;
      absorb(merged, node);
    }
  }

  void absorb(uint32_t merged, const Node &node) {
    tree_.flags[merged] |= node.flags.load(std::memory_order_relaxed);
    const NodeCost *cost = node.cost();
    if (!cost) {
      return;
    }
    MetricValues duration = cost->duration.read();
    uint64_t exclusive = cost->exclusive.load(std::memory_order_relaxed);
    if (duration.count > 0 || exclusive > 0) {
      CostValues &sum = costOf(merged);
      sum.duration = combine(sum.duration, duration);
      sum.exclusive += exclusive;
    }
    for (const MetricSlot *slot = node.firstMetric(); slot;
         slot = slot->next.load(std::memory_order_acquire)) {
      tree_.metrics[slot->metric].push_back({merged, 0, slot->row.read()});
    }
  }

  CostValues &costOf(uint32_t merged) {
    if (tree_.cost_of[merged] == 0) {
      tree_.cost_of[merged] = static_cast<uint32_t>(tree_.costs.size());
      tree_.costs.emplace_back();
    }
    return tree_.costs[tree_.cost_of[merged]];
  }

  uint32_t threadFrame(uint32_t recorder) {
    auto label = labels_.find(recorder);
    const std::string &name =
        label == labels_.end() ? sources_[recorder].recorder->label : label->second;
    return addFrame({FrameKind::kThread, Interner::instance().intern(name),
                     Interner::instance().intern(""), 0});
  }

  uint32_t frameOf(const Node &node) {
    NodeKey key{node.a, node.b, node.kind};
    auto known = frame_of_key_.find(key);
    if (known != frame_of_key_.end()) {
      return known->second;
    }
    FrameRecord record = resolver_.resolve(node);
    uint32_t frame = record.kind == FrameKind::kLink ? kNotShown : addFrame(record);
    frame_of_key_.emplace(key, frame);
    return frame;
  }

  uint32_t addFrame(const FrameRecord &frame) {
    auto [place, is_new] = frame_ids_.emplace(frame, static_cast<uint32_t>(tree_.frames.size()));
    if (is_new) {
      tree_.frames.push_back(frame);
    }
    return place->second;
  }

  uint32_t child(uint32_t parent, uint32_t frame) {
    MergedChild::Key key{tree_, parent, frame};
    if (const MergedChild *known = children_.find(key)) {
      return known->node;
    }
    if (!children_.makeRoom()) {
      throw std::bad_alloc();
    }
    uint32_t id = addNode(parent, frame);
    children_.insert({id, MergedChild::hashOf(key)});
    return id;
  }

  uint32_t addNode(uint32_t parent, uint32_t frame) {
    tree_.parent.push_back(parent);
    tree_.frame.push_back(frame);
    tree_.flags.push_back(0);
    tree_.cost_of.push_back(0);
    return static_cast<uint32_t>(tree_.parent.size() - 1);
  }

  const std::map<uint32_t, std::string> &labels_;
  const FrameResolver &resolver_;
  std::vector<Source> sources_; // by the index of a recorder
  std::vector<Place> pending_;
  std::unordered_map<NodeKey, uint32_t, NodeKeyHash> frame_of_key_;
  std::unordered_map<FrameRecord, uint32_t, FrameHash> frame_ids_;
  ProbeTable<MergedChild, 75> children_;
  MergedTree tree_;
};

} // namespace

MergedTree mergeTrees(const std::vector<Recorder *> &recorders,
                      const std::map<uint32_t, std::string> &labels, const FrameResolver &resolver,
                      ForeignRows rows) {
  return Merger(recorders, labels, resolver).run(std::move(rows));
}

} // namespace deepcontext
