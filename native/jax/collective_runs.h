#pragma once
// Collectives in the windows of the tracer: when each began and ended, and which launch they are
// of.
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "jax/collectives.h"
#include "jax/program.h"
#include "jax/xspace.h"

namespace deepcontext::jax {

/// Processes that take part in the collectives of a function.
struct CollectiveGroup {
  uint32_t function = 0; // of the table of functions
  uint32_t index = 0;    // of `Collectives`
  std::vector<uint32_t> members;
  uint32_t of_run = 0;      // rows of one run
  bool is_left_out = false; // launches and runs could not be matched
};

/// Has no lock: its owner, `Attribution`, holds one.
///
/// The runtime counts the runs of a program from a random number on. A launch and its run in one
/// window tell the difference. Where a window begins after a launch, runs may be taken for later
/// ones than they are, never for earlier ones, so the largest difference is the true one.
class CollectiveRuns {
public:
  /// Launches of each watched function in a window, by their number.
  using Orders = std::map<std::pair<uint32_t, uint32_t>, uint32_t>; // (function's index, number)

  /// A program that a call of the function compiled.
  void add(const Program &program, uint32_t function);
  /// A run was launched by this call, at a node of a thread's tree.
  void join(uint32_t program, int64_t run_id, LaunchNumber number, uint32_t recorder,
            uint32_t node);
  /// Add the collectives of a window to the table. `programs`: of each run.
  void read(const TraceWindow &window, const std::vector<uint32_t> &programs, const Orders &orders);
  struct Summary {
    std::vector<CollectiveGroup> groups;
    // Functions with collectives that are not compared: too many, or of unknown processes.
    uint64_t left_out;
  };
  Summary summary() const { return {groups_, left_out_}; }

private:
  /// A collective of a program.
  struct Place {
    std::string name;
    uint8_t operation;
    uint16_t group;
    uint32_t row; // of the group's in one run
    uint64_t bytes;
  };
  struct OfProgram {
    uint32_t function = 0; // index of `Collectives`
    const Program *program = nullptr;
    std::vector<Place> places;
    bool is_known = false;
    uint32_t recorder = 0, node = 0;       // that launched it last
    int64_t base = 0;                      // a run's number less that of its launch
    uint32_t first = UINT32_MAX, last = 0; // numbers of launches seen
  };
  struct Event;     // a collective in a run
  struct Stretches; // of one window

  uint16_t groupOf(uint32_t function, uint32_t index, const std::vector<uint32_t> &members);
  void readRun(const Run &run, const OfProgram &program, uint32_t number, uint32_t order,
               Stretches *stretches);
  std::vector<Event> eventsOf(const Run &run, const OfProgram &program) const;
  Stretch::Parts workOf(const Run &run, const OfProgram &program, uint64_t after_ps,
                        uint64_t before_ps);
  bool isInterleaved(const OfProgram &program) const;
  void forget(uint32_t function, bool for_ever);

  std::vector<CollectiveGroup> groups_;
  std::unordered_map<uint32_t, OfProgram> programs_;
  Recorder *paths_ = nullptr; // of operations before collectives
  uint64_t left_out_ = 0;
};

} // namespace deepcontext::jax
