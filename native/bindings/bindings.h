#pragma once
// Entry points of the binding, one function a layer; the only code that sees nanobind.
#include <nanobind/nanobind.h>

namespace deepcontext {

void bindSession(nanobind::module_ &module);
void bindPython(nanobind::module_ &module);
void bindGpu(nanobind::module_ &module);
void bindNativeFrames(nanobind::module_ &module);
void bindSampling(nanobind::module_ &module);
void bindTorch(nanobind::module_ &module);
void bindMemory(nanobind::module_ &module);
void bindJax(nanobind::module_ &module);

} // namespace deepcontext
