#include "python/scopes.h"

#include <atomic>

#include "python/frame_walk.h"

namespace deepcontext {

namespace {

uint64_t closeScope(uint64_t token, uint64_t earlier_ticks, bool is_last) {
  uint64_t now = ticks();
  Recorder *recorder = RecorderRegistry::currentOrNull();
  if (token == 0) {
    return 0;
  }
  if (!recorder) { // this thread records nothing
    EndedElsewhere::instance().note(scopeOwner(token), now);
    return 0;
  }
  return recorder->closeStep(scopeOwner(token), now, earlier_ticks, is_last);
}

} // namespace

bool openScope(Recorder &recorder, const InterpreterFrame *top, FrameKind kind, uint32_t name,
               const void *owner) {
  Node *parent = pythonContext(recorder, top, recorder.innermost());
  Node *node = recorder.tree.child(parent, kind, name, 0);
  return openLevel(recorder, LevelKind::kScope, node, owner, top) != nullptr;
}

uint64_t enterPythonScope(Recorder &recorder, FrameKind kind, uint32_t name) {
  static std::atomic<uint64_t> last_token{0};
  const InterpreterFrame *top = skipScopePlumbing(recorder, currentFrame(recorder));
  uint64_t token = last_token.fetch_add(2) + 1;
  return openScope(recorder, top, kind, name, scopeOwner(token)) ? token : 0;
}

uint64_t enterScope(const std::string &name) {
  if (!RecorderRegistry::isRecording()) {
    return 0;
  }
  return enterPythonScope(RecorderRegistry::current(), FrameKind::kScope,
                          Interner::instance().internBounded(name));
}

uint64_t pauseScope(uint64_t token) {
  return closeScope(token, 0, false);
}

void leaveScope(uint64_t token, uint64_t earlier_ticks) {
  closeScope(token, earlier_ticks, true);
}

void countEvent(const std::string &name) {
  if (!RecorderRegistry::isRecording()) {
    return;
  }
  Recorder &recorder = RecorderRegistry::current();
  Node *parent = pythonContext(recorder, currentFrame(recorder), recorder.innermost());
  uint32_t name_id = Interner::instance().internBounded(name);
  Node *marker = recorder.tree.child(parent, FrameKind::kMarker, name_id, 0);
  recorder.tree.cost(marker).duration.add(0);
}

Node *currentCallContext(Recorder &recorder) {
  return callContext(recorder, currentFrame(recorder), recorder.innermost());
}

void openRange(Recorder &recorder, FrameKind kind, uint32_t name, const void *owner) {
  openScope(recorder, currentFrame(recorder), kind, name, owner);
}

} // namespace deepcontext
