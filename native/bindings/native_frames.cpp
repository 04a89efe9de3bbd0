// Native frames, as Python sees them (typed in _native.pyi).
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.h"
#include "core/recorder.h"
#include "python/native_merge.h"
#include "unwind/stack_walk.h"

namespace nb = nanobind;

namespace deepcontext {

namespace {

nb::dict nativeCounts() {
  uint64_t walks = 0, frames = 0, by_libgcc = 0, no_rule = 0, bad_stack = 0, too_deep = 0;
  for (Recorder *recorder : RecorderRegistry::instance().active()) {
    const RecorderCounters &own = recorder->counters;
    walks += own.native_walks.load(std::memory_order_relaxed);
    frames += own.native_frames.load(std::memory_order_relaxed);
    by_libgcc += own.native_by_libgcc.load(std::memory_order_relaxed);
    no_rule += own.native_no_rule.load(std::memory_order_relaxed);
    bad_stack += own.native_bad_stack.load(std::memory_order_relaxed);
    too_deep += own.native_too_deep.load(std::memory_order_relaxed);
  }
  nb::dict values;
  values["walks"] = walks;
  values["frames"] = frames;
  values["by_libgcc"] = by_libgcc;
  values["no_rule"] = no_rule;
  values["bad_stack"] = bad_stack;
  values["too_deep"] = too_deep;
  return values;
}

/// The files that native functions were seen in, of this session and those before.
nb::list nativeFiles() {
  nb::list files;
  for (const auto &use : unwind::AddressTable::instance().files()) {
    if (use.functions > 0 && !use.file.path.empty()) {
      nb::dict file;
      file["file"] = use.file.path;
      file["build_id"] = use.file.build_id;
      file["functions"] = use.functions;
      file["named"] = use.named;
      files.append(file);
    }
  }
  return files;
}

} // namespace

void bindNativeFrames(nb::module_ &module) {
  module.def("native_is_supported", unwind::isSupported);
  module.def("native_start", NativeFrames::start);
  module.def("native_stop", NativeFrames::stop);
  module.def("native_add_plumbing", [](std::string beginning) {
    unwind::AddressTable::instance().addPlumbing(std::move(beginning));
  });
  module.def("native_counts", nativeCounts);
  module.def("native_files", nativeFiles);
}

} // namespace deepcontext
