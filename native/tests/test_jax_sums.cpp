#include <cmath>
#include <random>

#include "jax/array_growth.h"
#include "jax/device_waits.h"
#include "jax/run_parts.h"
#include "jax/run_totals.h"
#include "tests/check.h"

using namespace deepcontext::jax;

namespace {

constexpr uint64_t kMicrosecond = 1000;

/// A program of one operation, which takes all of a run.
Program oneOperation() {
  Program program;
  Operation operation;
  operation.name = "dot";
  program.by_name.emplace("dot", 0);
  program.operations.push_back(operation);
  return program;
}

Run runOf(uint64_t start_ns, uint64_t duration_ns) {
  Run run;
  run.start_ns = start_ns;
  run.end_ns = start_ns + duration_ns;
  run.is_complete = true;
  run.operations["dot"].add(0, duration_ns * 1000);
  return run;
}

TraceWindow window(uint64_t start_ns, uint64_t end_ns) {
  TraceWindow window;
  window.start_ns = start_ns;
  window.end_ns = end_ns;
  return window;
}

NodeRef node(uint32_t number) {
  return {0, number};
}

} // namespace

TEST(the_longer_a_run_the_more_it_stands_for) {
  TraceWindow tenth = window(0, 100);
  CHECK_CLOSE(weightOf(runOf(0, 10), tenth), 1 / 0.9, 1e-9);
  CHECK_CLOSE(weightOf(runOf(50, 50), tenth), 2.0, 1e-9);
  CHECK_CLOSE(weightOf(runOf(0, 100), tenth), 4.0, 1e-9); // no more than that
  CHECK_CLOSE(weightOf(runOf(0, 100), window(0, 0)), 1.0, 1e-9);
}

TEST(windows_find_the_mean_of_runs_of_which_some_are_held_up) {
  Program program = oneOperation();
  std::mt19937 random(7);
  std::vector<Run> runs;
  uint64_t now_ns = 0;
  double sum_ns = 0;
  for (int i = 0; i < 400'000; ++i) {
    uint64_t duration_ns = (random() % 10 == 0 ? 600 : 100) * kMicrosecond;
    runs.push_back(runOf(now_ns, duration_ns));
    sum_ns += static_cast<double>(duration_ns);
    now_ns += duration_ns + 20 * kMicrosecond;
  }
  double true_ns = sum_ns / static_cast<double>(runs.size());
  RunTotals weighted, plain;
  const uint64_t length_ns = 1000 * kMicrosecond;
  size_t next = 0;
  for (uint64_t start_ns = 3333 * kMicrosecond; start_ns + length_ns < now_ns;
       start_ns += 5 * length_ns + random() % length_ns) {
    TraceWindow open = window(start_ns, start_ns + length_ns);
    while (runs[next].start_ns < open.start_ns) {
      ++next;
    }
    for (size_t i = next; runs[i].end_ns <= open.end_ns; ++i) {
      weighted.add(program, runs[i], weightOf(runs[i], open));
      plain.add(program, runs[i], 1);
    }
  }
  auto mean = [](const RunTotals &totals) { return totals.operations[0].total_ns / totals.weight; };
  CHECK(mean(plain) < 0.85 * true_ns); // what the edges cut is long
  CHECK_CLOSE(mean(weighted) / true_ns, 1.0, 0.03);
  CHECK_CLOSE(weighted.operations[0].count, weighted.weight, 1e-6);
  RunTotals both;
  both.add(weighted);
  both.add(weighted);
  CHECK_CLOSE(mean(both), mean(weighted), 1e-6);
}

TEST(arrays_that_are_kept_grow_from_the_last_but_one_power_of_two) {
  ArrayGrowth growth;
  for (uint64_t look = 1; look <= 24; ++look) {
    growth.look({{node(1), look * 10}, {node(2), 7}, {node(3), look % 2}});
  }
  CHECK_EQ(growth.looks(), 24u);
  CHECK_EQ(growth.since(), 8u);
  auto grown = growth.grown();
  CHECK_EQ(grown.size(), 1u);
  CHECK_EQ(grown[node(1)].bytes, 160u);
  CHECK_EQ(grown[node(1)].looks, 16u);
}

TEST(a_cache_that_fills_grows_once_and_what_was_given_back_does_not) {
  ArrayGrowth growth;
  for (uint64_t look = 1; look <= 32; ++look) {
    growth.look(look < 20 ? std::map<NodeRef, uint64_t>{{node(1), 5}, {node(2), 9}}
                          : std::map<NodeRef, uint64_t>{{node(1), 50}});
  }
  auto grown = growth.grown();
  CHECK_EQ(grown.size(), 1u);
  CHECK_EQ(grown[node(1)].bytes, 45u);
  CHECK_EQ(grown[node(1)].looks, 1u);
}

TEST(one_look_tells_nothing) {
  ArrayGrowth growth;
  growth.look({{node(1), 5}});
  CHECK_EQ(growth.since(), 0u);
  CHECK(growth.grown().empty());
}

TEST(a_window_may_stand_for_more_runs_than_it_saw) {
  Program program = oneOperation();
  RunTotals first_second, later, whole;
  for (int i = 0; i < 50; ++i) {
    first_second.add(program, runOf(0, 200), 1);
  }
  for (int i = 0; i < 10; ++i) {
    later.add(program, runOf(0, 100), 1);
  }
  whole.add(first_second);
  whole.add(later, 95); // 950 calls
  CHECK_EQ(whole.runs, 60u);
  CHECK_CLOSE(whole.weight, 1000.0, 1e-9);
  CHECK_CLOSE(whole.operations[0].total_ns / whole.weight, 0.05 * 200 + 0.95 * 100, 1e-9);
  CHECK_CLOSE(whole.operations[0].minimum_ns, 100.0, 1e-9);
  CHECK_CLOSE(whole.operations[0].maximum_ns, 200.0, 1e-9);
}

namespace {

/// A part of a run that takes all of the time.
Run part(int64_t run_id, uint64_t start_ns, uint64_t end_ns, bool is_complete) {
  Run run = runOf(start_ns, end_ns - start_ns);
  run.run_id = run_id;
  run.is_complete = is_complete;
  return run;
}

double totalOf(const RunParts &parts, uint64_t now_ns, const DeviceWaits &waits = DeviceWaits()) {
  auto sums = parts.sums(now_ns, waits);
  return sums[0].totals.totalNs();
}

void addWindow(RunParts *parts, const TraceWindow &seen, const Run &run, bool is_launched_inside,
               const DeviceWaits &waits = DeviceWaits()) {
  parts->beginWindow(seen);
  parts->add(oneOperation(), run, seen, is_launched_inside);
  parts->endWindow(seen, waits);
}

} // namespace

TEST(parts_of_one_run_stand_for_the_time_between_them) {
  RunParts parts;
  addWindow(&parts, window(0, 100), part(7, 60, 100, false), true);
  addWindow(&parts, window(300, 310), part(7, 300, 310, false), false);
  addWindow(&parts, window(510, 520), part(7, 510, 515, true), false);
  CHECK_CLOSE(totalOf(parts, 1000), 515 - 60, 1e-9);
  CHECK_CLOSE(parts.sums(1000, DeviceWaits())[0].longest_ns, 40.0, 1e-9);
}

TEST(a_run_whose_end_nobody_saw_lasted_as_long_as_the_program_waited) {
  RunParts cut;
  addWindow(&cut, window(0, 100), part(7, 60, 100, false), true);
  CHECK_CLOSE(totalOf(cut, 300), 40 + 100, 1e-9); // nothing is known: half of the time
  DeviceWaits waits;
  waits.add(61, 150);
  waits.add(160, 170); // for a run that no window saw
  CHECK_CLOSE(totalOf(cut, 300, waits), 40 + 50 + 10, 1e-9);
  RunParts ended = cut;
  TraceWindow empty = window(300, 310);
  ended.beginWindow(empty);
  ended.endWindow(empty, waits);
  CHECK_CLOSE(totalOf(ended, 1000, waits), 40 + 50 + 10, 1e-9);
}

TEST(runs_of_a_program_that_follow_each_other_fill_the_time) {
  RunParts parts;
  DeviceWaits waits;
  waits.add(0, 150); // of the first run, which another one follows at once
  addWindow(&parts, window(0, 100), part(7, 0, 100, false), true, waits);
  addWindow(&parts, window(300, 400), part(8, 300, 400, false), false, waits);
  CHECK_CLOSE(totalOf(parts, 400), 400.0, 1e-9);
}

TEST(a_program_that_was_seen_whole_needs_no_parts) {
  RunParts parts;
  addWindow(&parts, window(0, 100), part(7, 60, 100, false), true);
  TraceWindow next = window(200, 300);
  parts.beginWindow(next);
  parts.drop(0);
  parts.endWindow(next, DeviceWaits());
  CHECK_EQ(totalOf(parts, 1000), 0.0);
}

TEST(waits_of_several_threads_are_no_longer_than_the_time) {
  DeviceWaits waits;
  waits.add(0, 90);
  waits.add(10, 95);
  CHECK_EQ(waits.between(50, 100), 50u);
  CHECK_EQ(waits.between(95, 100), 0u);
}
