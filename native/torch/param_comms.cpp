#include "torch/param_comms.h"

#include <cstring>
#include <dlfcn.h>

namespace deepcontext::torch {

namespace {

constexpr size_t kMostNameBytes = 64;
constexpr size_t kMostGroupBytes = 256;

using Layout = abi::ParamCommsLayout;

void *find(const char *library, const std::string &symbol) {
  void *handle = dlopen(library, RTLD_NOLOAD | RTLD_LAZY);
  return handle ? dlsym(handle, symbol.c_str()) : nullptr;
}

/// `text` as a string of libstdc++ that takes no memory: the text is inside it. Its address must
/// not change.
void fill(abi::String &string, const char *text) {
  std::strncpy(string.local, text, sizeof string.local - 1);
  string.local[sizeof string.local - 1] = '\0';
  string.data = string.local;
  string.size = std::strlen(string.local);
}

/// An object that torch's constructor has written, with values that occur once each.
class Sample {
public:
  static constexpr const char *kGroup = "group's name";
  static constexpr const char *kName = "operation";
  static constexpr int64_t kInElements = 0x1122334455667788;
  static constexpr int64_t kOutElements = 0x1223344556677889;
  static constexpr int8_t kType = 6;
  static constexpr int32_t kRanks = 1009; // few, because torch makes a list of them

  explicit Sample(abi::ParamCommsConstructor construct) {
    abi::String names[2], name;
    fill(names[0], "description");
    fill(names[1], kGroup);
    fill(name, kName);
    abi::Vector in_splits, out_splits;
    construct(bytes_, names, kRank, &name, kInElements, kOutElements, kType, &in_splits,
              &out_splits, kFirstRank, kStride, kRanks, true);
  }
  ~Sample() { // as `delete` would, without freeing the object: the first virtual function
    abi::readAt<void (*)(void *)>(table(), 0)(bytes_);
  }
  Sample(const Sample &) = delete;
  Sample &operator=(const Sample &) = delete;

  const void *table() const { return abi::readAt<const void *>(bytes_, 0); }

  Layout layout() const {
    Layout found;
    found.group = offsetOfText(kGroup);
    found.name = offsetOfText(kName);
    found.ranks = offsetOf(kRanks);
    found.in_elements = offsetOf(kInElements);
    found.out_elements = offsetOf(kOutElements);
    int type = found.out_elements + static_cast<int>(sizeof kOutElements);
    found.type = found.out_elements > 0 && abi::readAt<int8_t>(bytes_, type) == kType ? type : -1;
    return found;
  }

private:
  static constexpr int kRank = 1013;
  static constexpr int kFirstRank = 1019;
  static constexpr int kStride = 1021;
  static constexpr int kRoom = 1024; // in case the object is larger than all known

  /// Where the value is; -1 where it is not, or not once.
  template <typename Value> int offsetOf(Value value) const {
    int found = -1, count = 0;
    for (int at = 0; at + static_cast<int>(sizeof value) <= kRoom; at += alignof(Value)) {
      if (abi::readAt<Value>(bytes_, at) == value) {
        found = at;
        ++count;
      }
    }
    return count == 1 ? found : -1;
  }

  /// Where a string with this text inside it is.
  int offsetOfText(const char *text) const {
    for (int at = 0; at + static_cast<int>(sizeof(abi::String)) <= kRoom; at += 8) {
      const auto *string = reinterpret_cast<const abi::String *>(bytes_ + at);
      if (string->data == string->local && string->size == std::strlen(text) &&
          std::memcmp(string->local, text, string->size) == 0) {
        return at;
      }
    }
    return -1;
  }

  alignas(16) char bytes_[kRoom] = {};
};

/// The text of a string in the object; nothing where it is not plausible.
std::optional<std::string_view> textAt(const void *info, int offset, size_t most_bytes) {
  const auto *data = abi::readAt<const char *>(info, offset);
  auto size = abi::readAt<size_t>(info, offset + static_cast<int>(sizeof data));
  return data && size <= most_bytes ? std::make_optional(std::string_view(data, size))
                                    : std::nullopt;
}

} // namespace

bool ParamComms::load(std::string *reason) {
  if (is_loaded_.load(std::memory_order_relaxed)) {
    return true;
  }
  std::string constructor = abi::kParamCommsConstructor;
  void *construct = find("libtorch_cpu.so", constructor);
  if (!construct) {
    constructor.pop_back();
    construct = find("libtorch_cpu.so", constructor);
  }
  void *get = find("libc10.so", "_ZN3c1020ThreadLocalDebugInfo3getENS_13DebugInfoKindE");
  if (!construct || !get) {
    *reason = "this torch does not export torch::ParamCommsDebugInfo";
    return false;
  }
  void *kind = find("libc10.so", "_ZN3c1013DebugInfoKind16PARAM_COMMS_INFOE");
  kind_ = kind ? abi::readAt<uintptr_t>(kind, 0) : abi::kParamCommsKind;
  get_ = reinterpret_cast<const void *(*)(uintptr_t)>(get);
  if (!calibrate(reinterpret_cast<abi::ParamCommsConstructor>(construct))) {
    *reason = "the layout of torch::ParamCommsDebugInfo is not one that was verified";
    return false;
  }
  is_loaded_.store(true, std::memory_order_release);
  return true;
}

bool ParamComms::calibrate(abi::ParamCommsConstructor construct) {
  Sample sample(construct);
  table_ = sample.table();
  return table_ && sample.layout() == abi::kParamCommsLayout;
}

std::optional<GroupCall> ParamComms::current() const {
  constexpr Layout kLayout = abi::kParamCommsLayout;
  const void *info = is_loaded_.load(std::memory_order_acquire) ? get_(kind_) : nullptr;
  if (!info || abi::readAt<const void *>(info, 0) != table_) {
    return std::nullopt;
  }
  auto name = textAt(info, kLayout.name, kMostNameBytes);
  auto group = textAt(info, kLayout.group, kMostGroupBytes);
  if (!name || !group) {
    return std::nullopt;
  }
  return GroupCall{*name,
                   *group,
                   abi::readAt<int64_t>(info, kLayout.in_elements),
                   abi::readAt<int64_t>(info, kLayout.out_elements),
                   abi::readAt<int8_t>(info, kLayout.type),
                   abi::readAt<int32_t>(info, kLayout.ranks)};
}

} // namespace deepcontext::torch
