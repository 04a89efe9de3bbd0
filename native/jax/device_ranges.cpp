#include "jax/device_ranges.h"

#include <atomic>
#include <charconv>
#include <map>
#include <memory>
#include <tuple>

#include "core/guard.h"
#include "core/recorder.h"
#include "core/text.h"
#include "jax/attribution.h"
#include "jax/operation_path.h"
#include "python/frame_walk.h"

namespace deepcontext::jax {

namespace {

constexpr int kDeepest = 256;

std::atomic<uint64_t> g_operations{0}, g_known{0};
std::atomic<bool> g_is_injected{false};

/// The open ranges of a thread; the address of an owner identifies its level to the recorder.
struct OpenRanges {
  const DeviceRange *ranges[kDeepest];
  char owners[kDeepest];
  int count = 0;
  uint64_t session = 0;
  // from (node outside, module, operation) to the node of the operation, because operations run
  // repeatedly
  std::map<std::tuple<const Node *, const DeviceRange *, const DeviceRange *>, Node *> nodes;

  const DeviceRange *module() const {
    for (int i = count < kDeepest ? count : kDeepest; i-- > 0;) {
      if (ranges[i]->kind == DeviceRange::Kind::kModule) {
        return ranges[i];
      }
    }
    return nullptr;
  }
};

OpenRanges &openRanges() {
  // On the heap, because little static TLS is left for libraries that are loaded late.
  thread_local std::unique_ptr<OpenRanges> ranges;
  if (!ranges) {
    ranges = std::make_unique<OpenRanges>();
  }
  OpenRanges &open = *ranges;
  if (open.session != RecorderRegistry::generation()) {
    open.count = 0;
    open.session = RecorderRegistry::generation();
    open.nodes.clear();
  }
  return open;
}

/// The value of "key=" in a text, up to the next field.
std::string_view fieldOf(std::string_view text, std::string_view key) {
  size_t at = text.find(key);
  if (at == std::string_view::npos) {
    return {};
  }
  text.remove_prefix(at + key.size());
  return text.substr(0, text.find_first_of(",#"));
}

/// phase > lines of the model > primitive > instruction, below the launching call; the instruction
/// alone when its program is unknown.
Node *operationNode(Recorder &recorder, Node *outside, const DeviceRange *module,
                    const DeviceRange &range) {
  if (module) {
    bool is_known = false;
    // XLA launches without the GIL, or on its own threads.
    Node *node = Attribution::instance().withOperation(
        WithoutGil::onForeignThread(), module->program_id, module->name, range.name,
        [&](const Operation &operation) {
          is_known = true;
          return writeOperationPath(recorder.tree, outside, operation);
        });
    if (is_known) {
      return node;
    }
  }
  return recorder.tree.child(outside, FrameKind::kHlo, Interner::instance().intern(range.name), 0);
}

void openOperation(OpenRanges &open, const DeviceRange &range) {
  Recorder &recorder = RecorderRegistry::current();
  const InterpreterFrame *top = currentFrame(recorder);
  Node *outside = pythonContext(recorder, top, recorder.innermost());
  const DeviceRange *module = open.module();
  Node *&node = open.nodes[{outside, module, &range}];
  if (!node) {
    node = operationNode(recorder, outside, module, range);
  }
  g_operations.fetch_add(1, std::memory_order_relaxed);
  if (node->parent != outside) {
    g_known.fetch_add(1, std::memory_order_relaxed);
  }
  // The frame is noted: kernels belong to the operation, not to the frame once more.
  openLevel(recorder, LevelKind::kOperator, node, &open.owners[open.count], top);
}

} // namespace

DeviceRange readDeviceRange(std::string_view text) {
  DeviceRange range;
  if (contains(text, "XlaModule:#")) {
    range.kind = DeviceRange::Kind::kModule;
    range.name = fieldOf(text, "hlo_module=");
    std::string_view id = fieldOf(text, "program_id=");
    std::from_chars(id.data(), id.data() + id.size(), range.program_id);
  } else if (contains(text, "Thunk:#")) {
    range.name = fieldOf(text, "hlo_op=");
    range.kind = range.name.empty() ? DeviceRange::Kind::kOther : DeviceRange::Kind::kOperation;
  }
  return range;
}

void pushDeviceRange(const DeviceRange &range) {
  if (!RecorderRegistry::isRecording()) {
    return;
  }
  OpenRanges &open = openRanges();
  if (open.count < kDeepest) {
    if (range.kind == DeviceRange::Kind::kOperation) {
      // guarded, because the range is counted below in any case
      guarded([&] { openOperation(open, range); });
    }
    open.ranges[open.count] = &range;
  }
  ++open.count;
}

void popDeviceRange() {
  if (!RecorderRegistry::isRecording()) {
    return;
  }
  OpenRanges &open = openRanges();
  if (open.count == 0 || --open.count >= kDeepest) {
    return; // begun before the session, or too deep
  }
  Recorder *recorder = RecorderRegistry::currentOrNull();
  if (recorder && open.ranges[open.count]->kind == DeviceRange::Kind::kOperation) {
    recorder->close(&open.owners[open.count], ticks());
  }
}

DeviceRangeCounts deviceRangeCounts() {
  return {g_operations.load(), g_known.load()};
}

void setInjected() {
  g_is_injected.store(true);
}

bool isInjected() {
  return g_is_injected.load();
}

void clearDeviceRanges() {
  g_operations.store(0);
  g_known.store(0);
}

} // namespace deepcontext::jax
