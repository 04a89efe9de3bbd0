#include "session/node_path.h"

#include <algorithm>

namespace deepcontext {

namespace {

/// What a link stands for; null when its recorder no longer belongs to the session.
const Node *targetOf(const Node &link, const std::vector<Recorder *> &recorders) {
  auto found = std::find_if(recorders.begin(), recorders.end(),
                            [&](const Recorder *recorder) { return recorder->index() == link.a; });
  bool exists = found != recorders.end() && link.b < (*found)->tree.size();
  return exists ? (*found)->tree.node(static_cast<uint32_t>(link.b)) : nullptr;
}

} // namespace

std::vector<FrameRecord> pathOf(const Node &node, const std::vector<Recorder *> &recorders,
                                const FrameResolver &resolver) {
  std::vector<FrameRecord> path;
  const Node *place = &node;
  while (place && place->kind != FrameKind::kRoot && place->kind != FrameKind::kThread) {
    if (place->kind == FrameKind::kLink) {
      place = targetOf(*place, recorders);
      continue;
    }
    FrameRecord frame = resolver.resolve(*place);
    if (frame.kind != FrameKind::kLink) {
      path.push_back(frame);
    }
    place = place->parent;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

} // namespace deepcontext
