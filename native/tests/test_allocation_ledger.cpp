#include "core/allocation_ledger.h"

#include <map>
#include <random>
#include <thread>

#include "core/ledger_reading.h"
#include "core/metric_registry.h"
#include "tests/check.h"

using namespace deepcontext;

namespace {

constexpr char kHost[] = "cpu";
Stage g_stage = Stage::kOther;

Stage fixedStage(const Node *node, bool) {
  return node->kind == FrameKind::kOperator ? static_cast<Stage>(node->b) : g_stage;
}

const void *at(uintptr_t number) {
  return reinterpret_cast<const void *>(number * 64);
}

int g_look_ups = 0;

Stage countedStage(const Node *node, bool is_device) {
  ++g_look_ups;
  return fixedStage(node, is_device);
}

/// A session of its own, and operators "a" of the calling thread that allocate.
class Program {
public:
  explicit Program(size_t most_slots = AllocationTable::kMaxSlots) : ledger(most_slots) {
    RecorderRegistry::instance().begin(1u << 20);
    ledger.begin(RecorderRegistry::generation(), fixedStage);
  }
  static Node *context(uint64_t a, Stage stage = Stage::kOther) {
    Recorder &recorder = RecorderRegistry::current();
    return recorder.tree.child(recorder.tree.root(), FrameKind::kOperator, a,
                               static_cast<uint64_t>(stage));
  }
  void allocate(uint64_t a, uintptr_t address, uint64_t bytes, Stage stage = Stage::kOther) {
    allocate(context(a, stage), address, bytes);
  }
  /// In a forward of a module.
  void allocateInModel(uint64_t a, uintptr_t address, uint64_t bytes) {
    ThreadTree &tree = RecorderRegistry::current().tree;
    Node *module = tree.child(tree.root(), FrameKind::kModule, 1, 0);
    allocate(tree.child(module, FrameKind::kOperator, a, static_cast<uint64_t>(Stage::kForward)),
             address, bytes);
  }
  void free(uintptr_t address) { ledger.freed(at(address)); }
  /// Total of a metric at context `a` of the calling thread; 0 where it has no row.
  uint64_t value(const char *metric, uint64_t a, Stage stage = Stage::kOther) {
    return find(metric, context(a, stage)->id).total;
  }
  uint64_t count(const char *metric, uint64_t a) { return find(metric, context(a)->id).count; }
  uint64_t sum(const char *metric) {
    uint64_t total = 0;
    for (const NodeValues &row : rowsOf(metric)) {
      total += row.values.total;
    }
    return total;
  }
  AllocationLedger ledger;

private:
  MetricRows rowsOf(const char *metric) {
    ForeignRows rows = ledger.rows(RecorderRegistry::generation());
    return rows[MetricRegistry::instance().id(metric)];
  }
  void allocate(Node *node, uintptr_t address, uint64_t bytes) {
    ledger.allocated(RecorderRegistry::current(), node, ledger.pool(0, kHost), at(address), bytes);
  }
  MetricValues find(const char *metric, uint32_t node) {
    uint32_t recorder = RecorderRegistry::current().index();
    for (const NodeValues &row : rowsOf(metric)) {
      if (row.recorder == recorder && row.node == node) {
        return row.values;
      }
    }
    return {};
  }
};

} // namespace

TEST(volume_counts_every_allocation_and_live_only_what_is_left) {
  Program program;
  program.allocate(1, 10, 100);
  program.allocate(1, 11, 50);
  program.free(10);
  CHECK_EQ(program.value("alloc_bytes", 1), 150u);
  CHECK_EQ(program.count("alloc_bytes", 1), 2u);
  CHECK_EQ(program.value("live_bytes", 1), 50u);
  CHECK_EQ(program.count("live_bytes", 1), 1u);
  CHECK_EQ(program.value("own_peak_bytes", 1), 150u);
}

TEST(a_free_goes_to_who_allocated) {
  Program program;
  program.allocate(1, 10, 100);
  program.allocate(2, 11, 30);
  std::thread([&] { program.free(10); }).join();
  CHECK_EQ(program.value("live_bytes", 1), 0u);
  CHECK_EQ(program.value("live_bytes", 2), 30u);
}

TEST(the_stage_of_a_context_is_looked_up_once_whatever_its_depth) {
  Program program;
  program.ledger.begin(RecorderRegistry::generation(), countedStage);
  Recorder &recorder = RecorderRegistry::current();
  Node *deep = recorder.tree.root();
  for (uint64_t frame = 0; frame < 500; ++frame) {
    deep = recorder.tree.child(deep, FrameKind::kPython, frame, 0);
  }
  Node *contexts[] = {recorder.tree.child(deep, FrameKind::kOperator, 1, 0),
                      recorder.tree.child(deep, FrameKind::kOperator, 2, 0)};
  uint64_t bytes = 8; // more each time: only what was held at a peak has a role
  program.allocate(3, 1, bytes);
  g_look_ups = 0;
  int owner = 0;
  auto free_in_turn = [&] {
    for (uintptr_t turn = 0; turn < 1000; ++turn) {
      recorder.push(LevelKind::kOperator, contexts[turn % 2], &owner);
      program.free(1);
      program.allocate(3, 1, ++bytes);
      recorder.close(&owner, turn);
    }
  };
  free_in_turn();
  CHECK_EQ(g_look_ups, 2);
  contexts[0]->setFlag(kFlagOptimizer); // the stage may be another now
  free_in_turn();
  CHECK_EQ(g_look_ups, 4);
}

TEST(peak_is_composed_of_what_was_held_then) {
  Program program;
  program.allocate(1, 10, 100);
  program.allocate(2, 11, 30);
  program.free(10);
  program.allocate(3, 12, 60); // 90 held: no new peak
  CHECK_EQ(program.value("peak_bytes", 1), 100u);
  CHECK_EQ(program.value("peak_bytes", 2), 30u);
  CHECK_EQ(program.value("peak_bytes", 3), 0u);
  program.allocate(3, 13, 50); // 140: the new peak, without context 1
  CHECK_EQ(program.value("peak_bytes", 1), 0u);
  CHECK_EQ(program.value("peak_bytes", 2), 30u);
  CHECK_EQ(program.value("peak_bytes", 3), 110u);
  program.free(11);
  program.free(12);
  program.free(13);
  CHECK_EQ(program.sum("peak_bytes"), 140u);
}

TEST(peak_agrees_with_a_plain_count_on_random_programs) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    Program program;
    std::map<uintptr_t, std::pair<uint64_t, uint64_t>> living; // address -> context, bytes
    std::map<uint64_t, uint64_t> held, held_at_peak;
    uint64_t now = 0, peak = 0;
    for (int event = 0; event < 400; ++event) {
      uintptr_t address = 1 + random() % 64;
      auto known = living.find(address);
      if (known != living.end()) {
        now -= known->second.second;
        held[known->second.first] -= known->second.second;
        living.erase(known);
        program.free(address);
        continue;
      }
      uint64_t context = random() % 5, bytes = 1 + random() % 1000;
      living[address] = {context, bytes};
      held[context] += bytes;
      now += bytes;
      if (now > peak) {
        peak = now;
        held_at_peak = held;
      }
      program.allocate(context, address, bytes);
    }
    for (uint64_t context = 0; context < 5; ++context) {
      CHECK_EQ(program.value("peak_bytes", context), held_at_peak[context]);
      CHECK_EQ(program.value("live_bytes", context), held[context]);
    }
    AllocationLedger::Summary summary = program.ledger.summary();
    CHECK_EQ(summary.pools[0].peak_bytes, peak);
    uint64_t by_role = 0;
    for (uint64_t bytes : summary.peak_roles[0]) {
      by_role += bytes;
    }
    CHECK_EQ(by_role, peak);
  }
}

TEST(what_was_there_before_and_what_nobody_knows_is_ignored) {
  Program program;
  program.free(99);
  program.allocate(1, 10, 8);
  program.free(10);
  program.free(10);
  CHECK_EQ(program.sum("live_bytes"), 0u);
  CHECK_EQ(program.ledger.summary().pools[0].live_bytes, 0u);
}

TEST(an_address_handed_out_again_replaces_what_was_there) {
  Program program;
  program.allocate(1, 10, 100);
  program.allocate(2, 10, 40); // the free went by unseen
  CHECK_EQ(program.value("live_bytes", 1), 0u);
  CHECK_EQ(program.value("live_bytes", 2), 40u);
  CHECK_EQ(program.ledger.counters.replaced.load(), 1u);
  CHECK_EQ(program.ledger.summary().pools[0].peak_bytes, 100u);
}

TEST(a_full_table_counts_what_it_cannot_follow) {
  Program program(AllocationTable::kFirstSlots);
  constexpr uint64_t kKept = AllocationTable::kFirstSlots * 3 / 4;
  for (uint64_t i = 0; i < kKept + 100; ++i) {
    program.allocate(1, 1 + i, 10);
  }
  CHECK_EQ(program.ledger.counters.untracked.load(), 100u);
  CHECK_EQ(program.ledger.counters.untracked_bytes.load(), 1000u);
  CHECK_EQ(program.value("alloc_bytes", 1), (kKept + 100) * 10);
  CHECK_EQ(program.value("live_bytes", 1), kKept * 10);
  program.free(1 + kKept); // one that is not followed
  CHECK_EQ(program.value("live_bytes", 1), kKept * 10);
  program.free(1);
  program.allocate(1, 1 + kKept, 10);
  CHECK_EQ(program.value("live_bytes", 1), kKept * 10);
  CHECK_EQ(program.ledger.counters.untracked.load(), 100u);
}

TEST(growth_is_what_the_last_steps_added) {
  Program program;
  program.allocate(1, 1, 1000); // there from the start: no growth
  for (uintptr_t step = 1; step <= 40; ++step) {
    program.allocate(2, 100 + step, 10);   // leaks
    program.allocate(3, 2000 + step, 500); // given back within the step
    program.free(2000 + step);
    if (step == 3) {
      program.allocate(4, 50, 700); // a cache that is filled once
    }
    program.ledger.markStep();
  }
  AllocationLedger::Summary summary = program.ledger.summary();
  CHECK_EQ(summary.steps, 40u);
  CHECK_EQ(summary.growth_since_step, 16u);
  CHECK_EQ(program.value("growth_bytes", 2), 240u);
  CHECK_EQ(program.count("growth_bytes", 2), 24u);
  CHECK_EQ(program.sum("growth_bytes"), 240u);
  CHECK_EQ(summary.pools[0].growth.increase(), 240);
}

TEST(growth_counts_the_steps_in_which_it_grew) {
  Program program;
  for (uintptr_t step = 1; step <= 32; ++step) {
    if (step % 8 == 0) {
      program.allocate(1, step, 10);
    }
    if (step == 20) {
      program.allocate(2, 1000, 64);
    }
    program.ledger.markStep();
  }
  // Since the end of step 16: steps 24 and 32, and step 20.
  CHECK_EQ(program.value("growth_bytes", 1), 20u);
  CHECK_EQ(program.count("growth_bytes", 1), 2u);
  CHECK_EQ(program.value("growth_bytes", 2), 64u);
  CHECK_EQ(program.count("growth_bytes", 2), 1u);
}

TEST(no_growth_is_told_before_the_second_step) {
  Program program;
  program.allocate(1, 1, 10);
  program.ledger.markStep();
  CHECK_EQ(program.ledger.summary().growth_since_step, 0u);
  CHECK_EQ(program.sum("growth_bytes"), 0u);
  program.allocate(1, 2, 10);
  program.ledger.markStep();
  CHECK_EQ(program.value("growth_bytes", 1), 10u);
}

TEST(growth_is_counted_over_steps_of_optimizers_without_marks) {
  Program program;
  for (uintptr_t step = 1; step <= 40; ++step) {
    program.allocate(2, 100 + step, 10);
    program.ledger.markOptimizerStep();
  }
  CHECK_EQ(program.ledger.summary().growth_since_step, 16u);
  CHECK_EQ(program.value("growth_bytes", 2), 240u);
  CHECK_EQ(program.count("growth_bytes", 2), 24u);
}

TEST(marks_of_the_program_take_the_place_of_optimizers) {
  Program program;
  for (uintptr_t step = 1; step <= 40; ++step) {
    program.allocate(2, 100 + step, 10);
    program.ledger.markOptimizerStep();
    program.ledger.markOptimizerStep(); // of another optimizer
    program.ledger.markStep();
  }
  CHECK_EQ(program.ledger.summary().steps, 40u);
  CHECK_EQ(program.value("growth_bytes", 2), 240u);
  CHECK_EQ(program.count("growth_bytes", 2), 24u);
}

TEST(without_steps_each_call_of_a_model_ends_one) {
  Program program;
  for (uintptr_t call = 1; call <= 41; ++call) {
    program.allocateInModel(1, 1000 + call, 100);
    program.allocateInModel(2, 2000 + call, 100);
    program.allocate(3, 3000 + call, 10);                  // is kept
    program.allocate(4, 4000 + call, 10, Stage::kForward); // outside of modules
    program.free(1000 + call);
    program.free(2000 + call);
    program.free(4000 + call);
  }
  AllocationLedger::Summary summary = program.ledger.summary();
  CHECK_EQ(summary.steps, 40u);
  CHECK(summary.step_kind == StepKind::kCall);
  CHECK_EQ(program.value("growth_bytes", 3), 240u);
  CHECK_EQ(program.count("growth_bytes", 3), 24u);
  CHECK_EQ(program.sum("growth_bytes"), 240u);
}

TEST(what_a_request_gathers_and_gives_back_does_not_grow_over_calls) {
  Program program;
  for (uintptr_t call = 1; call <= 45; ++call) {
    program.allocateInModel(1, 1000, 100);
    program.free(1000);
    for (uintptr_t token = call - 8; call % 8 == 1 && token < call; ++token) {
      program.free(3000 + token);
    }
    program.allocate(3, 3000 + call, 10);
  }
  CHECK_EQ(program.sum("growth_bytes"), 0u);
}

TEST(steps_of_an_optimizer_take_the_place_of_calls) {
  Program program;
  for (uintptr_t step = 1; step <= 40; ++step) {
    program.allocateInModel(1, 1000, 100);
    program.free(1000);
    program.allocate(2, 100 + step, 10);
    program.ledger.markOptimizerStep();
  }
  AllocationLedger::Summary summary = program.ledger.summary();
  CHECK_EQ(summary.steps, 40u);
  CHECK(summary.step_kind == StepKind::kOptimizer);
  CHECK_EQ(program.value("growth_bytes", 2), 240u);
}

TEST(growth_of_an_earlier_kind_of_step_is_forgotten_by_every_site) {
  Program program;
  for (uintptr_t step = 0; step < 20; ++step) {
    program.allocate(1, 1000 + step, 100);
    program.allocate(2, 2000 + step, 100); // and nothing later
    program.allocate(3, 3000, 500);        // more at once than ever later
    program.free(3000);
    program.ledger.markOptimizerStep();
  }
  CHECK(program.value("growth_bytes", 1) > 0);
  CHECK(program.value("growth_bytes", 2) > 0);
  program.allocate(1, 1, 7); // after the last end of a step, and before the first mark
  for (uintptr_t step = 0; step < 40; ++step) {
    program.ledger.markStep();
    CHECK_EQ(program.ledger.summary().steps, step + 1);
    program.free(1000 + step);
    if (step >= 20) {
      program.allocate(1, 1000 + step, 10);
    }
  }
  AllocationLedger::Summary summary = program.ledger.summary();
  CHECK_EQ(summary.growth_since_step, 16u);
  CHECK_EQ(program.value("growth_bytes", 2), 0u);
  CHECK_EQ(summary.pools[0].peak_step, 0u);
  CHECK_EQ(summary.pools[0].growth.increase(), 19 * 10 - 5 * 100);
}

TEST(roles_follow_from_who_made_and_who_outlived) {
  Program program;
  program.allocate(1, 1, 100, Stage::kForward); // saved for the backward
  program.allocate(2, 2, 200, Stage::kForward); // given up before it
  program.allocate(3, 3, 400, Stage::kLoading); // a batch
  program.allocate(4, 4, 800, Stage::kOther);   // told to be a parameter
  program.allocate(5, 5, 1600, Stage::kOther);  // nobody knows
  program.allocate(7, 7, 6400, Stage::kOptimizer);
  program.ledger.setRole({reinterpret_cast<uintptr_t>(at(4)), 12345}, TensorRole::kParameter);
  program.free(2);
  program.allocate(6, 6, 3200, Stage::kBackward); // the peak, and kept: a gradient
  program.free(1);
  program.allocate(6, 8, 1, Stage::kBackward);
  program.free(4);
  CHECK_EQ(program.value("peak_activation_bytes", 1, Stage::kForward), 100u);
  CHECK_EQ(program.value("peak_temporary_bytes", 2, Stage::kForward), 0u); // not held at the peak
  CHECK_EQ(program.value("peak_input_bytes", 3, Stage::kLoading), 400u);
  CHECK_EQ(program.value("peak_parameter_bytes", 4), 800u);
  CHECK_EQ(program.value("peak_optimizer_bytes", 7, Stage::kOptimizer), 6400u);
  CHECK_EQ(program.value("peak_gradient_bytes", 6, Stage::kBackward), 3200u);
  CHECK_EQ(program.value("peak_bytes", 5), 1600u);
  CHECK_EQ(program.sum("peak_bytes"), 12500u);
  uint64_t unknown = program.ledger.summary().peak_roles[0][0];
  CHECK_EQ(unknown, 1600u);
}

TEST(pools_have_peaks_of_their_own) {
  Program program;
  Recorder &recorder = RecorderRegistry::current();
  Node *node = program.context(1);
  MemoryPool *host = program.ledger.pool(0, kHost);
  MemoryPool *first = program.ledger.pool(0x100, "cuda");
  MemoryPool *second = program.ledger.pool(0x101, "cuda");
  CHECK(first != second);
  CHECK_EQ(first, program.ledger.pool(0x100, "cuda"));
  program.ledger.allocated(recorder, node, host, at(1), 10);
  program.ledger.allocated(recorder, node, first, at(2), 100);
  program.ledger.freed(at(2));
  program.ledger.allocated(recorder, node, second, at(3), 1000);
  program.ledger.noteReserved(second, 4096);
  CHECK_EQ(program.value("peak_bytes", 1), 10u);
  CHECK_EQ(program.sum("gpu_peak_bytes"), 1100u);
  CHECK_EQ(program.sum("gpu_live_bytes"), 1000u);
  AllocationLedger::Summary summary = program.ledger.summary();
  CHECK_EQ(summary.pools[2].name, std::string("cuda:1"));
  CHECK_EQ(summary.pools[2].reserved_peak_bytes, 4096u);
}

TEST(too_many_pools_are_refused) {
  Program program;
  for (uint16_t key = 0; key < AllocationLedger::kMaxPools; ++key) {
    CHECK(program.ledger.pool(key, "x") != nullptr);
  }
  CHECK(program.ledger.pool(1000, "x") == nullptr);
}

TEST(what_was_frozen_stays_and_nothing_is_added) {
  Program program;
  program.allocate(1, 1, 100);
  program.ledger.freeze();
  program.allocate(1, 2, 50);
  program.free(1);
  program.ledger.markStep();
  CHECK_EQ(program.value("live_bytes", 1), 100u);
  CHECK_EQ(program.sum("alloc_bytes"), 100u);
  CHECK_EQ(program.ledger.summary().peak_roles[0][0], 100u);
  CHECK(program.ledger.pool(7, "x") == nullptr);
}

TEST(another_session_starts_from_nothing) {
  Program program;
  program.allocate(1, 1, 100);
  uint64_t old = RecorderRegistry::generation();
  RecorderRegistry::instance().begin(1u << 20);
  CHECK_EQ(program.ledger.rows(RecorderRegistry::generation()).size(), 0u);
  CHECK(!program.ledger.rows(old).empty());
  program.ledger.begin(RecorderRegistry::generation(), nullptr);
  program.free(1); // of the session before
  program.allocate(1, 2, 7);
  CHECK_EQ(program.sum("live_bytes"), 7u);
}

TEST(threads_share_one_ledger) {
  Program program;
  constexpr int kThreads = 4;
  constexpr uintptr_t kBlocks = 2000;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      uintptr_t base = 1 + static_cast<uintptr_t>(thread) * kBlocks;
      for (uintptr_t i = 0; i < kBlocks; ++i) {
        program.allocate(1, base + i, 16);
        if (i % 2 == 1) {
          program.free(base + i - 1);
        }
        if (i % 500 == 0) {
          program.ledger.markStep();
          program.ledger.rows(RecorderRegistry::generation());
          program.ledger.summary();
        }
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  CHECK_EQ(program.sum("alloc_bytes"), kThreads * kBlocks * 16);
  CHECK_EQ(program.sum("live_bytes"), kThreads * kBlocks * 8);
  AllocationLedger::Summary summary = program.ledger.summary();
  CHECK_EQ(program.sum("peak_bytes"), summary.pools[0].peak_bytes);
  CHECK_EQ(summary.pools[0].live_bytes, kThreads * kBlocks * 8);
}

namespace {

/// Metric and node of a row, and what it says.
using Said = std::map<std::pair<uint16_t, uint32_t>, std::vector<uint64_t>>;

Said saidBy(const ForeignRows &rows) {
  Said said;
  for (const auto &[metric, of_metric] : rows) {
    for (const NodeValues &row : of_metric) {
      const MetricValues &values = row.values;
      said[{metric, row.node}] = {values.count, values.total, values.minimum, values.maximum};
    }
  }
  return said;
}

/// Allocations and frees at random in 3000 contexts, of which few have anything at a time.
class Disturbance {
public:
  explicit Disturbance(Program &program, unsigned seed) : program_(program), random_(seed) {}
  void act(int times) {
    while (times-- > 0) {
      uintptr_t address = 1 + random_() % 9000;
      switch (random_() % 40) {
      case 0:
        program_.ledger.setRole({reinterpret_cast<uintptr_t>(at(address))}, TensorRole::kParameter);
        break;
      case 1:
        random_() % 20 == 0 ? program_.ledger.markStep() : program_.ledger.markOptimizerStep();
        break;
      case 2:
        program_.allocate(random_() % 3000, address, 1'000'000); // perhaps a new peak
        break;
      default:
        if (random_() % 2 == 0) {
          program_.free(address);
        } else {
          auto stage = static_cast<Stage>(random_() % 5);
          program_.allocate(random_() % 3000, address, 1 + random_() % 5000, stage);
        }
      }
    }
  }

private:
  Program &program_;
  std::mt19937 random_;
};

} // namespace

TEST(a_reading_is_of_the_moment_of_its_beginning_whatever_happens_between_its_slices) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Program program;
    Disturbance disturbance(program, seed);
    disturbance.act(20'000);
    Said expected = saidBy(program.ledger.rows(RecorderRegistry::generation()));
    CHECK(expected.size() > 5000);
    LedgerReading reading(program.ledger);
    size_t slices = 0;
    for (; reading.next(); ++slices) {
      disturbance.act(seed % 2 == 0 ? 200 : 5);
    }
    CHECK(slices >= expected.size() / 7 / LedgerReading::kSitesInSlice); // 7 metrics at most
    CHECK(reading.hasGrowth());
    CHECK(saidBy(AllocationLedger::rowsOf(reading)) == expected);
  }
}

TEST(rows_add_up_to_the_peak_of_their_moment) {
  Program program;
  Disturbance disturbance(program, 1);
  disturbance.act(20'000);
  LedgerReading reading(program.ledger);
  while (reading.next()) {
    disturbance.act(500);
  }
  uint64_t at_peak = 0, live = 0, by_role = 0;
  for (const SiteValues &site : reading.sites) {
    at_peak += site.at_peak_bytes;
    live += site.live_bytes;
  }
  for (const auto &[site, roles] : reading.roles) {
    for (uint64_t bytes : roles) {
      by_role += bytes;
    }
  }
  CHECK_EQ(at_peak, reading.pools[0].peak_bytes);
  CHECK_EQ(by_role, reading.pools[0].peak_bytes);
  CHECK_EQ(live, reading.pools[0].live_bytes);
  CHECK(program.ledger.pool(0, kHost)->peak_bytes > reading.pools[0].peak_bytes);
}

TEST(a_reading_that_ends_early_leaves_nothing_out_of_the_next_one) {
  Program program;
  Disturbance disturbance(program, 2);
  disturbance.act(20'000);
  Said expected = saidBy(program.ledger.rows(RecorderRegistry::generation()));
  {
    LedgerReading reading(program.ledger);
    reading.next();
  }
  CHECK(saidBy(program.ledger.rows(RecorderRegistry::generation())) == expected);
  program.ledger.freeze();
  CHECK(saidBy(program.ledger.rows(RecorderRegistry::generation())) == expected);
}

TEST(rows_arrive_at_their_nodes_in_the_merged_tree) {
  class Names final : public FrameResolver {
  public:
    FrameRecord resolve(const Node &node) const override {
      return {node.kind, Interner::instance().intern("same"), 0, 0};
    }
  };
  Program program;
  program.allocate(1, 1, 100);
  program.allocate(2, 2, 20);
  ForeignRows rows = program.ledger.rows(RecorderRegistry::generation());
  rows.begin()->second.push_back({0, 4711, {}}); // a thread that is not there
  MergedTree tree = mergeTrees({&RecorderRegistry::current()}, {}, Names(), rows);
  uint16_t live = MetricRegistry::instance().gauge("live_bytes");
  CHECK_EQ(tree.metrics[live].size(), 1u); // both contexts are one frame
  CHECK_EQ(tree.metrics[live][0].values.total, 120u);
  CHECK_EQ(tree.metrics[live][0].values.count, 2u);
}
