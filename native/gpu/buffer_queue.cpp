#include "gpu/buffer_queue.h"

#include <algorithm>
#include <cstdlib>

#include "core/guard.h"
#include "core/internal_thread.h"

namespace deepcontext::gpu {

namespace {

constexpr size_t kAlignment = 64; // a cache line; CUPTI requires 8

} // namespace

void BufferQueue::configure(size_t buffer_bytes, size_t limit_bytes, Read read) {
  std::lock_guard<std::mutex> lock(mutex_);
  buffer_bytes_ = (buffer_bytes + kAlignment - 1) / kAlignment * kAlignment;
  limit_bytes_ = limit_bytes;
  read_ = std::move(read);
}

uint8_t *BufferQueue::take(bool beyond_limit) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!free_.empty()) {
    uint8_t *buffer = free_.back();
    free_.pop_back();
    return buffer;
  }
  if (allocated_bytes_ + buffer_bytes_ > limit_bytes_ && !beyond_limit) {
    return nullptr;
  }
  auto *buffer = static_cast<uint8_t *>(std::aligned_alloc(kAlignment, buffer_bytes_));
  if (buffer) {
    own_[buffer] = buffer_bytes_;
    allocated_bytes_ += buffer_bytes_;
  }
  return buffer;
}

void BufferQueue::put(const FilledBuffer &buffer) {
  std::lock_guard<std::mutex> lock(mutex_);
  filled_.push_back(buffer);
  startThread();
  wake_.notifyOne();
}

void BufferQueue::startThread() {
  if (!filled_.empty() && !thread_.joinable() && !is_ending_) {
    thread_ = startInternalThread([this] { run(); });
  }
}

void BufferQueue::discard(const FilledBuffer &buffer) {
  std::lock_guard<std::mutex> lock(mutex_);
  release(buffer);
}

void BufferQueue::release(const FilledBuffer &buffer) {
  if (own_.count(buffer.data)) {
    freeOwn(buffer.data);
  } else {
    foreign_.fetch_add(1, std::memory_order_relaxed);
  }
}

void BufferQueue::freeOwn(uint8_t *buffer) {
  auto known = own_.find(buffer);
  allocated_bytes_ -= known->second;
  own_.erase(known);
  std::free(buffer);
}

/// A buffer that the vendor kept since an earlier session may have another size.
void BufferQueue::recycle(const FilledBuffer &buffer) {
  if (buffer.bytes == buffer_bytes_ && own_.count(buffer.data)) {
    free_.push_back(buffer.data);
  } else {
    release(buffer);
  }
}

void BufferQueue::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return is_ending_ || !filled_.empty(); });
    if (filled_.empty()) {
      return;
    }
    FilledBuffer buffer = filled_.front();
    filled_.pop_front();
    is_reading_ = true;
    lock.unlock();
    guarded([&] { read_(buffer); }); // a buffer that cannot be read must not end the thread
    lock.lock();
    is_reading_ = false;
    recycle(buffer);
    read_one_.notifyAll();
  }
}

bool BufferQueue::waitUntilRead(double seconds) {
  std::unique_lock<std::mutex> lock(mutex_);
  startThread(); // a fork may have ended it
  return read_one_.waitFor(lock, seconds, [this] { return filled_.empty() && !is_reading_; });
}

void BufferQueue::endThread(std::unique_lock<std::mutex> &lock) {
  if (!thread_.joinable()) {
    return;
  }
  is_ending_ = true;
  wake_.notifyAll();
  lock.unlock();
  thread_.join();
  lock.lock();
  thread_ = std::thread();
  is_ending_ = false;
}

void BufferQueue::stop() {
  std::unique_lock<std::mutex> lock(mutex_);
  endThread(lock);
  while (!filled_.empty()) { // buffers that came while the thread was ending
    FilledBuffer buffer = filled_.front();
    filled_.pop_front();
    lock.unlock();
    guarded([&] { read_(buffer); });
    lock.lock();
    recycle(buffer);
  }
  for (uint8_t *buffer : free_) {
    freeOwn(buffer);
  }
  free_.clear();
}

void BufferQueue::beforeFork() {
  std::unique_lock<std::mutex> lock(mutex_);
  endThread(lock);
  lock.release(); // held across the fork, so that the child's queue is consistent
}

void BufferQueue::afterFork() {
  mutex_.unlock();
}

} // namespace deepcontext::gpu
