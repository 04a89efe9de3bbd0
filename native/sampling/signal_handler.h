#pragma once
// The only code of the sampler that runs inside a signal handler.
#include <csignal>
#include <cstdint>

#include "sampling/sample.h"

namespace deepcontext {

/// The signal that asks a thread for a sample. Its default action is to be ignored, so that one
/// that arrives after a program has put the default back (or after the session) does nothing;
/// nothing else that may be sent to a thread at any time has that property and is free to use.
constexpr int kSampleSignal = SIGURG;

/// Slots by number; a signal carries one. The sampler fills it, from the first on.
class SampleSlots {
public:
  static constexpr uint32_t kMost = 4096;

  /// A slot by number, or null. Async-signal-safe.
  static SampleSlot *at(uint32_t number) {
    return number < kMost ? slots_[number].load(std::memory_order_acquire) : nullptr;
  }
  /// Sampler's thread only. The memory is never given back: a signal may be under way.
  static void put(uint32_t number, SampleSlot *slot) {
    slots_[number].store(slot, std::memory_order_release);
  }

private:
  static std::atomic<SampleSlot *> slots_[kMost];
};

/// Take the signal if nobody has: false when the program handles or ignores it itself.
bool takeSampleSignal();
/// Whether the signal still comes to us.
bool ownsSampleSignal();
/// Give it back, unless the program has taken it. Async-signal-safe.
void returnSampleSignal();
/// Ask the slot's thread for a sample; false when it is gone.
bool askForSample(uint32_t slot_number, int thread);

} // namespace deepcontext
