#include "bindings/node_paths.h"

#include "bindings/text.h"
#include "core/interner.h"
#include "session/frame_resolver.h"
#include "session/node_path.h"

namespace nb = nanobind;

namespace deepcontext {

nb::list pathAsList(const Node &node, const std::vector<Recorder *> &recorders) {
  const Interner &interner = Interner::instance();
  nb::list path;
  for (const FrameRecord &frame : pathOf(node, recorders, ProfileFrameResolver())) {
    path.append(nb::make_tuple(static_cast<int>(frame.kind), interner.text(frame.name),
                               interner.text(frame.file), frame.line));
  }
  return path;
}

} // namespace deepcontext
