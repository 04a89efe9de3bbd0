#include "torch/calibration.h"

#include <cstring>
#include <pthread.h>

#include "torch/library.h"

namespace deepcontext::torch {

namespace {

constexpr int kWords = 43; // 344 bytes: past the last field of every known layout
constexpr int kFewestSamples = 4;

/// Words of the object that still fit; written by the calibrating thread only.
struct Candidates {
  uint64_t sequence = (1ull << kWords) - 1;
  uint64_t thread = (1ull << kWords) - 1;
  uint64_t inputs = (1ull << (kWords - 1)) - 1;
  int samples = 0;
};

Candidates g_candidates;
pthread_t g_thread;
uint64_t g_handle = 0;
abi::RecordFunctionLayout g_layout;

abi::ObserverContextPtr watchStart(const void *record_function) {
  const Library &library = Library::instance();
  if (!pthread_equal(g_thread, pthread_self()) ||
      std::strcmp(library.name(record_function), "aten::mul") != 0) {
    return nullptr;
  }
  constexpr uint64_t kLowestPointer = 4096;
  constexpr uint64_t kOperands = 2;
  uint64_t words[kWords];
  std::memcpy(words, record_function, sizeof words);
  uint64_t sequence = library.sequence_peek();
  uint64_t thread = library.current_thread();
  for (int i = 0; i < kWords; ++i) {
    uint64_t bit = 1ull << i;
    if (words[i] != sequence) {
      g_candidates.sequence &= ~bit;
    }
    if (words[i] != thread) {
      g_candidates.thread &= ~bit;
    }
    if (i + 1 < kWords && !(words[i] > kLowestPointer && words[i + 1] == kOperands)) {
      g_candidates.inputs &= ~bit;
    }
  }
  g_candidates.samples++;
  return nullptr;
}

void watchEnd(const void *, abi::ObserverContext *) {}

/// Byte offset of the only candidate left, or -1.
int onlyOffset(uint64_t candidates) {
  return __builtin_popcountll(candidates) == 1 ? 8 * __builtin_ctzll(candidates) : -1;
}

std::string describe(const abi::RecordFunctionLayout &layout) {
  return "sequence " + std::to_string(layout.sequence) + ", thread " +
         std::to_string(layout.thread) + ", inputs " + std::to_string(layout.inputs);
}

} // namespace

bool beginCalibration(std::string *reason) {
  if (g_handle != 0) {
    *reason = "a calibration is already running";
    return false;
  }
  g_candidates = Candidates();
  g_thread = pthread_self();
  abi::RecordFunctionCallback callback;
  callback.start = watchStart;
  callback.end = watchEnd;
  callback.scopes[abi::kScopeFunction] = true;
  callback.needs_inputs = true;
  g_handle = Library::instance().add_global_callback(callback);
  return true;
}

bool finishCalibration(std::string *reason) {
  Library::instance().remove_callback(g_handle);
  g_handle = 0;
  if (g_candidates.samples < kFewestSamples) {
    *reason = "calibration saw " + std::to_string(g_candidates.samples) +
              " operator calls, expected at least " + std::to_string(kFewestSamples);
    return false;
  }
  abi::RecordFunctionLayout found;
  found.sequence = onlyOffset(g_candidates.sequence);
  found.thread = onlyOffset(g_candidates.thread);
  found.inputs = onlyOffset(g_candidates.inputs);
  found.scope = found.thread + abi::kScopeAfterThread;
  found.forward_thread = found.sequence + abi::kForwardThreadAfterSequence;
  for (const abi::RecordFunctionLayout &known : abi::kKnownLayouts) {
    if (found == known) {
      g_layout = found;
      return true;
    }
  }
  *reason = "the layout of at::RecordFunction is not one that was verified (found byte offsets: " +
            describe(found) + ")";
  return false;
}

const abi::RecordFunctionLayout &foundLayout() {
  return g_layout;
}

} // namespace deepcontext::torch
