#include "core/own_thread.h"

#include <fstream>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/check.h"

using namespace deepcontext;

namespace {

std::string nameOf(long thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

} // namespace

TEST(a_thread_of_ours_has_our_name_and_its_parent_its_own_when_it_begins) {
  long parent = syscall(SYS_gettid);
  std::string before = nameOf(parent);
  int wrong = 0;
  for (int turn = 0; turn < 500; ++turn) {
    startOwnThread([&] {
      wrong += isOwnThreadName(nameOf(parent));
      wrong += !isOwnThreadName(nameOf(syscall(SYS_gettid)));
    }).join();
  }
  CHECK_EQ(wrong, 0);
  CHECK_EQ(nameOf(parent), before);
}

TEST(a_thread_of_ours_takes_no_signal_and_its_parent_takes_them_again) {
  sigset_t before, inside, after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  startOwnThread([&] { pthread_sigmask(SIG_SETMASK, nullptr, &inside); }).join();
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (int number : {SIGTERM, SIGURG, SIGPROF, SIGINT}) {
    CHECK_EQ(sigismember(&inside, number), 1);
    CHECK_EQ(sigismember(&after, number), sigismember(&before, number));
  }
}
