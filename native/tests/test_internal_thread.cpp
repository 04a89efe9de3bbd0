#include "core/internal_thread.h"

#include <fstream>
#include <pthread.h>
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

TEST(an_internal_thread_has_the_profilers_name_and_its_parent_its_own_when_it_begins) {
  long parent = syscall(SYS_gettid);
  std::string before = nameOf(parent);
  int wrong = 0;
  for (int turn = 0; turn < 500; ++turn) {
    startInternalThread([&] {
      wrong += isInternalThreadName(nameOf(parent));
      wrong += !isInternalThreadName(nameOf(syscall(SYS_gettid)));
    }).join();
  }
  CHECK_EQ(wrong, 0);
  CHECK_EQ(nameOf(parent), before);
}

TEST(an_internal_thread_takes_no_signal_and_its_parent_takes_them_again) {
  sigset_t before, inside, after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  startInternalThread([&] { pthread_sigmask(SIG_SETMASK, nullptr, &inside); }).join();
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (int number : {SIGTERM, SIGURG, SIGPROF, SIGINT}) {
    CHECK_EQ(sigismember(&inside, number), 1);
    CHECK_EQ(sigismember(&after, number), sigismember(&before, number));
  }
}

TEST(without_room_for_a_thread_there_is_none_and_no_exception) {
  long parent = syscall(SYS_gettid);
  std::string before = nameOf(parent);
  pthread_attr_t usual, huge;
  pthread_getattr_default_np(&usual);
  pthread_attr_init(&huge);
  pthread_attr_setstacksize(&huge, size_t{1} << 46); // no machine has room for it
  CHECK_EQ(pthread_setattr_default_np(&huge), 0);
  bool has_run = false;
  std::thread refused = startInternalThread([&] { has_run = true; });
  CHECK(!refused.joinable());
  CHECK_EQ(nameOf(parent), before);
  pthread_setattr_default_np(&usual);
  startInternalThread([&] { has_run = true; }).join();
  CHECK(has_run);
  pthread_attr_destroy(&usual);
  pthread_attr_destroy(&huge);
}
