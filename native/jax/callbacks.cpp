#include "jax/callbacks.h"

#include <memory>

#include "core/recorder.h"
#include "jax/dispatch.h"
#include "python/frame_walk.h"

namespace deepcontext::jax {

namespace {

constexpr char kCallback[] = "jax: callback";

struct Callback {
  Recorder *recorder;
  uint64_t session;
  Node *node;
  ActiveCall *around; // the call that runs the program
  uint64_t began;     // of the operator around
  uint64_t start_ticks;
};

} // namespace

uint64_t enterCallback() {
  if (!RecorderRegistry::isRecording()) {
    return 0;
  }
  static const uint32_t name = Interner::instance().intern(kCallback);
  Recorder &recorder = RecorderRegistry::current();
  const InterpreterFrame *top = currentFrame(recorder);
  Node *parent = pythonContext(recorder, top, recorder.innermost());
  auto callback = std::make_unique<Callback>();
  callback->recorder = &recorder;
  callback->session = RecorderRegistry::generation();
  // A scope that C++ opens is not an operator.
  callback->node = recorder.tree.child(parent, FrameKind::kScope, name, 0);
  callback->start_ticks = ticks();
  callback->began = recorder.suspendOperator(callback->start_ticks);
  if (Level *level =
          openLevel(recorder, LevelKind::kOperator, callback->node, callback.get(), top)) {
    level->is_inside_operator = false;
    level->charged = nullptr; // samples measure Python
  }
  callback->around = exchangeInnermostCall(nullptr);
  return reinterpret_cast<uint64_t>(callback.release());
}

void leaveCallback(uint64_t token) {
  std::unique_ptr<Callback> callback(reinterpret_cast<Callback *>(token));
  if (!callback) {
    return;
  }
  uint64_t now = ticks();
  exchangeInnermostCall(callback->around);
  Recorder *recorder = callback->recorder;
  if (RecorderRegistry::isRecording() && recorder->isOf(callback->session)) {
    recorder->close(callback.get(), now);
    recorder->resumeOperator(callback->began, now);
    uint64_t elapsed = recorder->ticksSince(callback->start_ticks, now);
    recorder->tree.cost(callback->node).duration.add(elapsed);
  }
}

} // namespace deepcontext::jax
