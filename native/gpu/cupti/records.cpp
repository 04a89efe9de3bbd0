// Activity records, decoded on the draining thread.
#include "gpu/communication.h"
#include "gpu/cupti/collector.h"

namespace deepcontext::gpu::cupti {

namespace {

/// CUPTI numbers streams within a context, and a device may have several (green contexts).
uint32_t streamOf(uint32_t context, uint32_t stream) {
  return context << kStreamBits | (stream & ((1u << kStreamBits) - 1));
}

/// Fields that copies, peer copies and memsets have in common.
template <typename Record>
void addTransfer(Attribution &attribution, ActivityKind kind, uint32_t name, const Record &record) {
  Activity &activity = attribution.next();
  activity.kind = kind;
  activity.name = name;
  activity.correlation = record.correlation;
  activity.device = record.device;
  activity.stream = streamOf(record.context, record.stream);
  activity.start_ns = record.start;
  activity.end_ns = record.end;
  activity.bytes = record.bytes;
  activity.graph_node = record.graph_node;
  activity.captured_node = 0;
  activity.shape = LaunchShape();
  Counters::bump(kind == ActivityKind::kCopy ? attribution.counters.copies
                                             : attribution.counters.memsets);
}

} // namespace

void CuptiCollector::read(const FilledBuffer &buffer) {
  std::unique_lock<std::mutex> lock = beginBuffer([this] { return deviceNow(); });
  names_.age();
  abi::cupti::Activity *record = nullptr;
  while (true) {
    Result result = is_second_family_
                        ? library_.ActivityGetNextRecord_v2(subscriber_, buffer.data,
                                                            buffer.valid_bytes, &record)
                        : library_.ActivityGetNextRecord(buffer.data, buffer.valid_bytes, &record);
    if (result != abi::cupti::kSuccess) {
      if (result != abi::cupti::kMaxLimitReached) {
        Counters::bump(attribution_.counters.broken_buffers);
      }
      break;
    }
    decode(*record);
  }
  attribution_.finishBuffer();
}

void CuptiCollector::decode(const abi::cupti::Activity &record) {
  Counters &counters = attribution_.counters;
  switch (record.kind) {
  case abi::cupti::kKindKernel:
  case abi::cupti::kKindConcurrentKernel:
    decodeKernel(reinterpret_cast<const abi::cupti::Kernel &>(record));
    break;
  case abi::cupti::kKindMemcpy: {
    auto &copy = reinterpret_cast<const abi::cupti::Memcpy &>(record);
    addTransfer(attribution_, ActivityKind::kCopy, copyName(copy), copy);
    break;
  }
  case abi::cupti::kKindMemcpyPeer:
    addTransfer(attribution_, ActivityKind::kCopy, peer_copy_name_,
                reinterpret_cast<const abi::cupti::MemcpyPeer &>(record));
    break;
  case abi::cupti::kKindMemset:
    addTransfer(attribution_, ActivityKind::kMemset, memset_name_,
                reinterpret_cast<const abi::cupti::Memset &>(record));
    break;
  case abi::cupti::kKindOverhead: {
    auto &overhead = reinterpret_cast<const abi::cupti::Overhead &>(record);
    Counters::bump(counters.overhead_ns,
                   overhead.end > overhead.start ? overhead.end - overhead.start : 0);
    break;
  }
  default:
    Counters::bump(counters.unknown_records);
  }
}

void CuptiCollector::decodeKernel(const abi::cupti::Kernel &record) {
  // Buffers come cold from another thread: prefetch the lines of a record four records ahead.
  constexpr size_t kAhead = 4 * 224;
  for (size_t line = 0; line < 192; line += 64) {
    __builtin_prefetch(reinterpret_cast<const char *>(&record) + kAhead + line);
  }
  Activity &activity = attribution_.next();
  activity.kind = ActivityKind::kKernel;
  activity.correlation = record.correlation;
  activity.name = names_.lookup(record.name);
  activity.device = record.device;
  activity.stream = streamOf(record.context, record.stream);
  activity.start_ns = record.start;
  activity.end_ns = record.end;
  activity.bytes = 0;
  activity.graph_node = record.graph_node;
  activity.captured_node = 0;
  if (record.graph_node != 0 && library_.version >= abi::cupti::kVersionSourceGraphNode) {
    activity.captured_node = *reinterpret_cast<const uint64_t *>(
        reinterpret_cast<const char *>(&record) + abi::cupti::kKernelSourceGraphNode);
  }
  auto blocks = [](const int32_t *sides) {
    return static_cast<uint64_t>(sides[0]) * static_cast<uint64_t>(sides[1]) *
           static_cast<uint64_t>(sides[2]);
  };
  activity.shape.grid_blocks = blocks(record.grid);
  activity.shape.block_threads = static_cast<uint32_t>(blocks(record.block));
  activity.shape.registers = record.registers_per_thread;
  activity.shape.shared_bytes = static_cast<uint64_t>(record.static_shared_bytes) +
                                static_cast<uint64_t>(record.dynamic_shared_bytes);
  Counters::bump(attribution_.counters.kernels);
  if (__builtin_expect(stalls_.isRunning(), 0) && record.name &&
      isCommunicationKernel(record.name)) {
    stalls_.refuse("stalls are sampled no more: kernels of NCCL wait for other ranks, and sampling "
                   "lets kernels run one after the other");
  }
}

/// Pageable memory is named, because its copies are slow and wait for the host; pinned memory is
/// the usual case.
uint32_t CuptiCollector::copyName(const abi::cupti::Memcpy &copy) const {
  auto isAtAnEnd = [&copy](uint8_t memory) {
    return copy.source_kind == memory || copy.target_kind == memory;
  };
  size_t memory =
      isAtAnEnd(abi::cupti::kMemoryPageable)                                                 ? 1
      : isAtAnEnd(abi::cupti::kMemoryManaged) || isAtAnEnd(abi::cupti::kMemoryManagedStatic) ? 2
                                                                                             : 0;
  constexpr size_t kMemories = 3;
  size_t kind = copy.copy_kind < copy_names_.size() / kMemories ? copy.copy_kind : 0;
  return copy_names_[kind * kMemories + memory];
}

} // namespace deepcontext::gpu::cupti
