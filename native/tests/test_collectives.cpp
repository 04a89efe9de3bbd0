// Numbers of collectives, and the choice of those that are kept.
#include <algorithm>
#include <set>

#include "tests/check.h"
#include "torch/collectives.h"

using namespace deepcontext::torch;

namespace {

void run(Collectives &table, uint64_t count, uint64_t ticks) {
  for (uint64_t i = 0; i < count; ++i) {
    table.call(1000 * i);
    table.end(table.begin(), 1000 * i + ticks);
  }
}

std::set<uint32_t> numbers(Collectives &table) {
  std::set<uint32_t> found;
  for (const Collective &row : table.read().rows) {
    found.insert(row.number);
  }
  return found;
}

} // namespace

TEST(works_belong_to_the_oldest_call_and_know_of_overlap) {
  auto &table = Collectives::instance();
  table.clear();
  table.call(10);
  table.call(20);
  Collective first = table.begin();
  Collective second = table.begin();
  table.end(second, 50);
  table.end(first, 60);
  table.call(70);
  table.end(table.begin(), 75);
  auto reading = table.read();
  CHECK(reading.called == 3 && reading.ended == 3 && reading.unmatched == 0);
  CHECK(reading.rows.size() == 3);
  CHECK(reading.rows[0].number == 1 && reading.rows[0].duration_ticks == 30);
  CHECK(reading.rows[0].overlaps);
  CHECK(reading.rows[1].number == 0 && reading.rows[1].duration_ticks == 50);
  CHECK(!reading.rows[1].overlaps);
  CHECK(!reading.rows[2].overlaps && reading.rows[2].duration_ticks == 5);
}

TEST(calls_without_work_and_work_without_a_call_are_counted) {
  auto &table = Collectives::instance();
  table.clear();
  table.end(table.begin(), 5);
  CHECK(table.read().unmatched == 1 && table.read().ended == 0);
  for (uint64_t i = 0; i < 300; ++i) {
    table.call(i);
  }
  CHECK(table.read().unmatched == 1 + 300 - 256);
}

TEST(what_is_kept_is_bounded_and_depends_on_the_numbers_only) {
  auto &table = Collectives::instance();
  table.clear();
  run(table, 100'000, 7);
  std::set<uint32_t> once = numbers(table);
  CHECK(table.read().ended == 100'000);
  CHECK(once.size() >= 256 && once.size() <= Collectives::kMostRows);
  CHECK(*once.rbegin() - *once.begin() > 50'000);
  table.clear();
  run(table, 120'000, 9); // another rank, other durations
  std::set<uint32_t> again = numbers(table);
  size_t common = std::count_if(again.begin(), again.end(),
                                [&](uint32_t number) { return once.count(number) == 1; });
  CHECK(common >= 192);
  static_assert(sizeof(Collectives) < 64 * 1024);
}

TEST(calls_and_works_are_known_by_their_names) {
  CHECK(Collectives::isCall("c10d::allreduce_") && Collectives::isCall("c10d::barrier"));
  CHECK(!Collectives::isCall("c10d::broadcast_") && !Collectives::isCall("aten::add"));
  CHECK(Collectives::isWork("gloo:all_reduce") && !Collectives::isWork("gloo:broadcast"));
  CHECK(!Collectives::isWork("gloo:reduce"));
}
