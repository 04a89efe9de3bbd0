#include "jax/attribution.h"

#include <algorithm>

#include "core/clock.h"
#include "jax/device_waits.h"
#include "jax/function_table.h"

namespace deepcontext::jax {

namespace {

constexpr uint64_t kClockSlackNs = 2000; // between the clock readings of the hook and the tracer

/// The innermost of one thread's calls that contains `time`, or null. `calls` are by start.
Launch *containing(std::vector<Launch *> &calls, uint64_t time_ns) {
  auto after =
      std::upper_bound(calls.begin(), calls.end(), time_ns + kClockSlackNs,
                       [](uint64_t time, const Launch *call) { return time < call->start_ns; });
  while (after != calls.begin()) {
    --after;
    if ((*after)->end_ns + kClockSlackNs >= time_ns) {
      return *after;
    }
  }
  return nullptr;
}

template <typename Container, typename Value>
bool contains(const Container &in, const Value &value) {
  return std::find(in.begin(), in.end(), value) != in.end();
}

/// The program whose runs took most of the window, cut runs included.
uint32_t longest(const TraceWindow &window, const std::vector<uint32_t> &programs) {
  std::unordered_map<uint32_t, uint64_t> spent_ns;
  uint32_t found = 0;
  for (size_t i = 0; i < window.runs.size(); ++i) {
    const Run &run = window.runs[i];
    spent_ns[programs[i]] += run.end_ns > run.start_ns ? run.end_ns - run.start_ns : 0;
    found = i == 0 || spent_ns[programs[i]] > spent_ns[found] ? programs[i] : found;
  }
  return found;
}

} // namespace

/// A launch with its execution, and the program that it ran, if known.
struct Attribution::Executed {
  const Launch *launch = nullptr;
  uint64_t start_ns = 0;
  int64_t line = 0;
  std::vector<uint32_t> candidates;
  bool is_joined = false;
};

Attribution &Attribution::instance() {
  static Attribution *const attribution = new Attribution();
  return *attribution;
}

uint32_t Attribution::addProgram(WithoutGil, Program program,
                                 const std::vector<uint32_t> &functions, uint64_t signature,
                                 std::string label) {
  std::lock_guard<Mutex> lock(mutex_);
  uint32_t uid = programs_.add(std::move(program), functions, signature, std::move(label));
  if (!functions.empty()) { // the outermost object of the function: its calls are counted
    collectives_.add(*programs_[uid].program, functions.back());
  }
  return uid;
}

LabelledProgram Attribution::program(WithoutGil, uint32_t uid) const {
  std::lock_guard<Mutex> lock(mutex_);
  return uid < programs_.size() ? programs_[uid] : LabelledProgram{};
}

void Attribution::credit(const TraceWindow &window, const Executed &launch, uint32_t program,
                         const Run *run) {
  RunTotals &totals = window_totals_[launch.launch->node][program];
  ++totals.launches;
  if (!run || !run->is_complete) {
    ++counts_.cut_at_end;
    if (run && whole_runs_[program] < kEnoughRuns) {
      parts_.add(*programs_[program].program, *run, window, /*is_launched_inside=*/true);
    }
    return;
  }
  bool is_first = whole_runs_[program] == 0;
  (is_first ? first_runs_[launch.launch->node][program] : totals)
      .add(*programs_[program].program, *run, weightOf(*run, window));
  ++counts_.joined;
  collectives_.join(program, run->run_id, launch.launch->number, launch.launch->node.recorder,
                    launch.launch->node.node);
  countWhole(program);
}

void Attribution::countWhole(uint32_t program) {
  ++last_whole_runs_[program];
  if (++whole_runs_[program] == kEnoughRuns) {
    parts_.drop(program);
  }
}

/// Runs on the launching thread, inside the call.
void Attribution::joinInline(const TraceWindow &window, const std::vector<uint32_t> &programs,
                             std::vector<Executed> &executed, std::vector<bool> &is_taken) {
  for (Executed &launch : executed) {
    auto first =
        std::lower_bound(window.runs.begin(), window.runs.end(), launch.start_ns,
                         [](const Run &run, uint64_t time) { return run.start_ns < time; });
    for (auto run = first; run != window.runs.end() && run->start_ns <= launch.launch->end_ns;
         ++run) {
      auto index = static_cast<size_t>(run - window.runs.begin());
      bool fits = run->first_line == launch.line &&
                  (launch.candidates.empty() || contains(launch.candidates, programs[index]));
      if (fits && !is_taken[index]) {
        is_taken[index] = true;
        launch.is_joined = true;
        credit(window, launch, programs[index], &*run);
        break;
      }
    }
  }
}

/// A program's runs start in the order of its launches. Runs launched before the window come first;
/// `skipped`, their number, is the smallest for which no run starts before its launch.
void Attribution::joinInOrder(const TraceWindow &window, const std::vector<uint32_t> &programs,
                              std::vector<Executed> &executed, std::vector<bool> &is_taken) {
  std::map<std::vector<uint32_t>, std::vector<Executed *>> groups;
  for (Executed &launch : executed) {
    if (!launch.is_joined) {
      groups[launch.candidates].push_back(&launch);
    }
  }
  for (const auto &group : groups) {
    const std::vector<uint32_t> &candidates = group.first;
    const std::vector<Executed *> &launches = group.second;
    if (candidates.empty()) {
      counts_.unmatched += launches.size();
      continue;
    }
    std::vector<size_t> runs;
    for (size_t i = 0; i < window.runs.size(); ++i) {
      if (!is_taken[i] && contains(candidates, programs[i])) {
        runs.push_back(i);
      }
    }
    size_t skipped = 0;
    auto fits = [&] {
      for (size_t i = 0; i < launches.size() && i + skipped < runs.size(); ++i) {
        if (window.runs[runs[i + skipped]].start_ns + kClockSlackNs < launches[i]->start_ns) {
          return false;
        }
      }
      return true;
    };
    while (skipped < runs.size() && !fits()) {
      ++skipped;
    }
    for (size_t i = 0; i < launches.size(); ++i) {
      if (i + skipped < runs.size()) {
        size_t run = runs[i + skipped];
        is_taken[run] = true;
        credit(window, *launches[i], programs[run], &window.runs[run]);
      } else if (candidates.size() == 1) {
        credit(window, *launches[i], candidates.front(), nullptr);
      } else {
        ++counts_.cut_at_end;
      }
    }
  }
}

void Attribution::join(const TraceWindow &window, std::vector<Executed> &executed) {
  std::vector<uint32_t> programs;
  for (const Run &run : window.runs) {
    programs.push_back(programs_.ofRun(run).uid);
  }
  for (Executed &launch : executed) {
    launch.candidates = programs_.candidates(launch.launch->function, launch.launch->signature);
  }
  whole_runs_.resize(programs_.size());
  std::vector<bool> is_taken(window.runs.size(), false);
  joinInline(window, programs, executed, is_taken);
  joinInOrder(window, programs, executed, is_taken);
  creditRest(window, programs, is_taken);
  addUp(executed);
  CollectiveRuns::Orders orders;
  for (const Executed &each : executed) {
    const LaunchNumber &number = each.launch->number;
    orders[{Collectives::instance().indexOf(each.launch->function), number.of_function}] =
        number.order;
  }
  collectives_.read(window, programs, orders);
  last_.runs = last_whole_runs_[longest(window, programs)];
  std::map<uint32_t, uint64_t> longest_ns;
  for (size_t i = 0; i < window.runs.size(); ++i) {
    const Run &run = window.runs[i];
    uint64_t &known_ns = longest_ns[programs[i]];
    known_ns = std::max(known_ns, run.end_ns > run.start_ns ? run.end_ns - run.start_ns : 0);
  }
  for (const auto &[program, run_ns] : longest_ns) {
    bool is_scarce = whole_runs_[program] < kEnoughRuns;
    // Short runs that were seen whole say nothing of one that fills the window.
    bool fills = last_whole_runs_[program] == 0 && 2 * run_ns > window.end_ns - window.start_ns;
    last_.waiting += whole_runs_[program] == 0 || (is_scarce && fills);
    last_.scarce += is_scarce;
  }
}

/// Credit runs that were launched before the window to an unknown launcher; they still measure
/// their program. A run that began before the window lacks operations, so a run counts as whole
/// only when the run before it ended in the window.
void Attribution::creditRest(const TraceWindow &window, const std::vector<uint32_t> &programs,
                             const std::vector<bool> &is_taken) {
  std::unordered_map<uint32_t, uint64_t> last_end_ns;
  for (size_t i = 0; i < window.runs.size(); ++i) {
    const Run &run = window.runs[i];
    uint32_t program = programs[i];
    auto before = last_end_ns.find(program);
    if (!is_taken[i]) {
      bool is_whole =
          run.is_complete && before != last_end_ns.end() && before->second <= run.start_ns;
      if (is_whole) {
        window_totals_[NodeRef::unknown()][program].add(*programs_[program].program, run,
                                                        weightOf(run, window));
        ++counts_.without_launch;
        countWhole(program);
      } else {
        ++counts_.cut_at_start;
        if (whole_runs_[program] < kEnoughRuns) {
          parts_.add(*programs_[program].program, run, window, /*is_launched_inside=*/false);
        }
      }
    }
    if (run.is_complete) {
      last_end_ns[program] = run.end_ns;
    }
  }
}

/// A window's runs represent all calls of their node since the last window. Otherwise the first
/// second of a program, which is slower than the rest and sampled without a gap, would weigh more.
void Attribution::addUp(const std::vector<Executed> &executed) {
  std::map<NodeRef, uint64_t> calls_so_far;
  for (const Executed &each : executed) { // by start
    calls_so_far[each.launch->node] = each.launch->calls;
  }
  double calls = 0, runs = 0; // of all nodes; for runs whose launcher is unknown
  for (const auto &[node, programs] : window_totals_) { // the unknown one comes last
    uint64_t node_runs = 0;
    for (const auto &[program, totals] : programs) {
      node_runs += totals.runs;
    }
    double factor = runs > 0 ? calls / runs : 1;
    auto so_far = calls_so_far.find(node);
    if (so_far != calls_so_far.end() && node_runs > 0) {
      uint64_t &before = calls_before_[node];
      // Without calls since, the runs were launched inside other calls.
      uint64_t since = so_far->second > before ? so_far->second - before : node_runs;
      before = so_far->second;
      factor = static_cast<double>(since) / static_cast<double>(node_runs);
      calls += static_cast<double>(since);
      runs += static_cast<double>(node_runs);
    }
    for (const auto &[program, totals] : programs) {
      totals_[node][program].add(totals, factor);
    }
  }
}

/// The tracer has its own numbers for threads: a line is the thread whose calls contain most of the
/// line's executions, over all windows so far.
std::unordered_map<int64_t, int64_t>
Attribution::threadsOfLines(const TraceWindow &window,
                            std::unordered_map<int64_t, std::vector<Launch *>> &by_thread) {
  for (const Execution &execution : window.executions) {
    for (auto &[thread, calls] : by_thread) {
      votes_[{execution.line, thread}] += containing(calls, execution.start_ns) != nullptr;
    }
  }
  std::unordered_map<int64_t, int64_t> threads;
  std::unordered_map<int64_t, uint64_t> most;
  for (const auto &[pair, votes] : votes_) {
    if (votes > most[pair.first]) {
      most[pair.first] = votes;
      threads[pair.first] = pair.second;
    }
  }
  return threads;
}

void Attribution::addWindow(WithoutGil, TraceWindow window, std::vector<Launch> launches) {
  std::lock_guard<Mutex> lock(mutex_);
  reports_ends_ |= window.reports_ends;
  for (Run &run : window.runs) { // a window inside one long run sees no end at all
    run.is_complete &= window.reports_ends || !reports_ends_;
  }
  parts_.beginWindow(window);
  std::sort(launches.begin(), launches.end(),
            [](const Launch &left, const Launch &right) { return left.start_ns < right.start_ns; });
  std::unordered_map<int64_t, std::vector<Launch *>> by_thread;
  for (Launch &launch : launches) {
    by_thread[launch.thread].push_back(&launch);
  }
  std::unordered_map<int64_t, int64_t> threads = threadsOfLines(window, by_thread);
  std::map<const Launch *, const Execution *> first_execution;
  last_ = {};
  last_whole_runs_.clear();
  window_totals_.clear();
  for (const Execution &execution : window.executions) {
    Launch *launch = containing(by_thread[threads[execution.line]], execution.start_ns);
    if (launch) {
      first_execution.emplace(launch, &execution); // the first of several devices
    } else {
      ++counts_.executions_without_launch;
    }
  }
  std::vector<Executed> executed;
  for (const auto &[launch, execution] : first_execution) {
    executed.push_back({launch, execution->start_ns, execution->line, {}, false});
  }
  std::sort(executed.begin(), executed.end(), [](const Executed &left, const Executed &right) {
    return left.start_ns < right.start_ns;
  });
  ++counts_.windows;
  counts_.window_ns += window.end_ns > window.start_ns ? window.end_ns - window.start_ns : 0;
  counts_.events += window.events;
  counts_.operation_events += window.operation_events;
  counts_.executions += window.executions.size();
  counts_.launches += executed.size();
  counts_.runs += window.runs.size();
  last_.launches = executed.size();
  last_.events = window.events;
  join(window, executed);
  parts_.endWindow(window, DeviceWaits::instance());
}

std::map<uint32_t, RunParts::Sum> Attribution::parts() const {
  return parts_.sums(clockNs(CLOCK_REALTIME), DeviceWaits::instance());
}

ProgramCounts Attribution::programCounts(WithoutGil) const {
  std::lock_guard<Mutex> lock(mutex_);
  return programs_.counts();
}

void Attribution::addDamagedWindow(WithoutGil) {
  std::lock_guard<Mutex> lock(mutex_);
  ++counts_.damaged_windows;
}

WindowCounts Attribution::counts(WithoutGil) const {
  std::lock_guard<Mutex> lock(mutex_);
  WindowCounts counts = counts_;
  counts.unknown_operations = programs_.unknownOperations();
  counts.untimed_operations = programs_.untimedOperations();
  return counts;
}

Attribution::LastWindow Attribution::lastWindow(WithoutGil) const {
  std::lock_guard<Mutex> lock(mutex_);
  return last_;
}

void Attribution::clear(WithoutGil) {
  FunctionTable::instance().forgetPrograms();
  std::lock_guard<Mutex> lock(mutex_);
  programs_ = {};
  collectives_ = {};
  votes_.clear();
  totals_.clear();
  first_runs_.clear();
  parts_ = {};
  reports_ends_ = false;
  whole_runs_.clear();
  last_whole_runs_.clear();
  window_totals_.clear();
  calls_before_.clear();
  counts_ = {};
  last_ = {};
}

} // namespace deepcontext::jax
