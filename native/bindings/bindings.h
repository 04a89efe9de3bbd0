#pragma once
// Entry points of the binding, one function a layer; the only code that sees nanobind.
#include <nanobind/nanobind.h>

#include <string>

namespace deepcontext {

/// "" if `attempt(&reason)` succeeds, otherwise the reason.
template <typename Attempt> std::string reasonOf(const Attempt &attempt) {
  std::string reason;
  return attempt(&reason) ? std::string() : reason;
}
/// The object, or null for None.
inline PyObject *orNull(nanobind::handle object) {
  return object.is_none() ? nullptr : object.ptr();
}

void bindSession(nanobind::module_ &module);
void bindPython(nanobind::module_ &module);
void bindGpu(nanobind::module_ &module);
void bindNativeFrames(nanobind::module_ &module);
void bindSampling(nanobind::module_ &module);
void bindSystem(nanobind::module_ &module);
void bindTorch(nanobind::module_ &module);
void bindCollectives(nanobind::module_ &module);
void bindNccl(nanobind::module_ &module);
void bindMemory(nanobind::module_ &module);
void bindJax(nanobind::module_ &module);
void bindJaxPrograms(nanobind::module_ &module);

} // namespace deepcontext
