#include "sampling/page_reader.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "tests/check.h"

using namespace deepcontext;

namespace {

const uintptr_t kPage = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
constexpr uint64_t kPattern = 0x5a5a5a5a5a5a5a5a;

/// As large as an interpreter's frame, and like it as wide as no page is a multiple of.
struct Object {
  std::array<uint64_t, 11> words;
};

/// Pages of the kernel's choice, filled with the pattern.
char *mapPages(size_t count) {
  void *pages =
      mmap(nullptr, count * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto *words = static_cast<uint64_t *>(pages);
  std::fill_n(words, count * kPage / sizeof kPattern, kPattern);
  return static_cast<char *>(pages);
}

bool canCopy(const MemoryReader &memory, const void *address) {
  static PageReader reader;
  reader.begin(&memory);
  Object object{};
  bool is_copied = reader.copy(address, &object);
  if (is_copied) {
    for (uint64_t word : object.words) {
      CHECK(word == kPattern || word == 0);
    }
  }
  return is_copied;
}

bool canCopy(const MemoryReader &memory, uintptr_t address) {
  return canCopy(memory, reinterpret_cast<const void *>(address));
}

/// Run in a process of its own; the checks that fail there fail here.
void inChild(void (*run)()) {
  std::fflush(nullptr);
  pid_t child = fork();
  if (child == 0) {
    test::g_failures = 0;
    run();
    _exit(test::g_failures.load() == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
}

/// What some containers do: their kernel says no to process_vm_readv.
void refuseReadingOfProcesses(uint32_t answer) {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, answer),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{sizeof rules / sizeof rules[0], rules};
  CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

void inBothWays(void (*run)()) {
  run();
  static void (*to_run)();
  to_run = run;
  inChild([] {
    refuseReadingOfProcesses(SECCOMP_RET_ERRNO | EPERM);
    to_run();
  });
  inChild([] { // sandboxes
    refuseReadingOfProcesses(SECCOMP_RET_KILL_PROCESS);
    to_run();
  });
}

void checkObjectsThatAreThere() {
  MemoryReader memory;
  CHECK(memory.isUsable());
  char *pages = mapPages(3);
  for (uintptr_t offset = 0; offset + sizeof(Object) <= 3 * kPage; offset += 8) {
    CHECK(canCopy(memory, pages + offset));
  }
  munmap(pages, 3 * kPage);
}

void checkAddressesThatAreNone() {
  MemoryReader memory;
  for (uintptr_t address : {
           uintptr_t{0},
           uintptr_t{8},
           uintptr_t{0x18},
           kPage - 8,
           kPage,
           uintptr_t{0x7fffffffefff8},    // past what user programs have
           uintptr_t{0x800000000000},     // not canonical
           uintptr_t{0xdeadbeefdeadbee8}, // nor this
           uintptr_t{0x8000000000000000}, //
           uintptr_t{0xffff800000000000}, // the kernel's
           uintptr_t{0xffffffff81000000}, //
           ~uintptr_t{0} - 7,             // runs past the end of the address space
           ~uintptr_t{0} - 87,            //
           ~uintptr_t{0} - kPage + 1,
       }) {
    CHECK(!canCopy(memory, address));
  }
  canCopy(memory, uintptr_t{0xffffffffff600000}); // vsyscall: kernels differ in what they answer
}

void checkMisalignedAddresses() {
  MemoryReader memory;
  char *page = mapPages(1);
  for (int offset = 1; offset < 8; ++offset) {
    CHECK(!canCopy(memory, page + offset));
  }
  CHECK(!canCopy(memory, ~uintptr_t{0}));
  munmap(page, kPage);
}

void checkHolesBesideMemory() {
  MemoryReader memory;
  char *pages = mapPages(3);
  char *hole = pages + kPage;
  munmap(hole, kPage);
  CHECK(!canCopy(memory, hole));
  CHECK(!canCopy(memory, hole + kPage - 8)); // begins in the hole
  CHECK(!canCopy(memory, hole - 8));         // ends in it
  CHECK(canCopy(memory, hole - sizeof(Object)));
  CHECK(canCopy(memory, hole + kPage));
  munmap(pages, kPage);
  munmap(hole + kPage, kPage);
}

void checkPagesWithoutAccess() {
  MemoryReader memory;
  char *page = mapPages(1);
  mprotect(page, kPage, PROT_NONE);
  canCopy(memory, page); // the file shows such pages, the system call does not
  munmap(page, kPage);
}

void checkFilesThatWereCut() {
  MemoryReader memory;
  int file = memfd_create("cut", MFD_CLOEXEC);
  CHECK_EQ(ftruncate(file, 2 * kPage), 0);
  auto *pages = static_cast<char *>(mmap(nullptr, 2 * kPage, PROT_READ, MAP_SHARED, file, 0));
  CHECK(canCopy(memory, pages + kPage));
  CHECK_EQ(ftruncate(file, kPage), 0);
  CHECK(canCopy(memory, pages));
  CHECK(!canCopy(memory, pages + kPage)); // a load would be answered with SIGBUS
  CHECK(!canCopy(memory, pages + kPage - 8));
  munmap(pages, 2 * kPage);
  close(file);
}

/// Another thread takes the page away and puts it back, in every way there is.
void checkMemoryThatComesAndGoes() {
  MemoryReader memory;
  char *pages = mapPages(2);
  std::atomic<bool> is_over{false};
  std::thread other([&] {
    while (!is_over) {
      mprotect(pages, kPage, PROT_NONE);
      mprotect(pages, kPage, PROT_READ);
      munmap(pages, kPage);
      static_cast<void>(
          mmap(pages, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    }
  });
  int copied = 0, refused = 0;
  constexpr int kLeast = 50'000, kMost = 2'000'000;
  for (int turn = 0; turn < kMost && (copied < kLeast || refused < kLeast); ++turn) {
    ++(canCopy(memory, pages + kPage - 8) ? copied : refused);
  }
  is_over = true;
  other.join();
  CHECK(copied > 0);
  CHECK(refused > 0);
  munmap(pages, 2 * kPage);
}

void checkErrno() {
  MemoryReader memory;
  errno = ENOTTY;
  canCopy(memory, uintptr_t{0x18});
  CHECK_EQ(errno, ENOTTY);
}

/// Read on a thread that outlives the process's first one.
void *readWithoutFirstThread(void *) {
  char state = 0;
  while (state != 'Z') {
    std::FILE *file = std::fopen("/proc/self/stat", "r");
    CHECK_EQ(std::fscanf(file, "%*d (%*[^)]) %c", &state), 1);
    std::fclose(file);
  }
  MemoryReader memory;
  CHECK(canCopy(memory, mapPages(1)));
  _exit(test::g_failures.load() == 0 ? 0 : 1);
}

} // namespace

TEST(an_object_is_copied_wherever_it_lies_in_its_pages) {
  inBothWays(checkObjectsThatAreThere);
}

TEST(an_address_where_nothing_is_does_not_fault) {
  inBothWays(checkAddressesThatAreNone);
}

TEST(a_misaligned_address_is_no_objects) {
  inBothWays(checkMisalignedAddresses);
}

TEST(an_object_that_runs_into_a_hole_is_refused) {
  inBothWays(checkHolesBesideMemory);
}

TEST(a_page_without_access_does_not_fault) {
  inBothWays(checkPagesWithoutAccess);
}

TEST(a_mapped_file_that_was_cut_does_not_fault) {
  inBothWays(checkFilesThatWereCut);
}

TEST(memory_that_another_thread_takes_away_meanwhile_does_not_fault) {
  inBothWays(checkMemoryThatComesAndGoes);
}

TEST(errno_is_kept) {
  inBothWays(checkErrno);
}

TEST(a_thread_reads_when_the_first_one_has_ended) {
  inChild([] {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, nullptr, readWithoutFirstThread, nullptr), 0);
    pthread_exit(nullptr);
  });
}

TEST(a_file_of_the_program_under_the_same_number_is_not_read) {
  inChild([] {
    refuseReadingOfProcesses(SECCOMP_RET_ERRNO | EPERM);
    MemoryReader memory;
    char *page = mapPages(1);
    CHECK(canCopy(memory, page));
    int zeros = open("/dev/zero", O_RDONLY);
    int replaced = 0;
    for (int number = zeros + 1; number < 1024; ++number) {
      replaced += fcntl(number, F_GETFD) >= 0 && dup2(zeros, number) == number;
    }
    CHECK(replaced > 0);
    CHECK(!canCopy(memory, page));
  });
}

TEST(without_a_reader_nothing_can_be_read) {
  static PageReader reader;
  int number = 0, copy = 0;
  CHECK(!reader.copy(&number, &copy));
}
