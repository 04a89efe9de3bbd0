#include "core/interner.h"

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/check.h"

using namespace deepcontext;

TEST(equal_texts_have_one_id) {
  Interner &interner = Interner::instance();
  uint32_t id = interner.intern("aten::mm");
  CHECK_EQ(interner.intern(std::string("aten::") + "mm"), id);
  CHECK(interner.intern("aten::mul") != id);
  CHECK_EQ(interner.text(id), "aten::mm");
}

TEST(names_of_a_program_are_joined_once_the_table_is_full) {
  Interner interner(10'000);
  uint32_t first = interner.internBounded("first");
  auto letters = [](int number) {
    return std::string{static_cast<char>('a' + number / 26), static_cast<char>('a' + number % 26)};
  };
  for (int number = 0; number < 200; ++number) {
    interner.internBounded("request " + letters(number));
    interner.internBounded("request " + letters(number) + std::to_string(number));
  }
  uint32_t other = interner.internBounded("one more");
  CHECK_EQ(interner.text(other), Interner::kOtherNames);
  CHECK_EQ(interner.internBounded("another one 17"), other);
  CHECK(interner.refused() > 200);
  CHECK_EQ(interner.internBounded("first"), first); // what is known stays known
  CHECK(interner.intern("the profiler's own") != other);
  interner.clearRefused();
  CHECK_EQ(interner.refused(), 0u);
  CHECK_EQ(interner.internBounded("one more"), other);
  CHECK_EQ(interner.refused(), 1u);
}

TEST(a_full_table_still_joins_names_that_differ_in_numbers) {
  Interner interner(100'000);
  for (uint32_t number = 0; number <= Interner::kMostVariants; ++number) {
    interner.internBounded("step " + std::to_string(number));
  }
  for (std::string name = "x"; interner.refused() == 0; name += 'x') {
    interner.internBounded(name);
  }
  CHECK_EQ(interner.text(interner.internBounded("step 12345")), "step N");
}

TEST(any_bytes_are_a_text) {
  Interner &interner = Interner::instance();
  std::string_view with_null("a\0b", 3);
  uint32_t id = interner.intern(with_null);
  CHECK_EQ(interner.text(id), with_null);
  CHECK(interner.intern("a") != id);
  CHECK_EQ(interner.text(interner.intern("")), "");
  CHECK_EQ(interner.text(interner.intern("\xff\xfe")), "\xff\xfe");
}

TEST(a_text_stays_where_it_is) {
  Interner &interner = Interner::instance();
  std::string_view early = interner.text(interner.intern("stays"));
  const char *address = early.data();
  for (int i = 0; i < 20'000; ++i) {
    interner.intern("text " + std::to_string(i));
  }
  CHECK_EQ(static_cast<const void *>(interner.text(interner.intern("stays")).data()),
           static_cast<const void *>(address));
  CHECK_EQ(early, "stays");
}

TEST(threads_agree_on_ids) {
  constexpr int kThreads = 4;
  constexpr int kTexts = 3000;
  std::vector<std::vector<uint32_t>> ids(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&ids, t] {
      for (int i = 0; i < kTexts; ++i) {
        ids[t].push_back(Interner::instance().intern("shared " + std::to_string(i)));
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  for (int t = 1; t < kThreads; ++t) {
    CHECK(ids[t] == ids[0]);
  }
  CHECK_EQ(Interner::instance().text(ids[0][2999]), "shared 2999");
}

TEST(the_cache_agrees_with_the_interner) {
  auto cache = std::make_unique<NameCache>();
  const char *name = "aten::add";
  uint32_t id = cache->lookup(name);
  CHECK_EQ(id, Interner::instance().intern("aten::add"));
  CHECK_EQ(cache->lookup(name), id);
}

TEST(an_address_with_other_content_is_another_name) {
  auto cache = std::make_unique<NameCache>();
  char buffer[32];
  std::strcpy(buffer, "MulBackward0");
  uint32_t mul = cache->lookup(buffer);
  std::strcpy(buffer, "AddBackward0");
  uint32_t add = cache->lookup(buffer);
  CHECK(mul != add);
  CHECK_EQ(Interner::instance().text(add), "AddBackward0");
  std::strcpy(buffer, "AddBackward"); // a prefix of what the address held before
  CHECK_EQ(Interner::instance().text(cache->lookup(buffer)), "AddBackward");
  std::strcpy(buffer, "MulBackward0");
  CHECK_EQ(cache->lookup(buffer), mul);
}

TEST(a_name_that_this_thread_has_met_takes_no_lock) {
  // PyTorch builds the name of each backward node in one buffer after the other.
  constexpr const char *kNames[] = {"MulBackward0", "a name of more than sixteen characters",
                                    "met-65", "a longer name, met after 64 of its like: 65"};
  constexpr size_t kCount = std::size(kNames);
  NameCache cache;
  for (uint32_t i = 100; i < 100 + Interner::kMostVariants; ++i) {
    Interner::instance().internBounded("met-" + std::to_string(i));
    Interner::instance().internBounded("a longer name, met after " + std::to_string(i) +
                                       " of its like: 1");
  }
  std::vector<uint32_t> ids;
  for (const char *name : kNames) {
    ids.push_back(cache.lookup(name));
  }
  CHECK_EQ(Interner::instance().text(ids[2]), "met-N");
  CHECK_EQ(Interner::instance().text(ids[3]), "a longer name, met after N of its like: N");
  std::unique_lock<Mutex> held(Interner::instance().forkLock());
  auto seen = std::async(std::launch::async, [&] {
    char buffers[2][64];
    std::vector<uint32_t> found;
    for (size_t i = 0; i < 4 * kCount; ++i) {
      char *buffer = buffers[i / (2 * kCount)];
      std::strcpy(buffer, kNames[i % kCount]);
      found.push_back(cache.lookup(buffer));
    }
    return found;
  });
  bool took_no_lock = seen.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
  held.unlock();
  CHECK(took_no_lock);
  std::vector<uint32_t> found = seen.get();
  for (size_t i = 0; i < found.size(); ++i) {
    CHECK_EQ(found[i], ids[i % kCount]);
  }
}

TEST(names_with_counters_do_not_fill_the_table) {
  Interner &interner = Interner::instance();
  for (uint32_t i = 0; i < Interner::kMostVariants; ++i) {
    std::string text = "step " + std::to_string(i) + " of 100";
    CHECK_EQ(interner.text(interner.internBounded(text)), text);
  }
  CHECK_EQ(interner.text(interner.internBounded("step 64 of 100")), "step N of N");
  CHECK_EQ(interner.text(interner.internBounded("step 99999 of 100")), "step N of N");
  CHECK_EQ(interner.text(interner.internBounded("step 3 of 100")), "step 3 of 100"); // seen before
  CHECK_EQ(interner.text(interner.internBounded("stage 64 of 100")), "stage 64 of 100");
  CHECK_EQ(interner.text(interner.internBounded("step N of N")), "step N of N");
}

TEST(texts_without_numbers_are_never_bounded) {
  Interner &interner = Interner::instance();
  for (char first = 'a'; first <= 'z'; ++first) {
    for (char second = 'a'; second <= 'z'; ++second) {
      std::string text = std::string("word ") + first + second;
      CHECK_EQ(interner.text(interner.internBounded(text)), text);
    }
  }
}

TEST(the_cache_bounds_names_with_counters) {
  auto cache = std::make_unique<NameCache>();
  char buffer[32];
  uint32_t last = 0;
  for (int i = 0; i < 1000; ++i) {
    std::snprintf(buffer, sizeof buffer, "batch-%d", i);
    last = cache->lookup(buffer);
  }
  CHECK_EQ(Interner::instance().text(last), "batch-N");
  std::strcpy(buffer, "batch-7");
  CHECK_EQ(Interner::instance().text(cache->lookup(buffer)), "batch-7");
}

TEST(short_and_long_names_anywhere_in_memory) {
  // A short name is compared in two loads that may read past its end, but not past its page.
  const size_t kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  auto cache = std::make_unique<NameCache>();
  void *block =
      mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(block != MAP_FAILED);
  char *pages = static_cast<char *>(block);
  CHECK_EQ(mprotect(pages + kPage, kPage, PROT_NONE), 0);
  for (size_t length = 0; length <= 40; ++length) {
    char *name = pages + kPage - length - 1; // its terminating zero is the page's last byte
    for (char letter : {'x', 'y', 'x'}) {
      std::memset(name, letter, length);
      name[length] = '\0';
      CHECK_EQ(Interner::instance().text(cache->lookup(name)), std::string(length, letter));
      CHECK_EQ(Interner::instance().text(cache->lookup(name)), std::string(length, letter));
    }
  }
  munmap(block, 2 * kPage);
}

TEST(names_that_share_a_slot_do_not_share_an_id) {
  auto cache = std::make_unique<NameCache>();
  constexpr size_t kNames = 4096; // more addresses than the cache has slots
  constexpr size_t kBytes = 16;
  std::vector<char> texts(kNames * kBytes, '\0');
  std::vector<uint32_t> ids;
  for (size_t i = 0; i < kNames; ++i) {
    char *name = &texts[i * kBytes];
    std::strcpy(name, "name");
    for (size_t letter = 0, left = i; letter < 3; ++letter, left /= 16) {
      name[4 + letter] = static_cast<char>('a' + left % 16);
    }
    ids.push_back(cache->lookup(name));
  }
  for (size_t i = 0; i < kNames; ++i) {
    const char *name = &texts[i * kBytes];
    CHECK_EQ(cache->lookup(name), ids[i]);
    CHECK_EQ(Interner::instance().text(ids[i]), std::string_view(name));
  }
}
