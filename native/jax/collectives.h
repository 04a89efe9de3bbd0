#pragma once
// The collectives of compiled programs, numbered alike on all processes, and what came before them.
#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "core/collective_sample.h"
#include "core/recorder.h"
#include "core/spin_lock.h"

namespace deepcontext::jax {

/// Which launch of a function with collectives a call was.
struct LaunchNumber {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t of_function = kNone; // among the launches of its function: 0, 1, 2 ...
  uint32_t order = kNone;       // among those of all functions with collectives
};

/// A collective of one run of a program; neighbours in a program with very many are one row.
struct ProgramCollective {
  uint64_t duration_ns = 0;
  uint64_t own_ns = 0; // what the process did by itself since the group's collective before
  uint64_t bytes = 0;
  uint32_t order = 0;         // among all of the process
  uint32_t number_of_its = 0; // among those of its group
  uint32_t number = 0;        // that decides whether it is kept
  uint16_t group = 0;
  uint8_t operation = 0; // index of `Collectives::kOperations`
};

/// Counts launches and keeps rows, in bounded memory. Any thread.
///
/// All processes of a job launch a function with collectives equally often, in the same order, so
/// the number of the launch tells which collectives belong together.
class Collectives {
public:
  using Sample = CollectiveSample<ProgramCollective>;
  static constexpr uint32_t kMostFunctions = 8;
  static constexpr uint32_t kMostOfRun = 16;   // rows of a group in one run
  static constexpr uint32_t kOrdersOfRun = 64; // orders of a launch: the rows of all its groups
  /// HLO opcodes of what no process leaves before the last one has come.
  static constexpr std::array<const char *, 5> kOperations = {
      "all-reduce", "all-gather", "all-to-all", "reduce-scatter", "ragged-all-to-all",
  };

  struct Reading {
    std::array<uint32_t, kMostFunctions> launches{};
    std::vector<ProgramCollective> rows;
    std::vector<StretchSample> samples;
  };

  static Collectives &instance() {
    static Collectives *const table = new Collectives();
    return *table;
  }
  /// Index of an opcode in `kOperations`, or its size.
  static size_t operationOf(std::string_view opcode);

  /// Forget everything. One thread.
  void clear();
  /// Count the launches of a function from now on. Its index, or `kMostFunctions` when there are
  /// too many.
  uint32_t watch(uint32_t function);
  /// Index of a watched function, or `kMostFunctions`.
  uint32_t indexOf(uint32_t function) const;
  bool isWatched(uint32_t function) const { return indexOf(function) < kMostFunctions; }
  uint32_t watchedCount() const { return watched_count_.load(std::memory_order_acquire); }
  uint32_t launches() const { return launches_.load(std::memory_order_relaxed); }

  /// A call of a watched function begins: the stretch before it ends. The calling thread's.
  void begin(Recorder &recorder);
  /// The program begins or ends to wait for the device, and so for collectives.
  void setWaiting(bool is_waiting) {
    if (watchedCount() > 0) {
      Stretch::instance().setInFlight(is_waiting);
    }
  }
  /// A call of a function has launched a program `count` times. None when it is not watched.
  LaunchNumber launched(uint32_t function, uint32_t count);

  void add(const ProgramCollective &row);
  /// What the programs of the process did before a collective.
  void add(uint32_t order, uint32_t number, const Stretch::Parts &parts);
  void forgetRows(uint16_t group);
  Reading read();

private:
  SpinLock lock_;
  int process_ = 0; // that cleared the table last
  std::array<std::atomic<uint32_t>, kMostFunctions> watched_{};
  std::atomic<uint32_t> watched_count_{0};
  std::atomic<uint32_t> launches_{0};
  std::array<uint32_t, kMostFunctions> launches_of_{};
  Sample sample_;
};

} // namespace deepcontext::jax
