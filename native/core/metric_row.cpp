#include "core/metric_row.h"

#include <algorithm>

namespace deepcontext {

MetricValues MetricRow::read() const {
  MetricValues values;
  values.count = count_.load(std::memory_order_acquire);
  values.total = total_.load(std::memory_order_relaxed);
  values.minimum = minimum_.load(std::memory_order_relaxed);
  values.maximum = maximum_.load(std::memory_order_relaxed);
  if (values.count > 1) {
    double count = static_cast<double>(values.count);
    double shift = static_cast<double>(shift_.load(std::memory_order_relaxed));
    double from_shift = static_cast<double>(values.total) - count * shift;
    values.m2 =
        std::max(0.0, squares_.load(std::memory_order_relaxed) - from_shift * from_shift / count);
  }
  return values;
}

void MetricRow::assign(const MetricValues &values) {
  double count = static_cast<double>(values.count);
  uint64_t mean = values.count ? values.total / values.count : 0;
  double from_mean = static_cast<double>(values.total) - count * static_cast<double>(mean);
  total_.store(values.total, std::memory_order_relaxed);
  minimum_.store(values.minimum, std::memory_order_relaxed);
  maximum_.store(values.maximum, std::memory_order_relaxed);
  shift_.store(mean, std::memory_order_relaxed);
  squares_.store(values.m2 + (values.count ? from_mean * from_mean / count : 0.0),
                 std::memory_order_relaxed);
  count_.store(values.count, std::memory_order_release);
}

void MetricRow::reset() {
  for (auto *field : {&count_, &total_, &minimum_, &maximum_, &shift_}) {
    field->store(0, std::memory_order_relaxed);
  }
  squares_.store(0, std::memory_order_relaxed);
}

MetricValues combine(const MetricValues &left, const MetricValues &right) {
  if (left.count == 0) {
    return right;
  }
  if (right.count == 0) {
    return left;
  }
  MetricValues sum;
  sum.count = left.count + right.count;
  sum.total = left.total + right.total;
  sum.minimum = std::min(left.minimum, right.minimum);
  sum.maximum = std::max(left.maximum, right.maximum);
  double left_count = static_cast<double>(left.count);
  double right_count = static_cast<double>(right.count);
  double distance =
      static_cast<double>(right.total) / right_count - static_cast<double>(left.total) / left_count;
  sum.m2 = left.m2 + right.m2 +
           distance * distance * left_count * right_count / static_cast<double>(sum.count);
  return sum;
}

} // namespace deepcontext
