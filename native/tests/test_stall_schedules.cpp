// PC sampling against the fake CUPTI, whose locks deadlock as the real ones do: random schedules of
// what programs and the profiler do at the same time.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <dlfcn.h>
#include <random>
#include <thread>
#include <vector>

#include "gpu/cupti/collector.h"
#include "tests/check.h"

using namespace deepcontext;

namespace {

constexpr char kProfiler[] = FAKES "/libcupti.so.13";
constexpr char kDriver[] = FAKES "/libcuda.so.1";
constexpr int kSchedules = 1000;
constexpr int kThreads = 3;
constexpr int kActions = 40; // of a thread

struct Fake {
  void (*reset)();
  void (*set_lazy_loading)(int);
  void (*launch)(const char *, uint32_t, uint64_t);
  void (*deliver)(int);
  void (*synchronize)(uint64_t);
  void (*capture_begin)(uint32_t);
  uint32_t (*capture_end)(uint32_t);
  void (*get_function)(const char *);
  void (*call_without_callback)(uint64_t);
  void (*set_context)(uint32_t);
  void (*create_context)();
  void (*destroy_context)();
  void (*load_module)();
  void (*stall)(const char *, const char *, uint32_t, uint32_t);
  void (*fail)(const char *, int);
  void (*hang)(const char *, uint64_t);
  uint64_t (*count)(const char *);

  Fake() {
    dlopen(kDriver, RTLD_NOW | RTLD_LOCAL);
    void *library = dlopen(kProfiler, RTLD_NOW | RTLD_LOCAL);
    CHECK(library != nullptr);
    auto bind = [library](auto *function, const char *name) {
      *reinterpret_cast<void **>(function) = dlsym(library, name);
      CHECK(*function != nullptr);
    };
#define BIND(name) bind(&name, "fake_" #name)
    BIND(reset);
    BIND(set_lazy_loading);
    BIND(launch);
    BIND(deliver);
    BIND(synchronize);
    BIND(capture_begin);
    BIND(capture_end);
    BIND(get_function);
    BIND(call_without_callback);
    BIND(set_context);
    BIND(create_context);
    BIND(destroy_context);
    BIND(load_module);
    BIND(stall);
    BIND(fail);
    BIND(hang);
    BIND(count);
#undef BIND
  }
};

/// What one thread of the program does.
void act(const Fake &fake, gpu::Collector &collector, uint32_t seed, uint32_t thread) {
  std::mt19937 random(seed * kThreads + thread);
  bool may_capture = seed % 2 == 0; // else the program waits for the device, which ends captures
  fake.set_context(thread == 1);    // which this thread alone destroys
  for (int i = 0; i < kActions; ++i) {
    switch (random() % 16) {
    case 0:
      fake.get_function(("kernel " + std::to_string(random() % 1000)).c_str());
      break;
    case 1:
      fake.call_without_callback(random() % 50'000);
      break;
    case 2:
      if (may_capture) {
        fake.capture_begin(thread);
        fake.launch("node", thread, 10);
        fake.capture_end(thread);
      } else {
        fake.synchronize(random() % 50'000);
      }
      break;
    case 3:
      fake.load_module();
      break;
    case 4:
      fake.stall("k", "wait", 1, 7);
      break;
    case 5:
      if (thread == 0) {
        collector.flush();
      }
      break;
    case 6:
      if (thread == 1 && random() % 4 == 0) {
        fake.destroy_context();
        fake.create_context();
      }
      break;
    case 7:
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
      break;
    default:
      fake.launch("k", thread, 10);
    }
  }
}

/// Returns how many windows there were.
uint64_t runSchedule(const Fake &fake, uint32_t seed) {
  gpu::Collector &collector = gpu::cupti::CuptiCollector::instance();
  gpu::CollectorOptions options;
  options.with_stalls = true;
  options.stall_window_s = 0.0003;
  options.stall_pause_s = 0.0003;
  fake.reset();
  RecorderRegistry::instance().begin(1u << 20);
  CHECK_EQ(collector.start({kProfiler, kDriver}, options), "");
  fake.set_lazy_loading(1);
  if (seed % 5 == 0) {
    fake.hang("cuptiPCSamplingStart", 500'000);
  } else if (seed % 7 == 0) {
    fake.fail("cuptiPCSamplingGetData", 8);
  }
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back(act, fake, std::ref(collector), seed, i);
  }
  bool stops_meanwhile = seed % 6 == 3; // without captures, which the wait for the device may end
  if (stops_meanwhile) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK_EQ(collector.stop(), "");
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  fake.deliver(0);
  CHECK_EQ(collector.stop(), "");
  RecorderRegistry::instance().end();
  std::map<std::string, uint64_t> figures = collector.figures();
  // Where threads wait long for a processor; then it is said.
  CHECK(fake.count("left_enabled") == 0 || !collector.lacking().empty());
  CHECK_EQ(fake.count("misuses"), 0u);
  CHECK_EQ(fake.count("services"), 0u);
  CHECK_EQ(figures["received"], figures["matched"] + figures["unmatched"]);
  return figures["stall_windows"];
}

} // namespace

TEST(a_gate_that_stays_closed_is_opened_for_good) {
  gpu::cupti::CallGate gate;
  gate.reset();
  gpu::cupti::CallGate::Closed closed(gate);
  CHECK(closed);
  std::thread thread([&gate] {
    gate.enter(); // for a second
    gate.leave();
    auto begun = std::chrono::steady_clock::now();
    gate.enter();
    gate.leave();
    CHECK(std::chrono::steady_clock::now() - begun < gpu::cupti::CallGate::kPatience);
  });
  thread.join();
  CHECK(gate.isOpenForGood());
}

TEST(a_gate_is_closed_around_the_call_of_its_own_thread_only) {
  gpu::cupti::CallGate gate;
  gate.reset();
  gate.enter();
  gate.enter(); // inside
  gate.leave();
  CHECK(gpu::cupti::CallGate::Closed(gate));
  std::thread([&gate] { CHECK(!gpu::cupti::CallGate::Closed(gate)); }).join();
  gate.leave();
  std::thread([&gate] { CHECK(gpu::cupti::CallGate::Closed(gate)); }).join();
}

TEST(random_schedules_neither_deadlock_nor_misuse_cupti) {
  setenv("DEEPCONTEXT_GPU_STALLS", "may-hang", 1);
  Fake fake;
  uint64_t windows = 0;
  for (uint32_t seed = 1; seed <= kSchedules; ++seed) {
    windows += runSchedule(fake, seed);
  }
  CHECK(windows > kSchedules / 2);
}
