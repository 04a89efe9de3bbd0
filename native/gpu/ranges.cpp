#include "gpu/ranges.h"

#include <algorithm>
#include <atomic>
#include <string_view>

#include "core/interner.h"

namespace deepcontext::gpu {

namespace {

constexpr int kDeepest = 256;
constexpr std::string_view kHloMark = "hlo_op=";

/// The open ranges of a thread; the address of an entry identifies the level to the recorder.
struct OpenRanges {
  char owners[kDeepest];
  int count = 0;
  uint64_t session = 0;
};
thread_local OpenRanges t_open;

void openPlain(Recorder &recorder, FrameKind kind, uint32_t name, const void *owner) {
  Level *outer = recorder.innermost();
  Node *parent = outer ? outer->node : recorder.tree.root();
  recorder.open(LevelKind::kScope, recorder.tree.child(parent, kind, name, 0), owner,
                [](Level *level) {
                  std::fill_n(level->anchors, Level::kAnchors, Anchor());
                  level->strand = Strand();
                });
}

std::atomic<RangeOpener> g_opener{openPlain};

} // namespace

void setRangeOpener(RangeOpener opener) {
  g_opener.store(opener, std::memory_order_relaxed);
}

void pushRange(const char *message) {
  if (!RecorderRegistry::isRecording()) {
    return;
  }
  OpenRanges &open = t_open;
  if (open.session != RecorderRegistry::generation()) {
    open.count = 0;
    open.session = RecorderRegistry::generation();
  }
  if (open.count >= kDeepest) {
    ++open.count;
    return;
  }
  std::string_view text = message ? message : "";
  FrameKind kind = FrameKind::kScope;
  size_t mark = text.find(kHloMark);
  if (mark != std::string_view::npos) {
    kind = FrameKind::kHlo;
    text.remove_prefix(mark + kHloMark.size());
    text = text.substr(0, text.find_first_of(",#"));
  }
  const void *owner = &open.owners[open.count++];
  g_opener.load(std::memory_order_relaxed)(RecorderRegistry::current(), kind,
                                           Interner::instance().internBounded(text), owner);
}

void popRange() {
  OpenRanges &open = t_open;
  if (open.count == 0 || open.session != RecorderRegistry::generation()) {
    return;
  }
  if (--open.count >= kDeepest) {
    return;
  }
  if (Recorder *recorder = RecorderRegistry::currentOrNull()) {
    recorder->close(&open.owners[open.count], ticks());
  }
}

} // namespace deepcontext::gpu
