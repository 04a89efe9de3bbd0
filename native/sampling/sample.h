#pragma once
// A thread's answer to the request for a sample.
#include <atomic>
#include <cstdint>

#include "sampling/page_reader.h"
#include "unwind/registers.h"

namespace deepcontext {

class Recorder;
struct Node;

/// One Python frame, as opaque addresses of objects that are not kept alive.
struct SampledFrame {
  const void *code;
  const void *instruction;
  const void *instance; // the frame's first local where it is a module's call, else null
};

/// The place a thread is at. Frames are a ring, innermost first; of a deeper stack it keeps the
/// outermost frames.
struct SampledContext {
  static constexpr uint32_t kMaxFrames = 2048;

  Recorder *recorder; // of the thread; null when it has recorded nothing
  Node *base;         // of the recorder's tree: the scope that the frames hang below, or null
  bool is_in_operator;
  bool holds_gil;
  bool has_ended_wait;     // the signal ended a system call that the kernel does not restart
  bool is_garbled;         // a frame could not be read: the interpreter was changing it
  uint32_t frame_count;    // walked, kept or not
  uint64_t code_deaths;    // CodeTable::deaths() before the walk
  uint64_t operator_ticks; // the thread has spent in operators so far
  const void *activation; // on the C stack, in the innermost call of the interpreter; null for none
  const void *thread_state;
  SampledFrame frames[kMaxFrames];

  const SampledFrame &frame(uint32_t position) const { return frames[position % kMaxFrames]; }
  uint32_t keptFrames() const { return frame_count < kMaxFrames ? frame_count : kMaxFrames; }
};

/// The inner end of a thread's C stack: where the interpreter's innermost call is further out, the
/// native functions are not known.
struct SampledStack {
  static constexpr uint32_t kMostBytes = 64 * 1024; // numpy.c_einsum takes 30
  static constexpr uint32_t kBytesOfCall = 4096; // more than a frame of the interpreter's function

  unwind::Registers at; // of the interrupted instruction
  uint32_t bytes = 0;   // copied from at.sp on
  alignas(8) char content[kMostBytes];
};

/// Exchange between the sampler and a thread. The sampler sets `thread` and asks; the thread's
/// signal handler answers once.
struct SampleSlot {
  enum State : uint32_t { kIdle, kAsked, kAnswering, kAnswered };

  std::atomic<uint32_t> state{kIdle};
  std::atomic<int> thread{0}; // in the kernel's numbers
  uint64_t wall_ns = 0;       // CLOCK_MONOTONIC
  uint64_t cpu_ns = 0;        // of the thread
  bool wants_stack = false;   // of the question; otherwise the answer has no copy
  SampledContext context{};
  SampledStack stack; // its content is not written before it is used
  PageReader reader;  // emptied before the thread is asked
};

} // namespace deepcontext
