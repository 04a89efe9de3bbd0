#pragma once
// Copies of the sums of a tree by node id, without names and order, and the differences of two.
#include <cstdint>
#include <vector>

#include "core/thread_tree.h"
#include "core/varints.h"

namespace deepcontext {

/// Sums of one node: of its events, or of one metric.
struct SumRow {
  static constexpr uint16_t kEvents = 0; // otherwise 1 + MetricRegistry id
  uint32_t node = 0;
  uint16_t code = kEvents;
  int64_t count = 0;
  int64_t total = 0;     // of the events' durations in ticks, or of the metric in its unit
  int64_t exclusive = 0; // of the events, in ticks
};

/// Ascending by node; of one node, in the order in which its metrics were made.
using Sums = std::vector<SumRow>;

/// Append the sums of `tree` to `sums`. `wants[id]`: whether a metric is wanted. The owner may be
/// writing: the sums of a node that it writes now may have half an event.
void copySums(const ThreadTree &tree, const std::vector<bool> &wants, Sums *sums);

/// Differences of sums, a few bytes a row.
class PackedSums {
public:
  /// Append a row, which follows the rows so far.
  void add(const SumRow &row);
  template <typename Visit> void forEach(Visit visit) const {
    size_t place = 0;
    SumRow row;
    while (place < numbers_.bytes()) {
      row.node += static_cast<uint32_t>(numbers_.number(&place));
      row.code = static_cast<uint16_t>(numbers_.number(&place));
      row.count = numbers_.signedNumber(&place);
      row.total = numbers_.signedNumber(&place);
      row.exclusive = row.code == SumRow::kEvents ? numbers_.signedNumber(&place) : 0;
      visit(row);
    }
  }
  size_t bytes() const { return numbers_.bytes(); }
  bool empty() const { return numbers_.empty(); }

private:
  Varints numbers_;
  uint32_t last_node_ = 0;
};

/// `later` minus `earlier`, a copy of the same tree: rows in which anything differs.
PackedSums difference(const Sums &later, const Sums &earlier);
/// The sums of two differences.
PackedSums together(const PackedSums &left, const PackedSums &right);

} // namespace deepcontext
