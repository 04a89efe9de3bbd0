#pragma once
// The simulated device that all fake vendor libraries share: streams, a clock, work that completes
// when the test says so. Knows no vendor.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <utility>
#include <vector>

namespace fake {

enum class What { kKernel, kCopy, kMemset };

constexpr uint32_t kDevices = 4;
inline thread_local uint32_t t_device = 0;
/// Of the calling thread, beside the first one of its device.
inline thread_local uint32_t t_context = 0;

/// Shape of the calling thread's next launches.
inline thread_local uint32_t t_grid = 4;
inline thread_local uint32_t t_block = 128;

/// One thing the device does.
struct Work {
  What what = What::kKernel;
  const char *name = "";      // kernel name, or direction of a copy: "HtoD"
  uint32_t device = t_device;
  uint32_t context = t_context;
  uint32_t stream = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint64_t bytes = 0;
  uint8_t memory = 0;         // of the host, at an end of a copy
  uint64_t correlation = 0;
  uint64_t external = 0;      // what the tool asked the library to carry
  uint32_t graph_exec = 0;    // of graph work
  uint64_t graph_node = 0;    // of the executable graph
  uint64_t source_node = 0;   // of the graph that was captured
  uint32_t grid = t_grid;
  uint32_t block = t_block;
  bool is_of_body = false;    // of a conditional node
  uint32_t child = 0;         // number of the child graph, from 1
};

/// The result of a function that $FAKE_FAULTS ("cuInit=100,cuptiSubscribe=15") asks for, for programs
/// that a test cannot call into; 0 for none.
inline int faultOfEnvironment(const std::string &function) {
  const char *given = std::getenv("FAKE_FAULTS");
  std::string faults = given ? given : "";
  size_t found = faults.find(function + "=");
  return found == std::string::npos ? 0 : std::atoi(faults.c_str() + found + function.size() + 1);
}

inline uint64_t nowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

/// A node that leaves no record.
struct SilentNode {
  uint64_t id;
  uint32_t type; // as the vendor numbers it
};

struct Graph {
  std::vector<Work> works;
  std::vector<uint64_t> nodes;
  std::vector<uint64_t> sources;
  std::vector<SilentNode> silent;
  std::vector<uint64_t> children; // nodes that hold child graphs
  std::vector<uint64_t> handles;  // of an executable graph's nodes, where they are not the ids
  bool is_executable = false;
  uint32_t iterations = 1; // of the bodies of conditional nodes, in a replay

  /// The places of a replay's works, one after the other.
  std::vector<size_t> order() const {
    std::vector<size_t> places;
    for (size_t begin = 0; begin < works.size();) {
      size_t end = begin + 1;
      while (end < works.size() && works[end].is_of_body == works[begin].is_of_body) {
        ++end;
      }
      for (uint32_t i = 0; i < (works[begin].is_of_body ? iterations : 1); ++i) {
        for (size_t place = begin; place < end; ++place) {
          places.push_back(place);
        }
      }
      begin = end;
    }
    return places;
  }
  /// Take the works of another graph, and keep the nodes. False where the graphs' shapes differ.
  bool update(const Graph &other) {
    auto isAlike = [](const Work &left, const Work &right) {
      return left.what == right.what && left.is_of_body == right.is_of_body;
    };
    bool is_alike = works.size() == other.works.size() &&
                    std::equal(works.begin(), works.end(), other.works.begin(), isAlike);
    works = is_alike ? other.works : works;
    return is_alike;
  }
};

/// Streams, pending work, graphs and the faults a test has asked for. Its lock is never held while
/// a tool's callback runs.
class Device {
public:
  static constexpr uint64_t kLaunchLatencyNs = 2000;

  /// Put work on its stream, after what is there.
  Work schedule(Work work, uint64_t duration_ns) {
    std::lock_guard<std::mutex> lock(mutex);
    uint64_t &tail = tails_[{work.device, work.context, work.stream}];
    work.start_ns = std::max(tail, nowNs() + kLaunchLatencyNs);
    work.end_ns = tail = work.start_ns + duration_ns;
    pending_.push_back(work);
    ++launched;
    return work;
  }

  /// Take all pending work, in random order when `seed` is not 0.
  std::vector<Work> takePending(int seed) {
    std::lock_guard<std::mutex> lock(mutex);
    std::vector<Work> works = std::move(pending_);
    pending_.clear();
    if (seed) {
      std::mt19937 random(static_cast<unsigned>(seed));
      std::shuffle(works.begin(), works.end(), random);
    }
    return works;
  }

  const char *intern(const char *name) {
    std::lock_guard<std::mutex> lock(mutex);
    return names_.insert(name).first->c_str();
  }

  /// Whether a launch of the kernel has to load its code first.
  bool mustLoad(const char *kernel) {
    std::lock_guard<std::mutex> lock(mutex);
    return is_lazy && loaded_.insert(kernel).second;
  }

  /// The result a test wants of a function, 0 for none; sleeps first when it is to hang.
  int fault(const std::string &function) {
    uint64_t hang_ns = 0;
    int code = 0;
    {
      std::lock_guard<std::mutex> lock(mutex);
      auto hang = hangs.find(function);
      hang_ns = hang == hangs.end() ? 0 : hang->second;
      auto fault = faults.find(function);
      code = fault == faults.end() ? 0 : fault->second;
    }
    if (hang_ns) {
      ++hanging;
      usleep(static_cast<useconds_t>(hang_ns / 1000));
      --hanging;
    }
    return code;
  }

  void reset() {
    std::lock_guard<std::mutex> lock(mutex);
    tails_.clear();
    pending_.clear();
    faults.clear();
    hangs.clear();
    graphs.clear();
    next_graph = 1;
    next_node = 1;
    launched = dropped = delivered = callbacks = 0;
    drop_next = 0;
    has_faults = false;
    is_lazy = false;
    loaded_.clear();
  }

  std::mutex mutex;
  std::map<std::string, int> faults;
  std::atomic<bool> has_faults{false};
  std::atomic<bool> is_lazy{false}; // the first launch of a kernel loads its code
  std::map<std::string, uint64_t> hangs;
  std::map<uint32_t, Graph> graphs;
  uint32_t next_graph = 1;
  uint64_t next_node = 1;
  std::atomic<uint64_t> launched{0}, delivered{0}, dropped{0}, callbacks{0};
  std::atomic<uint64_t> hanging{0};   // calls that take their time now
  std::atomic<uint64_t> drop_next{0}; // records that the library will lose

private:
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint64_t> tails_;
  std::vector<Work> pending_;
  std::set<std::string> names_;
  std::set<std::string> loaded_; // kernels
};

constexpr uint64_t kCodeBytes = 4096; // of a kernel
constexpr uint64_t kCodeCopyNs = 1000;

/// Split `works` into `threads` shares and run `deliver` on each at the same time.
template <typename Deliver>
void onThreads(const std::vector<Work> &works, uint32_t threads, Deliver deliver) {
  std::vector<std::vector<Work>> shares(std::max(threads, 1u));
  for (std::size_t index = 0; index < works.size(); ++index) {
    shares[index % shares.size()].push_back(works[index]);
  }
  std::vector<std::thread> running;
  for (std::vector<Work> &share : shares) {
    running.emplace_back([&share, &deliver] { deliver(share); });
  }
  for (std::thread &thread : running) {
    thread.join();
  }
}

} // namespace fake

#define FAKE_API extern "C" __attribute__((visibility("default")))
