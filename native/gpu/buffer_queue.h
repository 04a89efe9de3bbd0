#pragma once
// Activity buffers between the vendor's thread and the profiler's.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "core/condition.h"

namespace deepcontext::gpu {

/// A buffer that the vendor has filled.
struct FilledBuffer {
  uint8_t *data;
  size_t bytes;
  size_t valid_bytes;
};

/// Hands out buffers up to a hard limit, takes them back filled, and reads them one at a time on
/// its own thread. `take` and `put` may be called on any thread and never wait for a reader.
///
/// The thread starts with the first filled buffer and does not exist during a fork, so that the
/// collector adds no thread to a program that forks.
class BufferQueue {
public:
  using Read = std::function<void(const FilledBuffer &)>;

  /// `limit_bytes` covers buffers handed out, waiting and free.
  void configure(size_t buffer_bytes, size_t limit_bytes, Read read);
  size_t bufferBytes() const { return buffer_bytes_; }
  /// An empty buffer of bufferBytes(); null at the limit unless `beyond_limit`.
  uint8_t *take(bool beyond_limit);
  void put(const FilledBuffer &buffer);
  /// Wait until everything put so far was read; false after `seconds`.
  bool waitUntilRead(double seconds);
  /// Read what waits, end the thread and free the buffers that came back.
  void stop();

  /// Free a buffer that came back when no session reads it.
  void discard(const FilledBuffer &buffer);
  /// Buffers that came back and that another tool had handed out. They are read, because their
  /// records are of this process, and left alone.
  uint64_t foreign() const { return foreign_.load(std::memory_order_relaxed); }

  void beforeFork();
  void afterFork(); // in parent and child

private:
  void run();
  void release(const FilledBuffer &buffer);
  void recycle(const FilledBuffer &buffer);
  void freeOwn(uint8_t *buffer);
  void startThread();
  void endThread(std::unique_lock<std::mutex> &lock);

  std::mutex mutex_;
  Condition wake_;
  Condition read_one_;
  std::deque<FilledBuffer> filled_;
  std::vector<uint8_t *> free_;
  Read read_;
  std::thread thread_;
  bool is_ending_ = false;
  bool is_reading_ = false;
  size_t buffer_bytes_ = 4u << 20;
  size_t limit_bytes_ = 64u << 20;
  size_t allocated_bytes_ = 0;
  std::unordered_map<uint8_t *, size_t> own_; // bytes of each buffer that was allocated here
  std::atomic<uint64_t> foreign_{0};
};

} // namespace deepcontext::gpu
