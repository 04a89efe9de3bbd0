#include "core/sums.h"

#include <algorithm>

namespace deepcontext {

void copySums(const ThreadTree &tree, const std::vector<bool> &wants, Sums *sums) {
  uint32_t size = tree.size();
  for (uint32_t id = 0; id < size; ++id) {
    const Node &node = *tree.node(id);
    const NodeCost *cost = node.cost();
    if (!cost) {
      continue;
    }
    auto count = static_cast<int64_t>(cost->duration.count());
    auto exclusive = static_cast<int64_t>(cost->exclusive.load(std::memory_order_relaxed));
    if (count > 0 || exclusive > 0) {
      auto total = static_cast<int64_t>(cost->duration.total());
      sums->push_back({id, SumRow::kEvents, count, total, exclusive});
    }
    for (const MetricSlot *slot = cost->metrics.load(std::memory_order_acquire); slot;
         slot = slot->next.load(std::memory_order_acquire)) {
      if (slot->metric < wants.size() && wants[slot->metric]) {
        auto code = static_cast<uint16_t>(slot->metric + 1);
        sums->push_back({id, code, static_cast<int64_t>(slot->row.count()),
                         static_cast<int64_t>(slot->row.total()), 0});
      }
    }
  }
}

void PackedSums::add(const SumRow &row) {
  numbers_.put(row.node - last_node_);
  last_node_ = row.node;
  numbers_.put(row.code);
  numbers_.putSigned(row.count);
  numbers_.putSigned(row.total);
  if (row.code == SumRow::kEvents) {
    numbers_.putSigned(row.exclusive);
  }
}

PackedSums difference(const Sums &later, const Sums &earlier) {
  PackedSums packed;
  // Rows are only added: of a new node, or after the other rows of a node, its events before all.
  auto before = earlier.begin();
  for (SumRow row : later) {
    if (before != earlier.end() && before->node == row.node && before->code == row.code) {
      row.count -= before->count;
      row.total -= before->total;
      row.exclusive -= before->exclusive;
      ++before;
    }
    if (row.count != 0 || row.total != 0 || row.exclusive != 0) {
      packed.add(row);
    }
  }
  return packed;
}

PackedSums together(const PackedSums &left, const PackedSums &right) {
  constexpr uint16_t kTaken = UINT16_MAX;
  Sums one, other;
  left.forEach([&](const SumRow &row) { one.push_back(row); });
  right.forEach([&](const SumRow &row) { other.push_back(row); });
  PackedSums packed;
  auto add = [&](const SumRow &row) {
    if (row.code != kTaken) {
      packed.add(row);
    }
  };
  auto next = other.begin();
  for (SumRow row : one) {
    while (next != other.end() && next->node < row.node) {
      add(*next++);
    }
    // A node has few rows.
    for (auto same = next; same != other.end() && same->node == row.node; ++same) {
      if (same->code == row.code) {
        row.count += same->count;
        row.total += same->total;
        row.exclusive += same->exclusive;
        same->code = kTaken;
      }
    }
    packed.add(row);
  }
  std::for_each(next, other.end(), add);
  return packed;
}

} // namespace deepcontext
