// Activity records of the fake CUPTI, and the client's buffers that it writes them to.
#include <cstring>

#include "cupti_device.h"

namespace fake::cupti {

namespace {

/// Record sizes of CUPTI's releases; native/abi/check prints them from the true headers.
constexpr Sizes kSizes[] = {{18, 208, 88, 88},      {22, 208, 88, 88},
                            {26, 208, 96, 88},      {28, 208, 96, 88},
                            {130001, 216, 96, 88},  {130101, 224, 96, 88},
                            {130200, 224, 96, 88}, {130300, 232, 96, 88},  {130401, 248, 112, 104},
                            {130500, 248, 112, 104}};
constexpr size_t kPeerBytes = 96, kOverheadBytes = 56;


} // namespace

Sizes firstSizes() { return kSizes[4]; }

Sizes sizesOf(uint32_t version) {
  Sizes found = firstSizes();
  for (const Sizes &sizes : kSizes) {
    if (sizes.version <= version) {
      found = sizes;
    }
  }
  return found;
}

uint64_t timestamp() {
  if (abi::Timestamp clock = state().clock.load()) {
    return clock();
  }
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t timestampOf(uint64_t device_ns) {
  if (device_ns == 0) { // not complete
    return 0;
  }
  if (state().clock.load() == ticksOfProfiler) {
    return device_ns * kTicksPerNs;
  }
  // The wall clock, read once, so that durations stay exact.
  static const uint64_t offset = [] {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec) -
           fake::nowNs();
  }();
  return device_ns + offset;
}

uint8_t copyKind(const char *direction) {
  static const std::map<std::string, uint8_t> kinds = {{"HtoD", 1}, {"DtoH", 2},  {"DtoD", 8},
                                                       {"HtoH", 9}, {"PtoP", 10}};
  auto found = kinds.find(direction);
  return found == kinds.end() ? 0 : found->second;
}

size_t sizeOf(uint32_t kind) {
  const Sizes &sizes = state().sizes;
  switch (kind) {
  case abi::kKindKernel:
  case abi::kKindConcurrentKernel:
    return sizes.kernel;
  case abi::kKindMemcpy:
    return sizes.memcpy;
  case abi::kKindMemcpyPeer:
    return kPeerBytes;
  case abi::kKindMemset:
    return sizes.memset;
  case abi::kKindOverhead:
    return kOverheadBytes;
  default:
    return 64;
  }
}

namespace {

template <typename Record> void fillTransfer(Record *record, const Work &work) {
  record->bytes = work.bytes;
  record->start = timestampOf(work.start_ns);
  record->end = timestampOf(work.end_ns);
  record->device = work.device;
  record->context = contextNumber(work);
  record->stream = work.stream;
  record->correlation = static_cast<uint32_t>(work.correlation);
  record->graph_node = work.graph_node;
  record->graph = work.graph_exec;
}

/// Records of kernels are of the kind that the client has enabled: those that overlap, or those that
/// run one after the other.
uint32_t kernelKind() {
  std::lock_guard<std::mutex> lock(state().mutex);
  return state().kinds.count(abi::kKindKernel) ? abi::kKindKernel : abi::kKindConcurrentKernel;
}

std::vector<uint8_t> encode(const Work &work) {
  uint32_t kind = work.what == What::kKernel   ? kernelKind()
                  : work.what == What::kMemset ? uint32_t{abi::kKindMemset}
                  : copyKind(work.name) == 10  ? uint32_t{abi::kKindMemcpyPeer}
                                               : uint32_t{abi::kKindMemcpy};
  std::vector<uint8_t> bytes(sizeOf(kind));
  std::memcpy(bytes.data(), &kind, sizeof kind);
  switch (kind) {
  case abi::kKindKernel:
  case abi::kKindConcurrentKernel: {
    auto *record = reinterpret_cast<abi::Kernel *>(bytes.data());
    record->start = timestampOf(work.start_ns);
    record->end = record->completed = timestampOf(work.end_ns);
    record->device = work.device;
    record->context = contextNumber(work);
    record->stream = work.stream;
    record->grid[0] = static_cast<int32_t>(work.grid);
    record->grid[1] = record->grid[2] = record->block[1] = record->block[2] = 1;
    record->block[0] = static_cast<int32_t>(work.block);
    record->registers_per_thread = 32;
    record->static_shared_bytes = 1024;
    record->correlation = static_cast<uint32_t>(work.correlation);
    record->name = work.name;
    record->graph_node = work.graph_node;
    record->graph = work.graph_exec;
    if (state().sizes.version >= abi::kVersionSourceGraphNode) {
      std::memcpy(bytes.data() + abi::kKernelSourceGraphNode, &work.source_node,
                  sizeof work.source_node);
    }
    break;
  }
  case abi::kKindMemcpy: {
    auto *record = reinterpret_cast<abi::Memcpy *>(bytes.data());
    fillTransfer(record, work);
    record->copy_kind = copyKind(work.name);
    record->source_kind = work.name[0] == 'H' ? work.memory : uint8_t{abi::kMemoryDevice};
    record->target_kind = work.name[3] == 'H' ? work.memory : uint8_t{abi::kMemoryDevice};
    break;
  }
  case abi::kKindMemcpyPeer:
    fillTransfer(reinterpret_cast<abi::MemcpyPeer *>(bytes.data()), work);
    break;
  case abi::kKindMemset:
    fillTransfer(reinterpret_cast<abi::Memset *>(bytes.data()), work);
    break;
  }
  return bytes;
}

bool request(Buffer *buffer) {
  State &s = state();
  abi::BufferRequested requested;
  abi::BufferRequestedV2 requested_v2;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    requested = s.requested;
    requested_v2 = s.requested_v2;
  }
  if (requested_v2) {
    requested_v2(&buffer->data, &buffer->bytes, &buffer->most, nullptr);
  } else if (requested) {
    requested(&buffer->data, &buffer->bytes, &buffer->most);
  }
  if (buffer->data) {
    ++s.buffers_out;
    std::memset(buffer->data, 0xA5, buffer->bytes); // a client that reads past the end shows it
  }
  return buffer->data != nullptr;
}

bool isEnabled(uint32_t kind) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  return s.kinds.count(kind) > 0;
}

/// Lose a record if a test asked for it.
bool isToBeLost() {
  std::atomic<uint64_t> &left = state().device.drop_next;
  uint64_t count = left.load();
  while (count > 0 && !left.compare_exchange_weak(count, count - 1)) {
  }
  return count > 0;
}

} // namespace

void complete(const Buffer &buffer) {
  State &s = state();
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    if (s.is_holding) {
      s.held.push_back(buffer);
      return;
    }
  }
  abi::BufferCompleted completed;
  abi::BufferCompletedV2 completed_v2;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    completed = s.completed;
    completed_v2 = s.completed_v2;
  }
  --s.buffers_out;
  if (completed_v2) {
    completed_v2(buffer.data, buffer.bytes, buffer.used, nullptr);
  } else if (completed) {
    completed(nullptr, 0, buffer.data, buffer.bytes, buffer.used);
  }
}

Buffer checkOut() {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  Buffer buffer = s.buffers[std::this_thread::get_id()];
  s.buffers.erase(std::this_thread::get_id());
  return buffer;
}

void checkIn(const Buffer &buffer) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  if (buffer.data) {
    s.buffers[std::this_thread::get_id()] = buffer;
  }
}

bool emit(Buffer *buffer, const std::vector<uint8_t> &record) {
  bool is_full = buffer->used + record.size() > buffer->bytes ||
                 (buffer->most && buffer->records >= buffer->most) ||
                 (state().most_records && buffer->records >= state().most_records);
  if (buffer->data && is_full) {
    complete(*buffer);
    *buffer = Buffer();
  }
  if (!buffer->data && !request(buffer)) {
    return false;
  }
  if (record.size() > buffer->bytes) {
    return false;
  }
  std::memcpy(buffer->data + buffer->used, record.data(), record.size());
  buffer->used += record.size();
  ++buffer->records;
  return true;
}

void deliver(const std::vector<Work> &works) {
  fake::Device &device = state().device;
  Buffer buffer = checkOut();
  for (const Work &work : works) {
    std::vector<uint8_t> record = encode(work);
    uint32_t kind;
    std::memcpy(&kind, record.data(), sizeof kind);
    if (!isEnabled(kind)) {
      continue;
    }
    bool is_out = !isToBeLost() && emit(&buffer, record);
    ++(is_out ? device.delivered : device.dropped);
  }
  checkIn(buffer);
}

} // namespace fake::cupti
