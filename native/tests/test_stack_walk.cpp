#include "unwind/stack_walk.h"

#include <algorithm>
#include <cstdlib>
#include <pthread.h>
#include <string>
#include <thread>
#include <unwind.h>
#include <vector>

#include "core/interner.h"
#include "tests/check.h"
#include "tests/machine_code.h"

using namespace deepcontext;
using namespace deepcontext::test;
using namespace deepcontext::unwind;

namespace {

#define NOINLINE __attribute__((noinline))

uintptr_t stackHigh() {
  pthread_attr_t attributes;
  pthread_getattr_np(pthread_self(), &attributes);
  void *low = nullptr;
  size_t bytes = 0;
  pthread_attr_getstack(&attributes, &low, &bytes);
  pthread_attr_destroy(&attributes);
  return reinterpret_cast<uintptr_t>(low) + bytes;
}

struct Walked {
  std::vector<NativeFrame> frames;
  std::vector<uint32_t> functions; // of the frames
  WalkResult result;
};

NOINLINE Walked walk() {
  static thread_local ReturnAddressCache addresses;
  addresses.refresh();
  Registers here = Registers::here();
  Walked walked;
  walked.result = walkStack(addresses, here, stackHigh(), [&](const NativeFrame &frame) {
    walked.frames.push_back(frame);
    walked.functions.push_back(addresses.functionOf(*frame.known));
    return true;
  });
  return walked;
}

NOINLINE std::vector<uintptr_t> oracle() {
  std::vector<uintptr_t> addresses;
  _Unwind_Backtrace(
      [](_Unwind_Context *context, void *user) {
        static_cast<std::vector<uintptr_t> *>(user)->push_back(_Unwind_GetIP(context));
        return _URC_NO_REASON;
      },
      &addresses);
  return addresses;
}

std::string nameOf(const Walked &walked, size_t frame) {
  Function function = AddressTable::instance().function(walked.functions[frame]);
  return std::string(Interner::instance().text(function.name));
}

/// Both walks from one function; they differ in the frames of walk() and oracle() and in the
/// address at which this function calls them.
NOINLINE void compareHere(const char *where) {
  Walked walked = walk();
  std::vector<uintptr_t> expected = oracle();
  std::vector<uintptr_t> seen;
  for (const NativeFrame &frame : walked.frames) {
    seen.push_back(frame.pc);
  }
  if (expected.back() == 0) {
    expected.pop_back();
  }
  // Some linkers' first function of a program has no table: libgcc shows it, a walk ends before it.
  bool has_table = AddressTable::instance().lookup(expected.back()).rule.kind != RuleKind::kUnknown;
  if (!has_table) {
    expected.pop_back();
  }
  // seen: walk, compareHere, ...; expected: oracle, compareHere, ...
  bool is_long = seen.size() > 3 && expected.size() > 3;
  CHECK(is_long);
  if (!is_long) {
    return;
  }
  bool is_same = std::vector<uintptr_t>(seen.begin() + 2, seen.end()) ==
                 std::vector<uintptr_t>(expected.begin() + 2, expected.end());
  if (!is_same) {
    std::fprintf(stderr, "%s: %zu frames seen, %zu expected\n", where, seen.size(),
                 expected.size());
  }
  CHECK(is_same);
  CHECK(walked.result.end == (has_table ? WalkEnd::kOutermost : WalkEnd::kNoRule));
  CHECK_EQ(walked.result.is_by_libgcc, !has_table);
}

volatile int g_sink = 0;

NOINLINE void useAlloca(int bytes) {
  auto *memory = static_cast<char *>(__builtin_alloca(static_cast<size_t>(bytes)));
  memory[0] = 1;
  compareHere("alloca");
  g_sink = g_sink + memory[0];
}

NOINLINE void useAlignedLocals() {
  alignas(128) volatile char memory[256];
  memory[0] = 1;
  compareHere("aligned locals");
  g_sink = g_sink + memory[0];
}

NOINLINE void useAlignedAlloca(int bytes) {
  alignas(64) volatile char aligned[64];
  auto *memory = static_cast<volatile char *>(__builtin_alloca(static_cast<size_t>(bytes)));
  aligned[0] = memory[0] = 1;
  useAlloca(bytes);
  g_sink = g_sink + memory[0] + aligned[0];
}

int compareInQsort(const void *, const void *) {
  if (g_sink++ == 0) {
    compareHere("qsort");
  }
  return 0;
}

NOINLINE int recurse(int depth) {
  if (depth == 0) {
    compareHere("recursion");
    return 0;
  }
  return recurse(depth - 1) + 1 + g_sink;
}

} // namespace

TEST(a_walk_sees_what_libgcc_sees) {
  compareHere("plain");
  useAlloca(100);
  useAlignedLocals();
  useAlignedAlloca(333);
  recurse(300);
  g_sink = 0;
  int values[] = {3, 1, 2};
  qsort(values, 3, sizeof values[0], compareInQsort);
  std::thread([] { compareHere("thread"); }).join();
}

TEST(places_on_the_stack_do_not_overlap) {
  Walked walked = walk();
  for (size_t i = 1; i < walked.frames.size(); ++i) {
    CHECK_EQ(walked.frames[i - 1].cfa, walked.frames[i].sp);
    CHECK(walked.frames[i].sp < walked.frames[i].cfa);
  }
}

namespace {

NOINLINE Walked innermost() {
  Walked walked = walk();
  g_sink = g_sink + 1;
  return walked;
}
NOINLINE Walked middle() {
  Walked walked = innermost();
  g_sink = g_sink + 1;
  return walked;
}

} // namespace

TEST(functions_have_names_and_files) {
  Walked walked = middle();
  CHECK(walked.frames.size() > 4);
  CHECK_EQ(nameOf(walked, 1), "(anonymous namespace)::innermost");
  CHECK_EQ(nameOf(walked, 2), "(anonymous namespace)::middle");
  CHECK_EQ(nameOf(walked, 3), "functions_have_names_and_files");
  Function function = AddressTable::instance().function(walked.functions[1]);
  ObjectFile file = AddressTable::instance().file(function.file);
  CHECK(file.path.find("test_stack_walk") != std::string::npos);
}

TEST(one_function_is_one_whatever_line_it_is_called_from) {
  Walked first = innermost();
  Walked second = innermost();
  CHECK(first.frames[2].pc != second.frames[2].pc);
  CHECK_EQ(first.functions[2], second.functions[2]);
}

namespace {

Walked g_walked;

NOINLINE void walkIntoGlobal() {
  g_walked = walk();
}

} // namespace

TEST(a_walk_ends_at_code_without_a_table) {
  CallingCode code;
  code.call(walkIntoGlobal);
  CHECK(g_walked.result.end == WalkEnd::kNoRule);
  CHECK_EQ(g_walked.frames.size(), size_t{2});
  CHECK_EQ(nameOf(g_walked, 1), "(anonymous namespace)::walkIntoGlobal");
}

TEST(a_walk_never_leaves_the_stack) {
  static ReturnAddressCache addresses;
  addresses.refresh();
  Registers here = Registers::here();
  // The stack is said to end here, or the frame pointer is nonsense.
  size_t seen = 0;
  walkStack(addresses, here, here.sp + 64, [&](const NativeFrame &frame) {
    CHECK(frame.cfa <= here.sp + 64);
    return ++seen < 1000;
  });
  CHECK(seen < 3);
  Registers wild = here;
  wild.frame_pointer = 0x10;
  walkStack(addresses, wild, stackHigh(), [&](const NativeFrame &) { return ++seen < 1000; });
  CHECK(seen < 1000);
}

TEST(what_python_calls_a_function_is_its_name_also_if_that_is_found_later) {
  AddressTable &table = AddressTable::instance();
  Walked walked = walk();
  uint32_t own = walked.functions[1];
  CHECK_EQ(nameOf(walked, 1),
           "what_python_calls_a_function_is_its_name_also_if_that_is_found_later");
  auto addresses = table.takeNewAddresses();
  CHECK(std::any_of(addresses.begin(), addresses.end(),
                    [&](const auto &each) { return each.second == own; }));
  CHECK(table.takeNewAddresses().empty());
  table.setCallable(own, "module.function");
  CHECK_EQ(nameOf(walked, 1), "module.function");
}

TEST(a_copy_of_the_stack_is_walked_as_the_stack_itself) {
  static ReturnAddressCache addresses;
  addresses.refresh();
  Registers here = Registers::here();
  std::vector<uintptr_t> live, copied;
  walkStack(addresses, here, stackHigh(), [&](const NativeFrame &frame) {
    live.push_back(frame.pc);
    return true;
  });
  for (size_t bytes : {stackHigh() - here.sp, size_t{256}, size_t{0}}) {
    auto *inner = reinterpret_cast<const char *>(here.sp);
    std::vector<char> content(inner, inner + bytes);
    content.push_back(0); // so that none is empty
    StackCopy copy{here.sp, here.sp + bytes, content.data()};
    copied.clear();
    walkStackPart(addresses, here, copy, [&](const NativeFrame &frame) {
      copied.push_back(frame.pc);
      return true;
    });
    CHECK(std::equal(copied.begin(), copied.end(), live.begin()));
    CHECK(bytes == stackHigh() - here.sp ? copied == live : copied.size() < live.size());
  }
}

namespace {

extern "C" void __register_frame(void *);
extern "C" void __deregister_frame(void *);

} // namespace

TEST(libgcc_is_asked_where_the_table_has_no_rule) {
  CallingCode code;
  Bytes table = code.table(); // what a JIT compiler registers
  __register_frame(table.data());
  code.call(walkIntoGlobal);
  __deregister_frame(table.data());
  CHECK(g_walked.result.is_by_libgcc);
  CHECK(g_walked.frames.size() > 4);
  if (g_walked.frames.size() > 4) {
    CHECK_EQ(nameOf(g_walked, 1), "(anonymous namespace)::walkIntoGlobal");
    CHECK_EQ(nameOf(g_walked, 2), "[code in no file]");
    CHECK_EQ(nameOf(g_walked, 3), "libgcc_is_asked_where_the_table_has_no_rule");
    for (size_t i = 1; i < g_walked.frames.size(); ++i) {
      CHECK_EQ(g_walked.frames[i - 1].cfa, g_walked.frames[i].sp);
    }
  }
}
