// Collectors against the fake vendor libraries, with threads: what ThreadSanitizer and
// AddressSanitizer are to see. The scenarios themselves are tests/collectors/gpu's.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <set>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "core/exemplars.h"
#include "core/merge.h"
#include "core/metric_registry.h"
#include "core/steps.h"
#include "gpu/cupti/collector.h"
#include "gpu/rocprofiler/collector.h"
#include "gpu/roctracer/collector.h"
#include "tests/check.h"

using namespace deepcontext;

namespace {

template <typename Collector> gpu::Collector &collectorOf() {
  return Collector::instance();
}

struct Vendor {
  gpu::Collector &(*collector)();
  const char *profiler;
  const char *driver;
};
constexpr Vendor kVendors[] = {
    {collectorOf<gpu::cupti::CuptiCollector>, FAKES "/libcupti.so.13", FAKES "/libcuda.so.1"},
    {collectorOf<gpu::rocprofiler::RocprofilerCollector>, FAKES "/librocprofiler-sdk.so.1",
     FAKES "/libamdhip64.so"},
    {collectorOf<gpu::roctracer::RoctracerCollector>, FAKES "/libroctracer64.so.4",
     FAKES "/libamdhip64.so"},
};

constexpr const Vendor &kRoctracer = kVendors[2];

/// The fake's side of the library, as control.h declares it.
struct Fake {
  void (*reset)();
  void (*launch)(const char *, uint32_t, uint64_t);
  void (*launch_many)(const char *, uint32_t, uint64_t, uint64_t);
  void (*deliver)(int);
  void (*deliver_on_threads)(int, uint32_t);
  void (*capture_begin)(uint32_t);
  uint32_t (*capture_end)(uint32_t);
  uint32_t (*graph_instantiate)(uint32_t);
  void (*graph_launch)(uint32_t, uint32_t);
  void (*graph_destroy)(uint32_t);
  void (*synchronize)(uint64_t);
  void (*allocate)(uint64_t, int); // rocprofiler-sdk's alone
  void (*set_device)(uint32_t);
  uint64_t (*count)(const char *);
  // NVIDIA only
  void (*load_module)();
  void (*stall)(const char *, const char *, uint32_t, uint32_t);
  void (*destroy_context)();
  void (*hang)(const char *, uint64_t);
  void (*hold)(const char *, int);
  void (*set_version)(uint32_t);

  explicit Fake(const Vendor &vendor) {
    void *driver = dlopen(vendor.driver, RTLD_NOW | RTLD_LOCAL);
    void *library = dlopen(vendor.profiler, RTLD_NOW | RTLD_LOCAL);
    if (!driver || !library) {
      std::fprintf(stderr, "%s\n", dlerror());
      std::abort();
    }
    auto bind = [library](auto *function, const char *name) {
      *reinterpret_cast<void **>(function) = dlsym(library, name);
    };
    bind(&reset, "fake_reset");
    bind(&launch, "fake_launch");
    bind(&launch_many, "fake_launch_many");
    bind(&deliver, "fake_deliver");
    bind(&deliver_on_threads, "fake_deliver_on_threads");
    bind(&capture_begin, "fake_capture_begin");
    bind(&capture_end, "fake_capture_end");
    bind(&graph_instantiate, "fake_graph_instantiate");
    bind(&graph_launch, "fake_graph_launch");
    bind(&graph_destroy, "fake_graph_destroy");
    bind(&synchronize, "fake_synchronize");
    bind(&allocate, "fake_allocate");
    bind(&set_device, "fake_set_device");
    bind(&count, "fake_count");
    bind(&load_module, "fake_load_module");
    bind(&stall, "fake_stall");
    bind(&destroy_context, "fake_destroy_context");
    bind(&hang, "fake_hang");
    bind(&hold, "fake_hold");
    bind(&set_version, "fake_set_version");
  }
};

/// A session with one collector running.
struct Running {
  explicit Running(const Vendor &vendor, gpu::CollectorOptions options = {})
      : fake(vendor), collector(vendor.collector()) {
    fake.reset();
    RecorderRegistry::instance().begin(1u << 20);
    CHECK_EQ(collector.start({vendor.profiler, vendor.driver}, options), "");
  }
  std::map<std::string, uint64_t> stop() {
    CHECK_EQ(collector.stop(), "");
    RecorderRegistry::instance().end();
    return collector.figures();
  }

  Fake fake;
  gpu::Collector &collector;
};

/// A scope on the calling thread.
struct Inside {
  explicit Inside(const std::string &name) : recorder(RecorderRegistry::current()) {
    Level *outer = recorder.innermost();
    Node *parent = outer ? outer->node : recorder.tree.root();
    Node *node =
        recorder.tree.child(parent, FrameKind::kScope, Interner::instance().intern(name), 0);
    Level *level = recorder.push(LevelKind::kScope, node, this);
    level->start_ticks = ticks();
  }
  ~Inside() { recorder.close(this, ticks()); }
  Recorder &recorder;
};

class NameResolver final : public FrameResolver {
public:
  FrameRecord resolve(const Node &node) const override {
    return {node.kind, static_cast<uint32_t>(node.a), Interner::instance().intern(""), 0};
  }
};

/// Launches of kernels by "scope/kernel" over the merged tree.
std::map<std::string, uint64_t> kernels() {
  MergedTree tree = mergeTrees(RecorderRegistry::instance().active(), {}, NameResolver());
  uint16_t launches = MetricRegistry::instance().id("launch_count");
  std::map<std::string, uint64_t> found;
  auto name = [&](uint32_t node) {
    return std::string(Interner::instance().text(tree.frames[tree.frame[node]].name));
  };
  for (const NodeValues &row : tree.metrics[launches]) {
    found[name(tree.parent[row.node]) + "/" + name(row.node)] += row.values.total;
  }
  return found;
}

void launchOnThreads(const Vendor &vendor) {
  constexpr uint64_t kThreads = 4, kLaunches = 20'000;
  gpu::CollectorOptions options;
  options.buffer_bytes = 64 << 10;
  options.with_calls = true;
  Running run(vendor, options);
  std::atomic<bool> is_over{false};
  std::thread deliverer([&] {
    for (int seed = 1; !is_over; ++seed) {
      run.fake.deliver_on_threads(seed, 2);
      run.collector.flush();
      run.collector.figures();
    }
  });
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&run, i] {
      std::string own = "thread" + std::to_string(i);
      run.fake.set_device(static_cast<uint32_t>(i));
      for (uint64_t j = 0; j < kLaunches / 100; ++j) {
        Inside scope(own + (j % 2 ? "odd" : "even"));
        run.fake.launch_many(j % 2 ? "odd kernel" : "even kernel", static_cast<uint32_t>(i), 10,
                             99);
        run.fake.synchronize(0);
        if (run.fake.allocate) {
          run.fake.allocate(64, 0);
        }
        run.fake.launch_many("last", static_cast<uint32_t>(i), 10, 1);
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  is_over = true;
  deliverer.join();
  run.fake.deliver(7);
  std::map<std::string, uint64_t> figures = run.stop();
  CHECK_EQ(figures["launches"], kThreads * kLaunches);
  CHECK_EQ(figures["matched"], kThreads * kLaunches);
  CHECK_EQ(figures["unmatched"], 0u);
  CHECK_EQ(run.collector.deviceTotals().size(), kThreads);
  std::map<std::string, uint64_t> found = kernels();
  for (uint64_t i = 0; i < kThreads; ++i) {
    std::string own = "thread" + std::to_string(i);
    CHECK_EQ(found[own + "odd/odd kernel"], kLaunches / 200 * 99);
    CHECK_EQ(found[own + "even/even kernel"], kLaunches / 200 * 99);
    CHECK_EQ(found[own + "even/last"], kLaunches / 200);
  }
}

void startAndStopWhileLaunching(const Vendor &vendor) {
  Fake fake(vendor);
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  Running first(vendor);
  for (uint32_t i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      while (!is_over) {
        fake.launch("k", i, 10);
        if (i == 0) {
          fake.deliver(1);
        }
      }
    });
  }
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK_EQ(first.collector.stop(), "");
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    CHECK_EQ(first.collector.start({vendor.profiler, vendor.driver}, {}), "");
  }
  is_over = true;
  for (std::thread &thread : threads) {
    thread.join();
  }
  std::map<std::string, uint64_t> figures = first.stop();
  CHECK_EQ(figures["received"], figures["matched"] + figures["unmatched"]);
}

void graphsOnThreads(const Vendor &vendor) {
  Running run(vendor);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 3; ++i) {
    threads.emplace_back([&run, i] {
      for (int round = 0; round < 50; ++round) {
        run.fake.capture_begin(i);
        run.fake.launch_many("node", i, 10, 5);
        uint32_t graph = run.fake.capture_end(i);
        uint32_t executable = run.fake.graph_instantiate(graph);
        run.fake.graph_launch(executable, i);
        run.fake.deliver(1);
        run.collector.figures();
        run.fake.graph_destroy(executable);
        run.fake.graph_destroy(graph);
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  run.fake.deliver(0);
  std::map<std::string, uint64_t> figures = run.stop();
  CHECK_EQ(figures["matched"], 3u * 50 * 5);
  if (&vendor != &kRoctracer) { // which tells no graph nodes
    CHECK_EQ(figures["graph_captured"], 3u * 50 * 5);
  }
}

/// Every sample that was read is in the tree, while contexts come and go.
void stallsWhileThreadsLaunch(const Vendor &vendor) {
  gpu::CollectorOptions options;
  options.with_stalls = true;
  setenv("DEEPCONTEXT_GPU_STALLS", "may-hang", 1);
  Running run(vendor, options);
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 2; ++i) {
    threads.emplace_back([&run, &is_over, i] {
      while (!is_over) {
        run.fake.launch("k", i, 10);
        run.fake.stall("k", "wait", 3, i);
        run.fake.deliver(1);
        if (i == 0) {
          run.fake.load_module();
          run.collector.flush();
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  }
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    run.fake.destroy_context();
    run.collector.beforeFork();
    run.collector.afterFork(false);
  }
  is_over = true;
  for (std::thread &thread : threads) {
    thread.join();
  }
  uint64_t misuses = run.fake.count("misuses");
  std::map<std::string, uint64_t> figures = run.stop();
  CHECK_EQ(misuses, 0u);
  CHECK_EQ(run.fake.count("services"), 0u);
  CHECK_EQ(figures["stall_samples"] > 0, true);
  MergedTree tree = mergeTrees(RecorderRegistry::instance().active(), {}, NameResolver());
  uint64_t in_tree = 0;
  for (const NodeValues &row : tree.metrics[MetricRegistry::instance().id("stall_samples")]) {
    in_tree += row.values.total;
  }
  CHECK_EQ(in_tree, figures["stall_samples"]);
}

/// What `attempt` returns in a forked child.
template <typename Attempt> std::string inForkedChild(const Attempt &attempt) {
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  gpu::beforeFork();
  pid_t child = fork();
  if (child == 0) {
    gpu::afterFork(true);
    std::string said = attempt();
    _exit(write(ends[1], said.data(), said.size()) < 0);
  }
  gpu::afterFork(false);
  close(ends[1]);
  char text[4096];
  ssize_t size = read(ends[0], text, sizeof text); // waits for the child
  close(ends[0]);
  CHECK_EQ(waitpid(child, nullptr, 0), child);
  return std::string(text, static_cast<size_t>(size > 0 ? size : 0));
}

} // namespace

// The first test, before the collectors are used in this process.
TEST(a_forked_child_may_start_a_collector_that_its_parent_has_not_used) {
  for (const Vendor &vendor : kVendors) {
    gpu::Collector &collector = vendor.collector();
    auto start = [&] {
      RecorderRegistry::instance().begin(1u << 20);
      return collector.start({vendor.profiler, vendor.driver}, {});
    };
    auto start_twice = [&] {
      std::string first = start(); // before the fork; operands of + come in any order
      return first + " / " + inForkedChild(start);
    };
    std::string said = inForkedChild(start_twice);
    CHECK_EQ(said.substr(0, 3), " / ");
    CHECK(said.find("does not survive a fork") != std::string::npos);
  }
}

TEST(a_shared_library_is_left_when_its_records_are_read) {
  const Vendor &vendor = kVendors[0];
  Fake fake(vendor);
  gpu::Collector &collector = vendor.collector();
  fake.reset();
  fake.set_version(130401);
  fake.hold("another tool", 1);
  RecorderRegistry::instance().begin(1u << 20);
  CHECK_EQ(collector.start({vendor.profiler, vendor.driver}, {}), "");
  fake.launch_many("k", 0, 10, 100);
  fake.deliver(0);
  fake.hang("cuptiGetTimestamp", 50'000'000); // asked for before a buffer's records are read
  CHECK_EQ(collector.stop(), "");
  RecorderRegistry::instance().end();
  CHECK_EQ(collector.figures()["is_shared"], 1u);
  CHECK_EQ(collector.figures()["broken_buffers"], 0u);
  CHECK_EQ(collector.figures()["matched"], 100u);
}

TEST(stalls_are_sampled_while_threads_launch) {
  stallsWhileThreadsLaunch(kVendors[0]);
}

TEST(every_launch_of_four_threads_is_attributed) {
  for (const Vendor &vendor : kVendors) {
    launchOnThreads(vendor);
  }
}

TEST(a_kept_step_has_the_work_of_each_stream) {
  for (const Vendor &vendor : kVendors) {
    Fake fake(vendor);
    fake.reset();
    RecorderRegistry::instance().begin(1u << 20, /*takes_spans=*/true);
    gpu::Collector &collector = vendor.collector();
    CHECK_EQ(collector.start({vendor.profiler, vendor.driver}, {}), "");
    Exemplars::instance().begin();
    auto step = [] { Steps::instance().pass({StepSource::kMark, 0, nullptr}, ticks()); };
    step();
    for (uint32_t stream : {1u, 2u, 2u}) {
      Inside scope("launches");
      fake.launch("kernel", stream, 10'000);
    }
    fake.synchronize(0);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    step();
    fake.deliver(1);
    CHECK_EQ(collector.stop(), "");
    RecorderRegistry::instance().end();
    Exemplars::Reading reading = Exemplars::instance().read();
    CHECK_EQ(reading.exemplars.size(), 1u);
    std::map<uint64_t, size_t> spans;
    for (const Exemplar::Lane &lane : reading.exemplars.at(0).lanes) {
      spans[lane.lane] += lane.spans.count();
      lane.spans.forEach([&](const Span &span) {
        bool is_device = lane.lane != 0;
        CHECK(!is_device || span.end_ticks > span.begin_ticks);
      });
    }
    CHECK_EQ(spans.size(), 3u); // the thread and two streams
    CHECK_EQ(spans[0], 3u);
    std::multiset<size_t> counts;
    for (const auto &[lane, count] : spans) {
      counts.insert(count);
    }
    CHECK((counts == std::multiset<size_t>{1, 2, 3}));
    Exemplars::instance().end();
  }
}

TEST(a_collector_may_stop_and_start_while_threads_launch) {
  for (const Vendor &vendor : kVendors) {
    startAndStopWhileLaunching(vendor);
  }
}

TEST(graphs_are_made_and_replayed_on_several_threads) {
  for (const Vendor &vendor : kVendors) {
    graphsOnThreads(vendor);
  }
}
