#pragma once
// What XLA's host tracer recorded in one window (XSpace), reduced to launches and runs.
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace deepcontext::jax {

/// Executions of one operation within one run. Times in ps, from issue to completion.
struct OperationTimes {
  uint64_t count = 0;
  uint64_t total_ps = 0;
  uint64_t minimum_ps = 0;
  uint64_t maximum_ps = 0;
  double squares_ns = 0; // sum of squared durations, ns^2
  uint64_t first_ps = 0; // first start and last end, since the session's start
  uint64_t last_ps = 0;

  void add(uint64_t start_ps, uint64_t end_ps) {
    first_ps = count == 0 || start_ps < first_ps ? start_ps : first_ps;
    last_ps = end_ps > last_ps ? end_ps : last_ps;
    uint64_t duration_ps = end_ps - start_ps;
    minimum_ps = count == 0 || duration_ps < minimum_ps ? duration_ps : minimum_ps;
    maximum_ps = duration_ps > maximum_ps ? duration_ps : maximum_ps;
    total_ps += duration_ps;
    double duration_ns = static_cast<double>(duration_ps) / 1000;
    squares_ns += duration_ns * duration_ns;
    ++count;
  }
};

/// One execution of one program, on all its devices. Times in ns since 1970.
struct Run {
  int64_t program_id = 0;
  int64_t run_id = 0;
  std::string module;
  int64_t first_line = 0; // the tracer's number of the thread of the first operation
  uint64_t start_ns = ~0ull;
  uint64_t end_ns = 0;
  bool is_complete = false;                                   // its end was seen
  std::unordered_map<std::string, OperationTimes> operations; // by instruction name
};

/// The runtime accepted a program for execution on a thread.
struct Execution {
  int64_t line = 0; // the tracer's number of the thread, not the system's
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
};

struct TraceWindow {
  std::vector<Run> runs;             // by start
  std::vector<Execution> executions; // by start
  uint64_t start_ns = 0;             // of the session, ns since 1970
  uint64_t end_ns = 0;
  uint64_t events = 0;
  uint64_t operation_events = 0;
  bool reports_ends = false; // of runs; false in a window without any, and of older runtimes
};

/// Read a serialised XSpace. False when the bytes are not one; what was read until then is kept.
bool readTraceWindow(std::string_view xspace, TraceWindow *window);

} // namespace deepcontext::jax
