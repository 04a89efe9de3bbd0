#include "sampling/perf_counters.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <linux/perf_event.h>
#include <unistd.h>

#include "core/internal_thread.h"
#include "core/system_call.h"
#include "sampling/kernel_threads.h"

namespace deepcontext {

namespace {

int openEvent(const PerfEvent &event, bool is_user_only, int thread, int leader) {
  perf_event_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  attributes.size = sizeof attributes;
  attributes.type = event.type;
  attributes.config = event.config;
  attributes.exclude_kernel = is_user_only;
  attributes.exclude_hv = is_user_only;
  attributes.read_format =
      PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return static_cast<int>(
      systemCall(SYS_perf_event_open, &attributes, thread, -1, leader, PERF_FLAG_FD_CLOEXEC));
}

PerfAnswer ask(const PerfEvent &event) {
  PerfAnswer answer{&event, 0, false};
  int file = openEvent(event, false, 0, -1);
  if (file < 0 && (errno == EACCES || errno == EPERM) && !event.is_of_kernel) {
    answer.is_user_only = true;
    file = openEvent(event, true, 0, -1);
  }
  if (file < 0) {
    answer.error = errno;
  } else {
    close(file);
  }
  return answer;
}

/// What read(2) returns for a group. Source: linux/perf_event.h, perf_event_read_format.
struct GroupReading {
  uint64_t count;
  uint64_t enabled_ns;
  uint64_t running_ns;
  uint64_t values[kPerfEvents];
};

} // namespace

const std::array<PerfEvent, kPerfEvents> &perfEvents() {
  constexpr uint32_t hardware = PERF_TYPE_HARDWARE;
  constexpr uint32_t software = PERF_TYPE_SOFTWARE;
  static const std::array<PerfEvent, kPerfEvents> events{{
      {"cycles", "cycle_count", hardware, PERF_COUNT_HW_CPU_CYCLES, false, false},
      {"instructions", "instruction_count", hardware, PERF_COUNT_HW_INSTRUCTIONS, false, false},
      {"cache-misses", "cache_miss_count", hardware, PERF_COUNT_HW_CACHE_MISSES, false, false},
      {"branch-misses", "branch_miss_count", hardware, PERF_COUNT_HW_BRANCH_MISSES, false, false},
      {"page-faults", "page_fault_count", software, PERF_COUNT_SW_PAGE_FAULTS, false, false},
      {"context-switches", "context_switch_count", software, PERF_COUNT_SW_CONTEXT_SWITCHES, true,
       true},
  }};
  return events;
}

std::vector<PerfAnswer> askForPerfEvents(const std::vector<std::string> &names) {
  std::vector<PerfAnswer> answers;
  for (const std::string &name : names) {
    for (const PerfEvent &event : perfEvents()) {
      if (name == event.name) {
        answers.push_back({&event, EAGAIN, false}); // the answer where no thread can be started
      }
    }
  }
  std::thread asking = startInternalThread([&] {
    std::string reason;
    bool is_separate = separateDescriptors(&reason);
    for (PerfAnswer &answer : answers) {
      answer = is_separate ? ask(*answer.event) : PerfAnswer{answer.event, ENOSYS, false};
    }
  });
  if (asking.joinable()) {
    asking.join();
  }
  return answers;
}

void PerfCounts::clear() {
  for (auto *count : {&threads, &threads_refused, &enabled_ns, &running_ns}) {
    count->store(0, std::memory_order_relaxed);
  }
  error.store(0, std::memory_order_relaxed);
}

int PerfCounters::open(int thread, const std::vector<PerfAnswer> &events) {
  if (!groups_.empty()) {
    return 0;
  }
  for (const PerfAnswer &answer : events) {
    if (int error = add(thread, answer)) {
      close();
      return error;
    }
  }
  return 0;
}

/// In one group with the last event if that is of the same kind and the processor has room.
int PerfCounters::add(int thread, const PerfAnswer &answer) {
  bool is_same_kind = !groups_.empty() && groups_.back().events[0]->type == answer.event->type;
  int leader = is_same_kind ? groups_.back().files[0] : -1;
  int file = openEvent(*answer.event, answer.is_user_only, thread, leader);
  if (file < 0 && leader >= 0 && (errno == EINVAL || errno == ENOSPC)) {
    leader = -1;
    file = openEvent(*answer.event, answer.is_user_only, thread, -1);
  }
  if (file < 0) {
    return errno;
  }
  if (leader < 0) {
    groups_.emplace_back();
  }
  groups_.back().files.push_back(file);
  groups_.back().events.push_back(answer.event);
  groups_.back().seen.push_back(0);
  return 0;
}

void PerfCounters::read(PerfCounts *counts) {
  for (Group &group : groups_) {
    GroupReading now;
    ssize_t size = ::read(group.files[0], &now, sizeof now);
    uint64_t ran_ns = now.running_ns - group.running_ns;
    if (size < 0 || now.count != group.events.size() || ran_ns == 0) {
      continue; // it was not scheduled; its count follows when it is
    }
    uint64_t enabled_ns = now.enabled_ns - group.enabled_ns;
    double scale = static_cast<double>(enabled_ns) / static_cast<double>(ran_ns);
    for (size_t i = 0; i < group.events.size(); ++i) {
      auto risen = static_cast<double>(now.values[i] - group.seen[i]);
      auto event = static_cast<size_t>(group.events[i] - perfEvents().data());
      owed_[event] += static_cast<uint64_t>(std::llround(risen * scale));
      group.seen[i] = now.values[i];
    }
    group.enabled_ns = now.enabled_ns;
    group.running_ns = now.running_ns;
    if (group.events[0]->type == PERF_TYPE_HARDWARE) {
      counts->enabled_ns.fetch_add(enabled_ns, std::memory_order_relaxed);
      counts->running_ns.fetch_add(ran_ns, std::memory_order_relaxed);
    }
  }
}

void PerfCounters::close() {
  for (const Group &group : groups_) {
    for (int file : group.files) {
      ::close(file);
    }
  }
  groups_.clear();
}

} // namespace deepcontext
