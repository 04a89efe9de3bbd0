// The PyTorch observer, as Python sees it (typed in _native.pyi).
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "bindings/bindings.h"
#include "torch/calibration.h"
#include "torch/library.h"
#include "torch/observer.h"

namespace nb = nanobind;

namespace deepcontext {

namespace {

nb::dict toDict(const abi::RecordFunctionLayout &layout) {
  nb::dict values;
  values["sequence"] = layout.sequence;
  values["thread"] = layout.thread;
  values["scope"] = layout.scope;
  values["forward_thread"] = layout.forward_thread;
  values["inputs"] = layout.inputs;
  return values;
}

abi::RecordFunctionLayout fromDict(const nb::dict &values) {
  abi::RecordFunctionLayout layout;
  layout.sequence = nb::cast<int>(values["sequence"]);
  layout.thread = nb::cast<int>(values["thread"]);
  layout.scope = nb::cast<int>(values["scope"]);
  layout.forward_thread = nb::cast<int>(values["forward_thread"]);
  layout.inputs = nb::cast<int>(values["inputs"]);
  return layout;
}

} // namespace

void bindTorch(nb::module_ &module) {
  module.def("torch_load", [] { return reasonOf(torch::Library::load); });
  module.def("torch_has_shapes", [] { return torch::Library::instance().hasShapes(); });
  module.def("torch_thread", [] { return torch::Library::instance().current_thread(); });
  module.def("torch_begin_calibration", [] { return reasonOf(torch::beginCalibration); });
  module.def("torch_finish_calibration", [] {
    abi::RecordFunctionLayout layout;
    std::string reason;
    bool is_found = torch::finishCalibration(&layout, &reason);
    return nb::make_tuple(is_found ? nb::object(toDict(layout)) : nb::none(), reason);
  });
  module.def("torch_start", [](const nb::dict &layout, bool with_shapes) {
    torch::startObserver({fromDict(layout), with_shapes});
  });
  module.def("torch_stop", [] { torch::stopObserver(); });
  module.def("torch_is_observing", [] { return torch::isObserverRunning(); });
}

} // namespace deepcontext
