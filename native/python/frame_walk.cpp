#include "python/frame_walk.h"

#include "python/frame_nodes.h"
#include "python/native_merge.h"
#include "python/strands.h"

namespace deepcontext {

namespace {

const void *callerInstruction(const InterpreterFrame *frame) {
  const InterpreterFrame *caller = callerFrame(frame);
  return caller ? caller->instruction : nullptr;
}

/// Whether the frame at the anchor's address still is the activation of the anchor.
bool isSameActivation(const InterpreterFrame *frame, const Anchor &anchor) {
  return frameCode(frame) == anchor.code &&
         (isResumable(frame) || callerInstruction(frame) == anchor.caller_instruction);
}

/// Where a walk outwards from the innermost frame ends.
struct Boundary {
  const Anchor *anchor; // the frame it ends at, or null for the outermost
  bool is_included;

  const void *frame() const { return anchor ? anchor->frame : nullptr; }
  /// An operator's anchor cannot have returned. A scope's may have, and another frame may have its
  /// address.
  bool isAt(const InterpreterFrame *frame) const {
    return anchor && frame == anchor->frame && (!is_included || isSameActivation(frame, *anchor));
  }
};

bool differs(const PathEntry &last, const InterpreterFrame *frame) {
  return last.instruction != frame->instruction ||
         (last.instance && last.instance != frameFirstLocal(frame));
}

/// Whether the frame is the entry's, at the same instruction, below the same caller's address: then
/// that address, which the caller of this function has already, can be followed without waiting for
/// the frame's own pointer, so that the loads of a deep path overlap.
bool isUnchanged(const PathEntry &last, const InterpreterFrame *frame) {
  return __builtin_expect(!differs(last, frame) && callerFrame(frame) == last.caller, 1);
}

/// `last.caller` as the loaded pointer, which it equals.
const InterpreterFrame *predictedCaller(const PathEntry &last) {
  const void *same = last.caller;
  asm("" : "+r"(same)); // else the compiler would use the loaded pointer
  return static_cast<const InterpreterFrame *>(same);
}

/// Compare a path of unchanged depth with the last one without copying it: the usual case. Returns
/// the first position that differs (`path_length` for none), or kOtherDepth.
constexpr uint32_t kOtherDepth = UINT32_MAX;

uint32_t compareInPlace(Recorder &recorder, const InterpreterFrame *top, Boundary boundary,
                        uint32_t begin) {
  PathEntry *path = recorder.path.data();
  // An included boundary is compared last: the frame at its address may be another activation.
  PathEntry *outermost = path + begin + (boundary.is_included ? 1 : 0);
  PathEntry *entry = path + recorder.path_length;
  uint32_t first_difference = recorder.path_length;
  const InterpreterFrame *frame = top;
  while (entry > outermost && frame) {
    --entry;
    if (isUnchanged(*entry, frame)) {
      frame = predictedCaller(*entry);
      continue;
    }
    if (differs(*entry, frame)) {
      first_difference = static_cast<uint32_t>(entry - path);
    }
    frame = callerFrame(frame);
    entry->caller = frame;
  }
  if (!boundary.is_included) {
    return entry == path + begin && frame == boundary.frame() ? first_difference : kOtherDepth;
  }
  if (!frame || entry != outermost || !boundary.isAt(frame)) {
    return kOtherDepth;
  }
  return differs(path[begin], frame) ? begin : first_difference;
}

struct Walk {
  uint32_t count = 0;
  bool reached_anchor = false;
};

/// Collect up to `most` frames from `top` to the boundary in recorder.walked, innermost first.
Walk walkFrames(Recorder &recorder, const InterpreterFrame *top, Boundary boundary, uint32_t most) {
  const void *module_call = ModuleTable::callCode();
  Walk walk;
  for (const InterpreterFrame *frame = top; frame && walk.count < most;
       frame = callerFrame(frame)) {
    walk.reached_anchor = boundary.isAt(frame);
    if (walk.reached_anchor && !boundary.is_included) {
      break;
    }
    const PyCodeObject *code = frameCode(frame);
    recorder.walked[walk.count++] = {code, frame->instruction,
                                     code == module_call ? frameFirstLocal(frame) : nullptr};
    if (walk.reached_anchor) {
      break;
    }
  }
  return walk;
}

/// The next frame of a walk, or null past the boundary.
const InterpreterFrame *nextOut(const InterpreterFrame *frame, Boundary boundary) {
  if (boundary.is_included && boundary.isAt(frame)) {
    return nullptr;
  }
  frame = callerFrame(frame);
  return frame && !boundary.is_included && boundary.isAt(frame) ? nullptr : frame;
}

/// The frame from which a walk covers the outermost `most` frames up to the boundary.
const InterpreterFrame *skipInnermost(const InterpreterFrame *top, Boundary boundary,
                                      uint32_t most) {
  const InterpreterFrame *ahead = top;
  for (uint32_t i = 0; ahead && i < most; ++i) {
    ahead = nextOut(ahead, boundary);
  }
  for (; ahead; ahead = nextOut(ahead, boundary)) {
    top = callerFrame(top);
  }
  return top;
}

/// Which anchor of `outer` is the innermost one that is still running; kNoAnchor if none is.
uint8_t runningAnchor(const InterpreterFrame *top, const Level *outer) {
  for (const InterpreterFrame *frame = top; frame; frame = callerFrame(frame)) {
    for (uint8_t i = 0; i < Level::kAnchors; ++i) {
      if (Boundary{&outer->anchors[i], true}.isAt(frame)) {
        return i;
      }
    }
  }
  return Level::kNoAnchor;
}

/// The level that the frames at `top` belong to; `outer` is the one opened last. Scopes of other
/// strands are put aside. An operator ends before its strand waits, so only scopes may wait.
inline const Level *levelFor(Recorder &recorder, const InterpreterFrame *top, const Level *outer) {
  bool is_scope = !outer || outer->kind == LevelKind::kScope;
  if (__builtin_expect(is_scope && mayBeOfAnotherStrand(recorder, outer), 0)) {
    return enterStrand(recorder, top, outer);
  }
  return outer;
}

/// The boundary of a walk below `outer`. The function that opened a scope may have returned; the
/// scope continues in its callers.
Boundary boundaryOf(Recorder &recorder, const InterpreterFrame *top, const Level *outer) {
  if (!outer || outer->kind != LevelKind::kScope) {
    return {outer ? &outer->anchors[0] : nullptr, false};
  }
  recorder.joined_anchor = runningAnchor(top, outer);
  bool is_running = recorder.joined_anchor != Level::kNoAnchor;
  return {&outer->anchors[is_running ? recorder.joined_anchor : 0], true};
}

/// Collect the frames up to `boundary`; the outermost `most` when there are more.
uint32_t walkToLevel(Recorder &recorder, const InterpreterFrame *top, Boundary boundary,
                     uint32_t most) {
  Walk walk = walkFrames(recorder, top, boundary, most);
  if (__builtin_expect(walk.count == most && !walk.reached_anchor, 0)) {
    const InterpreterFrame *outermost = skipInnermost(top, boundary, most);
    if (outermost != top) {
      RecorderCounters::bump(recorder.counters.paths_cut);
      walk = walkFrames(recorder, outermost, boundary, most);
    }
  }
  return walk.count;
}

/// Put the `count` innermost walked frames into the path from `position` on.
Node *extendPath(Recorder &recorder, AddressCaches &caches, Node *parent, uint32_t position,
                 uint32_t count, bool is_folded) {
  // first, so that no entry without a node is valid if memory runs out below
  recorder.path_length = position;
  while (count > 0) {
    const WalkedFrame &seen = recorder.walked[--count];
    PathEntry &entry = recorder.path[position++];
    entry = {seen.instruction, seen.instance, nullptr, is_folded, nullptr, seen.code};
    entry.node = is_folded ? parent : extend(recorder, caches, parent, seen, entry);
    parent = entry.node;
    is_folded = entry.is_folded;
  }
  recorder.path_length = position;
  return parent;
}

/// Put the `left` walked frames into the path below `outer`, keeping the frames shared with the
/// last path.
Node *placeBelow(Recorder &recorder, AddressCaches &caches, const Level *outer, uint32_t left) {
  Node *parent = outer ? outer->node : recorder.tree.root();
  uint32_t position = outer ? outer->path_length : 0;
  bool is_folded = false;
  while (left > 0 && position < recorder.path_length) {
    const WalkedFrame &seen = recorder.walked[left - 1];
    const PathEntry &last = recorder.path[position];
    if (last.instruction != seen.instruction || last.instance != seen.instance) {
      break;
    }
    parent = last.node;
    is_folded = last.is_folded;
    ++position;
    --left;
  }
  return extendPath(recorder, caches, parent, position, left, is_folded);
}

/// Walk a path of another depth completely, keeping the frames shared with the last path.
Node *replacePath(Recorder &recorder, AddressCaches &caches, const InterpreterFrame *top,
                  const Level *outer) {
  Boundary boundary = boundaryOf(recorder, top, outer);
  if (boundary.is_included && recorder.joined_anchor == Level::kNoAnchor) {
    const Level *other = enterStrand(recorder, top, outer);
    if (other != outer) {
      return pythonContext(recorder, top, other);
    }
  }
  uint32_t most = Recorder::kMaxPath - (outer ? outer->path_length : 0);
  uint32_t count = walkToLevel(recorder, top, boundary, most);
  return placeBelow(recorder, caches, outer, count);
}

/// Whether frames newer than `outer` are at the top of the Python stack.
bool hasNewFrames(const InterpreterFrame *top, const Level *outer) {
  return top && (!outer || outer->kind == LevelKind::kScope || outer->anchors[0].frame != top);
}

/// The path of Python and native frames.
Node *mixedContext(Recorder &recorder, const InterpreterFrame *top, const Level *outer,
                   uintptr_t machinery_until) {
  outer = levelFor(recorder, top, outer);
  if (outer && outer->folded) {
    return outer->folded;
  }
  AddressCaches &caches = recorder.extensions.get<AddressCaches>();
  refresh(recorder, caches);
  uint32_t most = Recorder::kMaxPath - (outer ? outer->path_length : 0);
  uint32_t count = 0;
  if (hasNewFrames(top, outer)) {
    Boundary boundary = boundaryOf(recorder, top, outer);
    if (boundary.is_included && recorder.joined_anchor == Level::kNoAnchor) {
      const Level *other = enterStrand(recorder, top, outer);
      if (other != outer) {
        return mixedContext(recorder, top, other, machinery_until);
      }
    }
    count = walkToLevel(recorder, top, boundary, most);
  }
  count = mergeNative(recorder, {top, count, most, outer, machinery_until});
  return placeBelow(recorder, caches, outer, count);
}

} // namespace

Node *pythonContext(Recorder &recorder, const InterpreterFrame *top, const Level *outer) {
  outer = levelFor(recorder, top, outer);
  if (__builtin_expect(outer && outer->folded, 0)) {
    return outer->folded;
  }
  Node *parent = outer ? outer->node : recorder.tree.root();
  if (!hasNewFrames(top, outer)) {
    return parent;
  }
  if (__builtin_expect(NativeFrames::isOn(), 0)) {
    return mixedContext(recorder, top, outer, kOnlyBetweenPythonFrames);
  }
  bool is_in_scope = outer && outer->kind == LevelKind::kScope;
  AddressCaches &caches = recorder.extensions.get<AddressCaches>();
  refresh(recorder, caches);
  Boundary boundary{outer ? &outer->anchors[0] : nullptr, is_in_scope};
  uint32_t begin = outer ? outer->path_length : 0;
  uint32_t first = compareInPlace(recorder, top, boundary, begin);
  if (first == kOtherDepth || recorder.path_length == begin) {
    return replacePath(recorder, caches, top, outer);
  }
  recorder.joined_anchor = 0;
  if (first == recorder.path_length) {
    return recorder.path[first - 1].node;
  }
  if (first > begin) {
    parent = recorder.path[first - 1].node;
  }
  bool is_folded = first > begin && recorder.path[first - 1].is_folded;
  uint32_t count = recorder.path_length - first;
  walkFrames(recorder, top, boundary, count);
  return extendPath(recorder, caches, parent, first, count, is_folded);
}

Node *nativeContext(Recorder &recorder, const InterpreterFrame *top, const Level *outer,
                    const void *machinery_until) {
  bool is_known = recorder.isOnStack(machinery_until);
  return mixedContext(recorder, top, outer,
                      is_known ? reinterpret_cast<uintptr_t>(machinery_until) : 0);
}

namespace {

/// Whether a frame has a node of its own.
bool makesNode(Recorder &recorder, AddressCaches &caches, const InterpreterFrame *frame) {
  CodeRole role = codeEntry(recorder, caches, frameCode(frame)).role;
  return role == CodeRole::kPlain || (role == CodeRole::kModuleCall && frameFirstLocal(frame));
}

} // namespace

void setScopeAnchors(Recorder &recorder, Level *level, const InterpreterFrame *top) {
  const Level *outer = recorder.levelBefore(level);
  level->strand = strandOf(top);
  uint32_t begin = outer ? outer->path_length : 0;
  uint32_t end = hasNewFrames(top, outer) ? level->path_length : begin;
  AddressCaches &caches = recorder.extensions.get<AddressCaches>();
  const Node *above = level->node;
  uint32_t height = 1; // the scope itself
  for (Anchor &anchor : level->anchors) {
    anchor = Anchor();
    if (!top) {
      continue;
    }
    while (end > begin && !recorder.path[end - 1].code) { // native
      --end;
    }
    if (end > begin) {
      const Node *caller = --end > begin ? recorder.path[end - 1].node : level->base;
      for (; above != level->base && above->parent != caller; above = above->parent) {
        ++height;
      }
    } else { // in the path of the outer level, and in this one's if that closes
      height += makesNode(recorder, caches, top);
    }
    anchor = {top, frameCode(top), callerInstruction(top), height};
    // stop at a task's end, because its runner also runs other tasks
    top = level->strand.is_task && top == level->strand.frame ? nullptr : callerFrame(top);
  }
}

const InterpreterFrame *skipScopePlumbing(Recorder &recorder, const InterpreterFrame *top) {
  AddressCaches &caches = recorder.extensions.get<AddressCaches>();
  while (top && codeEntry(recorder, caches, frameCode(top)).role == CodeRole::kScopePlumbing) {
    top = callerFrame(top);
  }
  return top;
}

std::vector<std::pair<const PyCodeObject *, uint32_t>> walkForCheck() {
  std::vector<std::pair<const PyCodeObject *, uint32_t>> frames;
  PyThreadState *state = PyGILState_GetThisThreadState();
  for (const InterpreterFrame *frame = state ? innermostFrame(state) : nullptr; frame;
       frame = callerFrame(frame)) {
    const PyCodeObject *code = frameCode(frame);
    frames.emplace_back(code, instructionOffset(code, frame->instruction));
  }
  return frames;
}

} // namespace deepcontext
