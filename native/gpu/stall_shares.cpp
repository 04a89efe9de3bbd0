// Stall samples below the kernels they were taken in.
//
// A sample names a function, not a launch. So the samples of a kernel are divided among the call
// paths that launched it, in proportion to its device time from each.
#include <algorithm>

#include "gpu/attribution.h"

namespace deepcontext::gpu {

std::vector<uint64_t> shareOut(uint64_t samples, const std::vector<uint64_t> &weights) {
  double whole = 0;
  for (uint64_t weight : weights) {
    whole += static_cast<double>(weight);
  }
  std::vector<uint64_t> parts;
  std::vector<std::pair<double, size_t>> remainders;
  uint64_t given = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    double exact =
        whole > 0 ? static_cast<double>(samples) * (static_cast<double>(weights[i]) / whole) : 0;
    uint64_t part = std::min(static_cast<uint64_t>(exact), samples - given);
    parts.push_back(part);
    given += part;
    remainders.emplace_back(exact - static_cast<double>(part), i);
  }
  std::sort(remainders.rbegin(), remainders.rend());
  // more than one round only when all weights are 0
  while (given < samples && !remainders.empty()) {
    for (size_t i = 0; given < samples && i < remainders.size(); ++i, ++given) {
      ++parts[remainders[i].second];
    }
  }
  return parts;
}

/// Samples of kernels whose records have not come wait until the end of the session.
void Attribution::publishStalls(bool is_final) {
  for (auto &[kernel, places] : stalls.take()) {
    for (const auto &[place, samples] : places) {
      waiting_stalls_[kernel][place] += samples;
    }
  }
  if (waiting_stalls_.empty()) {
    return;
  }
  std::map<uint32_t, std::vector<const Slot *>> launched; // by kernel name
  slots_.forEach([&](const Slot &slot) {
    if (slot.node->kind == FrameKind::kKernel) {
      launched[static_cast<uint32_t>(slot.node->a)].push_back(&slot);
    }
  });
  for (auto kernel = waiting_stalls_.begin(); kernel != waiting_stalls_.end();) {
    auto found = launched.find(kernel->first);
    std::vector<Node *> nodes;
    std::vector<uint64_t> times;
    if (found != launched.end()) {
      for (const Slot *slot : found->second) {
        nodes.push_back(slot->node);
        times.push_back(slot->time->read().total);
      }
    } else if (is_final) { // its records were lost
      nodes.push_back(recorder_->tree.child(parentNode(unattributedKey()), FrameKind::kKernel,
                                            kernel->first, 0));
      times.push_back(1);
    } else {
      ++kernel;
      continue;
    }
    shareStalls(kernel->second, nodes, times);
    kernel = waiting_stalls_.erase(kernel);
  }
}

void Attribution::shareStalls(const StallTable::Places &places, const std::vector<Node *> &nodes,
                              const std::vector<uint64_t> &times) {
  ThreadTree &tree = recorder_->tree;
  for (const auto &[place, samples] : places) {
    std::vector<uint64_t> parts = shareOut(samples, times);
    uint64_t where = static_cast<uint64_t>(place.file) << 32 | place.line;
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (parts[i] > 0) {
        Node *stall = tree.child(nodes[i], FrameKind::kStall, place.reason, where);
        tree.metric(stall, stall_metric_).add(parts[i]);
      }
    }
  }
}

} // namespace deepcontext::gpu
