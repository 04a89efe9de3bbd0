#pragma once
// Hardware and software counters that the kernel keeps for single threads.
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace deepcontext {

/// An event that can be counted.
struct PerfEvent {
  const char *name; // as perf(1) calls it
  const char *metric;
  uint32_t type; // enum perf_type_id
  uint64_t config;
  bool is_of_waiting; // rises when a thread stops running, not while it runs
  bool is_of_kernel;  // happens in the kernel, so it cannot be counted in user mode only
};

constexpr size_t kPerfEvents = 6;
const std::array<PerfEvent, kPerfEvents> &perfEvents();

/// Whether an event can be counted on this machine.
struct PerfAnswer {
  const PerfEvent *event = nullptr;
  int error = 0;             // the reason; 0: it can be counted
  bool is_user_only = false; // the kernel does not allow counting in kernel mode
};

/// Ask the kernel about each of the named events. Opens descriptors briefly, in a thread with its
/// own table of descriptors.
std::vector<PerfAnswer> askForPerfEvents(const std::vector<std::string> &names);

/// Summary of the counters of a session. Any thread.
struct PerfCounts {
  std::atomic<uint64_t> threads{0};
  std::atomic<uint64_t> threads_refused{0};
  std::atomic<int> error{0};           // of the last refusal; 0: too many threads
  std::atomic<uint64_t> enabled_ns{0}; // of the hardware counters, over all threads
  std::atomic<uint64_t> running_ns{0}; // part of it, in which they were scheduled

  void clear();
};

/// The counters of one thread. Their increase is owed until a sample finds a place to charge. The
/// sampler's thread opens, reads and closes them, because the descriptors are in its table.
///
/// A processor has few counters, which the kernel shares among their users by turns. The increase
/// is then scaled to the whole time.
class PerfCounters {
public:
  /// Returns 0, or the error because of which nothing is counted. Does nothing when counters are
  /// open.
  int open(int thread, const std::vector<PerfAnswer> &events);
  /// Add their increase to what is owed.
  void read(PerfCounts *counts);
  void close();
  /// Charge what is owed to the place of a sample: `charge(event, value)`. Events of running are
  /// charged where a sample finds the thread running, events of stopping where it finds the thread
  /// waiting; after kMostSamples without such a sample, to any place.
  template <typename Charge> void settle(bool is_waiting, Charge charge) {
    samples_since_running_ = is_waiting ? samples_since_running_ + 1 : 0;
    samples_since_waiting_ = is_waiting ? 0 : samples_since_waiting_ + 1;
    settleSide(false, !is_waiting || samples_since_running_ > kMostSamples, charge);
    settleSide(true, is_waiting || samples_since_waiting_ > kMostSamples, charge);
  }
  /// Charge all that is owed.
  template <typename Charge> void settleAll(Charge charge) {
    settleSide(false, true, charge);
    settleSide(true, true, charge);
  }

private:
  static constexpr uint32_t kMostSamples = 100;

  /// Events that the kernel schedules together.
  struct Group {
    std::vector<int> files; // the first leads
    std::vector<const PerfEvent *> events;
    std::vector<uint64_t> seen;
    uint64_t enabled_ns = 0;
    uint64_t running_ns = 0;
  };

  int add(int thread, const PerfAnswer &answer);
  template <typename Charge> void settleSide(bool is_of_waiting, bool is_due, Charge charge) {
    for (size_t i = 0; is_due && i < kPerfEvents; ++i) {
      const PerfEvent &event = perfEvents()[i];
      if (owed_[i] > 0 && event.is_of_waiting == is_of_waiting) {
        charge(event, owed_[i]);
        owed_[i] = 0;
      }
    }
  }

  std::vector<Group> groups_;
  std::array<uint64_t, kPerfEvents> owed_{};
  uint32_t samples_since_running_ = 0;
  uint32_t samples_since_waiting_ = 0;
};

} // namespace deepcontext
