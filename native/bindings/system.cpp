// Clocks, descriptors and tracing of the process, as Python sees them (typed in _native.pyi). Not
// taken from Python's modules, because programs replace functions of `time` (freezegun,
// unittest.mock), and use up the numbers of descriptors.
#include <nanobind/nanobind.h>

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

#include "bindings/bindings.h"
#include "bindings/without_gil.h"
#include "core/clock.h"
#include "core/internal_thread.h"
#include "python/own_python.h"
#include "sampling/kernel_threads.h"

namespace nb = nanobind;

namespace deepcontext {

namespace {

constexpr unsigned kAfterStandardStreams = 3;

bool hasFreeDescriptor() {
  int found = open("/", O_PATH | O_CLOEXEC);
  if (found >= 0) {
    close(found);
  }
  return found >= 0 || errno != EMFILE;
}

/// Run `work` on a thread of the profiler that has no files open but the standard streams; false if
/// the process gets no such thread.
bool runWithOwnDescriptors(nb::callable work) {
  bool has_run = false;
  withoutGil([&](WithoutGil) {
    std::thread thread = startInternalThread([&] {
      std::string reason;
      if (separateDescriptors(&reason, kAfterStandardStreams)) {
        OwnPython().call(work.ptr());
        has_run = true;
      }
    });
    if (thread.joinable()) {
      thread.join();
    }
  });
  return has_run;
}

/// Calls of the program's tracer and profiler functions are held back on this thread while this
/// exists.
class TracingPause {
public:
  TracingPause() { PyThreadState_EnterTracing(state_); }
  ~TracingPause() { PyThreadState_LeaveTracing(state_); }
  TracingPause(const TracingPause &) = delete;
  TracingPause &operator=(const TracingPause &) = delete;

private:
  PyThreadState *state_ = PyThreadState_Get();
};

} // namespace

void bindSystem(nb::module_ &module) {
  module.def("unix_ns", [] { return clockNs(CLOCK_REALTIME); });
  module.def("monotonic_ns", monotonicNs);
  module.def("process_cpu_ns", [] { return clockNs(CLOCK_PROCESS_CPUTIME_ID); });
  module.def("thread_cpu_ns", [] { return clockNs(CLOCK_THREAD_CPUTIME_ID); });
  module.def("without_tracing", [](nb::callable work) {
    TracingPause pause;
    return work();
  });
  module.def("has_free_descriptor", hasFreeDescriptor);
  module.def("run_with_own_descriptors", runWithOwnDescriptors);
}

} // namespace deepcontext
