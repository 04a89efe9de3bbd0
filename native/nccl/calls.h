#pragma once
// What NCCL's profiler interface says of collectives: sums by operation, algorithm and size.
#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "abi/nccl.h"
#include "core/spin_lock.h"

namespace deepcontext::nccl {

/// A communicator of which this process is a member.
struct Communicator {
  uint64_t id = 0; // NCCL's, the same on all members
  int32_t ranks = 0;
  int32_t rank = 0;
  int32_t nodes = 0;
};

/// Calls of one operation with one algorithm and protocol, whose sizes lie between two powers of
/// two.
struct CallSum {
  uint16_t communicator = 0;
  uint8_t function = 0; // names, by index
  uint8_t algorithm = 0;
  uint8_t protocol = 0;
  uint8_t size_class = 0; // number of bits of the bytes
  uint64_t calls = 0;
  uint64_t bytes = 0;
  uint64_t timed = 0;       // calls whose kernel's times are known
  uint64_t timed_bytes = 0; // of these
  uint64_t kernel_ns = 0;   // from the first channel's begin to the last one's end
  uint64_t shortest_ns = 0;
  uint64_t longest_ns = 0;
  uint64_t proxied = 0; // calls for which a proxy thread worked
  uint64_t proxy_ns = 0;

  bool isOf(const CallSum &other) const {
    return communicator == other.communicator && function == other.function &&
           algorithm == other.algorithm && protocol == other.protocol &&
           size_class == other.size_class;
  }
};

/// All calls of a session, in bounded memory (below 160 kB, of a process that uses NCCL). Called by
/// NCCL on threads of the program, on its proxy threads and on threads of CUDA.
///
/// Never blocks: a thread that cannot have the lock within some hundred tries drops its event and
/// counts it. Never allocates. What NCCL keeps of an event is a number, never an address; one that
/// is too old is refused.
class Calls {
public:
  using Handle = uint64_t; // 0: none
  static constexpr uint32_t kMostCommunicators = 64;
  static constexpr uint32_t kMostSums = 512;
  static constexpr uint32_t kMostNames = 64;
  static constexpr uint32_t kNameBytes = 24;
  static constexpr uint32_t kMostOpen = 1024;

  struct Reading {
    std::vector<Communicator> communicators;
    std::vector<std::array<char, kNameBytes>> names;
    std::vector<CallSum> sums;
    uint64_t dropped = 0; // events: the lock was taken, or a table was full
    uint64_t late = 0;    // events of calls that were forgotten meanwhile
  };

  static Calls &instance() {
    static Calls *const calls = new Calls();
    return *calls;
  }

  /// Begin to count, or begin anew. One thread.
  void begin();
  /// Count no more. One thread.
  void end();
  Reading read();

  /// NCCL makes a communicator; `mask` is where it keeps which events are asked for. Returns the
  /// communicator's index plus one; 0 where there are too many.
  uint32_t open(const Communicator &communicator, int *mask);
  /// NCCL has no communicator any more, and may be unloaded.
  void close();

  Handle collective(uint32_t communicator, const abi::nccl::Coll &call);
  Handle transfer(uint32_t communicator, const abi::nccl::P2p &call);
  /// A channel of the call's kernel has begun, or a proxy thread its work.
  Handle beginChannel(Handle call, uint64_t start_ns);
  void endChannel(Handle channel, uint64_t end_ns);
  Handle beginProxy(Handle call, uint64_t now_ns);
  void endProxy(Handle proxy, uint64_t now_ns);

  static constexpr bool isProxy(Handle handle) { return (handle & kPartMask) == kProxy; }

private:
  // A handle: generation (32 bits) | place plus one (16) | part.
  static constexpr uint32_t kPartBits = 2;
  static constexpr Handle kPartMask = (1u << kPartBits) - 1;
  static constexpr Handle kChannel = 1;
  static constexpr Handle kProxy = 2;

  /// A call that has been launched.
  struct Open {
    uint32_t generation = 0;
    uint16_t sum = 0;
    uint8_t channels = 0; // of its kernel
    uint8_t ended = 0;    // of these
    uint64_t bytes = 0;
    uint64_t kernel_start_ns = 0;
    uint64_t kernel_end_ns = 0;
    uint32_t proxies = 0; // that work for it
    bool had_proxy = false;
    uint64_t proxy_start_ns = 0;
  };

  template <typename Work> void briefly(const Work &work);
  Handle add(const CallSum &key, uint64_t bytes, uint8_t channels);
  CallSum *sumOf(const CallSum &key);
  bool nameOf(const char *text, uint8_t *index);
  Open *find(Handle handle);

  SpinLock lock_;
  int process_ = 0;
  std::atomic<uint64_t> dropped_{0};
  uint64_t late_ = 0;
  bool is_counting_ = false;
  int *mask_ = nullptr; // NCCL's, the same for all communicators
  uint32_t living_ = 0; // communicators
  std::array<Communicator, kMostCommunicators> communicators_;
  uint32_t communicator_count_ = 0;
  std::array<std::array<char, kNameBytes>, kMostNames> names_{};
  uint32_t name_count_ = 0;
  std::array<CallSum, kMostSums> sums_;
  uint32_t sum_count_ = 0;
  std::array<Open, kMostOpen> open_;
  uint32_t next_ = 0; // call
};

} // namespace deepcontext::nccl
