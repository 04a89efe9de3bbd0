#include "bindings/node_paths.h"

#include <string>

#include "core/interner.h"
#include "session/frame_resolver.h"
#include "session/node_path.h"

namespace nb = nanobind;

namespace deepcontext {

nb::list pathAsList(const Node &node, const std::vector<Recorder *> &recorders) {
  const Interner &interner = Interner::instance();
  nb::list path;
  for (const FrameRecord &frame : pathOf(node, recorders, ProfileFrameResolver())) {
    std::string name(interner.text(frame.name)), file(interner.text(frame.file));
    path.append(
        nb::make_tuple(static_cast<int>(frame.kind), name.c_str(), file.c_str(), frame.line));
  }
  return path;
}

} // namespace deepcontext
