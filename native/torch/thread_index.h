#pragma once
// Maps torch's thread numbers to recorders, readable without a lock.
#include <atomic>
#include <cstdint>
#include <memory>

#include "core/recorder.h"

namespace deepcontext::torch {

/// torch numbers threads 1, 2, 3 ... at their first operator. Two levels of fixed arrays hold 2^20
/// threads. Later threads are not found, and backward operators of their forward operators stay
/// under their own path.
class ThreadIndex {
public:
  static ThreadIndex &instance() {
    static ThreadIndex *const index = new ThreadIndex();
    return *index;
  }

  /// The recorder of a thread in the running session, or null.
  Recorder *find(uint64_t thread) const {
    if (thread >= kBlocks * kBlockSlots) {
      return nullptr;
    }
    const Block *block = blocks_[thread / kBlockSlots].load(std::memory_order_acquire);
    Recorder *recorder =
        block ? block->slots[thread % kBlockSlots].load(std::memory_order_acquire) : nullptr;
    // A thread that has not recorded in this session has the last session's nodes.
    return recorder && recorder->isOf(RecorderRegistry::generation()) ? recorder : nullptr;
  }

  void store(uint64_t thread, Recorder *recorder) {
    if (thread >= kBlocks * kBlockSlots) {
      return;
    }
    std::atomic<Block *> &place = blocks_[thread / kBlockSlots];
    Block *block = place.load(std::memory_order_acquire);
    if (!block) {
      auto fresh = std::make_unique<Block>();
      if (place.compare_exchange_strong(block, fresh.get())) {
        block = fresh.release();
      }
    }
    block->slots[thread % kBlockSlots].store(recorder, std::memory_order_release);
  }

private:
  static constexpr uint64_t kBlockSlots = 1024;
  static constexpr uint64_t kBlocks = 1024;
  struct Block {
    std::atomic<Recorder *> slots[kBlockSlots] = {};
  };
  std::atomic<Block *> blocks_[kBlocks] = {};
};

} // namespace deepcontext::torch
