#pragma once
// Which driver functions feed the device, and which make the host wait for it.
#include <cstdint>
#include <string_view>
#include <vector>

#include "gpu/cupti/library.h"

namespace deepcontext::gpu::cupti {

struct CallClass {
  bool is_launch = false;  // may cause activity records
  bool is_replay = false;  // launches a graph
  bool is_waiting = false; // returns when the device has finished
  uint8_t record_kind = 0; // of a copy's or memset's record, as CUPTI numbers kinds; 0: another
  bool is_sized = false;   // says the number of bytes, or of values, as its third parameter
  int8_t captures = 0;     // +1: a stream begins to capture a graph; -1: ends
  uint8_t flags = 0;       // makes a graph; 1: the third parameter is its flags, 2: points to them
  uint32_t name = 0;       // interned; of waiting calls
};

/// By callback id. Built from the names that the library gives its callbacks, so that a new CUDA
/// release needs no new table.
class CallTable {
public:
  static constexpr uint32_t kMost = 2048;

  void build(const Library &library);
  const CallClass &of(uint32_t id) const { return id < kMost ? classes_[id] : classes_[0]; }
  /// Ids worth a callback.
  const std::vector<uint32_t> &ids() const { return ids_; }
  /// Ids of the other functions. Any may take the driver's locks: those that look up a function
  /// load its code.
  const std::vector<uint32_t> &otherIds() const { return other_ids_; }

private:
  std::vector<CallClass> classes_ = std::vector<CallClass>(kMost);
  std::vector<uint32_t> ids_, other_ids_;
};

CallClass classify(std::string_view function);

} // namespace deepcontext::gpu::cupti
