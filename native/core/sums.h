#pragma once
// Copies of the sums of a tree by node id, without names and order, and the differences of two.
#include <cstdint>
#include <vector>

#include "core/thread_tree.h"

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
    while (place < bytes_.size()) {
      row.node += static_cast<uint32_t>(number(&place));
      row.code = static_cast<uint16_t>(number(&place));
      row.count = signedNumber(&place);
      row.total = signedNumber(&place);
      row.exclusive = row.code == SumRow::kEvents ? signedNumber(&place) : 0;
      visit(row);
    }
  }
  size_t bytes() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }

private:
  void put(uint64_t value);
  void putSigned(int64_t value) {
    put(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
  }
  uint64_t number(size_t *place) const {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      uint8_t byte = bytes_[(*place)++];
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) {
        return value;
      }
    }
  }
  int64_t signedNumber(size_t *place) const {
    uint64_t value = number(place);
    return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }

  std::vector<uint8_t> bytes_;
  uint32_t last_node_ = 0;
};

/// `later` minus `earlier`, a copy of the same tree: rows in which anything differs.
PackedSums difference(const Sums &later, const Sums &earlier);
/// The sums of two differences.
PackedSums together(const PackedSums &left, const PackedSums &right);

} // namespace deepcontext
