// The PyTorch observer, as Python sees it (typed in _native.pyi).
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "bindings/bindings.h"
#include "core/recorder.h"
#include "torch/calibration.h"
#include "torch/collectives.h"
#include "torch/library.h"
#include "torch/observer.h"

namespace nb = nanobind;

namespace deepcontext {

namespace {

nb::dict collectives() {
  torch::Collectives::Reading found = torch::Collectives::instance().read();
  double ns_per_tick = RecorderRegistry::instance().clock().nsPerTick();
  nb::list rows;
  for (const torch::Collective &row : found.rows) {
    auto duration = static_cast<uint64_t>(static_cast<double>(row.duration_ticks) * ns_per_tick);
    rows.append(nb::make_tuple(row.number, duration, row.overlaps ? 1 : 0));
  }
  nb::dict values;
  values["called"] = found.called;
  values["ended"] = found.ended;
  values["unmatched"] = found.unmatched;
  values["rows"] = rows;
  return values;
}

} // namespace

void bindTorch(nb::module_ &module) {
  module.def("torch_load", [] { return reasonOf(torch::Library::load); });
  module.def("torch_has_shapes", [] { return torch::Library::instance().hasShapes(); });
  module.def("torch_begin_calibration", [] { return reasonOf(torch::beginCalibration); });
  module.def("torch_finish_calibration", [] { return reasonOf(torch::finishCalibration); });
  module.def("torch_start",
             [](bool with_shapes) { torch::startObserver({torch::foundLayout(), with_shapes}); });
  module.def("torch_stop", [] { torch::stopObserver(); });
  module.def("torch_collectives", collectives);
  module.def("torch_is_observing", [] { return torch::isObserverRunning(); });
}

} // namespace deepcontext
