// GPU collectors, as Python sees them (typed in _native.pyi).
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.h"
#include "bindings/text.h"
#include "bindings/without_gil.h"
#include "gpu/cupti/collector.h"
#include "gpu/cupti/deferred_start.h"
#include "gpu/cupti/driver_state.h"
#include "gpu/dynlib.h"
#include "gpu/ranges.h"
#include "gpu/rocprofiler/collector.h"
#include "gpu/roctracer/collector.h"
#include "python/scopes.h"

namespace nb = nanobind;

namespace deepcontext {

namespace {

gpu::Collector &collectorNamed(const std::string &name) {
  if (name == "cupti") {
    return gpu::cupti::CuptiCollector::instance();
  }
  if (name == "rocprofiler") {
    return gpu::rocprofiler::RocprofilerCollector::instance();
  }
  if (name == "roctracer") {
    return gpu::roctracer::RoctracerCollector::instance();
  }
  throw nb::value_error("the GPU collector is not one of cupti, rocprofiler, roctracer");
}

nb::list devices(const std::string &name) {
  nb::list all;
  auto all_totals = withoutGil([&](WithoutGil) { return collectorNamed(name).deviceTotals(); });
  for (const auto &[id, totals] : all_totals) {
    nb::dict device;
    device["device"] = id;
    device["first_ns"] = totals.first_ns;
    device["last_ns"] = totals.last_ns;
    device["busy_ns"] = totals.busy_ns;
    device["idle_ns"] = totals.idle_ns;
    device["late_ns"] = totals.late_ns;
    nb::dict streams;
    for (const auto &[stream, busy_ns] : totals.stream_busy_ns) {
      streams[nb::int_(stream)] = busy_ns;
    }
    device["stream_busy_ns"] = streams;
    all.append(device);
  }
  return all;
}

gpu::CollectorOptions optionsOf(size_t buffer_bytes, size_t pool_bytes, double deadline_s,
                                double backlog_s, bool with_stalls, bool with_calls) {
  gpu::CollectorOptions options;
  options.buffer_bytes = buffer_bytes;
  options.pool_bytes = pool_bytes;
  options.deadline_s = deadline_s;
  options.backlog_s = backlog_s;
  options.with_stalls = with_stalls;
  options.with_calls = with_calls;
  return options;
}

} // namespace

void bindGpu(nb::module_ &module) {
  gpu::setContextProvider(currentCallContext);
  gpu::setRangeOpener(openRange);
  module.def("gpu_mapped_libraries", gpu::mappedLibraries);
  module.def("gpu_probe",
             [](const std::string &name, const std::string &profiler, const std::string &driver) {
               GilRelease release;
               gpu::ProbeResult result = collectorNamed(name).probe({profiler, driver});
               return std::make_pair(result.version, result.reason);
             });
  module.def("gpu_start",
             [](const std::string &name, const std::string &profiler, const std::string &driver,
                size_t buffer_bytes, size_t pool_bytes, double deadline_s, double backlog_s,
                bool with_stalls, bool with_calls, const std::vector<std::string> &others) {
               GilRelease release;
               return collectorNamed(name).start({profiler, driver, others},
                                                 optionsOf(buffer_bytes, pool_bytes, deadline_s,
                                                           backlog_s, with_stalls, with_calls));
             });
  module.def("gpu_arm", [](const std::string &injection, const std::string &profiler,
                           const std::string &driver, size_t buffer_bytes, size_t pool_bytes,
                           double deadline_s, double backlog_s, bool with_stalls, bool with_calls,
                           const std::vector<std::string> &others, bool prefers_mapped) {
    GilRelease release;
    return gpu::cupti::DeferredStart::instance().arm(
        injection, {profiler, driver, others},
        optionsOf(buffer_bytes, pool_bytes, deadline_s, backlog_s, with_stalls, with_calls),
        prefers_mapped);
  });
  module.def("gpu_disarm", [](double seconds) {
    GilRelease release;
    gpu::cupti::DeferredStart::instance().disarm(seconds);
  });
  module.def("gpu_armed", []() {
    auto [state, reason] =
        withoutGil([](WithoutGil) { return gpu::cupti::DeferredStart::instance().state(); });
    return std::make_pair(static_cast<int>(state), reason);
  });
  module.def("gpu_armed_with", [] {
    return withoutGil([](WithoutGil) { return gpu::cupti::DeferredStart::instance().used(); });
  });
  module.def("gpu_cupti", [] { return gpu::cupti::CuptiCollector::instance().libraryPath(); });
  module.def("gpu_yield", [](int yielded) {
    GilRelease release;
    return gpu::cupti::CuptiCollector::instance().setYielded(
        static_cast<gpu::cupti::Yield>(yielded));
  });
  module.def("gpu_is_driver_running", [](const std::string &driver) {
    GilRelease release;
    return gpu::cupti::isDriverRunning(driver);
  });
  module.def("gpu_flush", [](const std::string &name) {
    GilRelease release;
    return collectorNamed(name).flush();
  });
  module.def("gpu_stop", [](const std::string &name) {
    GilRelease release;
    return collectorNamed(name).stop();
  });
  module.def("gpu_is_running",
             [](const std::string &name) { return collectorNamed(name).isRunning(); });
  module.def("gpu_figures", [](const std::string &name) {
    return withoutGil([&](WithoutGil) { return collectorNamed(name).figures(); });
  });
  module.def("gpu_lacking", [](const std::string &name) { return collectorNamed(name).lacking(); });
  module.def("gpu_devices", devices);
}

} // namespace deepcontext
