// Fake NCCL: loads a profiler plugin as NCCL does, and tells it of made collectives. Calls of the
// interface come on the launching thread, times of kernels and network work on a proxy thread.
//
// What NCCL does is known from its sources (src/plugin/profiler.cc, 2.30); no code of it is here.
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>

#include "abi/nccl.h"

using namespace deepcontext::abi::nccl;

namespace {

constexpr int kMostCommunicators = 128;

/// The newest table of a plugin; an older one is called through the same functions.
struct Plugin {
  void *library = nullptr;
  int version = 0;
  const Profiler4 *v4 = nullptr;
  const Profiler5 *v5 = nullptr;

  bool open(const char *path, int newest) {
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    for (version = newest; library && version >= 4; --version) {
      std::string symbol = "ncclProfiler_v" + std::to_string(version);
      if (const void *table = dlsym(library, symbol.c_str())) {
        v4 = version == 4 ? static_cast<const Profiler4 *>(table) : nullptr;
        v5 = version > 4 ? static_cast<const Profiler5 *>(table) : nullptr;
        return true;
      }
    }
    version = 0;
    return false;
  }
  int init(void **context, uint64_t id, int *mask, int ranks, int rank) const {
    return v4 ? v4->init(context, mask, "name", id, 1, ranks, rank, nullptr)
              : v5->init(context, id, mask, "name", 1, ranks, rank, nullptr);
  }
  void *start(void *context, Event event) const {
    void *handle = reinterpret_cast<void *>(0xBAD0BAD0);
    if (v4) {
      event.type |= 0xABCDEF00; // version 4 has one byte; the others are padding
      v4->start(context, &handle, &event);
    } else {
      v5->start(context, &handle, &event);
    }
    return handle;
  }
  void stop(void *handle) const { v4 ? v4->stop(handle) : v5->stop(handle); }
  void record(void *handle, int state, StateArguments arguments) const {
    v4 ? v4->record(handle, state, &arguments) : v5->record(handle, state, &arguments);
  }
  void finalize(void *context) const { v4 ? v4->finalize(context) : v5->finalize(context); }
};

Plugin g_plugin;
int g_mask = 0;
uint64_t g_events = 0;
void *g_contexts[kMostCommunicators];
int g_communicators = 0;

/// One thread that works off what it is given, as NCCL's proxy thread.
class Proxy {
public:
  ~Proxy() {
    give(nullptr);
    thread_.join();
  }
  void give(std::function<void()> work) {
    std::lock_guard<std::mutex> guard(mutex_);
    work_.push_back(std::move(work));
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return work_.empty(); });
  }

private:
  void run() {
    for (;;) {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [this] { return !work_.empty(); });
      std::function<void()> work = work_.front();
      lock.unlock();
      if (!work) {
        return;
      }
      work();
      lock.lock();
      work_.pop_front();
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  std::thread thread_{[this] { run(); }};
};

Proxy &proxy() {
  static Proxy *const proxy = new Proxy();
  return *proxy;
}

void *startEvent(void *context, const Event &event) {
  __atomic_fetch_add(&g_events, 1, __ATOMIC_RELAXED);
  return g_plugin.start(context, event);
}

void runKernel(void *context, void *call, int channels, uint64_t start_ns, uint64_t ns) {
  for (int channel = 0; channel < channels; ++channel) {
    Event event = {};
    event.type = kKernelCh;
    event.parent = call;
    event.kernel_ch = {static_cast<uint8_t>(channel), start_ns + static_cast<uint64_t>(channel)};
    void *handle = startEvent(context, event);
    if (handle) {
      StateArguments arguments = {start_ns + ns - static_cast<uint64_t>(channel)};
      g_plugin.record(handle, kKernelChStop, arguments);
      g_plugin.stop(handle);
    }
  }
}

void runProxy(void *context, void *call, int pid, unsigned us) {
  Event event = {};
  event.type = kProxyOp;
  event.parent = call;
  event.proxy_op.pid = pid;
  void *handle = startEvent(context, event);
  usleep(us);
  if (handle) {
    g_plugin.stop(handle);
  }
}

} // namespace

#define API extern "C" __attribute__((visibility("default")))

/// Load the plugin that NCCL_PROFILER_PLUGIN names. Returns its version, 0 for none.
API int fake_nccl_load(int newest) {
  const char *path = std::getenv("NCCL_PROFILER_PLUGIN");
  return path && g_plugin.open(path, newest) ? g_plugin.version : 0;
}
API void fake_nccl_unload() {
  dlclose(g_plugin.library);
  g_plugin = {};
  g_communicators = 0;
}

/// Make a communicator. Returns its number.
API int fake_nccl_init(uint64_t id, int ranks, int rank) {
  if (g_plugin.init(&g_contexts[g_communicators], id, &g_mask, ranks, rank) != kSuccess) {
    return -1;
  }
  return g_communicators++;
}
API void fake_nccl_finalize(int communicator) {
  g_plugin.finalize(g_contexts[communicator]);
}

/// Run a collective. `proxy_us`: of network work, 0 for none; `is_foreign`: on behalf of another
/// process, whose handles this one does not know.
API void fake_nccl_collective(int communicator, const char *function, uint64_t count,
                              const char *type, const char *algorithm, const char *protocol,
                              int channels, uint64_t kernel_ns, unsigned proxy_us, int is_foreign) {
  int mask = __atomic_load_n(&g_mask, __ATOMIC_RELAXED);
  void *context = g_contexts[communicator];
  void *call = nullptr;
  if (mask & (kColl | kProxyOp | kKernelCh)) {
    Event event = {};
    event.type = kColl;
    event.coll.function = function;
    event.coll.count = count;
    event.coll.type = type;
    event.coll.algorithm = algorithm;
    event.coll.protocol = protocol;
    event.coll.channels = static_cast<uint8_t>(channels);
    call = startEvent(context, event);
    if (call) {
      g_plugin.stop(call); // after the launch; the kernel has not run
    }
  }
  int pid = is_foreign != 0 ? getpid() + 1 : getpid();
  proxy().give([=] {
    if (mask & kKernelCh) {
      runKernel(context, call, channels, 1'000'000, kernel_ns);
    }
    if ((mask & kProxyOp) && proxy_us > 0) {
      runProxy(context, call, pid, proxy_us);
    }
  });
}
/// Send `count` elements.
API void fake_nccl_send(int communicator, uint64_t count, const char *type, uint64_t kernel_ns) {
  int mask = __atomic_load_n(&g_mask, __ATOMIC_RELAXED);
  void *context = g_contexts[communicator];
  if ((mask & kP2p) == 0) {
    return;
  }
  Event event = {};
  event.type = kP2p;
  event.p2p.function = "Send";
  event.p2p.count = count;
  event.p2p.type = type;
  event.p2p.channels = 1;
  void *call = startEvent(context, event);
  if (call) {
    g_plugin.stop(call);
  }
  proxy().give([=] { runKernel(context, call, 1, 1'000'000, kernel_ns); });
}
/// Pass a plugin handles that it never gave, and events of types that nobody asked for.
API void fake_nccl_nonsense(int communicator) {
  for (uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{0xDEADBEEF}, UINT64_MAX}) {
    void *handle = reinterpret_cast<void *>(value);
    runKernel(g_contexts[communicator], handle, 2, 5, 7);
    runProxy(g_contexts[communicator], handle, getpid(), 0);
    g_plugin.record(handle, kKernelChStop, {9});
    g_plugin.stop(handle);
  }
  for (uint64_t type : {uint64_t{1}, uint64_t{1} << 8, uint64_t{1} << 14, uint64_t{0}}) {
    Event event = {};
    event.type = type;
    event.parent = reinterpret_cast<void *>(0x10);
    startEvent(g_contexts[communicator], event);
  }
}
/// Wait until the proxy thread has nothing to do.
API void fake_nccl_wait() {
  proxy().wait();
}
API int fake_nccl_mask() {
  return g_mask;
}
/// Events that the plugin was told of.
API uint64_t fake_nccl_events() {
  return g_events;
}
