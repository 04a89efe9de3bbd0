// Limits of small tables: what is past each of them is counted or refused, and the rest is as
// before. tests/architecture/test_limits.py lists the tests of all limits.
#include <string>
#include <vector>

#include "core/ended_elsewhere.h"
#include "core/parked_levels.h"
#include "core/recorder.h"
#include "gpu/call_recorder.h"
#include "sampling/thread_names.h"
#include "tests/check.h"
#include "torch/collectives.h"
#include "unwind/call_frame_program.h"
#include "unwind/loaded_objects.h"
#include "unwind/symbols.h"

using namespace deepcontext;

namespace {

const void *at(uintptr_t number) {
  return reinterpret_cast<const void *>(number * 64);
}

bool runsProgram(size_t remembered) {
  constexpr uint8_t kRememberState = 0x0a, kRestoreState = 0x0b;
  std::vector<uint8_t> program(remembered, kRememberState);
  program.insert(program.end(), remembered, kRestoreState);
  unwind::CommonEntry common;
  unwind::DwarfRegisters registers{6, 7, 16, false};
  unwind::CallFrameProgram frames(common, registers, 0, 1);
  return frames.run({program.data(), program.data() + program.size()});
}

// A name of 70,000 bytes, as templates have.
#define TEN(text) text text text text text text text text text text
#define NAME TEN(TEN(TEN(TEN("tttttt_"))))
__attribute__((noinline)) int longNamed(int x) __asm__(NAME);
__attribute__((noinline)) int longNamed(int x) {
  return x + 2;
}

} // namespace

TEST(a_frame_program_that_remembers_too_many_rows_is_not_followed) { // kMostRemembered
  CHECK(runsProgram(16));
  CHECK(!runsProgram(17));
}

TEST(a_name_that_is_very_long_is_no_name) { // kMostBytes of symbols.cpp
  auto address = reinterpret_cast<uintptr_t>(&longNamed);
  unwind::LoadedObjects objects;
  objects.refresh();
  const unwind::LoadedObject *object = objects.find(address);
  CHECK(object != nullptr);
  const unwind::ObjectFile &file = objects.file(object->file);
  CHECK_EQ(unwind::symbolsAt(file.path, file.build_id, {address - object->bias})[0], "");
}

TEST(strands_past_the_most_that_wait_are_refused) { // ParkedLevels::kMost
  ParkedLevels parked;
  Level level{};
  for (uintptr_t i = 1; i <= ParkedLevels::kMost; ++i) {
    level.strand = {at(i), at(1), 0, true};
    CHECK(parked.park(level));
  }
  level.strand.frame = at(ParkedLevels::kMost + 1);
  CHECK(!parked.park(level));
  parked.take(at(7), [](const Level &) {});
  CHECK(parked.park(level)); // in the place of the one that runs again
  CHECK(parked.has(at(8), at(1)));
}

TEST(the_oldest_ends_on_other_threads_are_forgotten) { // EndedElsewhere::kMost
  EndedElsewhere &ends = EndedElsewhere::instance();
  uint64_t first = EndedElsewhere::count();
  for (uint64_t i = 0; i <= EndedElsewhere::kMost; ++i) {
    ends.note(at(i + 1), i);
  }
  EndedElsewhere::End end{};
  CHECK(ends.read(first, &end) && !end.owner);
  CHECK(ends.read(first + 1, &end) && end.owner == at(2));
}

TEST(threads_past_the_most_have_the_kernels_name) { // ThreadNames::kMost
  ThreadNames &names = ThreadNames::instance();
  names.clear();
  for (uint64_t handle = 1; handle <= 1024; ++handle) {
    CHECK(names.add(handle) != ThreadNames::kShared);
  }
  CHECK_EQ(names.add(1025), ThreadNames::kShared);
  names.name({{1024, "last"}, {1025, "late"}});
  CHECK_EQ(names.label(1024), "last");
  CHECK_EQ(names.label(ThreadNames::kShared), "");
  names.clear();
}

TEST(launches_nested_past_the_most_are_counted_and_not_withdrawn) { // CallRecorder::kMostOpen
  RecorderRegistry::instance().begin(1000);
  gpu::CallRecorder calls(1024);
  for (uint32_t id = 1; id <= 10; ++id) {
    calls.beginLaunch(id);
  }
  CHECK_EQ(calls.launches(), 10u);
  calls.withdrawLaunch(); // so that the report tells of a launch without a record
  CHECK_EQ(calls.launches(), 10u);
  calls.endLaunch();
  calls.endLaunch();
  calls.withdrawLaunch();
  CHECK_EQ(calls.launches(), 9u);
  for (int left = 0; left < 8; ++left) {
    calls.endLaunch();
  }
  RecorderRegistry::instance().end();
}

TEST(works_of_threads_past_the_most_are_matched_in_the_order_of_calls) { // kMostThreads
  auto &table = torch::Collectives::instance();
  table.clear();
  for (int thread = 0; thread < 200; ++thread) { // with one group in flight, each is learnt
    table.call(0, 0, 10);
    table.end(table.begin(thread), 11);
  }
  table.call(0, 0, 20);
  table.call(1, 0, 21);
  table.end(table.begin(5), 30); // known: of the first group
  CHECK_EQ(table.read().ended, 201u);
  table.end(table.begin(190), 31); // not known: the oldest call is its
  torch::Collectives::Reading reading = table.read();
  CHECK_EQ(reading.ended, 202u);
  CHECK_EQ(reading.unmatched, 0u);
  table.clear();
}

TEST(sizes_past_the_largest_are_the_largest) { // CollectiveRow::kMostBytes
  constexpr uint64_t kMostBytes = torch::CollectiveRow::kMostBytes;
  CHECK_EQ(torch::CollectiveRow(torch::Collective(), UINT64_MAX).size_bytes, kMostBytes);
  CHECK_EQ(torch::CollectiveRow(torch::Collective(), kMostBytes - 1).size_bytes, kMostBytes - 1);
}
