#pragma once
// Jitted functions by name and definition.
#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/interner.h"
#include "core/mutex.h"

namespace deepcontext::jax {

/// A name reduced to letters and digits, so that "<lambda>" equals the compiler's "_lambda_".
std::string plainName(std::string_view name);

struct Function {
  uint32_t id = 0;
  uint32_t frame_name = 0; // interned "jit(train_step)"
  std::string name;
  std::string shown; // the name of the program's function, where JAX wraps it in one of its own
  std::string plain_name;
  std::string qualified_name; // of the Python function; "" where unknown
  std::string file;
  int first_line = 0;
  /// Programs compiled in a call of it. With more than one, the hook distinguishes calls by their
  /// arguments.
  std::atomic<uint32_t> program_count{0};
};

/// Process-wide. Any thread. Two jitted objects of one definition are one function, so that a
/// program that calls jax.jit in a loop has a bounded tree.
class FunctionTable {
public:
  static FunctionTable &instance();

  const Function &add(const std::string &name, const std::string &qualified_name,
                      const std::string &file, int first_line, const std::string &shown);
  Function &at(uint32_t id);
  /// For the dispatch hook: no lock. GIL held, as by callers of `add`.
  uint32_t frameName(uint32_t id) const { return frame_names_[id]; }
  /// At the end of a session: forget which functions have programs.
  void forgetPrograms();
  Mutex &forkLock() { return mutex_; }

private:
  Mutex mutex_;
  std::deque<Function> functions_; // never moved, never removed
  std::vector<uint32_t> frame_names_;
  std::unordered_map<std::string, uint32_t> ids_;
};

} // namespace deepcontext::jax
