#pragma once
// Count, sum, minimum, maximum and spread of one metric at one node, without a division per event.
#include <atomic>
#include <cstdint>

namespace deepcontext {

/// What a reader sees of a row.
struct MetricValues {
  uint64_t count = 0;
  uint64_t total = 0;
  uint64_t minimum = 0;
  uint64_t maximum = 0;
  double m2 = 0; // sum of squared distances from the mean
};

/// One writer, any number of readers, who may see the fields of one event half applied, never a
/// torn field, and never an event in the count alone: the count is stored last and read first, so
/// that a row with a count has a minimum. All of these are plain moves, but for the count on
/// aarch64.
///
/// The spread is kept as squares around the first value (shifted data), so that rows can be merged
/// and no event needs a division.
/// Source: Chan, Golub, LeVeque (1983), "Algorithms for computing the sample variance".
class MetricRow {
public:
  __attribute__((always_inline)) void add(uint64_t value) {
    uint64_t count = count_.load(std::memory_order_relaxed);
    if (__builtin_expect(count == 0, 0)) {
      shift_.store(value, std::memory_order_relaxed);
      minimum_.store(value, std::memory_order_relaxed);
      maximum_.store(value, std::memory_order_relaxed);
    } else {
      if (value < minimum_.load(std::memory_order_relaxed)) {
        minimum_.store(value, std::memory_order_relaxed);
      }
      if (value > maximum_.load(std::memory_order_relaxed)) {
        maximum_.store(value, std::memory_order_relaxed);
      }
      double distance =
          static_cast<double>(static_cast<int64_t>(value - shift_.load(std::memory_order_relaxed)));
      squares_.store(squares_.load(std::memory_order_relaxed) + distance * distance,
                     std::memory_order_relaxed);
    }
    total_.store(total_.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
    count_.store(count + 1, std::memory_order_release);
  }

  uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  uint64_t total() const { return total_.load(std::memory_order_relaxed); }
  MetricValues read() const;
  /// Replace the values by those of an estimate.
  void assign(const MetricValues &values);
  void reset();

private:
  std::atomic<uint64_t> count_{0};
  std::atomic<uint64_t> total_{0};
  std::atomic<uint64_t> minimum_{0};
  std::atomic<uint64_t> maximum_{0};
  std::atomic<uint64_t> shift_{0};
  std::atomic<double> squares_{0};
};

/// Combine two disjoint sets of events of one node (Chan et al.).
MetricValues combine(const MetricValues &left, const MetricValues &right);

} // namespace deepcontext
