// Numbers of the collectives of compiled programs, and what lies between them.
#include "jax/collective_runs.h"
#include "tests/check.h"

using namespace deepcontext;
using namespace deepcontext::jax;

namespace {

constexpr uint32_t kFunction = 5;
constexpr int64_t kRandom = 676'000;

Operation exchange(const char *name, std::vector<uint32_t> processes) {
  Operation operation;
  operation.name = name;
  operation.opcode = "all-reduce";
  operation.processes = std::move(processes);
  operation.payload_bytes = 64;
  return operation;
}

Operation work(const char *name) {
  Operation operation;
  operation.name = name;
  operation.opcode = operation.primitive = "dot";
  return operation;
}

Program programOf(uint32_t uid, std::vector<Operation> operations) {
  Program program;
  program.uid = uid;
  program.operations = std::move(operations);
  for (uint32_t i = 0; i < program.operations.size(); ++i) {
    program.by_name.emplace(program.operations[i].name, i);
  }
  return program;
}

/// A run that begins at `start_us`: works for 10 us, and exchanges for 5 us.
Run runOf(int64_t id, uint64_t start_us) {
  Run run;
  run.run_id = id;
  run.is_complete = true;
  run.operations["dot"].add(start_us * 1'000'000, (start_us + 10) * 1'000'000);
  run.operations["psum"].add((start_us + 10) * 1'000'000, (start_us + 15) * 1'000'000);
  return run;
}

/// Runs of program 0 with these numbers, 100 us apart.
TraceWindow windowOf(const std::vector<int64_t> &ids) {
  TraceWindow window;
  for (size_t i = 0; i < ids.size(); ++i) {
    window.runs.push_back(runOf(ids[i], 100 * i));
  }
  return window;
}

void launch(uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    Collectives::instance().launched(kFunction, 1);
  }
}

std::vector<ProgramCollective> rows() {
  return Collectives::instance().read().rows;
}

} // namespace

TEST(collectives_have_the_number_of_their_launch) {
  Collectives::instance().clear();
  CollectiveRuns runs;
  Program program = programOf(0, {work("dot"), exchange("psum", {0, 1})});
  runs.add(program, kFunction);
  launch(10);
  runs.join(0, kRandom + 3, {3, 3}, 0, 0);
  runs.read(windowOf({kRandom + 3, kRandom + 4, kRandom + 5}), {0, 0, 0}, {});
  auto found = rows(); // of the first, the own time is not known
  CHECK_EQ(found.size(), size_t{2});
  CHECK(found[0].number_of_its == 4 && found[1].number_of_its == 5);
  CHECK(found[0].duration_ns == 5'000 && found[0].own_ns == 95'000 && found[0].bytes == 64);
  CHECK_EQ(found[0].order, 4 * Collectives::kOrdersOfRun);
  CHECK(runs.summary().groups.size() == 1 &&
        runs.summary().groups[0].members == std::vector<uint32_t>({0, 1}));
  CHECK_EQ(Collectives::instance().read().launches[0], 10u);
}

TEST(a_later_launch_corrects_the_numbers) {
  Collectives::instance().clear();
  CollectiveRuns runs;
  Program program = programOf(0, {work("dot"), exchange("psum", {0, 1})});
  runs.add(program, kFunction);
  runs.join(0, kRandom + 3, {5, 5}, 0, 0); // the window began after launches whose runs it has
  runs.read(windowOf({kRandom + 3, kRandom + 4}), {0, 0}, {});
  CHECK(rows().size() == 1 && rows()[0].number_of_its == 6);
  runs.join(0, kRandom + 40, {40, 40}, 0, 0);
  CHECK(rows().empty());
  runs.join(0, kRandom + 41, {44, 44}, 0, 0);
  runs.read(windowOf({kRandom + 50, kRandom + 51}), {0, 0}, {});
  CHECK(rows().size() == 1 && rows()[0].number_of_its == 51);
}

TEST(a_run_that_is_cut_leaves_the_own_time_of_the_next_unknown) {
  Collectives::instance().clear();
  CollectiveRuns runs;
  Program program = programOf(0, {work("dot"), exchange("psum", {0, 1})});
  runs.add(program, kFunction);
  runs.join(0, kRandom, {0, 0}, 0, 0);
  TraceWindow window = windowOf({kRandom, kRandom + 1, kRandom + 2, kRandom + 3});
  window.runs[1].is_complete = false;
  runs.read(window, {0, 0, 0, 0}, {});
  CHECK(rows().size() == 1 && rows()[0].number_of_its == 3);
}

TEST(groups_are_sets_of_processes) {
  Collectives::instance().clear();
  CollectiveRuns runs;
  Program program = programOf(0, {work("dot"), exchange("psum", {0, 1}), exchange("rows", {0, 2}),
                                  exchange("again", {0, 1}), exchange("mine", {0})});
  runs.add(program, kFunction);
  CHECK_EQ(runs.summary().groups.size(), size_t{2});
  CHECK(runs.summary().groups[0].of_run == 2 && runs.summary().groups[1].of_run == 1);
  runs.join(0, kRandom, {0, 0}, 0, 0);
  TraceWindow window = windowOf({kRandom, kRandom + 1});
  for (Run &run : window.runs) {
    uint64_t end_ps = run.operations["psum"].last_ps;
    run.operations["rows"].add(end_ps + 7'000, end_ps + 9'000);
    run.operations["again"].add(end_ps + 20'000, end_ps + 21'000);
  }
  runs.read(window, {0, 0}, {});
  auto found = rows();
  CHECK_EQ(found.size(), size_t{3 + 1}); // the second of the first run, too
  const ProgramCollective &of_rows = found[2].group == 1 ? found[2] : found.back();
  CHECK(of_rows.number_of_its == 1 && of_rows.duration_ns == 2);
  // Since the other exchange of the row: between the runs, work, and two gaps.
  CHECK_EQ(of_rows.own_ns, uint64_t{11 + 94'979 + 7});
}

TEST(very_many_collectives_of_a_run_are_few_rows) {
  Collectives::instance().clear();
  CollectiveRuns runs;
  std::vector<Operation> operations;
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) {
    names.push_back("psum." + std::to_string(i));
    operations.push_back(exchange(names.back().c_str(), {0, 1}));
  }
  Program program = programOf(0, std::move(operations));
  runs.add(program, kFunction);
  runs.join(0, kRandom, {0, 0}, 0, 0);
  TraceWindow window;
  for (int64_t i = 0; i < 3; ++i) {
    Run run;
    run.run_id = kRandom + i;
    run.is_complete = true;
    for (size_t n = 0; n < names.size(); ++n) {
      uint64_t start_ps = 1'000'000 * (static_cast<uint64_t>(i) * 1000 + n);
      run.operations[names[n]].add(start_ps, start_ps + 250'000);
    }
    window.runs.push_back(run);
  }
  runs.read(window, {0, 0, 0}, {});
  CHECK_EQ(rows().size(), size_t{3 * Collectives::kMostOfRun - 1});
  uint64_t duration_ns = 0;
  for (const ProgramCollective &row : rows()) {
    duration_ns += row.number_of_its >= Collectives::kMostOfRun ? row.duration_ns : 0;
  }
  CHECK_EQ(duration_ns, uint64_t{2 * 100 * 250});
}

TEST(functions_whose_programs_run_in_turn_are_left_out) {
  Collectives::instance().clear();
  CollectiveRuns runs;
  Program first = programOf(0, {work("dot"), exchange("psum", {0, 1})});
  Program second = programOf(1, {work("dot"), exchange("psum", {0, 1})});
  runs.add(first, kFunction);
  runs.add(second, kFunction);
  runs.join(0, 100, {0, 0}, 0, 0);
  runs.join(1, 900, {1, 1}, 0, 0); // one after the other
  runs.read(windowOf({100, 900, 901, 902}), {0, 1, 1, 1}, {});
  CHECK(rows().size() == 3 && !runs.summary().groups[0].is_left_out);
  runs.read(windowOf({103, 104}), {0, 0}, {});
  CHECK(rows().empty() && runs.summary().groups[0].is_left_out);
}

TEST(the_longest_work_before_a_collective_is_a_place) {
  Collectives::instance().clear();
  CollectiveRuns runs;
  Program program = programOf(0, {work("dot"), work("short"), exchange("psum", {0, 1})});
  runs.add(program, kFunction);
  runs.join(0, kRandom, {0, 0}, 0, 0);
  runs.read(windowOf({kRandom, kRandom + 1}), {0, 0}, {});
  auto samples = Collectives::instance().read().samples;
  CHECK_EQ(samples.size(), size_t{2});
  CHECK(samples[1].ns == 10'000 && samples[1].order == Collectives::kOrdersOfRun);
  CHECK_EQ(samples[1].doing, static_cast<uint8_t>(Doing::kOperator));
}

TEST(programs_of_one_process_are_not_watched) {
  Collectives::instance().clear();
  CollectiveRuns runs;
  runs.add(programOf(0, {work("dot"), exchange("psum", {0})}), kFunction);
  CHECK_EQ(Collectives::instance().watchedCount(), 0u);
  CHECK_EQ(Collectives::instance().launched(kFunction, 1).of_function, LaunchNumber::kNone);
  static_assert(sizeof(Collectives) + sizeof(Stretch) < 64 * 1024);
}

TEST(functions_past_the_limit_are_left_out) {
  Collectives::instance().clear();
  CollectiveRuns runs;
  constexpr uint32_t kFunctions = Collectives::kMostFunctions + 2;
  std::vector<Program> programs;
  for (uint32_t function = 0; function < kFunctions; ++function) {
    programs.push_back(programOf(function, {work("dot"), exchange("psum", {0, 1})}));
  }
  for (uint32_t function = 0; function < kFunctions; ++function) {
    runs.add(programs[function], function);
    LaunchNumber number = Collectives::instance().launched(function, 1);
    CHECK_EQ(number.of_function == LaunchNumber::kNone, function >= Collectives::kMostFunctions);
    runs.join(function, kRandom, number, 0, 0);
  }
  CHECK_EQ(runs.summary().groups.size(), size_t{Collectives::kMostFunctions});
  CHECK_EQ(runs.summary().left_out, uint64_t{2});
  runs.read(windowOf({kRandom, kRandom + 1}), {kFunctions - 1, kFunctions - 1}, {});
  CHECK(rows().empty());
}

TEST(a_program_of_more_groups_than_the_limit_is_left_out) {
  Collectives::instance().clear();
  CollectiveRuns runs;
  std::vector<Operation> operations = {work("dot")};
  for (uint32_t other = 1; other <= 33; ++other) { // kMostGroups and one
    operations.push_back(exchange("psum", {0, other}));
  }
  Program program = programOf(0, operations);
  runs.add(program, kFunction);
  CHECK_EQ(runs.summary().groups.size(), size_t{32});
  CHECK_EQ(runs.summary().left_out, uint64_t{1});
  runs.join(0, kRandom, {0, 0}, 0, 0);
  runs.read(windowOf({kRandom, kRandom + 1}), {0, 0}, {});
  CHECK(rows().empty());
}
