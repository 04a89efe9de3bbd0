#include "jax/xspace.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "core/text.h"
#include "jax/wire.h"

namespace deepcontext::jax {

namespace {

// Field numbers.
// Source: tsl/profiler/protobuf/xplane.proto.
namespace plane_field {
constexpr uint32_t kName = 2, kLines = 3, kEventMetadata = 4, kStatMetadata = 5, kStats = 6;
}
namespace line_field {
constexpr uint32_t kId = 1, kTimestampNs = 3, kEvents = 4;
}
namespace event_field {
constexpr uint32_t kMetadata = 1, kOffsetPs = 2, kDurationPs = 3, kStats = 4;
}

/// Events for one launch on one device, in jaxlib's versions.
bool isExecution(std::string_view name) {
  return endsWith(name, "::ExecuteHelperOnSingleDevice") || endsWith(name, "::ExecuteHelper");
}

struct Stat {
  uint64_t metadata = 0;
  uint64_t number = 0;
  std::string_view text;
  bool is_reference = false; // `number` names the metadata whose name is the value
};

Stat readStat(std::string_view bytes) {
  Stat stat;
  forEachField(bytes, [&](const WireField &field) {
    if (field.id == 1) {
      stat.metadata = field.number;
    } else if (field.type == 2) {
      stat.text = field.bytes;
    } else {
      stat.is_reference = field.id == 7;
      stat.number = field.number;
    }
  });
  return stat;
}

/// An entry of a map from id to metadata with a name.
void readNamed(std::string_view bytes, std::unordered_map<uint64_t, std::string_view> *names) {
  uint64_t key = 0;
  std::string_view name;
  forEachField(bytes, [&](const WireField &field) {
    if (field.id == 1) {
      key = field.number;
    } else if (field.id == 2) {
      forEachField(field.bytes, [&](const WireField &part) {
        if (part.id == 2) {
          name = part.bytes;
        }
      });
    }
  });
  names->emplace(key, name);
}

/// One plane's tables and the raw bytes of its lines.
struct Plane {
  std::string_view name;
  std::vector<std::string_view> lines;
  std::vector<std::string_view> stats;
  std::unordered_map<uint64_t, std::string_view> events;
  std::unordered_map<uint64_t, std::string_view> stat_names;
};

bool readPlane(std::string_view bytes, Plane *plane) {
  return forEachField(bytes, [&](const WireField &field) {
    switch (field.id) {
    case plane_field::kName:
      plane->name = field.bytes;
      break;
    case plane_field::kLines:
      plane->lines.push_back(field.bytes);
      break;
    case plane_field::kEventMetadata:
      readNamed(field.bytes, &plane->events);
      break;
    case plane_field::kStatMetadata:
      readNamed(field.bytes, &plane->stat_names);
      break;
    case plane_field::kStats:
      plane->stats.push_back(field.bytes);
      break;
    default:
      break;
    }
  });
}

/// Reads the host plane's events. Operations that end on another thread are joined with their end
/// by the producer's and consumer's number.
class HostPlane {
public:
  HostPlane(const Plane &plane, TraceWindow *window) : plane_(plane), window_(*window) {
    for (const auto &[key, name] : plane.stat_names) {
      if (name == "hlo_op") {
        operation_key_ = key;
      } else if (name == "hlo_module") {
        module_key_ = key;
      } else if (name == "program_id") {
        program_key_ = key;
      } else if (name == "run_id") {
        run_key_ = key;
      } else if (name == "_p") {
        producer_key_ = key;
      } else if (name == "_c") {
        consumer_key_ = key;
      }
    }
    for (const auto &[key, name] : plane.events) {
      if (isExecution(name)) {
        kinds_[key] = Kind::kExecution;
      } else if (startsWith(name, "end: ")) {
        kinds_[key] = Kind::kEnd;
      } else if (name == "ThunkExecutor::Execute (wait for completion)") {
        kinds_[key] = Kind::kRunEnd;
      }
    }
  }

  void run() {
    for (std::string_view line : plane_.lines) {
      readLine(line);
    }
    finish();
  }

private:
  enum class Kind : uint8_t { kOther, kExecution, kEnd, kRunEnd };

  struct Event {
    uint64_t metadata = 0;
    uint64_t start_ps = 0; // since the session's start
    uint64_t duration_ps = 0;
    bool is_operation = false;
    std::string_view operation;
    std::string_view module;
    int64_t program_id = 0;
    int64_t run_id = 0;
    uint64_t producer = 0;
    uint64_t consumer = 0;
  };
  struct Pending {
    size_t run;
    std::string_view operation;
    uint64_t start_ps;
    uint64_t end_ps;
    uint64_t producer;
  };

  std::string_view valueOf(const Stat &stat) const {
    if (!stat.is_reference) {
      return stat.text;
    }
    auto name = plane_.stat_names.find(stat.number);
    return name == plane_.stat_names.end() ? std::string_view() : name->second;
  }

  static int64_t numberOf(const Stat &stat) {
    return stat.text.empty() ? static_cast<int64_t>(stat.number)
                             : std::strtoll(std::string(stat.text).c_str(), nullptr, 10);
  }

  void readLine(std::string_view bytes) {
    int64_t line = 0;
    uint64_t start_ns = 0;
    std::vector<std::string_view> events;
    forEachField(bytes, [&](const WireField &field) {
      if (field.id == line_field::kId) {
        line = static_cast<int64_t>(field.number);
      } else if (field.id == line_field::kTimestampNs) {
        start_ns = field.number;
      } else if (field.id == line_field::kEvents) {
        events.push_back(field.bytes);
      }
    });
    for (std::string_view event : events) {
      take(readEvent(event, start_ns * 1000), line);
    }
    window_.events += events.size();
  }

  Event readEvent(std::string_view bytes, uint64_t line_start_ps) const {
    Event event;
    forEachField(bytes, [&](const WireField &field) {
      if (field.id == event_field::kMetadata) {
        event.metadata = field.number;
      } else if (field.id == event_field::kOffsetPs) {
        event.start_ps = line_start_ps + field.number;
      } else if (field.id == event_field::kDurationPs) {
        event.duration_ps = field.number;
      } else if (field.id == event_field::kStats) {
        addStat(readStat(field.bytes), &event);
      }
    });
    if (event.start_ps == 0) {
      event.start_ps = line_start_ps; // proto3 leaves an offset of zero out
    }
    return event;
  }

  void addStat(const Stat &stat, Event *event) const {
    if (stat.metadata == operation_key_) {
      event->is_operation = true;
      event->operation = valueOf(stat);
    } else if (stat.metadata == module_key_) {
      event->module = valueOf(stat);
    } else if (stat.metadata == program_key_) {
      event->program_id = numberOf(stat);
    } else if (stat.metadata == run_key_) {
      event->run_id = numberOf(stat);
    } else if (stat.metadata == producer_key_) {
      event->producer = stat.number;
    } else if (stat.metadata == consumer_key_) {
      event->consumer = stat.number;
    }
  }

  void take(const Event &event, int64_t line) {
    uint64_t end_ps = event.start_ps + event.duration_ps;
    if (event.is_operation) {
      size_t run = runOf(event, line);
      pending_.push_back({run, event.operation, event.start_ps, end_ps, event.producer});
      ++window_.operation_events;
      return;
    }
    auto kind = kinds_.find(event.metadata);
    switch (kind == kinds_.end() ? Kind::kOther : kind->second) {
    case Kind::kExecution:
      window_.executions.push_back({line, event.start_ps / 1000, end_ps / 1000});
      break;
    case Kind::kEnd: {
      uint64_t &end = ends_[event.consumer];
      end = std::max(end, end_ps);
      break;
    }
    case Kind::kRunEnd: {
      uint64_t &end = run_ends_[event.run_id];
      end = std::max(end, end_ps);
      break;
    }
    case Kind::kOther:
      break;
    }
  }

  size_t runOf(const Event &event, int64_t line) {
    auto [place, is_new] =
        run_ids_.emplace(std::make_pair(event.program_id, event.run_id), window_.runs.size());
    if (is_new) {
      Run run;
      run.program_id = event.program_id;
      run.run_id = event.run_id;
      run.module = textOf(event.module);
      window_.runs.push_back(std::move(run));
    }
    Run &run = window_.runs[place->second];
    if (event.start_ps / 1000 < run.start_ns) {
      run.start_ns = event.start_ps / 1000;
      run.first_line = line;
    }
    return place->second;
  }

  void finish() {
    for (Pending &operation : pending_) {
      auto end = ends_.find(operation.producer);
      if (end != ends_.end()) {
        operation.end_ps = std::max(operation.end_ps, end->second);
      }
      Run &run = window_.runs[operation.run];
      run.end_ns = std::max(run.end_ns, operation.end_ps / 1000);
      run.operations[textOf(operation.operation)].add(operation.start_ps, operation.end_ps);
    }
    window_.reports_ends = !run_ends_.empty();
    for (Run &run : window_.runs) {
      auto end = run_ends_.find(run.run_id);
      run.is_complete = end != run_ends_.end();
      if (run.is_complete) {
        run.end_ns = std::max(run.end_ns, end->second / 1000);
      } else if (run_ends_.empty()) {
        run.is_complete = true; // an older runtime does not report it
      }
    }
  }

  const Plane &plane_;
  TraceWindow &window_;
  uint64_t operation_key_ = 0, module_key_ = 0, program_key_ = 0, run_key_ = 0;
  uint64_t producer_key_ = 0, consumer_key_ = 0;
  std::unordered_map<uint64_t, Kind> kinds_;
  std::map<std::pair<int64_t, int64_t>, size_t> run_ids_;
  std::vector<Pending> pending_;
  std::unordered_map<uint64_t, uint64_t> ends_;
  std::unordered_map<int64_t, uint64_t> run_ends_;
};

/// Start and stop of the session: the other planes' times count from its start.
void readEnvironment(const Plane &plane, TraceWindow *window) {
  for (std::string_view bytes : plane.stats) {
    Stat stat = readStat(bytes);
    auto name = plane.stat_names.find(stat.metadata);
    if (name == plane.stat_names.end()) {
      continue;
    }
    if (name->second == "profile_start_time") {
      window->start_ns = stat.number;
    } else if (name->second == "profile_stop_time") {
      window->end_ns = stat.number;
    }
  }
}

} // namespace

bool readTraceWindow(std::string_view xspace, TraceWindow *window) {
  bool is_whole = true;
  bool is_intact = forEachField(xspace, [&](const WireField &field) {
    if (field.id != 1) {
      return;
    }
    Plane plane;
    is_whole = readPlane(field.bytes, &plane) && is_whole;
    if (plane.name == "/host:CPU") {
      HostPlane(plane, window).run();
    } else if (plane.name == "Task Environment") {
      readEnvironment(plane, window);
    }
  });
  for (Run &run : window->runs) {
    run.start_ns += window->start_ns;
    run.end_ns += window->start_ns;
  }
  for (Execution &execution : window->executions) {
    execution.start_ns += window->start_ns;
    execution.end_ns += window->start_ns;
  }
  auto earlier = [](const auto &left, const auto &right) { return left.start_ns < right.start_ns; };
  std::stable_sort(window->runs.begin(), window->runs.end(), earlier);
  std::stable_sort(window->executions.begin(), window->executions.end(), earlier);
  return is_whole && is_intact;
}

} // namespace deepcontext::jax
