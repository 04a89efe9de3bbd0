#include "core/windows.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/metric_registry.h"
#include "core/sums.h"
#include "tests/check.h"

using namespace deepcontext;

namespace {

std::vector<std::vector<int64_t>> rowsOf(const PackedSums &packed) {
  std::vector<std::vector<int64_t>> rows;
  packed.forEach([&](const SumRow &row) {
    rows.push_back({row.node, row.code, row.count, row.total, row.exclusive});
  });
  return rows;
}

/// A session whose only node is called between the ends of steps.
class Run {
public:
  Run() {
    registry_.begin(1000);
    recorder_ = &RecorderRegistry::current();
    node_ = recorder_->tree.child(recorder_->tree.root(), FrameKind::kOperator, 1, 0);
    Windows::instance().begin({"windows_test_bytes"});
  }
  ~Run() {
    Windows::instance().end();
    registry_.end();
  }

  void call(uint64_t duration) {
    NodeCost &cost = recorder_->tree.cost(node_);
    cost.duration.add(duration);
    cost.addExclusive(duration);
  }
  void add(uint64_t bytes) { recorder_->tree.metric(node_, metric_).add(bytes); }
  void step(StepSource source = StepSource::kMark) {
    Steps::instance().pass({source, 0, nullptr}, ticks());
    if (Steps::instance().takeDueCut()) {
      Windows::instance().cut();
    }
  }
  /// A step that the budget of cuts does not hold back.
  void stepAndCut() {
    step();
    Windows::instance().cut();
  }
  std::vector<Window> windows() const { return Windows::instance().read().windows; }
  /// Sum over the events of the node in a window, in ticks.
  int64_t total(const Window &window) const {
    int64_t sum = 0;
    window.sums.at(recorder_->index()).forEach([&](const SumRow &row) {
      sum += row.code == SumRow::kEvents ? row.total : 0;
    });
    return sum;
  }
  uint16_t metric() const { return metric_; }
  Recorder &recorder() { return *recorder_; }

private:
  RecorderRegistry &registry_ = RecorderRegistry::instance();
  uint16_t metric_ = MetricRegistry::instance().id("windows_test_bytes");
  Recorder *recorder_ = nullptr;
  Node *node_ = nullptr;
};

} // namespace

TEST(packed_sums_give_back_their_rows) {
  PackedSums packed;
  packed.add({0, SumRow::kEvents, 1, int64_t{1} << 62, 3});
  packed.add({5, 7, -2, -1'000'000, 0});
  packed.add({5, 3, 4, 0, 0});
  packed.add({4'000'000, SumRow::kEvents, 1, 2, INT64_MIN});
  std::vector<std::vector<int64_t>> expected = {
      {0, 0, 1, int64_t{1} << 62, 3},
      {5, 7, -2, -1'000'000, 0},
      {5, 3, 4, 0, 0},
      {4'000'000, 0, 1, 2, INT64_MIN},
  };
  CHECK(rowsOf(packed) == expected);
}

TEST(a_difference_has_what_changed_and_rows_that_are_new) {
  Sums earlier = {{1, 0, 2, 20, 10}, {2, 5, 1, 7, 0}, {3, 0, 9, 9, 9}};
  Sums later = {{1, 0, 3, 25, 12}, {2, 0, 1, 4, 4}, {2, 5, 1, 7, 0},
                {2, 4, 1, 6, 0},   {3, 0, 9, 9, 9}, {4, 0, 1, 1, 1}};
  std::vector<std::vector<int64_t>> expected = {
      {1, 0, 1, 5, 2}, {2, 0, 1, 4, 4}, {2, 4, 1, 6, 0}, {4, 0, 1, 1, 1}};
  CHECK(rowsOf(difference(later, earlier)) == expected);
}

TEST(windows_together_are_the_sums_of_both) {
  PackedSums left, right;
  left.add({1, 0, 1, 10, 5});
  left.add({3, 2, 1, 1, 0});
  right.add({1, 0, 2, 3, 4});
  right.add({2, 0, 1, 1, 1});
  std::vector<std::vector<int64_t>> expected = {{1, 0, 3, 13, 9}, {2, 0, 1, 1, 1}, {3, 2, 1, 1, 0}};
  CHECK(rowsOf(together(left, right)) == expected);
}

TEST(a_window_has_what_ran_in_it) {
  Run run;
  run.call(100);
  run.add(8);
  run.stepAndCut();
  run.call(7);
  run.stepAndCut();
  std::vector<Window> windows = run.windows();
  CHECK_EQ(windows.size(), 2u);
  CHECK_EQ(run.total(windows[0]), 100);
  CHECK_EQ(run.total(windows[1]), 7);
  CHECK_EQ(windows[0].end_step, 1u);
  CHECK_EQ(windows[1].steps(), 1u);
  auto rows = rowsOf(windows[0].sums.at(run.recorder().index()));
  CHECK_EQ(rows.size(), 2u);
  CHECK_EQ(rows[1][1], run.metric() + 1);
  CHECK_EQ(rows[1][3], 8);
}

TEST(any_number_of_steps_has_few_windows_that_follow_each_other) {
  Run run;
  constexpr uint64_t kSteps = 5000;
  for (uint64_t i = 1; i <= kSteps; ++i) {
    run.call(i);
    run.stepAndCut();
    std::vector<Window> windows = run.windows();
    CHECK(windows.size() <= Windows::kMostWindows);
  }
  std::vector<Window> windows = run.windows();
  std::vector<uint64_t> first_ends;
  uint64_t step = 0, ended_ticks = windows[0].begin_ticks;
  int64_t sum = 0;
  for (const Window &window : windows) {
    CHECK_EQ(window.first_step, step);
    CHECK_EQ(window.begin_ticks, ended_ticks);
    step = window.end_step;
    ended_ticks = window.end_ticks;
    sum += run.total(window);
    first_ends.push_back(step);
  }
  CHECK_EQ(step, kSteps);
  CHECK_EQ(sum, static_cast<int64_t>(kSteps * (kSteps + 1) / 2));
  first_ends.resize(Windows::kFirstEqual);
  CHECK((first_ends == std::vector<uint64_t>{1, 2, 4, 8, 16}));
  // All others but the last are equally long.
  uint64_t length = windows[Windows::kFirstEqual].steps();
  for (size_t i = Windows::kFirstEqual; i + 1 < windows.size(); ++i) {
    CHECK_EQ(windows[i].steps(), length);
  }
}

TEST(a_better_end_of_steps_makes_all_before_set_up) {
  Run run;
  for (int i = 0; i < 10; ++i) {
    run.call(1);
    run.step(StepSource::kModule);
    Windows::instance().cut();
  }
  CHECK(run.windows().size() > 2);
  run.call(5);
  run.step(StepSource::kOptimizer);
  std::vector<Window> windows = run.windows();
  CHECK_EQ(windows.size(), 1u);
  CHECK_EQ(run.total(windows[0]), 15);
  CHECK_EQ(windows[0].first_step, 0u);
  CHECK_EQ(windows[0].end_step, 1u);
  run.step(StepSource::kModule); // no longer counts
  CHECK_EQ(Steps::instance().read().count, 1u);
}

TEST(short_steps_are_not_cut_one_by_one) {
  Run run;
  for (int i = 0; i < 1000; ++i) {
    run.step();
  }
  CHECK(Windows::instance().read().costs.cuts < 100);
  CHECK(run.windows().size() >= 2);
}

TEST(a_recorder_that_is_rewritten_is_left_alone) {
  Run run;
  Recorder &rewritten = RecorderRegistry::instance().makeDetached("windows test", true);
  rewritten.tree.metric(rewritten.tree.root(), run.metric()).add(5);
  run.stepAndCut();
  CHECK(run.windows()[0].sums.count(rewritten.index()) == 0);
}

TEST(a_program_in_which_nothing_steps_has_no_windows) {
  Run run;
  run.call(1);
  CHECK(run.windows().empty());
}

namespace {

/// Steps that end at nodes named by letters, one tick after another; how many count.
uint64_t countOf(const char *ends, uint32_t thread = 0) {
  static Node nodes[26] = {};
  Steps::instance().begin();
  for (uint64_t now = 1; *ends; ++ends, ++now) {
    Steps::instance().pass({StepSource::kOptimizer, thread, &nodes[*ends - 'a']}, now);
  }
  return Steps::instance().read().count;
}

} // namespace

TEST(of_several_places_one_leads) {
  CHECK_EQ(countOf("aaaa"), 4u);
  CHECK_EQ(countOf("abababab"), 4u);
  CHECK_EQ(countOf("abcabcabc"), 3u);
  CHECK_EQ(countOf("aaabaaabaaab"), 9u);   // three of one for each of the other
  CHECK_EQ(countOf("baaabaaabaaab"), 10u); // the first end, before the other one leads
  CHECK_EQ(countOf("aaaabbbb"), 8u);       // one loop after another
  CHECK_EQ(countOf("aaaab"), 4u);
}

TEST(steps_side_by_side_count_once) {
  Steps::instance().begin();
  for (uint64_t now = 1; now <= 100; ++now) {
    for (uint32_t thread = 1; thread <= 4; ++thread) {
      Steps::instance().pass({StepSource::kMark, thread, nullptr}, now * 10 + thread);
    }
  }
  StepsSeen seen = Steps::instance().read();
  CHECK_EQ(seen.count, 100u);
  CHECK_EQ(seen.durations.count, 99u);
  CHECK_EQ(seen.durations.minimum, 10u);
  CHECK_EQ(seen.durations.maximum, 10u);
}

TEST(a_history_has_quantiles_parts_and_the_slowest_steps) {
  StepHistory history;
  constexpr uint64_t kSteps = 100'000;
  for (uint64_t number = 1; number <= kSteps; ++number) {
    uint64_t duration = number % 50 == 0 ? 10'000 + number : 1'000;
    history.add({number, number * 20, duration}, false);
  }
  uint64_t count = 0, usual = 0;
  for (size_t bin = 0; bin < StepHistory::kBins; ++bin) {
    count += history.bins()[bin];
    double end = std::pow(StepHistory::growth(), static_cast<double>(bin));
    bool has_usual = end >= 1'000 && end < 1'000 * StepHistory::growth();
    usual += has_usual ? history.bins()[bin] : 0;
  }
  CHECK_EQ(count, kSteps);
  CHECK_EQ(usual, kSteps - kSteps / 50);
  uint64_t in_parts = 0, most = 0;
  for (const StepHistory::Part &part : history.parts()) {
    in_parts += part.count;
    most = std::max(most, part.maximum);
  }
  CHECK_EQ(in_parts, kSteps);
  CHECK_EQ(most, 10'000 + kSteps);
  CHECK_EQ(history.parts()[0].count, 1024u);
  for (const StepHistory::Step &step : history.slowest()) {
    CHECK(step.number > kSteps - 8 * 50);
    CHECK_EQ(step.duration, 10'000 + step.number);
  }
}

TEST(a_clock_that_steps_back_gives_no_time) {
  Steps::instance().begin();
  for (uint64_t now : {100, 200, 150, 260}) {
    Steps::instance().pass({StepSource::kMark, 1, nullptr}, now);
  }
  StepsSeen seen = Steps::instance().read();
  CHECK_EQ(seen.count, 4u);
  CHECK_EQ(seen.durations.minimum, 0u);
  CHECK_EQ(seen.durations.maximum, 110u);
}

TEST(ten_million_steps_take_the_memory_of_few) {
  Run run;
  constexpr uint64_t kSteps = 10'000'000;
  for (uint64_t i = 0; i < kSteps; ++i) {
    run.step();
  }
  std::vector<Window> windows = run.windows();
  CHECK(windows.size() <= Windows::kMostWindows);
  CHECK(windows.back().end_step <= kSteps);
  uint64_t count = 0;
  StepHistory history = Steps::instance().history();
  for (const StepHistory::Part &part : history.parts()) {
    count += part.count;
  }
  CHECK_EQ(count, kSteps - 1);
}

TEST(random_steps_come_from_the_whole_run) {
  constexpr uint64_t kSteps = 10'000;
  StepHistory history;
  double sum = 0;
  int changes = 0;
  for (uint64_t number = 1; number <= kSteps; ++number) {
    changes += history.add({number, number, 1}, false);
  }
  for (const StepHistory::Step &step : history.random()) {
    sum += static_cast<double>(step.number);
  }
  // The mean of eight uniform numbers is within four of its standard deviations.
  CHECK_CLOSE(sum / StepHistory::kRandom, kSteps / 2.0, 0.6);
  CHECK(changes < 200); // about 8 ln(10,000 / 8), and the first ones
}

TEST(steps_of_more_than_the_median_are_slow) {
  Steps::instance().begin();
  uint64_t now = 1000;
  for (int i = 1; i <= 200; ++i) {
    now += i % 50 == 0 ? 400 : 100;
    Steps::instance().pass({StepSource::kMark, 0, nullptr}, now);
  }
  SlowSteps::Facts slow = Steps::instance().slowSteps();
  CHECK_EQ(slow.count, 4u);
  CHECK_EQ(slow.total, 1600u);
  CHECK_EQ(Steps::instance().slowStepsSeen().slow, 4u);
  for (const SlowSteps::Slow &slowest : slow.slowest) {
    CHECK(slowest.step.duration == 0 || slowest.step.number % 50 == 0);
  }
  Steps::instance().begin();
  CHECK_EQ(Steps::instance().slowSteps().count, 0u);
  CHECK_EQ(Steps::instance().slowStepsSeen().steps, 0u);
}

TEST(the_slowest_of_many_slow_steps_are_kept) {
  Steps::instance().begin();
  uint64_t now = 1000;
  for (int i = 1; i <= 2000; ++i) {
    now += i % 10 == 0 ? 200 + i : 100;
    Steps::instance().pass({StepSource::kMark, 0, nullptr}, now);
  }
  SlowSteps::Facts slow = Steps::instance().slowSteps();
  CHECK_EQ(slow.count, 199u); // without the first one, which nobody could judge
  for (const SlowSteps::Slow &slowest : slow.slowest) {
    CHECK(slowest.step.number > 1300);
  }
}

TEST(slow_steps_that_waited_for_a_processor_make_room_for_those_that_work) {
  Steps &steps = Steps::instance();
  steps.begin();
  uint64_t now = 1000;
  auto step = [&](uint64_t duration) {
    now += duration;
    steps.pass({StepSource::kMark, 0, nullptr}, now);
  };
  for (int i = 0; i < 40; ++i) {
    step(100);
  }
  for (size_t i = 0; i < 2 * SlowSteps::kKept; ++i) {
    uint32_t seen = steps.slowStepsSeen().steps;
    step(500);
    step(100); // ends before the sampler looks
    steps.noteWorkOfSlowStep(seen, steps.slowStepsSeen().steps, 100);
  }
  uint32_t seen = steps.slowStepsSeen().steps;
  step(300);
  steps.noteWorkOfSlowStep(seen, steps.slowStepsSeen().steps, 1'000'000);
  int working = 0;
  for (const SlowSteps::Slow &each : steps.slowSteps().slowest) {
    working += each.work == 300; // not more than its duration
    CHECK(each.work == 300 || each.work == 100);
  }
  CHECK_EQ(working, 1);
}
