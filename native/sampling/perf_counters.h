#pragma once
// Counters that the kernel keeps for single threads: the processor's and its own.
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace deepcontext {

/// Something that can be counted.
struct PerfEvent {
  const char *name; // as perf(1) calls it
  const char *metric;
  uint32_t type; // enum perf_type_id
  uint64_t config;
  bool is_of_waiting; // rises as a thread stops running, not while it runs
  bool is_of_kernel;  // happens in the kernel: nothing is counted where that may not be
};

constexpr size_t kPerfEvents = 6;
const std::array<PerfEvent, kPerfEvents> &perfEvents();

/// Whether an event can be counted here.
struct PerfAnswer {
  const PerfEvent *event = nullptr;
  int error = 0;             // why not; 0: it can
  bool is_user_only = false; // the kernel lets its own part not be counted
};

/// Ask the kernel about each of the events named. Opens descriptors for a moment, in a thread that
/// has a table of its own.
std::vector<PerfAnswer> askForPerfEvents(const std::vector<std::string> &names);

/// What became of the counters of a session. Any thread.
struct PerfCounts {
  std::atomic<uint64_t> threads{0};
  std::atomic<uint64_t> threads_refused{0};
  std::atomic<int> error{0};           // of the last one refused; 0: there were too many
  std::atomic<uint64_t> enabled_ns{0}; // of the processor's counters, over all threads
  std::atomic<uint64_t> running_ns{0}; // of that, in which they had their turn

  void clear();
};

/// The counters of one thread. What they have risen by is owed until a sample finds a place to
/// charge. The sampler's thread opens, reads and closes them: the descriptors are in its table.
///
/// A processor has few counters. Where others use them, too, the kernel gives each a turn; what a
/// counter rose by is then scaled to the time in which it should have run.
class PerfCounters {
public:
  /// 0, or the error for which nothing is counted. The counters of a thread that has some stay.
  int open(int thread, const std::vector<PerfAnswer> &events);
  /// Owe what they have risen by since.
  void read(PerfCounts *counts);
  void close();
  /// Charge what is owed to the place of a sample: `charge(event, value)`. What rises while a
  /// thread runs is charged where it is found running, what rises when it stops where it is found
  /// waiting, as its time is; it does not wait for such a sample for ever.
  template <typename Charge> void settle(bool is_waiting, Charge charge) {
    samples_since_running_ = is_waiting ? samples_since_running_ + 1 : 0;
    samples_since_waiting_ = is_waiting ? 0 : samples_since_waiting_ + 1;
    settleSide(false, !is_waiting || samples_since_running_ > kMostSamples, charge);
    settleSide(true, is_waiting || samples_since_waiting_ > kMostSamples, charge);
  }
  /// As `settle`, whatever is owed.
  template <typename Charge> void settleAll(Charge charge) {
    settleSide(false, true, charge);
    settleSide(true, true, charge);
  }

private:
  static constexpr uint32_t kMostSamples = 100;

  /// Events that are counted together or not at all.
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
