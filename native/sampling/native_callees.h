#pragma once
// The native functions that a sampled thread runs on behalf of its innermost Python frame.
#include <atomic>
#include <cstdint>
#include <vector>

#include "sampling/sample.h"
#include "unwind/address_table.h"

namespace deepcontext {

/// Walks copies of stacks. Sampler's thread only.
class NativeCallees {
public:
  /// `lost`: rises with each walk that does not reach the interpreter.
  explicit NativeCallees(std::atomic<uint64_t> &lost);

  /// Functions (see AddressTable) between the interpreter and the interrupted instruction,
  /// outermost first, each once: the outer ones, of which two are not the interpreter's, and the
  /// innermost. Valid until the next call. Empty while the interpreter itself runs, and where the
  /// walk did not reach it.
  const std::vector<uint32_t> &of(const SampledContext &context, const SampledStack &stack);

private:
  struct Callee {
    uint32_t function;
    bool is_interpreter;
  };
  bool walk(const SampledContext &context, const SampledStack &stack);
  void keep(uint32_t function);

  unwind::ReturnAddressCache addresses_;
  std::vector<Callee> walked_; // innermost first
  std::vector<uint32_t> kept_;
  std::atomic<uint64_t> &lost_;
};

} // namespace deepcontext
