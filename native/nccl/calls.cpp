#include "nccl/calls.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unistd.h>

namespace deepcontext::nccl {

namespace {

constexpr uint32_t kMask =
    abi::nccl::kColl | abi::nccl::kP2p | abi::nccl::kProxyOp | abi::nccl::kKernelCh;
constexpr int kPlaceShift = 2;
constexpr int kGenerationShift = 32;

/// Bytes of an element: the first number in NCCL's name of its type is that of its bits.
uint64_t elementBytes(const char *type) {
  uint64_t bits = 0;
  while (type && *type != '\0' && (*type < '0' || *type > '9')) {
    ++type;
  }
  for (; type && *type >= '0' && *type <= '9' && bits < 1024; ++type) {
    bits = bits * 10 + static_cast<uint64_t>(*type - '0');
  }
  return bits / 8;
}

/// Whether NCCL counts the elements of one rank's part, of which the larger side has one for each.
bool countsParts(const char *function) {
  for (const char *each : {"AllGather", "ReduceScatter", "AlltoAll", "Gather", "Scatter"}) {
    if (function && std::strcmp(function, each) == 0) {
      return true;
    }
  }
  return false;
}

uint8_t bitsOf(uint64_t value) {
  return value == 0 ? 0 : static_cast<uint8_t>(64 - __builtin_clzll(value));
}

} // namespace

/// Run `work` with the lock, or drop it.
template <typename Work> void Calls::briefly(const Work &work) {
  if (!lock_.tryLock()) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  work();
  lock_.unlock();
}

void Calls::begin() {
  if (process_ != getpid()) { // its holder does not exist in a forked child
    process_ = getpid();
    lock_.unlock();
  }
  std::lock_guard<SpinLock> guard(lock_);
  is_counting_ = true;
  dropped_.store(0, std::memory_order_relaxed);
  late_ = 0;
  sum_count_ = 0;
  if (living_ == 0) { // otherwise NCCL has their indices
    communicator_count_ = 0;
  }
  for (Open &open : open_) {
    ++open.generation; // NCCL may still have handles of the last session
  }
  if (mask_) {
    __atomic_store_n(mask_, static_cast<int>(kMask), __ATOMIC_RELAXED);
  }
}

void Calls::end() {
  std::lock_guard<SpinLock> guard(lock_);
  is_counting_ = false;
  if (mask_) {
    __atomic_store_n(mask_, 0, __ATOMIC_RELAXED);
  }
}

Calls::Reading Calls::read() {
  Reading reading;
  reading.communicators.reserve(kMostCommunicators); // memory is not asked for under the lock
  reading.names.reserve(kMostNames);
  reading.sums.reserve(kMostSums);
  std::lock_guard<SpinLock> guard(lock_);
  reading.communicators.assign(communicators_.begin(),
                               communicators_.begin() + communicator_count_);
  reading.names.assign(names_.begin(), names_.begin() + name_count_);
  reading.sums.assign(sums_.begin(), sums_.begin() + sum_count_);
  reading.dropped = dropped_.load(std::memory_order_relaxed);
  reading.late = late_;
  return reading;
}

uint32_t Calls::open(const Communicator &communicator, int *mask) {
  std::lock_guard<SpinLock> guard(lock_);
  ++living_;
  mask_ = mask;
  if (mask_) {
    __atomic_store_n(mask_, is_counting_ ? static_cast<int>(kMask) : 0, __ATOMIC_RELAXED);
  }
  const Communicator *begin = communicators_.data();
  const Communicator *end = begin + communicator_count_;
  const Communicator *known = std::find_if(begin, end, [&](const Communicator &each) {
    return each.id == communicator.id && each.rank == communicator.rank;
  });
  if (known == end && communicator_count_ == kMostCommunicators) {
    return 0;
  }
  auto index = static_cast<uint32_t>(known - begin);
  if (known == end) {
    communicators_[communicator_count_++] = communicator;
  }
  return index + 1;
}

void Calls::close() {
  std::lock_guard<SpinLock> guard(lock_);
  living_ -= living_ > 0;
  if (living_ == 0) {
    mask_ = nullptr;
  }
}

Calls::Handle Calls::collective(uint32_t communicator, const abi::nccl::Coll &call) {
  Handle handle = 0;
  briefly([&] {
    CallSum key;
    uint64_t parts = 1;
    if (communicator > 0 && countsParts(call.function)) {
      parts = static_cast<uint64_t>(std::max(communicators_[communicator - 1].ranks, 1));
    }
    key.communicator = static_cast<uint16_t>(communicator);
    if (nameOf(call.function, &key.function) && nameOf(call.algorithm, &key.algorithm) &&
        nameOf(call.protocol, &key.protocol)) {
      handle = add(key, call.count * elementBytes(call.type) * parts, call.channels);
    }
  });
  return handle;
}

Calls::Handle Calls::transfer(uint32_t communicator, const abi::nccl::P2p &call) {
  Handle handle = 0;
  briefly([&] {
    CallSum key;
    key.communicator = static_cast<uint16_t>(communicator);
    if (nameOf(call.function, &key.function) && nameOf("", &key.algorithm) &&
        nameOf("", &key.protocol)) {
      handle = add(key, call.count * elementBytes(call.type), call.channels);
    }
  });
  return handle;
}

Calls::Handle Calls::beginChannel(Handle call, uint64_t start_ns) {
  Handle handle = 0;
  briefly([&] {
    if (Open *open = find(call)) {
      bool is_first = open->kernel_start_ns == 0 || start_ns < open->kernel_start_ns;
      open->kernel_start_ns = is_first ? start_ns : open->kernel_start_ns;
      handle = (call & ~kPartMask) | kChannel;
    }
  });
  return handle;
}

void Calls::endChannel(Handle channel, uint64_t end_ns) {
  briefly([&] {
    Open *open = find(channel);
    if (!open) {
      return;
    }
    open->kernel_end_ns = std::max(open->kernel_end_ns, end_ns);
    if (++open->ended != open->channels || open->kernel_end_ns < open->kernel_start_ns) {
      return;
    }
    CallSum &sum = sums_[open->sum];
    uint64_t ns = open->kernel_end_ns - open->kernel_start_ns;
    sum.shortest_ns = sum.timed == 0 ? ns : std::min(sum.shortest_ns, ns);
    sum.longest_ns = std::max(sum.longest_ns, ns);
    sum.kernel_ns += ns;
    sum.timed_bytes += open->bytes;
    ++sum.timed;
  });
}

Calls::Handle Calls::beginProxy(Handle call, uint64_t now_ns) {
  Handle handle = 0;
  briefly([&] {
    if (Open *open = find(call)) {
      open->proxy_start_ns = open->proxies++ == 0 ? now_ns : open->proxy_start_ns;
      sums_[open->sum].proxied += !open->had_proxy;
      open->had_proxy = true;
      handle = (call & ~kPartMask) | kProxy;
    }
  });
  return handle;
}

void Calls::endProxy(Handle proxy, uint64_t now_ns) {
  briefly([&] {
    Open *open = find(proxy);
    if (open && open->proxies > 0 && --open->proxies == 0 && now_ns > open->proxy_start_ns) {
      sums_[open->sum].proxy_ns += now_ns - open->proxy_start_ns;
    }
  });
}

/// Count a call. The lock is held.
Calls::Handle Calls::add(const CallSum &key, uint64_t bytes, uint8_t channels) {
  CallSum of_size = key;
  of_size.size_class = bitsOf(bytes);
  CallSum *sum = is_counting_ ? sumOf(of_size) : nullptr;
  if (!sum) {
    dropped_.fetch_add(is_counting_, std::memory_order_relaxed);
    return 0;
  }
  ++sum->calls;
  sum->bytes += bytes;
  uint32_t place = next_++ % kMostOpen;
  Open &open = open_[place];
  uint32_t generation = open.generation + 1;
  open = Open();
  open.generation = generation;
  open.sum = static_cast<uint16_t>(sum - sums_.data());
  open.channels = channels;
  open.bytes = bytes;
  return static_cast<Handle>(generation) << kGenerationShift | static_cast<Handle>(place + 1)
                                                                   << kPlaceShift;
}

CallSum *Calls::sumOf(const CallSum &key) {
  CallSum *end = sums_.data() + sum_count_;
  CallSum *known =
      std::find_if(sums_.data(), end, [&](const CallSum &each) { return each.isOf(key); });
  if (known == end && sum_count_ == kMostSums) {
    return nullptr;
  }
  if (known == end) {
    sums_[sum_count_++] = key;
  }
  return known;
}

/// False when there are too many names.
bool Calls::nameOf(const char *text, uint8_t *index) {
  text = text ? text : "";
  for (uint32_t i = 0; i < name_count_; ++i) {
    if (std::strncmp(names_[i].data(), text, kNameBytes - 1) == 0) {
      *index = static_cast<uint8_t>(i);
      return true;
    }
  }
  if (name_count_ == kMostNames) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  std::strncpy(names_[name_count_].data(), text, kNameBytes - 1);
  *index = static_cast<uint8_t>(name_count_++);
  return true;
}

/// The call of a handle; null if it is forgotten. The lock is held.
Calls::Open *Calls::find(Handle handle) {
  uint64_t place = (handle & 0xFFFFFFFF) >> kPlaceShift;
  if (place == 0 || place > kMostOpen || !is_counting_) {
    return nullptr;
  }
  Open &open = open_[place - 1];
  if (open.generation != handle >> kGenerationShift) {
    ++late_;
    return nullptr;
  }
  return &open;
}

} // namespace deepcontext::nccl
