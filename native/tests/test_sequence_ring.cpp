#include "core/sequence_ring.h"

#include <thread>

#include "core/thread_tree.h"
#include "tests/check.h"

using namespace deepcontext;

namespace {

/// Nodes whose `a` is the key they are stored under.
class Nodes {
public:
  explicit Nodes(uint64_t count) : nodes_(new Node[count]) {
    for (uint64_t i = 0; i < count; ++i) {
      nodes_[i].a = i;
    }
  }
  Node *operator[](uint64_t i) { return &nodes_[i]; }

private:
  std::unique_ptr<Node[]> nodes_;
};

} // namespace

TEST(what_was_stored_is_found) {
  SequenceRing ring;
  Nodes nodes(100);
  for (uint64_t i = 0; i < 100; ++i) {
    ring.store(1, i, nodes[i]);
  }
  for (uint64_t i = 0; i < 100; ++i) {
    CHECK_EQ(ring.find(1, i), nodes[i]);
  }
  CHECK(ring.find(1, 100) == nullptr);
}

TEST(the_last_to_store_a_number_is_found) {
  SequenceRing ring;
  Nodes nodes(2);
  ring.store(1, 5, nodes[0]);
  ring.store(1, 5, nodes[1]);
  CHECK_EQ(ring.find(1, 5), nodes[1]);
}

TEST(the_thread_is_part_of_the_key) {
  SequenceRing ring;
  Nodes nodes(3);
  ring.store(1, 5, nodes[0]);
  CHECK(ring.find(2, 5) == nullptr);
  ring.store(2, 5, nodes[1]); // the recorder was handed to the next thread
  CHECK_EQ(ring.find(2, 5), nodes[1]);
  CHECK(ring.find(1, 5) == nullptr);
}

TEST(an_overwritten_entry_is_not_found_and_makes_the_window_grow) {
  constexpr uint64_t kSlots = SequenceRing::kFirstSlots;
  SequenceRing ring;
  Nodes nodes(3 * kSlots);
  for (uint64_t i = 0; i <= kSlots; ++i) { // one more than fits
    ring.store(1, i, nodes[i]);
  }
  CHECK_EQ(ring.find(1, kSlots), nodes[kSlots]);
  CHECK(ring.find(1, 0) == nullptr); // wrapped; asks for more
  for (uint64_t i = kSlots + 1; i < 2 * kSlots + 1; ++i) {
    ring.store(1, i, nodes[i]);
  }
  uint64_t found = 0;
  for (uint64_t i = 1; i < 2 * kSlots + 1; ++i) { // the window holds twice as many now
    found += ring.find(1, i) == nodes[i];
  }
  CHECK_EQ(found, 2 * kSlots);
}

TEST(the_window_grows_at_once_to_what_would_have_held_the_entry) {
  constexpr uint64_t kLast = 100'000; // twelve first windows
  SequenceRing ring;
  Nodes nodes(2 * kLast);
  for (uint64_t i = 0; i < kLast; ++i) {
    ring.store(1, i, nodes[i]);
  }
  CHECK(ring.find(1, 0) == nullptr); // a backward that begins at the other end asks once
  for (uint64_t i = kLast; i < 2 * kLast; ++i) {
    ring.store(1, i, nodes[i]);
  }
  uint64_t found = 0;
  for (uint64_t i = kLast; i < 2 * kLast; ++i) {
    found += ring.find(1, i) == nodes[i];
  }
  CHECK_EQ(found, kLast);
}

TEST(a_forgotten_number_is_not_found_and_others_are) {
  SequenceRing ring;
  Nodes nodes(3);
  ring.store(1, 5, nodes[0]);
  ring.store(1, 6, nodes[1]);
  ring.forget(2, 5);                             // another thread's
  ring.forget(1, 6 + SequenceRing::kFirstSlots); // another number of the same slot
  CHECK_EQ(ring.find(1, 5), nodes[0]);
  CHECK_EQ(ring.find(1, 6), nodes[1]);
  ring.forget(1, 5);
  CHECK(ring.find(1, 5) == nullptr);
  CHECK_EQ(ring.find(1, 6), nodes[1]);
  ring.store(1, 5, nodes[2]);
  CHECK_EQ(ring.find(1, 5), nodes[2]);
}

TEST(looking_for_a_number_not_stored_yet_does_not_grow) {
  constexpr uint64_t kSlots = SequenceRing::kFirstSlots;
  SequenceRing ring;
  Nodes nodes(2 * kSlots);
  ring.store(1, 0, nodes[0]);
  CHECK(ring.find(1, kSlots) == nullptr); // same slot, newer number
  for (uint64_t i = 1; i <= kSlots; ++i) {
    ring.store(1, i, nodes[i]);
  }
  CHECK(ring.find(1, 0) == nullptr); // still the first window
}

TEST(growth_ends_at_the_largest_window) {
  constexpr uint64_t kMost = SequenceRing::kMaxSlots;
  SequenceRing ring;
  Nodes nodes(1);
  uint64_t next = 0;
  for (int round = 0; round < 12; ++round) { // asks for more than 2^20 slots in the end
    uint64_t first = next;
    for (uint64_t i = 0; i < kMost + 1; ++i) {
      ring.store(1, next++, nodes[0]);
    }
    CHECK(ring.find(1, first) == nullptr);
  }
  CHECK_EQ(ring.find(1, next - kMost), nodes[0]);
  CHECK(ring.find(1, next - kMost - 1) == nullptr);
}

TEST(clear_forgets_every_key) {
  SequenceRing ring;
  Nodes nodes(10);
  for (uint64_t i = 0; i < 10; ++i) {
    ring.store(1, i, nodes[i]);
  }
  ring.clear();
  for (uint64_t i = 0; i < 10; ++i) {
    CHECK(ring.find(1, i) == nullptr);
  }
}

TEST(readers_never_get_the_node_of_another_key) {
  constexpr uint64_t kLast = 300'000;
  SequenceRing ring;
  Nodes nodes(kLast);
  std::atomic<uint64_t> newest{0};
  std::atomic<uint64_t> wrong{0};
  std::atomic<uint64_t> found{0};
  auto read = [&](uint64_t back) {
    uint64_t number = 0;
    while (number + 1 < kLast) {
      uint64_t now = newest.load(std::memory_order_relaxed);
      number = now;
      // Around the wrap, where the writer is overwriting just now.
      uint64_t wanted = now > back ? now - back : 0;
      for (uint64_t i = 0; i < 8; ++i) {
        Node *node = ring.find(1, wanted + i);
        wrong += node && node->a != wanted + i;
        found += node != nullptr;
      }
    }
  };
  std::thread near(read, 4), far(read, SequenceRing::kFirstSlots - 2);
  for (uint64_t i = 0; i < kLast; ++i) {
    ring.store(1, i, nodes[i]);
    newest.store(i, std::memory_order_relaxed);
  }
  near.join();
  far.join();
  CHECK_EQ(wrong.load(), 0u);
  CHECK(found.load() > 0u);
}
