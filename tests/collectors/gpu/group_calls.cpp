// What ProcessGroupNCCL does around a collective, by torch's own macros, without NCCL: compiled by
// test_group_calls.py with the headers of the installed torch.
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>

namespace {

using Work = void (*)();

struct OtherInfo : c10::DebugInfoBase {};

} // namespace

/// Say that a group is about to run a collective, or to send (`is_p2p`), and let `work` launch it.
extern "C" void group_call(const char *name, const char *group, int64_t in_elements,
                           int64_t out_elements, int type, int64_t number, int is_p2p, int ranks,
                           Work work) {
  std::vector<at::Tensor> tensors;
  RECORD_PARAM_COMMS_DATA(std::make_tuple(number, is_p2p != 0),
                          std::make_tuple(std::string(group), std::string("of a test")), tensors,
                          tensors, 0, name, in_elements, out_elements,
                          static_cast<at::ScalarType>(type), std::vector<int64_t>(),
                          std::vector<int64_t>(), 0, 1, ranks);
  work();
}

/// The same operator, where torch says nothing, or keeps an object of another class.
extern "C" void silent_call(int has_other, Work work) {
  std::optional<c10::DebugInfoGuard> other;
  if (has_other != 0) {
    other.emplace(c10::DebugInfoKind::PARAM_COMMS_INFO, std::make_shared<OtherInfo>());
  }
  RECORD_FUNCTION(at::kParamCommsCallName, c10::ArrayRef<const c10::IValue>{});
  work();
}
