#include "jax/attribution.h"

#include <algorithm>

namespace deepcontext::jax {

namespace {

constexpr uint64_t kMostPlaceholders = 1000;
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

/// A launch with its execution, and the program it is known to have run.
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
  auto uid = static_cast<uint32_t>(programs_.size());
  program.uid = uid;
  by_module_[plainName(program.module)].push_back(uid);
  resolved_.erase({program.hlo_id, program.module});
  ++program_counts_.programs;
  program_counts_.without_operations += !program.has_operations;
  program_counts_.bytes += program.sizeBytes();
  programs_.push_back(std::make_shared<const Program>(std::move(program)));
  labels_.push_back(std::move(label));
  for (uint32_t function : functions) {
    by_function_[function].push_back({uid, signature});
    FunctionTable::instance().at(function).program_count.fetch_add(1, std::memory_order_relaxed);
  }
  return uid;
}

LabelledProgram Attribution::program(WithoutGil, uint32_t uid) const {
  std::lock_guard<Mutex> lock(mutex_);
  return uid < programs_.size() ? LabelledProgram{programs_[uid], labels_[uid]} : LabelledProgram{};
}

std::vector<uint32_t> Attribution::candidates(uint32_t function, uint64_t signature) const {
  std::vector<uint32_t> all, same_arguments;
  auto bound = by_function_.find(function);
  if (bound != by_function_.end()) {
    for (const Binding &binding : bound->second) {
      all.push_back(binding.program);
      if (signature != 0 && binding.signature == signature) {
        same_arguments.push_back(binding.program);
      }
    }
  }
  if (!same_arguments.empty()) {
    return same_arguments;
  }
  if (all.empty()) { // compiled ahead of time or before the session: by name
    auto named = by_module_.find("jit" + FunctionTable::instance().at(function).plain_name);
    if (named != by_module_.end()) {
      all = named->second;
    }
  }
  return all;
}

/// Past kMostPlaceholders, runs are counted under one placeholder program, without operations.
const Program *Attribution::placeholder(const Run &run) {
  ++placeholders_;
  Program program;
  program.module = run.module;
  program.hlo_id = run.program_id;
  for (const auto &[name, times] : run.operations) {
    Operation operation;
    operation.name = name;
    operation.primitive = sharedText(name.substr(0, name.find('.')));
    program.by_name.emplace(name, static_cast<uint32_t>(program.operations.size()));
    program.operations.push_back(std::move(operation));
  }
  program.uid = static_cast<uint32_t>(programs_.size());
  program_counts_.bytes += program.sizeBytes();
  by_module_[plainName(program.module)].push_back(program.uid);
  programs_.push_back(std::make_shared<const Program>(std::move(program)));
  labels_.emplace_back();
  return programs_.back().get();
}

/// The program of a run: by its number, or by name and operations for a program that came from the
/// persistent cache with another number.
const Program *Attribution::programOf(const Run &run) {
  auto key = std::make_pair(run.program_id, run.module);
  auto known = resolved_.find(key);
  if (known != resolved_.end()) {
    return programs_[known->second].get();
  }
  auto has_operations = [&](const Program &program) {
    if (!program.has_operations) {
      return program.hlo_id == run.program_id;
    }
    return std::all_of(run.operations.begin(), run.operations.end(), [&](const auto &operation) {
      return program.by_name.count(operation.first) > 0;
    });
  };
  const std::vector<uint32_t> &named = by_module_[plainName(run.module)];
  const Program *found = nullptr;
  for (auto uid = named.rbegin(); uid != named.rend(); ++uid) { // the latest first
    const Program &program = *programs_[*uid];
    if (!has_operations(program)) {
      continue;
    }
    bool is_same = program.hlo_id == run.program_id;
    if (is_same || !found) {
      found = &program;
    }
    if (is_same) {
      break;
    }
  }
  if (!found) {
    for (const auto &[name, times] : run.operations) {
      counts_.unknown_operations += times.count;
    }
    found = placeholders_ < kMostPlaceholders ? placeholder(run) : programs_.back().get();
  }
  resolved_.emplace(std::move(key), found->uid);
  return found;
}

const Operation *Attribution::findOperation(int64_t program_id, const std::string &module,
                                            const std::string &name) const {
  auto named = by_module_.find(plainName(module));
  if (named == by_module_.end()) {
    return nullptr;
  }
  const Operation *found = nullptr;
  for (auto uid = named->second.rbegin(); uid != named->second.rend(); ++uid) { // the latest first
    const Program &program = *programs_[*uid];
    auto operation = program.by_name.find(name);
    if (operation == program.by_name.end()) {
      continue;
    }
    if (program.hlo_id == program_id) {
      return &program.operations[operation->second];
    }
    found = found ? found : &program.operations[operation->second];
  }
  return found;
}

void Attribution::credit(const TraceWindow &window, const Executed &launch, uint32_t program,
                         const Run *run) {
  RunTotals &totals = window_totals_[launch.launch->node][program];
  ++totals.launches;
  if (!run) {
    ++counts_.cut_at_end;
    return;
  }
  if (!run->is_complete) {
    ++counts_.cut_at_end;
    return;
  }
  bool is_first = whole_runs_[program] == 0;
  (is_first ? first_runs_[launch.launch->node][program] : totals)
      .add(*programs_[program], *run, weightOf(*run, window));
  ++counts_.joined;
  ++last_whole_runs_[program];
  ++whole_runs_[program];
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
    programs.push_back(programOf(run)->uid);
  }
  for (Executed &launch : executed) {
    launch.candidates = candidates(launch.launch->function, launch.launch->signature);
  }
  whole_runs_.resize(programs_.size());
  std::vector<bool> is_taken(window.runs.size(), false);
  joinInline(window, programs, executed, is_taken);
  joinInOrder(window, programs, executed, is_taken);
  creditRest(window, programs, is_taken);
  addUp(executed);
  last_.runs = last_whole_runs_[longest(window, programs)];
  std::set<uint32_t> seen(programs.begin(), programs.end());
  for (uint32_t program : seen) {
    last_.waiting += whole_runs_[program] == 0;
    last_.scarce += whole_runs_[program] < kEnoughRuns;
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
        window_totals_[NodeRef::unknown()][program].add(*programs_[program], run,
                                                        weightOf(run, window));
        ++counts_.without_launch;
        ++last_whole_runs_[program];
        ++whole_runs_[program];
      } else {
        ++counts_.cut_at_start;
      }
    }
    if (run.is_complete) {
      last_end_ns[program] = run.end_ns;
    }
  }
}

/// A window's runs stand for all calls of their node since the last window, because the first
/// second of a program, which is slower than the rest and sampled without a gap, must not weigh
/// more.
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

void Attribution::addWindow(WithoutGil, const TraceWindow &window, std::vector<Launch> launches) {
  std::lock_guard<Mutex> lock(mutex_);
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
}

ProgramCounts Attribution::programCounts(WithoutGil) const {
  std::lock_guard<Mutex> lock(mutex_);
  return program_counts_;
}

void Attribution::addDamagedWindow(WithoutGil) {
  std::lock_guard<Mutex> lock(mutex_);
  ++counts_.damaged_windows;
}

WindowCounts Attribution::counts(WithoutGil) const {
  std::lock_guard<Mutex> lock(mutex_);
  return counts_;
}

Attribution::LastWindow Attribution::lastWindow(WithoutGil) const {
  std::lock_guard<Mutex> lock(mutex_);
  return last_;
}

void Attribution::clear(WithoutGil) {
  FunctionTable::instance().forgetPrograms();
  std::lock_guard<Mutex> lock(mutex_);
  programs_.clear();
  labels_.clear();
  program_counts_ = {};
  by_module_.clear();
  by_function_.clear();
  resolved_.clear();
  votes_.clear();
  totals_.clear();
  first_runs_.clear();
  placeholders_ = 0;
  whole_runs_.clear();
  last_whole_runs_.clear();
  window_totals_.clear();
  calls_before_.clear();
  counts_ = {};
  last_ = {};
}

} // namespace deepcontext::jax
