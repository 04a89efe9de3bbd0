#pragma once
// Ranges that a program or framework marks through the vendor's own interface (roctx, NVTX).
#include <cstdint>

#include "core/recorder.h"

namespace deepcontext::gpu {

/// Opens a level on the calling thread; set once by the layer that walks Python frames.
using RangeOpener = void (*)(Recorder &recorder, FrameKind kind, uint32_t name, const void *owner);
void setRangeOpener(RangeOpener opener);

/// Begin a range on the calling thread; `message` may be null. XLA's ranges, such as
/// "TSL:Thunk:#name=fusion,hlo_op=fusion.3#", become HLO frames named by their op.
void pushRange(const char *message);
/// End the calling thread's innermost range, if there is one.
void popRange();

} // namespace deepcontext::gpu
