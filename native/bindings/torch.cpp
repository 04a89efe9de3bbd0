// The PyTorch observer, as Python sees it (typed in _native.pyi).
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.h"
#include "bindings/text.h"
#include "torch/calibration.h"
#include "torch/library.h"
#include "torch/observer.h"
#include "torch/tensor_keys.h"

namespace nb = nanobind;

namespace deepcontext {

void bindTorch(nb::module_ &module) {
  module.def("torch_load", [] { return reasonOf(torch::Library::load); });
  module.def("torch_has_shapes", [] { return torch::Library::instance().hasShapes(); });
  module.def("torch_find_tensor_keys",
             [](const std::vector<std::pair<uint64_t, uint64_t>> &known, uint64_t avoided) {
               std::vector<torch::KnownKeys> tensors;
               for (const auto &[address, keys] : known) {
                 tensors.push_back({address, keys});
               }
               return reasonOf([&](std::string *reason) {
                 return torch::TensorKeys::instance().find(tensors, avoided, reason);
               });
             });
  module.def("torch_begin_calibration", [] { return reasonOf(torch::beginCalibration); });
  module.def("torch_finish_calibration", [] { return reasonOf(torch::finishCalibration); });
  module.def("torch_start", [](bool with_shapes, bool with_type_windows) {
    torch::startObserver({torch::foundLayout(), with_shapes, with_type_windows});
  });
  module.def("torch_stop", [] { torch::stopObserver(); });
  module.def("torch_is_observing", [] { return torch::isObserverRunning(); });
}

} // namespace deepcontext
