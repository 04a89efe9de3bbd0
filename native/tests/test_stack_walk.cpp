#include "unwind/stack_walk.h"

#include <algorithm>
#include <cstdlib>
#include <pthread.h>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <unwind.h>
#include <vector>

#include "core/interner.h"
#include "tests/check.h"

using namespace deepcontext;
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
  Registers here = Registers::ofCaller();
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
  // seen: walk, compareHere, ...; expected: oracle, compareHere, ...
  bool is_long = seen.size() > 3 && expected.size() > 3;
  CHECK(is_long);
  if (!is_long) {
    return;
  }
  bool is_same =
      std::vector<uintptr_t>(seen.begin() + 2, seen.end()) ==
      std::vector<uintptr_t>(expected.begin() + 2, expected.end() - (expected.back() == 0 ? 1 : 0));
  if (!is_same) {
    std::fprintf(stderr, "%s: %zu frames seen, %zu expected\n", where, seen.size(),
                 expected.size());
  }
  CHECK(is_same);
  CHECK(walked.result.end == WalkEnd::kOutermost);
  CHECK(!walked.result.is_by_libgcc);
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

using Callback = void (*)();
Walked g_walked;

NOINLINE void walkIntoGlobal() {
  g_walked = walk();
}

/// Machine code that calls its argument with no unwind information, as a JIT compiler makes it.
void *makeCode(const std::vector<uint8_t> &bytes) {
  void *memory =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::copy(bytes.begin(), bytes.end(), static_cast<uint8_t *>(memory));
  return memory;
}

} // namespace

TEST(a_walk_ends_at_code_without_a_table) {
  // sub rsp, 8; call rdi; add rsp, 8; ret
  void *code = makeCode({0x48, 0x83, 0xec, 0x08, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x08, 0xc3});
  reinterpret_cast<void (*)(Callback)>(code)(walkIntoGlobal);
  CHECK(g_walked.result.end == WalkEnd::kNoRule);
  CHECK_EQ(g_walked.frames.size(), size_t{2});
  CHECK_EQ(nameOf(g_walked, 1), "(anonymous namespace)::walkIntoGlobal");
  munmap(code, 4096);
}

TEST(a_walk_never_leaves_the_stack) {
  static ReturnAddressCache addresses;
  addresses.refresh();
  Registers here = Registers::ofCaller();
  // The stack is said to end here, or the frame pointer is nonsense.
  size_t seen = 0;
  walkStack(addresses, here, here.sp + 64, [&](const NativeFrame &frame) {
    CHECK(frame.cfa <= here.sp + 64);
    return ++seen < 1000;
  });
  CHECK(seen < 3);
  Registers wild = here;
  wild.rbp = 0x10;
  walkStack(addresses, wild, stackHigh(), [&](const NativeFrame &) { return ++seen < 1000; });
  CHECK(seen < 1000);
}

namespace {

extern "C" void __register_frame(void *);
extern "C" void __deregister_frame(void *);

} // namespace

TEST(libgcc_is_asked_where_the_table_has_no_rule) {
  void *code = makeCode({0x48, 0x83, 0xec, 0x08, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x08, 0xc3});
  auto address = reinterpret_cast<uint64_t>(code);
  // What a JIT compiler registers: CFA = rsp + 8 at the start and rsp + 16 after 4 bytes.
  std::vector<uint8_t> table = {
      20,   0, 0, 0,         0,  0, 0, 0,          // length, common
      1,    0, 1, 0x78,      16,                   // version, "", factors 1 and -8, column 16
      0x0c, 7, 8, 0x80 | 16, 1,  0, 0, 0, 0, 0, 0, // def_cfa rsp + 8; return address at CFA - 8
      28,   0, 0, 0,         28, 0, 0, 0,          // length, distance back to the common entry
  };
  for (uint64_t number : {address, uint64_t{11}}) {
    for (int i = 0; i < 8; ++i) {
      table.push_back(static_cast<uint8_t>(number >> (8 * i)));
    }
  }
  // advance 4; def_cfa_offset 16; advance 6; def_cfa_offset 8; padding; end
  for (uint8_t byte : {0x44, 0x0e, 16, 0x46, 0x0e, 8, 0, 0, 0, 0, 0, 0}) {
    table.push_back(byte);
  }
  __register_frame(table.data());
  reinterpret_cast<void (*)(Callback)>(code)(walkIntoGlobal);
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
  munmap(code, 4096);
}
