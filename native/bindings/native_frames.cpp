// Native frames, as Python sees them (typed in _native.pyi).
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.h"
#include "bindings/text.h"
#include "core/recorder.h"
#include "python/native_merge.h"
#include "unwind/stack_walk.h"

namespace nb = nanobind;

namespace deepcontext {

namespace {

nb::dict nativeCounts() {
  std::vector<Recorder *> recorders = RecorderRegistry::instance().active();
  auto sum = [&](std::atomic<uint64_t> RecorderCounters::*counter) {
    return RecorderCounters::sum(recorders, counter);
  };
  nb::dict values;
  values["walks"] = sum(&RecorderCounters::native_walks);
  values["frames"] = sum(&RecorderCounters::native_frames);
  values["by_libgcc"] = sum(&RecorderCounters::native_by_libgcc);
  values["no_rule"] = sum(&RecorderCounters::native_no_rule);
  values["bad_stack"] = sum(&RecorderCounters::native_bad_stack);
  values["too_deep"] = sum(&RecorderCounters::native_too_deep);
  return values;
}

/// The files in which native functions were seen, in this session and earlier ones.
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
