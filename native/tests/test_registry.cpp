// RecorderRegistry is one a process, so each case begins a session of its own.
#include <fstream>
#include <string>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "core/recorder.h"
#include "core/thread_label.h"
#include "tests/check.h"

using namespace deepcontext;

namespace {

constexpr uint32_t kNodes = 1'000'000;

/// Run `work` on a thread with an OS name, and wait for its end.
template <typename Work> void onThread(const char *name, Work work) {
  std::thread([&] {
    prctl(PR_SET_NAME, name);
    work();
  }).join();
}

int kernelThread() {
  return static_cast<int>(syscall(SYS_gettid));
}

/// Whether `check` is true in a forked child, which is prepared as the extension does it.
template <typename Check> bool inForkedChild(Check check) {
  RecorderRegistry &registry = RecorderRegistry::instance();
  registry.forkLock().lock();
  registry.prepareFork();
  pid_t child = fork();
  if (child == 0) {
    registry.abandonInChild();
    registry.forkLock().unlock();
    _exit(check() ? 0 : 1);
  }
  registry.forkLock().unlock();
  int status = -1;
  waitpid(child, &status, 0);
  return status == 0;
}

uint32_t indexOnThread(const char *name) {
  uint32_t index = 0;
  onThread(name, [&] { index = RecorderRegistry::current().index(); });
  return index;
}

} // namespace

TEST(a_thread_has_one_recorder) {
  RecorderRegistry::instance().begin(kNodes);
  Recorder *first = &RecorderRegistry::current();
  CHECK_EQ(&RecorderRegistry::current(), first);
  CHECK_EQ(RecorderRegistry::currentOrNull(), first);
  CHECK_EQ(first->label, "MainThread");
  CHECK_EQ(RecorderRegistry::instance().at(first->index()), first);
  char here;
  CHECK(first->isOnStack(&here));
  onThread("other", [&] {
    CHECK(RecorderRegistry::currentOrNull() == nullptr);
    Recorder &other = RecorderRegistry::current();
    CHECK(&other != first);
    CHECK_EQ(other.label, "other");
    CHECK(!other.isOnStack(&here));
    CHECK_EQ(other.thread_handle.load(), uint64_t{pthread_self()});
  });
}

TEST(an_ended_threads_recorder_goes_to_the_next_of_its_name) {
  RecorderRegistry::instance().begin(kNodes);
  uint32_t first = indexOnThread("worker");
  CHECK_EQ(indexOnThread("worker"), first);
  uint32_t other = indexOnThread("elsewhere");
  CHECK(other != first);
  CHECK_EQ(indexOnThread("worker"), first);
  CHECK(RecorderRegistry::instance().at(first)->thread_handle.load() == 0);
}

TEST(a_handed_on_recorder_keeps_its_tree_but_no_open_level) {
  RecorderRegistry::instance().begin(kNodes);
  uint32_t size = 0;
  onThread("pool", [&] {
    Recorder &recorder = RecorderRegistry::current();
    Node *node = recorder.tree.child(recorder.tree.root(), FrameKind::kScope, 1, 0);
    recorder.push(LevelKind::kScope, node, &recorder)->start_ticks = ticks(); // never closed
    recorder.path_length = 7;
    recorder.framework_thread = 99;
    size = recorder.tree.size();
  });
  onThread("pool", [&] {
    Recorder &recorder = RecorderRegistry::current();
    CHECK_EQ(recorder.tree.size(), size);
    CHECK_EQ(recorder.levelCount(), 0u);
    CHECK_EQ(recorder.path_length, 0u);
    CHECK_EQ(recorder.framework_thread.load(), 0u);
  });
}

TEST(threads_that_live_at_once_have_recorders_of_their_own) {
  constexpr int kThreads = 8;
  RecorderRegistry::instance().begin(kNodes);
  size_t before = RecorderRegistry::instance().active().size();
  std::atomic<int> arrived{0};
  std::atomic<Recorder *> seen[kThreads] = {};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      Recorder &recorder = RecorderRegistry::current();
      seen[i] = &recorder;
      ++arrived;
      while (arrived.load() < kThreads) {
        std::this_thread::yield();
      }
      for (uint64_t n = 0; n < 1000; ++n) {
        recorder.tree.child(recorder.tree.root(), FrameKind::kOperator, n, 0)
            ->cost()
            ->duration.add(n);
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  for (int i = 0; i < kThreads; ++i) {
    CHECK_EQ(seen[i].load()->tree.size(), 1001u);
    for (int j = 0; j < i; ++j) {
      CHECK(seen[i].load() != seen[j].load());
    }
  }
  CHECK_EQ(RecorderRegistry::instance().active().size(), before + kThreads);
}

TEST(thread_churn_needs_no_more_recorders_than_live_at_once) {
  RecorderRegistry::instance().begin(kNodes);
  indexOnThread("churn");
  size_t before = RecorderRegistry::instance().active().size();
  for (int i = 0; i < 2000; ++i) {
    onThread("churn", [] {
      ThreadTree &tree = RecorderRegistry::current().tree;
      tree.child(tree.root(), FrameKind::kOperator, 5, 0)->cost()->duration.add(1);
    });
  }
  CHECK_EQ(RecorderRegistry::instance().active().size(), before);
  const ThreadTree &tree = RecorderRegistry::instance().at(indexOnThread("churn"))->tree;
  CHECK_EQ(tree.size(), 2u);
  CHECK_EQ(tree.node(1)->calls(), 2000u);
}

TEST(threads_whose_names_differ_in_numbers_share_one_recorder) {
  RecorderRegistry::instance().begin(kNodes);
  uint32_t first = indexOnThread("pool-1 (f2)");
  CHECK_EQ(RecorderRegistry::instance().at(first)->label, "pool-N (fN)");
  for (int i = 2; i < 100; ++i) {
    CHECK_EQ(indexOnThread(("pool-" + std::to_string(i) + " (f2)").c_str()), first);
  }
}

TEST(threads_that_python_names_share_one_label) {
  // The kernel keeps 15 characters.
  CHECK_EQ(threadLabel("Thread-1 (work)", "python"), "Thread");
  CHECK_EQ(threadLabel("Thread-10 (work", "python"), "Thread");
  CHECK_EQ(threadLabel("python", "python"), "Thread");
  CHECK_EQ(threadLabel("Thread-safe 2", "python"), "Thread-safe N");
}

TEST(threads_of_ever_new_names_are_joined_past_a_ceiling) {
  RecorderRegistry &registry = RecorderRegistry::instance();
  registry.begin(kNodes);
  constexpr int kThreads = 600;
  for (int i = 0; i < kThreads; ++i) {
    char name[] = {'n', 'e', 'w', static_cast<char>('a' + i / 26), static_cast<char>('a' + i % 26),
                   0};
    onThread(name, [] {
      ThreadTree &tree = RecorderRegistry::current().tree;
      tree.child(tree.root(), FrameKind::kOperator, 5, 0)->cost()->duration.add(1);
    });
  }
  size_t bytes = 0;
  uint64_t events = 0;
  for (Recorder *recorder : registry.active()) {
    bytes += recorder->bytes();
    events += recorder->tree.size() > 1 ? recorder->tree.node(1)->calls() : 0;
  }
  CHECK(bytes <= RecorderRegistry::kMostIdleBytes + 2 * RecorderRegistry::kMostIdleBytes / 100);
  CHECK_EQ(events, uint64_t{kThreads}); // none is lost
  CHECK(registry.threadsJoined() > 0);
  CHECK_EQ(registry.threadsJoined() + registry.active().size(), uint64_t{kThreads} + 1);
  uint32_t joined = indexOnThread("more of them");
  CHECK_EQ(registry.at(joined)->label, RecorderRegistry::kOtherThreads);

  size_t most = 0;
  registry.begin(kNodes); // the recorders of the last session are for any name
  while (registry.at(static_cast<uint32_t>(most))) {
    ++most;
  }
  uint32_t other = indexOnThread("another name");
  CHECK_EQ(registry.at(other)->label, "another name");
  CHECK(registry.at(static_cast<uint32_t>(most)) == nullptr);
  CHECK_EQ(registry.threadsJoined(), 0u);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // their shadow counts, too
TEST(an_unused_recorder_takes_little_memory) {
  RecorderRegistry &registry = RecorderRegistry::instance();
  registry.begin(kNodes);
  auto residentBytes = [] {
    size_t pages = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> pages >> resident;
    return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  };
  constexpr size_t kRecorders = 100;
  size_t before = residentBytes();
  for (size_t i = 0; i < kRecorders; ++i) {
    Recorder &recorder = registry.makeDetached("detached " + std::to_string(i));
    recorder.push(LevelKind::kScope, recorder.tree.root(), &recorder);
    recorder.names.lookup("a name");
    recorder.ring().store(1, 1, recorder.tree.root());
  }
  CHECK(residentBytes() - before < kRecorders * (100 << 10));
}
#endif

TEST(a_new_session_forgets_the_last_one_as_threads_come_by) {
  RecorderRegistry &registry = RecorderRegistry::instance();
  registry.begin(kNodes);
  indexOnThread("only in the first");
  Recorder &recorder = RecorderRegistry::current();
  recorder.tree.child(recorder.tree.root(), FrameKind::kOperator, 1, 0);
  uint64_t generation = RecorderRegistry::generation();

  registry.begin(2);
  CHECK(RecorderRegistry::generation() != generation);
  CHECK(registry.active().empty()); // nobody has recorded in it
  CHECK_EQ(&RecorderRegistry::current(), &recorder);
  CHECK_EQ(registry.active().size(), 1u);
  CHECK_EQ(recorder.tree.size(), 1u);
  Node *node = recorder.tree.child(recorder.tree.root(), FrameKind::kOperator, 1, 0);
  CHECK_EQ(recorder.tree.child(node, FrameKind::kOperator, 2, 0), node); // the session's own limit
  CHECK_EQ(recorder.tree.refused(), 1u);
}

TEST(recording_is_off_after_end_and_in_a_forked_child) {
  RecorderRegistry &registry = RecorderRegistry::instance();
  registry.begin(kNodes);
  CHECK(RecorderRegistry::isRecording());
  registry.end();
  CHECK(!RecorderRegistry::isRecording());
  registry.begin(kNodes);
  CHECK(inForkedChild([] { return !RecorderRegistry::isRecording(); }));
  CHECK(RecorderRegistry::isRecording());
}

TEST(the_thread_that_forked_has_its_recorder_and_another_number) {
  RecorderRegistry &registry = RecorderRegistry::instance();
  registry.begin(kNodes);
  Recorder *recorder = &RecorderRegistry::current();
  int number = kernelThread();
  CHECK_EQ(registry.ofThread(number), recorder);
  CHECK(inForkedChild([&] {
    registry.begin(kNodes);
    bool is_same = &RecorderRegistry::current() == recorder;
    return is_same && registry.ofThread(kernelThread()) == recorder && !registry.ofThread(number) &&
           recorder->is_main_thread && recorder->label == "MainThread";
  }));
  CHECK_EQ(registry.ofThread(number), recorder);
}

TEST(a_thread_that_forked_is_the_childs_first_but_not_the_programs) {
  RecorderRegistry &registry = RecorderRegistry::instance();
  registry.begin(kNodes);
  onThread("forker", [&] {
    CHECK_EQ(RecorderRegistry::current().label, "forker");
    CHECK(inForkedChild([&] {
      registry.begin(kNodes);
      Recorder &recorder = RecorderRegistry::current();
      char here;
      return recorder.label == "MainThread" && !recorder.is_main_thread &&
             recorder.isOnStack(&here) && registry.ofThread(kernelThread()) == &recorder;
    }));
  });
}

TEST(recorders_of_threads_that_a_fork_has_left_behind_are_replaced) {
  RecorderRegistry &registry = RecorderRegistry::instance();
  registry.begin(kNodes);
  Recorder &own = RecorderRegistry::current();
  Recorder &detached = registry.makeDetached("writer");
  std::atomic<Recorder *> other{nullptr};
  std::atomic<bool> is_done{false};
  std::thread thread([&] {
    prctl(PR_SET_NAME, "left behind");
    other = &RecorderRegistry::current();
    while (!is_done.load()) {
      std::this_thread::yield();
    }
  });
  while (!other.load()) {
    std::this_thread::yield();
  }
  CHECK(inForkedChild([&] {
    registry.begin(kNodes);
    RecorderRegistry::current();
    Recorder *now = registry.at(other.load()->index());
    bool is_fresh = now != other.load() && now->kernel_thread.load() == 0;
    return is_fresh && registry.at(own.index()) == &own && registry.active().size() == 1 &&
           &registry.makeDetached("writer") != &detached;
  }));
  is_done = true;
  thread.join();
}

TEST(a_detached_recorder_is_asked_for_anew_each_session) {
  RecorderRegistry &registry = RecorderRegistry::instance();
  registry.begin(kNodes);
  Recorder &gpu = registry.makeDetached("gpu");
  Recorder &hlo = registry.makeDetached("hlo");
  CHECK(&gpu != &hlo);
  gpu.tree.child(gpu.tree.root(), FrameKind::kKernel, 1, 0);
  CHECK_EQ(registry.active().size(), 2u);
  registry.begin(kNodes);
  CHECK(registry.active().empty());
  CHECK_EQ(&registry.makeDetached("gpu"), &gpu);
  CHECK_EQ(gpu.tree.size(), 1u);
  CHECK(indexOnThread("gpu") != gpu.index()); // no thread is ever given it
}

TEST(readers_may_ask_while_threads_come_and_go) {
  RecorderRegistry &registry = RecorderRegistry::instance();
  registry.begin(kNodes);
  std::atomic<bool> is_done{false};
  std::thread reader([&] {
    while (!is_done.load()) {
      for (Recorder *recorder : registry.active()) {
        uint32_t size = recorder->tree.size();
        CHECK(size == 0 || recorder->tree.node(size - 1)->id == size - 1);
        recorder->thread_handle.load();
        recorder->counters.operators.load();
        CHECK(recorder->label.size() >= 3); // of its threads, and the same for all
      }
    }
  });
  for (int i = 0; i < 500; ++i) {
    onThread(i % 2 ? "odd" : "even", [i] {
      Recorder &recorder = RecorderRegistry::current();
      RecorderCounters::bump(recorder.counters.operators);
      recorder.tree.child(recorder.tree.root(), FrameKind::kOperator, i, 0)
          ->cost()
          ->duration.add(1);
    });
  }
  is_done = true;
  reader.join();
}
