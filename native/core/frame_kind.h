#pragma once
// Layers of a program; the values are the file format's (src/deepcontext/profiler/format/frame.py).
#include <cstdint>

namespace deepcontext {

enum class FrameKind : uint8_t {
  kRoot = 0,
  kThread = 1,
  kPython = 2,
  kScope = 3,
  kModule = 4,
  kOperator = 5,
  kPhase = 6,
  kNative = 7,
  kGpuApi = 8,
  kKernel = 9,
  kCopy = 10,
  kGraph = 11,
  kStall = 12,
  kHlo = 13,
  kMarker = 14,
  kRank = 15, // in merged profiles, which Python writes; never recorded
  // Internal to the core: stands for a node of another thread's tree, which replaces it when the
  // trees are merged (a = recorder, b = node id).
  kLink = 255,
};

/// What an operator is part of; the values are the file format's.
enum class Phase : uint8_t {
  kNone = 0,
  kForward = 1,
  kBackward = 2,
  kRecompute = 3,
  kOptimizer = 4,
  kDataLoading = 5,
  kOther = 6,
};

/// The phase of a compiled program's operation; those of the file format have more names in Python.
constexpr const char *phaseName(Phase phase) {
  switch (phase) {
  case Phase::kForward:
    return "forward";
  case Phase::kBackward:
    return "backward";
  case Phase::kRecompute:
    return "recompute";
  default:
    return "none";
  }
}

/// Facts about a node that are not part of its identity; merged nodes have the flags of all.
enum NodeFlag : uint8_t {
  kFlagBackward = 1,  // a framework ran it as part of a backward pass
  kFlagSequenced = 2, // autograd gave it a sequence number: a backward may follow
  kFlagFolding = 4,   // a marker that replaces all contexts inside it
  kFlagOptimizer = 8, // a scope in which an optimizer changes the parameters
  kFlagLoading = 16,  // a scope in which data is loaded
  kFlagGraph = 32,    // an operator that made nodes of autograd's graph
  kFlagStep = 64,     // may end a step, see Steps; of a module: an operator in it does
};

} // namespace deepcontext
