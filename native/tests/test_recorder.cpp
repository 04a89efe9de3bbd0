#include "core/recorder.h"

#include <map>
#include <utility>
#include <vector>

#include "tests/check.h"

using namespace deepcontext;

namespace {

const void *owner(uintptr_t number) {
  return reinterpret_cast<const void *>(number);
}

/// A recorder with a clock of its own: ticks are what the test says.
class Program {
public:
  Program() { recorder_.adoptThread(); }

  /// Open a level below the innermost one, at tick `start`.
  Node *open(uintptr_t name, uint64_t start, LevelKind kind = LevelKind::kOperator) {
    Level *outer = recorder_.innermost();
    Node *parent = outer ? outer->node : recorder_.tree.root();
    Node *node = recorder_.tree.child(parent, FrameKind::kOperator, name, 0);
    Level *level = recorder_.push(kind, node, owner(name));
    if (level) {
      level->start_ticks = start;
    }
    return node;
  }
  void close(uintptr_t name, uint64_t now) { recorder_.close(owner(name), now); }
  Recorder &recorder() { return recorder_; }

private:
  Recorder recorder_{0};
};

uint64_t exclusive(const Node *node) {
  return node->cost() ? node->cost()->exclusive.load() : 0;
}
uint64_t total(const Node *node) {
  return node->cost() ? node->cost()->duration.read().total : 0;
}
/// A figure of all nodes of one name: a scope moves when one around it closes.
uint64_t sumOf(Program &program, uintptr_t name, uint64_t (*figure)(const Node *)) {
  uint64_t sum = 0;
  for (uint32_t id = 1; id < program.recorder().tree.size(); ++id) {
    const Node *node = program.recorder().tree.node(id);
    sum += node->a == name ? figure(node) : 0;
  }
  return sum;
}

} // namespace

TEST(nested_time_is_not_the_outer_levels_own) {
  Program program;
  Node *outer = program.open(1, 100);
  Node *first = program.open(2, 110);
  Node *inner = program.open(3, 112);
  program.close(3, 117);
  program.close(2, 130);
  Node *second = program.open(4, 150);
  program.close(4, 155);
  program.close(1, 200);
  CHECK_EQ(total(outer), 100u);
  CHECK_EQ(total(first), 20u);
  CHECK_EQ(exclusive(inner), 5u);
  CHECK_EQ(exclusive(first), 15u);
  CHECK_EQ(exclusive(second), 5u);
  CHECK_EQ(exclusive(outer), 75u);
  CHECK_EQ(program.recorder().levelCount(), 0u);
}

TEST(calls_of_one_node_add_up) {
  Program program;
  Node *node = nullptr;
  for (uint64_t call = 0; call < 3; ++call) {
    node = program.open(1, 1000 * call);
    program.close(1, 1000 * call + 10 + call);
  }
  MetricValues seen = node->cost()->duration.read();
  CHECK_EQ(seen.count, 3u);
  CHECK_EQ(seen.total, 33u);
  CHECK_EQ(seen.minimum, 10u);
  CHECK_EQ(seen.maximum, 12u);
  CHECK_EQ(exclusive(node), 33u);
}

TEST(a_clock_that_steps_back_makes_no_time_and_is_counted) {
  Program program;
  Node *outer = program.open(1, 100);
  Node *inner = program.open(2, 120);
  program.close(2, 119);
  program.close(1, 150);
  CHECK_EQ(total(inner), 0u);
  CHECK_EQ(exclusive(inner), 0u);
  CHECK_EQ(total(outer), 50u);
  CHECK_EQ(exclusive(outer), 50u);
  RecorderCounters &counters = program.recorder().counters;
  CHECK_EQ(counters.clock_steps_back.load(), 1u);
  CHECK_EQ(program.recorder().ticksSince(8, 7), 0u);
  CHECK_EQ(program.recorder().ticksSince(7, 7), 0u);
  CHECK_EQ(counters.clock_steps_back.load(), 2u);
}

TEST(an_outer_scope_may_close_before_an_inner_one_and_the_clock_step_back) {
  for (uint64_t now : {5u, 15u, 25u}) { // before all of them opened, between them, after
    Program program;
    program.open(1, 0);
    program.open(2, 10, LevelKind::kScope);
    program.open(3, 20, LevelKind::kScope);
    program.close(2, now);
    program.close(3, 30);
    program.close(1, 40);
    for (uintptr_t name = 1; name <= 3; ++name) {
      CHECK(sumOf(program, name, total) <= 40);
      CHECK(sumOf(program, name, exclusive) <= sumOf(program, name, total));
    }
    CHECK_EQ(sumOf(program, 1, total), 40u);
  }
}

TEST(an_outer_scope_may_close_before_an_inner_one) {
  // outermost [0..100] > first [10..30], second [20..50]: the three own times make up the 100.
  Program program;
  Node *outermost = program.open(1, 0);
  program.open(2, 10, LevelKind::kScope);
  program.open(3, 20, LevelKind::kScope);
  program.close(2, 30);
  CHECK_EQ(program.recorder().levelCount(), 2u);
  const Node *second = program.recorder().innermost()->node;
  CHECK_EQ(second->a, 3u);
  CHECK_EQ(second->parent, outermost);
  program.close(3, 50);
  program.close(1, 100);
  CHECK_EQ(sumOf(program, 2, total), 20u);
  CHECK_EQ(total(second), 30u);
  CHECK_EQ(sumOf(program, 2, exclusive), 10u);
  CHECK_EQ(sumOf(program, 3, exclusive), 30u);
  CHECK_EQ(exclusive(outermost), 60u);
}

TEST(own_times_make_up_the_whole_in_any_order_of_closing) {
  const uintptr_t orders[][3] = {{2, 3, 4}, {2, 4, 3}, {3, 2, 4}, {3, 4, 2}, {4, 2, 3}, {4, 3, 2}};
  for (const auto &order : orders) {
    Program program;
    program.open(1, 0);
    for (uintptr_t name = 2; name <= 4; ++name) {
      program.open(name, 10 * name, LevelKind::kScope);
    }
    uint64_t now = 100;
    for (uintptr_t name : order) {
      program.close(name, now);
      now += 13;
    }
    program.close(1, 1000);
    uint64_t sum = 0;
    for (uintptr_t name = 1; name <= 4; ++name) {
      sum += sumOf(program, name, exclusive);
    }
    CHECK_EQ(sum, 1000u);
  }
}

TEST(ranges_that_overlap_hand_over_hand_are_exact_and_make_no_deep_tree) {
  uint32_t state = 1; // a generator of numbers, the same everywhere
  auto next = [&state](uint32_t below) {
    state = state * 1664525 + 1013904223;
    return (state >> 16) % below;
  };
  Program program;
  std::vector<std::pair<uintptr_t, uint64_t>> open; // owner, start
  std::map<uint64_t, uint64_t> durations;           // by name
  uint64_t now = 1, covered = 0, calls = 0;
  const uint64_t kNames = 3;
  Recorder &recorder = program.recorder();
  for (uintptr_t number = 1; number < 4000; ++number) {
    uint64_t later = now + 1 + next(20);
    covered += open.empty() ? 0 : later - now;
    now = later;
    if (open.size() < 4 && number < 3990 && next(2) == 0) {
      Level *outer = recorder.innermost();
      Node *parent = outer ? outer->node : recorder.tree.root();
      Node *node = recorder.tree.child(parent, FrameKind::kScope, number % kNames, 0);
      recorder.push(LevelKind::kScope, node, owner(number))->start_ticks = now;
      open.emplace_back(number, now);
    } else if (!open.empty()) {
      auto which = open.begin() + next(static_cast<uint32_t>(open.size()));
      program.close(which->first, now);
      durations[which->first % kNames] += now - which->second;
      ++calls;
      open.erase(which);
    }
  }
  CHECK(open.empty());
  uint64_t counted = 0, own = 0;
  for (uint32_t id = 1; id < recorder.tree.size(); ++id) {
    const Node *node = recorder.tree.node(id);
    counted += node->cost() ? node->cost()->duration.read().count : 0;
    own += exclusive(node);
    durations[node->a] -= total(node);
    uint32_t depth = 0;
    for (const Node *each = node; each->parent; each = each->parent) {
      ++depth;
    }
    CHECK(depth <= 4);
  }
  CHECK_EQ(counted, calls);
  CHECK_EQ(own, covered);
  for (const auto &[name, left] : durations) {
    CHECK_EQ(left, 0u);
  }
}

TEST(a_level_that_goes_on_forgets_the_path_below_the_closed_one) {
  Program program;
  Recorder &recorder = program.recorder();
  recorder.path_length = 3;
  program.open(1, 0, LevelKind::kScope);
  recorder.path_length = 5;
  program.open(2, 0, LevelKind::kScope);
  recorder.path_length = 9;
  program.close(1, 10);
  CHECK_EQ(recorder.path_length, 3u);
  CHECK_EQ(recorder.innermost()->path_length, 3u);
  program.close(2, 20);
  CHECK_EQ(recorder.path_length, 3u);
}

TEST(closing_an_unknown_owner_changes_nothing) {
  Program program;
  program.close(9, 5); // nothing is open
  Node *node = program.open(1, 10);
  program.close(9, 20);
  CHECK_EQ(program.recorder().levelCount(), 1u);
  program.close(1, 30);
  CHECK_EQ(total(node), 20u);
}

TEST(a_scope_that_runs_in_steps_is_one_call_of_their_sum) {
  Program program;
  Node *scope = program.open(1, 100, LevelKind::kScope);
  program.open(2, 105);
  program.close(2, 109);
  uint64_t first = program.recorder().closeStep(owner(1), 120, 0, false);
  CHECK_EQ(first, 20u);
  CHECK_EQ(total(scope), 0u);
  CHECK_EQ(exclusive(scope), 16u);
  program.open(1, 200, LevelKind::kScope);
  program.open(3, 206, LevelKind::kScope); // goes on after the step
  CHECK_EQ(program.recorder().closeStep(owner(1), 210, first, true), 10u);
  CHECK_EQ(total(scope), 30u);
  CHECK_EQ(scope->cost()->duration.read().count, 1u);
  CHECK_EQ(exclusive(scope), 22u);
  CHECK_EQ(program.recorder().levelCount(), 1u);
  CHECK_EQ(program.recorder().closeStep(owner(7), 300, 0, true), 0u);
}

TEST(a_wrappers_own_time_is_the_wrapped_operators) {
  Program program;
  Recorder &recorder = program.recorder();
  Node *outer = program.open(1, 0);
  Level *wrapper = recorder.push(LevelKind::kWrapper, outer, owner(2));
  wrapper->charged = nullptr;
  wrapper->start_ticks = 10;
  Node *wrapped = recorder.tree.child(outer, FrameKind::kOperator, 3, 0);
  wrapper->node = wrapper->charged = wrapped;
  recorder.push(LevelKind::kOperator, wrapped, owner(3))->start_ticks = 15;
  recorder.close(owner(3), 25);
  recorder.close(owner(2), 40);
  program.close(1, 100);
  CHECK_EQ(wrapped->cost()->duration.read().count, 1u); // the wrapper is no call of its own
  CHECK_EQ(total(wrapped), 10u);
  CHECK_EQ(exclusive(wrapped), 30u);
  CHECK_EQ(exclusive(outer), 70u);
}

TEST(python_that_an_operator_calls_is_no_time_of_the_operator) {
  Program program;
  Recorder &recorder = program.recorder();
  Node *node = program.open(1, 100);
  CHECK_EQ(recorder.view(150).operator_ticks, 50u);
  uint64_t began = recorder.suspendOperator(200);
  CHECK_EQ(began, 100u);
  Node *called = recorder.tree.child(node, FrameKind::kScope, 2, 0);
  Level *level = recorder.push(LevelKind::kOperator, called, owner(2));
  level->start_ticks = 200;
  level->is_inside_operator = false;
  CHECK(!recorder.view(260).is_in_operator);
  CHECK_EQ(recorder.view(260).operator_ticks, 100u);
  program.open(3, 300);
  CHECK(recorder.view(320).is_in_operator);
  CHECK_EQ(recorder.view(320).operator_ticks, 120u);
  program.close(3, 340);
  program.close(2, 400);
  recorder.resumeOperator(began, 400);
  CHECK_EQ(recorder.view(450).operator_ticks, 190u);
  program.close(1, 500);
  CHECK_EQ(recorder.view(500).operator_ticks, 240u);
  CHECK_EQ(recorder.suspendOperator(600), 0u);
}

TEST(levels_past_the_deepest_are_refused_and_counted) {
  Program program;
  for (uintptr_t name = 1; name <= Recorder::kMaxLevels; ++name) {
    program.open(name, name);
  }
  RecorderCounters &counters = program.recorder().counters;
  Node *root = program.recorder().tree.root();
  CHECK_EQ(counters.levels_refused.load(), 0u);
  CHECK(program.recorder().push(LevelKind::kOperator, root, owner(5000)) == nullptr);
  CHECK_EQ(counters.levels_refused.load(), 1u);
  CHECK(program.recorder().push(LevelKind::kScope, root, owner(5002)) == nullptr);
  CHECK_EQ(counters.levels_refused.load(), 1u);
  CHECK_EQ(counters.scopes_refused.load(), 1u);
  program.close(5000, 9000); // its end comes all the same
  CHECK_EQ(program.recorder().levelCount(), uint32_t{Recorder::kMaxLevels});
  for (uintptr_t name = Recorder::kMaxLevels; name >= 1; --name) {
    program.close(name, 10'000);
  }
  CHECK_EQ(program.recorder().levelCount(), 0u);
}

TEST(levels_whose_stack_frame_is_gone_are_dropped) {
  Program program;
  Recorder &recorder = program.recorder();
  char stack[400]; // stands for four frames: higher addresses are older
  CHECK(recorder.isOnStack(stack));
  auto at = [&](int frame) { return reinterpret_cast<uintptr_t>(&stack[399 - 100 * frame]); };
  Node *outer = program.open(at(0), 0);
  recorder.path_length = 4;
  program.open(at(1), 10);
  recorder.path_length = 6;
  Node *finished = program.open(at(2), 20);
  program.close(at(2), 50);
  program.open(at(2), 60); // neither this nor its caller will see an end
  recorder.path_length = 8;

  recorder.dropDeadLevels(owner(at(1)));
  CHECK_EQ(recorder.levelCount(), 1u);
  CHECK_EQ(recorder.innermost()->node, outer);
  CHECK_EQ(recorder.path_length, 4u);
  recorder.dropDeadLevels(owner(at(3))); // deeper than all that is open
  CHECK_EQ(recorder.levelCount(), 1u);
  program.close(at(0), 100);
  CHECK_EQ(exclusive(finished), 30u);
  CHECK_EQ(exclusive(outer), 70u); // the finished inner level is not counted twice
}

TEST(levels_that_are_not_on_the_stack_are_never_dropped) {
  Program program;
  Recorder &recorder = program.recorder();
  char stack[10];
  program.open(1, 0, LevelKind::kScope); // a scope's token is no address
  recorder.dropDeadLevels(stack);
  CHECK_EQ(recorder.levelCount(), 1u);
}

TEST(reset_forgets_the_last_session) {
  Program program;
  Recorder &recorder = program.recorder();
  recorder.ring().store(1, 7, program.open(1, 0));
  RecorderCounters::bump(recorder.counters.operators, 5);
  RecorderCounters::bump(recorder.counters.hook_ticks, 5);
  recorder.path_length = 3;
  recorder.reset(17);
  CHECK(recorder.isOf(17));
  CHECK(!recorder.isOf(16));
  CHECK_EQ(recorder.levelCount(), 0u);
  CHECK_EQ(recorder.path_length, 0u);
  CHECK_EQ(recorder.tree.size(), 1u);
  CHECK_EQ(recorder.counters.operators.load(), 0u);
  CHECK_EQ(recorder.counters.hook_ticks.load(), 0u);
  CHECK(recorder.ring().find(1, 7) == nullptr);
}
