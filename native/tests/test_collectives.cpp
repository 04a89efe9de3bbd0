// Numbers of collectives, and the choice of those that are kept.
#include <algorithm>
#include <cmath>
#include <set>

#include "core/recorder.h"
#include "tests/check.h"
#include "torch/collectives.h"

using namespace deepcontext;
using namespace deepcontext::torch;

namespace {

constexpr int kThread = 7; // of the first group
constexpr int kOther = 8;  // of another
constexpr uint8_t kAllReduce = 0;

void run(Collectives &table, uint64_t count, uint64_t ticks) {
  for (uint64_t i = 0; i < count; ++i) {
    table.call(0, kAllReduce, 1000 * i);
    table.end(table.begin(kThread), 1000 * i + ticks);
  }
}

std::set<uint32_t> numbers(Collectives &table) {
  std::set<uint32_t> found;
  for (const CollectiveRow &row : table.read().rows) {
    found.insert(row.number);
  }
  return found;
}

} // namespace

TEST(works_belong_to_the_oldest_call_of_their_group) {
  auto &table = Collectives::instance();
  table.clear();
  table.call(0, kAllReduce, 10);
  table.end(table.begin(kThread), 15); // the thread is known from here on
  table.call(1, kAllReduce, 20);
  table.call(0, kAllReduce, 30);
  table.call(0, kAllReduce, 40);
  Collective first = table.begin(kThread);
  Collective second = table.begin(kThread);
  Collective other = table.begin(kOther); // the only one left
  CHECK(first.start_ticks == 30 && second.start_ticks == 40 && other.start_ticks == 20);
  CHECK(other.group == 1 && other.number == 0);
  CHECK(first.group == 0 && first.number == 1 && second.number == 2);
  table.end(second, 50);
  table.end(first, 60);
  table.end(other, 61);
  auto reading = table.read();
  CHECK(reading.called[0] == 3 && reading.called[1] == 1);
  CHECK(reading.ended == 4 && reading.unmatched == 0);
  CHECK(reading.rows.size() == 4);
  CHECK(reading.rows[1].number == 2 && reading.rows[1].duration_ticks == 10);
  CHECK(reading.rows[3].group == 1 && reading.rows[3].duration_ticks == 41);
}

TEST(own_time_is_what_lies_between_collectives_since_the_groups_last) {
  auto &table = Collectives::instance();
  table.clear();
  table.call(0, kAllReduce, 100);
  table.end(table.begin(kThread), 130);
  table.call(0, kAllReduce, 170); // 40 after an end
  table.call(1, kAllReduce, 190); // 20 after a call
  table.end(table.begin(kThread), 200);
  table.end(table.begin(kOther), 210);
  table.call(0, kAllReduce, 215); // 5 after an end
  table.end(table.begin(kThread), 216);
  auto rows = table.read().rows;
  CHECK(rows.size() == 4);
  CHECK(rows[0].own_ticks == 0 && rows[1].own_ticks == 40);
  CHECK(rows[2].own_ticks == 40 + 20 && rows[2].group == 1); // the group's first
  CHECK(rows[3].own_ticks == 20 + 5 && rows[3].order == 3 && rows[3].number == 2);
}

TEST(samples_of_a_stretch_belong_to_the_collective_that_ends_it) {
  auto &table = Collectives::instance();
  Stretch &stretch = Stretch::instance();
  table.clear();
  CHECK(!stretch.isOpen());
  Node places[6] = {};
  table.call(0, kAllReduce, 1);
  CHECK(stretch.isOpen() && stretch.isInFlight());
  stretch.add(&places[0], Doing::kRunning, 5);
  stretch.add(&places[1], Doing::kWaiting, 7);
  stretch.add(&places[0], Doing::kRunning, 6);
  table.call(1, kAllReduce, 2);
  for (uint64_t i = 0; i < 6; ++i) {
    stretch.add(&places[i], Doing::kOperator, 10 + i); // more places than are kept
  }
  table.call(0, kAllReduce, 3);
  auto samples = table.read().samples;
  CHECK(samples.size() == 2 + Stretch::kMostParts);
  CHECK(samples[0].node == &places[0] && samples[0].ns == 11 && samples[0].order == 1);
  CHECK(samples[1].doing == static_cast<uint8_t>(Doing::kWaiting) && samples[1].number == 0);
  CHECK(std::none_of(samples.begin() + 2, samples.end(),
                     [](const StretchSample &each) { return each.ns < 12; }));
  CHECK(samples[2].order == 2 && samples[2].number == 1);
}

TEST(a_call_whose_work_runs_on_a_device_ends_there) {
  auto &table = Collectives::instance();
  table.clear();
  uint32_t order = table.call(0, kAllReduce, 100);
  CHECK(Stretch::instance().isInFlight());
  CHECK(table.callOnDevice(order, 3, kAllReduce, 4096, 110) == order);
  CHECK(!Stretch::instance().isInFlight());
  uint32_t next = table.callOnDevice(Collectives::kNoCall, 3, kAllReduce, 8, 200);
  CHECK(next == order + 1);
  CHECK(table.read().rows.empty()); // nothing has ended
  auto ns = [](uint64_t ticks) {
    return static_cast<double>(ticks) * RecorderRegistry::instance().clock().nsPerTick();
  };
  table.endOnDevice(order, {1'000'000, 3'000'000, 1'000'000});
  table.endOnDevice(order, {3'000'000, 4'000'000, 0}); // its second kernel
  table.endOnDevice(next, {9'000'000, 9'500'000, 500'000});
  auto reading = table.read();
  CHECK(reading.called[0] == 0 && reading.called[3] == 2);
  CHECK(reading.ended == 0 && reading.ended_on_device == 2 && reading.unmatched == 0);
  CHECK(reading.rows.size() == 2);
  const CollectiveRow &first = reading.rows[0], &second = reading.rows[1];
  CHECK(first.group == 3 && first.number == 0 && first.size_bytes == 4096);
  CHECK(std::abs(ns(first.duration_ticks) - 3e6) < 3e4);
  CHECK(std::abs(ExposedShare::value(first.exposed) - 1.0 / 3) < 0.02);
  CHECK(first.own_ticks == 0 && second.number == 1);
  CHECK(std::abs(ns(second.own_ticks) - 5e6) < 5e4); // between the kernels
  CHECK(ExposedShare::value(second.exposed) == 1);
}

TEST(work_of_the_host_is_matched_beside_that_of_a_device) {
  auto &table = Collectives::instance();
  table.clear();
  for (uint64_t i = 0; i < 200; ++i) {
    table.callOnDevice(table.call(0, kAllReduce, 10 * i), 1, kAllReduce, 4, 10 * i);
    table.call(0, kAllReduce, 10 * i + 1);
    Collective work = table.begin(kThread);
    CHECK(work.number == i && work.group == 0);
    table.end(work, 10 * i + 4);
  }
  auto reading = table.read();
  CHECK(reading.called[0] == 200 && reading.called[1] == 200);
  CHECK(reading.ended == 200 && reading.unmatched == 0);
  CHECK(!Stretch::instance().isInFlight());
}

TEST(what_is_waited_is_charged_to_the_collective_that_ends_first) {
  auto &table = Collectives::instance();
  Stretch &stretch = Stretch::instance();
  table.clear();
  Node place{};
  table.call(0, kAllReduce, 0);
  Collective first = table.begin(kThread);
  table.end(first, 1'000'000);
  CHECK(table.read().rows[0].exposed == ExposedShare::kUnknown); // there is no sampler
  table.call(0, kAllReduce, 2'000'000);
  table.call(0, kAllReduce, 2'000'000);
  Collective second = table.begin(kThread), third = table.begin(kThread);
  double ns_per_tick = RecorderRegistry::instance().clock().nsPerTick();
  auto waited_ns = static_cast<uint64_t>(500'000 * ns_per_tick);
  stretch.add(&place, Doing::kRunning, 300);
  stretch.add(&place, Doing::kCollective, waited_ns);
  table.end(second, 3'000'000);
  stretch.add(&place, Doing::kCollective, waited_ns / 2);
  table.end(third, 3'000'000);
  auto rows = table.read().rows;
  CHECK(std::abs(ExposedShare::value(rows[1].exposed) - 0.5) < 0.02);
  CHECK(std::abs(ExposedShare::value(rows[2].exposed) - 0.25) < 0.02);
}

TEST(calls_without_work_and_work_without_a_call_are_counted) {
  auto &table = Collectives::instance();
  table.clear();
  table.end(table.begin(kThread), 5);
  CHECK(table.read().unmatched == 1 && table.read().ended == 0);
  for (uint64_t i = 0; i < 300; ++i) {
    table.call(0, kAllReduce, i);
  }
  CHECK(table.read().unmatched == 1 + 300 - 64);
}

TEST(what_is_kept_is_bounded_and_depends_on_the_numbers_only) {
  auto &table = Collectives::instance();
  table.clear();
  run(table, 100'000, 7);
  std::set<uint32_t> once = numbers(table);
  CHECK(table.read().ended == 100'000);
  CHECK(once.size() >= 256 && once.size() <= Collectives::Sample::kMostRows);
  CHECK(*once.rbegin() - *once.begin() > 50'000);
  table.clear();
  run(table, 120'000, 9); // another rank, other durations
  std::set<uint32_t> again = numbers(table);
  size_t common = std::count_if(again.begin(), again.end(),
                                [&](uint32_t number) { return once.count(number) == 1; });
  CHECK(common >= 192);
  static_assert(sizeof(Collectives) + sizeof(Stretch) < 64 * 1024);
}

TEST(samples_are_bounded_and_kept_as_the_rows_are) {
  auto &table = Collectives::instance();
  table.clear();
  Node place;
  for (uint64_t i = 0; i < 20'000; ++i) {
    Stretch::instance().add(&place, Doing::kRunning, 1 + i);
    table.call(0, kAllReduce, 1000 * i);
    table.end(table.begin(kThread), 1000 * i + 3);
  }
  std::set<uint32_t> kept = numbers(table);
  auto samples = table.read().samples;
  CHECK(samples.size() > 200 && samples.size() <= Collectives::Sample::kMostSamples);
  for (const StretchSample &each : samples) {
    CHECK(kept.count(each.number) == 1);
    CHECK(each.ns == 1 + each.number);
  }
}

TEST(calls_and_works_are_known_by_their_names) {
  CHECK(Collectives::operationOf("c10d::allreduce_") == kAllReduce);
  CHECK(Collectives::operationOf("c10d::barrier") == Collectives::kHostOperations - 1);
  CHECK(!Collectives::operationOf("c10d::allgather_into_tensor_coalesced_"));
  CHECK(Collectives::operationOnDevice("allreduce") == kAllReduce);
  CHECK(Collectives::operationOnDevice("allreduce_sparse") == kAllReduce);
  CHECK(Collectives::operationOnDevice("reduce_scatter_tensor_coalesced") == 10);
  CHECK(!Collectives::operationOnDevice("wait") && !Collectives::operationOnDevice("send"));
  CHECK(!Collectives::operationOf("c10d::broadcast_") && !Collectives::operationOf("aten::add"));
  CHECK(Collectives::isWork("gloo:all_reduce") && !Collectives::isWork("gloo:broadcast"));
  CHECK(!Collectives::isWork("gloo:reduce"));
}
