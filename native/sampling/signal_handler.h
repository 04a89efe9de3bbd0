#pragma once
// The sampler's signal, its slots and its handler.
#include <csignal>
#include <cstdint>

#include "sampling/sample.h"

namespace deepcontext {

/// The signal that asks a thread for a sample. By default it is ignored, so that one that arrives
/// after the program has restored the default (or after the session) has no effect. No other free
/// signal has that property.
constexpr int kSampleSignal = SIGURG;

/// Slots by number; a signal carries a number.
class SampleSlots {
public:
  static constexpr uint32_t kMost = 4096;

  /// A slot by number, or null. Async-signal-safe.
  static SampleSlot *at(uint32_t number) {
    return number < kMost ? slots_[number].load(std::memory_order_acquire) : nullptr;
  }
  /// Sampler's thread only. The memory is never freed, because a signal may be pending.
  static void put(uint32_t number, SampleSlot *slot) {
    slots_[number].store(slot, std::memory_order_release);
  }

private:
  static std::atomic<SampleSlot *> slots_[kMost];
};

/// Take the signal; false when the program handles or ignores it.
bool takeSampleSignal();
/// Whether the sampler still handles the signal.
bool ownsSampleSignal();
/// Restore the default, unless the program has taken the signal. Async-signal-safe.
void returnSampleSignal();
/// Ask the slot's thread for a sample; false when it has ended.
bool askForSample(uint32_t slot_number, int thread);

} // namespace deepcontext
