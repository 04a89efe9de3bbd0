#include "core/allocation_table.h"

#include <random>
#include <unordered_map>

#include "tests/check.h"

using namespace deepcontext;

TEST(finds_what_was_inserted_and_nothing_else) {
  AllocationTable table;
  CHECK(table.find(64) == nullptr);
  table.insert(64)->size_bytes = 7;
  CHECK_EQ(table.find(64)->size_bytes, 7u);
  CHECK(table.find(128) == nullptr);
  CHECK_EQ(table.insert(64)->size_bytes, 7u); // the same entry
  CHECK_EQ(table.size(), 1u);
}

TEST(agrees_with_a_map_under_random_changes) {
  std::mt19937 random(11);
  AllocationTable table;
  std::unordered_map<uintptr_t, uint64_t> expected;
  for (uint64_t event = 0; event < 200000; ++event) {
    // Clusters of near addresses, so that runs are long and wrap around.
    uintptr_t address = (1 + random() % 9000) * (random() % 2 ? 64 : 1);
    if (random() % 2) {
      Allocation *entry = table.insert(address);
      entry->size_bytes = event;
      expected[address] = event;
    } else if (Allocation *entry = table.find(address)) {
      CHECK_EQ(expected.count(address), 1u);
      table.erase(entry);
      expected.erase(address);
    }
  }
  CHECK_EQ(table.size(), expected.size());
  for (const auto &[address, value] : expected) {
    Allocation *entry = table.find(address);
    CHECK(entry && entry->size_bytes == value);
  }
  size_t visited = 0;
  table.visitSome(0, SIZE_MAX - 1,
                  [&](const Allocation &entry) { visited += expected.count(entry.address); });
  CHECK_EQ(visited, expected.size());
}

TEST(refuses_when_full_but_still_finds) {
  AllocationTable table(AllocationTable::kFirstSlots);
  constexpr uintptr_t kMost = AllocationTable::kFirstSlots * 3 / 4;
  for (uintptr_t i = 1; i <= kMost; ++i) {
    CHECK(table.insert(i * 64) != nullptr);
  }
  CHECK(table.insert((kMost + 1) * 64) == nullptr);
  CHECK(table.insert(64) != nullptr); // is there already
  CHECK_EQ(table.size(), kMost);
  table.erase(table.find(64));
  CHECK(table.insert((kMost + 1) * 64) != nullptr);
  table.clear();
  CHECK_EQ(table.size(), 0u);
  CHECK(table.find(128) == nullptr);
}
