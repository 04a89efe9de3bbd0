#include "jax/collective_runs.h"

#include <algorithm>

#include "jax/operation_path.h"

namespace deepcontext::jax {

namespace {

constexpr size_t kMostGroups = 32;
constexpr size_t kMostOperations = 2; // before a collective
static_assert(kMostOperations <= Stretch::kMostParts);

} // namespace

struct CollectiveRuns::Event {
  const Place *place;
  const OperationTimes *times;
};

/// Own time up to now, of all groups, in one window.
struct CollectiveRuns::Stretches {
  struct OfGroup {
    bool is_known = false; // a collective of the group was seen
    uint64_t own_before_ns = 0;
  };
  bool is_known = false; // the end of a collective was seen
  uint64_t last_end_ns = 0;
  uint64_t own_ns = 0;
  std::unordered_map<uint16_t, OfGroup> groups;
};

void CollectiveRuns::add(const Program &program, uint32_t function) {
  OfProgram found;
  found.program = &program;
  bool is_unknown = false;
  std::map<std::vector<uint32_t>, uint32_t> counts;
  for (const Operation &operation : program.operations) {
    bool is_shared = operation.processes.size() > 1;
    is_unknown = is_unknown || operation.is_exchange_of_unknown;
    counts[operation.processes] += is_shared;
  }
  if (std::none_of(counts.begin(), counts.end(), [](auto &each) { return each.second > 0; })) {
    left_out_ += is_unknown;
    return;
  }
  left_out_ += is_unknown;
  found.function = Collectives::instance().watch(function);
  if (found.function == Collectives::kMostFunctions) {
    ++left_out_;
    return;
  }
  std::map<std::vector<uint32_t>, uint32_t> seen;
  for (const Operation &operation : program.operations) {
    if (operation.processes.size() < 2) {
      continue;
    }
    uint16_t group = groupOf(function, found.function, operation.processes);
    if (group == kMostGroups) {
      ++left_out_;
      return;
    }
    uint32_t count = counts[operation.processes];
    uint32_t of_run = std::min(count, Collectives::kMostOfRun);
    if (groups_[group].of_run != of_run) { // another program of the function had another number
      Collectives::instance().forgetRows(group);
      groups_[group].of_run = of_run;
    }
    auto code = static_cast<uint8_t>(Collectives::operationOf(operation.opcode));
    uint32_t row = seen[operation.processes]++ * of_run / count;
    found.places.push_back({operation.name, code, group, row, operation.payload_bytes});
  }
  programs_[program.uid] = std::move(found);
}

uint16_t CollectiveRuns::groupOf(uint32_t function, uint32_t index,
                                 const std::vector<uint32_t> &members) {
  for (size_t i = 0; i < groups_.size(); ++i) {
    if (groups_[i].index == index && groups_[i].members == members) {
      return static_cast<uint16_t>(i);
    }
  }
  if (groups_.size() < kMostGroups) {
    groups_.push_back({function, index, members, 0, false});
    return static_cast<uint16_t>(groups_.size() - 1);
  }
  return static_cast<uint16_t>(kMostGroups);
}

void CollectiveRuns::join(uint32_t program, int64_t run_id, LaunchNumber number, uint32_t recorder,
                          uint32_t node) {
  auto found = programs_.find(program);
  if (found == programs_.end() || number.of_function == LaunchNumber::kNone) {
    return;
  }
  OfProgram &known = found->second;
  int64_t base = run_id - static_cast<int64_t>(number.of_function);
  if (known.is_known && base > known.base) {
    forget(known.function, /*for_ever=*/false);
  }
  known.base = known.is_known ? std::max(known.base, base) : base;
  known.is_known = true;
  known.recorder = recorder;
  known.node = node;
}

void CollectiveRuns::read(const TraceWindow &window, const std::vector<uint32_t> &programs,
                          const Orders &orders) {
  Stretches stretches;
  bool is_alone = Collectives::instance().watchedCount() == 1;
  for (size_t i = 0; i < window.runs.size(); ++i) {
    const Run &run = window.runs[i];
    auto found = programs_.find(programs[i]);
    if (found == programs_.end()) {
      continue;
    }
    OfProgram &program = found->second;
    int64_t number = run.run_id - program.base;
    if (!run.is_complete || !program.is_known || number < 0 || number >= LaunchNumber::kNone) {
      stretches = {};
      continue;
    }
    auto of_function = static_cast<uint32_t>(number);
    program.first = std::min(program.first, of_function);
    program.last = std::max(program.last, of_function);
    if (isInterleaved(program)) {
      forget(program.function, /*for_ever=*/true);
      continue;
    }
    auto launch = orders.find({program.function, of_function});
    uint32_t order = is_alone                 ? of_function
                     : launch != orders.end() ? launch->second
                                              : LaunchNumber::kNone;
    readRun(run, program, of_function, order, &stretches);
  }
}

void CollectiveRuns::readRun(const Run &run, const OfProgram &program, uint32_t number,
                             uint32_t order, Stretches *stretches) {
  std::vector<Event> events = eventsOf(run, program);
  std::map<std::pair<uint16_t, uint32_t>, ProgramCollective> rows;
  std::map<std::pair<uint16_t, uint32_t>, bool> is_whole; // the own time is known
  uint32_t place_in_run = 0;
  uint64_t last_ps = 0;
  for (const Event &event : events) {
    const OperationTimes &times = *event.times;
    uint64_t start_ns = times.first_ps / 1000, end_ns = times.last_ps / 1000;
    if (stretches->is_known && start_ns > stretches->last_end_ns) {
      stretches->own_ns += start_ns - stretches->last_end_ns;
    }
    stretches->last_end_ns = std::max(stretches->last_end_ns, end_ns);
    Stretches::OfGroup &of_group = stretches->groups[event.place->group];
    auto key = std::make_pair(event.place->group, event.place->row);
    auto [row, is_new] = rows.try_emplace(key);
    if (is_new) {
      row->second.group = event.place->group;
      row->second.operation = event.place->operation;
      row->second.number = number;
      row->second.number_of_its = number * groups_[event.place->group].of_run + event.place->row;
      row->second.order = order * Collectives::kOrdersOfRun +
                          std::min(place_in_run++, Collectives::kOrdersOfRun - 1);
      is_whole[key] = true;
      if (order != LaunchNumber::kNone) {
        Collectives::instance().add(row->second.order, number,
                                    workOf(run, program, last_ps, times.first_ps));
      }
    }
    last_ps = std::max(last_ps, times.last_ps);
    is_whole[key] = is_whole[key] && stretches->is_known && of_group.is_known;
    row->second.own_ns += stretches->own_ns - of_group.own_before_ns;
    // Several devices wait at the same time; a loop waits several times.
    row->second.duration_ns += std::min(times.total_ps, times.last_ps - times.first_ps) / 1000;
    row->second.bytes += event.place->bytes * times.count;
    of_group = {true, stretches->own_ns};
    stretches->is_known = true;
  }
  for (const auto &[key, row] : rows) {
    if (is_whole[key] && order != LaunchNumber::kNone && !groups_[key.first].is_left_out) {
      Collectives::instance().add(row);
    }
  }
}

/// By start.
std::vector<CollectiveRuns::Event> CollectiveRuns::eventsOf(const Run &run,
                                                            const OfProgram &program) const {
  std::vector<Event> events;
  for (const Place &place : program.places) {
    auto times = run.operations.find(place.name);
    if (times != run.operations.end()) {
      events.push_back({&place, &times->second});
    }
  }
  std::sort(events.begin(), events.end(), [](const Event &left, const Event &right) {
    return left.times->first_ps < right.times->first_ps;
  });
  return events;
}

/// The longest operations that began between two collectives of a run, without those that run
/// others.
Stretch::Parts CollectiveRuns::workOf(const Run &run, const OfProgram &program, uint64_t after_ps,
                                      uint64_t before_ps) {
  std::vector<std::pair<uint64_t, const Operation *>> longest;
  for (const auto &[name, times] : run.operations) {
    auto known = program.program->by_name.find(name);
    if (known == program.program->by_name.end() || times.first_ps < after_ps ||
        times.first_ps >= before_ps) {
      continue;
    }
    const Operation &operation = program.program->operations[known->second];
    if (operation.nested.empty() && operation.processes.empty()) {
      longest.emplace_back(times.total_ps / 1000, &operation);
    }
  }
  size_t count = std::min(longest.size(), kMostOperations);
  std::partial_sort(longest.begin(), longest.begin() + static_cast<std::ptrdiff_t>(count),
                    longest.end(),
                    [](auto &left, auto &right) { return left.first > right.first; });
  if (!paths_) {
    paths_ = &RecorderRegistry::instance().makeDetached("jax before collectives");
  }
  ThreadTree &tree = paths_->tree;
  Stretch::Parts parts;
  for (size_t i = 0; i < count; ++i) {
    Node *launch = tree.child(tree.root(), FrameKind::kLink, program.recorder, program.node);
    Node *node = writeOperationPath(tree, launch, *longest[i].second);
    parts[i] = {node, longest[i].first, Doing::kOperator};
  }
  return parts;
}

/// Whether runs of another program of the function lie between this one's; then the difference of
/// the numbers is not constant.
bool CollectiveRuns::isInterleaved(const OfProgram &program) const {
  return std::any_of(programs_.begin(), programs_.end(), [&](const auto &each) {
    const OfProgram &other = each.second;
    return &other != &program && other.function == program.function &&
           other.first <= program.last && program.first <= other.last;
  });
}

void CollectiveRuns::forget(uint32_t function, bool for_ever) {
  for (size_t i = 0; i < groups_.size(); ++i) {
    if (groups_[i].index == function) {
      Collectives::instance().forgetRows(static_cast<uint16_t>(i));
      groups_[i].is_left_out = groups_[i].is_left_out || for_ever;
    }
  }
}

} // namespace deepcontext::jax
