#include "core/metric_row.h"

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "tests/check.h"

using namespace deepcontext;

namespace {

/// The two-pass definition, in long double.
MetricValues oracle(const std::vector<uint64_t> &values) {
  MetricValues expected;
  expected.count = values.size();
  if (values.empty()) {
    return expected;
  }
  long double sum = 0;
  for (uint64_t value : values) {
    expected.total += value;
    sum += static_cast<long double>(value);
  }
  long double mean = sum / static_cast<long double>(values.size());
  long double squares = 0;
  for (uint64_t value : values) {
    long double distance = static_cast<long double>(value) - mean;
    squares += distance * distance;
  }
  expected.minimum = *std::min_element(values.begin(), values.end());
  expected.maximum = *std::max_element(values.begin(), values.end());
  expected.m2 = static_cast<double>(squares);
  return expected;
}

MetricValues record(const std::vector<uint64_t> &values) {
  MetricRow row;
  for (uint64_t value : values) {
    row.add(value);
  }
  return row.read();
}

void checkSame(const MetricValues &seen, const MetricValues &expected, double relative) {
  CHECK_EQ(seen.count, expected.count);
  CHECK_EQ(seen.total, expected.total);
  CHECK_EQ(seen.minimum, expected.minimum);
  CHECK_EQ(seen.maximum, expected.maximum);
  CHECK_CLOSE(seen.m2, expected.m2, relative);
}

/// Durations as programs have them: a slow first call, then values around `typical`.
std::vector<uint64_t> durations(uint64_t seed, size_t count, uint64_t typical) {
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> spread(0.0, 0.6);
  std::vector<uint64_t> values;
  for (size_t i = 0; i < count; ++i) {
    double factor = i == 0 ? 300.0 : spread(random);
    values.push_back(static_cast<uint64_t>(static_cast<double>(typical) * factor));
  }
  return values;
}

} // namespace

TEST(a_row_equals_the_two_pass_definition) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    for (size_t count : {1u, 2u, 3u, 100u, 20'000u}) {
      std::vector<uint64_t> values = durations(seed, count, 2600);
      // The slow first call is the shift: it costs four digits of the spread, no more.
      checkSame(record(values), oracle(values), 1e-7);
    }
  }
}

TEST(values_far_from_zero_keep_their_spread) {
  std::vector<uint64_t> values;
  for (uint64_t i = 0; i < 1000; ++i) {
    values.push_back(1'000'000'000'000u + i % 7); // hours of ticks that differ by a few
  }
  checkSame(record(values), oracle(values), 1e-6);
}

TEST(values_below_the_first_are_counted_right) {
  checkSame(record({1000, 1, 2, 3, 0}), oracle({1000, 1, 2, 3, 0}), 1e-12);
}

TEST(equal_values_have_no_spread) {
  MetricValues seen = record(std::vector<uint64_t>(1000, 123'456'789));
  CHECK_EQ(seen.m2, 0.0);
}

TEST(an_empty_row_is_empty) {
  MetricValues seen = MetricRow().read();
  CHECK_EQ(seen.count, 0u);
  CHECK_EQ(seen.total, 0u);
  CHECK_EQ(seen.m2, 0.0);
}

TEST(reset_forgets) {
  MetricRow row;
  row.add(5);
  row.add(500);
  row.reset();
  CHECK_EQ(row.count(), 0u);
  row.add(7);
  row.add(9);
  checkSame(row.read(), oracle({7, 9}), 1e-12);
}

TEST(an_assigned_row_reads_as_given_and_goes_on) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<uint64_t> values = durations(seed, 500, 3000);
    std::vector<uint64_t> first(values.begin(), values.begin() + 400);
    MetricRow row;
    row.add(77);
    row.assign(oracle(first));
    checkSame(row.read(), oracle(first), 1e-9);
    for (size_t i = 400; i < 500; ++i) {
      row.add(values[i]);
    }
    checkSame(row.read(), oracle(values), 1e-9);
    row.assign(MetricValues());
    CHECK_EQ(row.read().count, 0u);
    CHECK_EQ(row.read().total, 0u);
  }
}

TEST(combining_parts_equals_the_whole) {
  std::vector<uint64_t> values = durations(5, 3000, 900);
  for (size_t cut : {0u, 1u, 2u, 1500u, 2999u, 3000u}) {
    auto middle = values.begin() + static_cast<std::ptrdiff_t>(cut);
    MetricValues parts = combine(record({values.begin(), middle}), record({middle, values.end()}));
    checkSame(parts, oracle(values), 1e-9);
  }
}

TEST(combine_is_associative_and_commutative) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    MetricValues a = record(durations(seed, random() % 4, 100));
    MetricValues b = record(durations(seed + 1000, random() % 50, 1 + random() % 1'000'000));
    MetricValues c = record(durations(seed + 2000, random() % 3, 5000));
    checkSame(combine(combine(a, b), c), combine(a, combine(b, c)), 1e-9);
    checkSame(combine(a, b), combine(b, a), 1e-12);
  }
}

TEST(a_reader_never_sees_a_torn_field) {
  // Every value has equal halves, so a field put together from two events would show.
  auto twin = [](uint64_t half) { return half << 32 | half; };
  MetricRow row;
  row.add(twin(500));
  std::atomic<bool> is_done{false};
  std::atomic<uint64_t> torn{0};
  std::thread reader([&] {
    while (!is_done.load()) {
      MetricValues seen = row.read();
      torn += (seen.minimum >> 32) != (seen.minimum & 0xFFFFFFFF);
      torn += (seen.maximum >> 32) != (seen.maximum & 0xFFFFFFFF);
    }
  });
  for (uint64_t i = 1; i < 500; ++i) {
    row.add(twin(500 + i));
    row.add(twin(500 - i));
  }
  is_done = true;
  reader.join();
  CHECK_EQ(torn.load(), 0u);
  CHECK_EQ(row.read().minimum, twin(1));
  CHECK_EQ(row.read().maximum, twin(999));
}
