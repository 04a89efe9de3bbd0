#include "sampling/thread_names.h"

namespace deepcontext {

ThreadNames &ThreadNames::instance() {
  static ThreadNames *const names = new ThreadNames();
  return *names;
}

void ThreadNames::clear() {
  std::lock_guard<Mutex> lock(mutex_);
  last_ = kShared;
  handles_.clear();
  labels_.clear();
}

uint32_t ThreadNames::add(uint64_t handle) {
  std::lock_guard<Mutex> lock(mutex_);
  if (handle == 0 || last_ == kMost) {
    return kShared;
  }
  handles_[++last_] = handle;
  return last_;
}

void ThreadNames::end(uint32_t serial) {
  std::lock_guard<Mutex> lock(mutex_);
  handles_.erase(serial);
}

void ThreadNames::name(const std::map<uint64_t, std::string> &by_handle) {
  std::lock_guard<Mutex> lock(mutex_);
  for (const auto &[serial, handle] : handles_) {
    auto named = by_handle.find(handle);
    if (named != by_handle.end()) {
      labels_[serial] = named->second;
    }
  }
}

std::string ThreadNames::label(uint32_t serial) const {
  std::lock_guard<Mutex> lock(mutex_);
  auto named = labels_.find(serial);
  return named == labels_.end() ? std::string() : named->second;
}

} // namespace deepcontext
