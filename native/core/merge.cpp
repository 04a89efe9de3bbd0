#include "core/merge.h"

#include <unordered_map>

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

class Merger {
public:
  Merger(const std::vector<Recorder *> &recorders, const std::map<uint32_t, std::string> &labels,
         const FrameResolver &resolver)
      : labels_(labels), resolver_(resolver) {
    for (Recorder *recorder : recorders) {
      sources_[recorder->index()].recorder = recorder;
    }
    addNode(0, addFrame({FrameKind::kRoot, Interner::instance().intern("root"),
                         Interner::instance().intern(""), 0}));
  }

  MergedTree run(const std::vector<ForeignRow> &rows) {
    for (auto &[index, source] : sources_) {
      uint32_t size = source.recorder->tree.size();
      for (uint32_t id = 0; id < size; ++id) {
        map({index, id});
      }
    }
    for (const ForeignRow &row : rows) {
      if (exists({row.recorder, row.node})) {
        map({row.recorder, row.node}); // may have been made since the walk above
        MetricValues &values = metrics_[row.metric][mappedOf({row.recorder, row.node})];
        values = combine(values, row.values);
      }
    }
    for (const auto &[metric, merged] : metrics_) {
      tree_.metrics[metric].assign(merged.begin(), merged.end());
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
    std::vector<uint32_t> mapped; // node id -> merged node
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
    auto source = sources_.find(place.recorder);
    return source != sources_.end() && place.id < source->second.recorder->tree.size();
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
    tree_.duration[merged] = combine(tree_.duration[merged], node.duration.read());
    tree_.exclusive[merged] += node.exclusive.load(std::memory_order_relaxed);
    for (const MetricSlot *slot = node.metrics.load(std::memory_order_acquire); slot;
         slot = slot->next.load(std::memory_order_acquire)) {
      MetricValues &values = metrics_[slot->metric][merged];
      values = combine(values, slot->row.read());
    }
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
    uint64_t key = static_cast<uint64_t>(parent) << 32 | frame;
    auto known = children_.find(key);
    if (known != children_.end()) {
      return known->second;
    }
    uint32_t id = addNode(parent, frame);
    children_.emplace(key, id);
    return id;
  }

  uint32_t addNode(uint32_t parent, uint32_t frame) {
    tree_.parent.push_back(parent);
    tree_.frame.push_back(frame);
    tree_.flags.push_back(0);
    tree_.duration.emplace_back();
    tree_.exclusive.push_back(0);
    return static_cast<uint32_t>(tree_.parent.size() - 1);
  }

  const std::map<uint32_t, std::string> &labels_;
  const FrameResolver &resolver_;
  std::map<uint32_t, Source> sources_;
  std::vector<Place> pending_;
  std::unordered_map<NodeKey, uint32_t, NodeKeyHash> frame_of_key_;
  std::unordered_map<FrameRecord, uint32_t, FrameHash> frame_ids_;
  std::unordered_map<uint64_t, uint32_t> children_;
  std::map<uint16_t, std::unordered_map<uint32_t, MetricValues>> metrics_;
  MergedTree tree_;
};

} // namespace

MergedTree mergeTrees(const std::vector<Recorder *> &recorders,
                      const std::map<uint32_t, std::string> &labels, const FrameResolver &resolver,
                      const std::vector<ForeignRow> &rows) {
  return Merger(recorders, labels, resolver).run(rows);
}

} // namespace deepcontext
