#include "torch/group_calls.h"

#include <algorithm>
#include <cstdio>

#include "core/clock.h"
#include "torch/collective_groups.h"
#include "torch/collectives.h"
#include "torch/element_types.h"

namespace deepcontext::torch {

uint64_t sizeOf(const GroupCall &call) {
  int64_t elements = std::max<int64_t>(std::max(call.in_elements, call.out_elements), 0);
  return static_cast<uint64_t>(elements) * elementType(call.type).size_bytes;
}

uint32_t nameOf(Recorder &recorder, const GroupCall &call) {
  char text[128];
  const char *type = elementType(call.type).name;
  bool has_type = sizeOf(call) > 0 && type[0] != '\0';
  std::snprintf(text, sizeof text, "%s(%.*s%s%s)", ParamComms::kOperator,
                static_cast<int>(call.name.size()), call.name.data(), has_type ? ", " : "",
                has_type ? type : "");
  return recorder.names.lookup(text);
}

void noteDeviceCollective(Recorder &recorder, const void *record_function, const GroupCall &call) {
  std::optional<uint8_t> operation = Collectives::operationOnDevice(call.name);
  if (!operation) {
    return;
  }
  GroupIndex group = CollectiveGroups::instance().named(call.group);
  if (group == CollectiveGroups::kUnknown) {
    return;
  }
  const CollectiveCall &noted = recorder.noted_collective;
  const Level *caller = recorder.innermost();
  bool is_noted = caller && noted.owner && caller->owner == noted.owner;
  uint32_t order = Collectives::instance().callOnDevice(
      is_noted ? noted.order : Collectives::kNoCall, group, *operation, sizeOf(call), ticks());
  recorder.calls_collectives.store(true, std::memory_order_relaxed);
  recorder.noted_collective = {};
  recorder.device_collective = {record_function, order};
}

} // namespace deepcontext::torch
