#pragma once
// Joins runs with their launches, and sums operation times by launching node and program.
#include <cstdint>
#include <map>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "core/thread_tree.h"
#include "core/without_gil.h"
#include "jax/collective_runs.h"
#include "jax/program_table.h"
#include "jax/run_parts.h"
#include "jax/run_totals.h"
#include "jax/xspace.h"

namespace deepcontext::jax {

/// A node of a thread's tree.
struct NodeRef {
  uint32_t recorder = 0;
  uint32_t node = 0;
  /// The launcher of runs that were launched outside a window.
  static constexpr NodeRef unknown() { return {UINT32_MAX, UINT32_MAX}; }
  bool operator<(const NodeRef &other) const {
    return recorder != other.recorder ? recorder < other.recorder : node < other.node;
  }
};

/// One call of a jitted function while a window was open. Times in ns since 1970.
struct Launch {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  int64_t thread = 0;
  NodeRef node;
  uint32_t function = 0;
  uint64_t signature = 0; // of the arguments; 0 if not computed
  uint64_t calls = 0;     // of the node so far
  LaunchNumber number;    // where the function has collectives
};

/// Whole runs after which a program counts as well measured.
constexpr uint64_t kEnoughRuns = 20;

/// Counts of the launches and runs of the windows.
struct WindowCounts {
  uint64_t windows = 0;
  uint64_t window_ns = 0;
  uint64_t events = 0;
  uint64_t operation_events = 0;
  uint64_t executions = 0;                // programs that the runtime accepted for execution
  uint64_t executions_without_launch = 0; // not inside a hooked call
  uint64_t launches = 0;                  // hooked calls with an execution
  uint64_t runs = 0;                      // programs that ran
  uint64_t joined = 0;                    // runs with their launch
  uint64_t without_launch = 0;            // whole runs launched before the window
  uint64_t cut_at_start = 0;              // runs that began before the window
  uint64_t cut_at_end = 0;                // launches whose run did not end in the window
  uint64_t unmatched = 0;                 // launches of an unknown program
  uint64_t unknown_operations = 0;        // operation events of unknown programs
  uint64_t untimed_operations = 0;        // of these, those of programs past the limit
  uint64_t damaged_windows = 0;
};

/// All programs and their sampled times. Any thread; one mutex, never taken by the dispatch hook.
/// It is held while a window is joined or the tree is written, hence `WithoutGil`.
class Attribution {
public:
  static Attribution &instance();

  /// Add a program; `functions` are the functions in whose call it was compiled.
  uint32_t addProgram(WithoutGil, Program program, const std::vector<uint32_t> &functions,
                      uint64_t signature, std::string label);
  /// Empty where there is none.
  LabelledProgram program(WithoutGil, uint32_t uid) const;
  ProgramCounts programCounts(WithoutGil) const;
  void addWindow(WithoutGil, TraceWindow window, std::vector<Launch> launches);
  void addDamagedWindow(WithoutGil);
  /// Call `use` with an operation, found by the program's number in this process, otherwise by the
  /// name of the module, with the lock held. Null when there is none.
  template <typename Use>
  Node *withOperation(WithoutGil, int64_t program_id, const std::string &module,
                      const std::string &name, const Use &use) const {
    std::lock_guard<Mutex> lock(mutex_);
    const Operation *operation = programs_.findOperation(program_id, module, name);
    return operation ? use(*operation) : nullptr;
  }

  WindowCounts counts(WithoutGil) const;
  /// Counts of the last window.
  struct LastWindow {
    uint64_t runs = 0;
    uint64_t launches = 0;
    uint64_t waiting = 0; // programs with a run that does not fit into the window
    uint64_t scarce = 0;  // programs that ran, with fewer than `kEnoughRuns` whole runs so far
    uint64_t events = 0;
  };
  LastWindow lastWindow(WithoutGil) const;
  /// A copy of what is known of collectives in programs.
  CollectiveRuns::Summary collectives(WithoutGil) const {
    std::lock_guard<Mutex> lock(mutex_);
    return collectives_.summary();
  }
  void clear(WithoutGil);
  /// In a forked child: forget everything, without the lock and without giving memory back, because
  /// another thread may have been changing it. A fork does not wait for this lock. Nothing of the
  /// parent's is needed: each session begins with nothing.
  void abandonInChild() { new (this) Attribution(); }

  // -- for the tree's writer, with the lock held
  std::unique_lock<Mutex> lock(WithoutGil) const { return std::unique_lock<Mutex>(mutex_); }
  const std::map<NodeRef, std::map<uint32_t, RunTotals>> &totals() const { return totals_; }
  /// The first run of each program, by its launcher. It represents no other run, because caches
  /// were cold.
  const std::map<NodeRef, std::map<uint32_t, RunTotals>> &firstRuns() const { return first_runs_; }
  const ProgramTable &programs() const { return programs_; }
  /// Estimates for programs without a whole run, over all their launches.
  std::map<uint32_t, RunParts::Sum> parts() const;

private:
  struct Executed;

  std::unordered_map<int64_t, int64_t>
  threadsOfLines(const TraceWindow &window,
                 std::unordered_map<int64_t, std::vector<Launch *>> &by_thread);
  void join(const TraceWindow &window, std::vector<Executed> &executed);
  void joinInline(const TraceWindow &window, const std::vector<uint32_t> &programs,
                  std::vector<Executed> &executed, std::vector<bool> &is_taken);
  void joinInOrder(const TraceWindow &window, const std::vector<uint32_t> &programs,
                   std::vector<Executed> &executed, std::vector<bool> &is_taken);
  void credit(const TraceWindow &window, const Executed &launch, uint32_t program, const Run *run);
  void countWhole(uint32_t program);
  void addUp(const std::vector<Executed> &executed);
  void creditRest(const TraceWindow &window, const std::vector<uint32_t> &programs,
                  const std::vector<bool> &is_taken);

  mutable Mutex mutex_;
  ProgramTable programs_;
  CollectiveRuns collectives_;
  // (line of the tracer, thread) -> executions on the line that lie inside a call of the thread
  std::map<std::pair<int64_t, int64_t>, uint64_t> votes_;
  std::map<NodeRef, std::map<uint32_t, RunTotals>> totals_;
  std::map<NodeRef, std::map<uint32_t, RunTotals>> window_totals_; // of the last window
  std::map<NodeRef, uint64_t> calls_before_; // of each node, at the last window that measured it
  std::map<NodeRef, std::map<uint32_t, RunTotals>> first_runs_;
  RunParts parts_;            // of programs without enough whole runs
  bool reports_ends_ = false; // the runtime tells the ends of runs
  WindowCounts counts_;
  std::vector<uint64_t> whole_runs_; // by program
  LastWindow last_;
  std::unordered_map<uint32_t, uint64_t> last_whole_runs_; // of the last window, by program
};

} // namespace deepcontext::jax
