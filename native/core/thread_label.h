#pragma once
// What a thread is called in a profile, from its name in the kernel.
#include <string>
#include <string_view>

#include "core/interner.h"

namespace deepcontext {

/// The name with N for numbers. "Thread" for one that was not named, which has the process's name.
///
/// CPython 3.14 tells the kernel its own name for a thread that was not named, "Thread-12 (work)".
/// The kernel keeps 15 characters, so that what is left of the function depends on the number's
/// length.
inline std::string threadLabel(std::string_view name, std::string_view process) {
  constexpr std::string_view kDefault = "Thread-";
  bool is_default = name.substr(0, kDefault.size()) == kDefault && name.size() > kDefault.size() &&
                    name[kDefault.size()] >= '0' && name[kDefault.size()] <= '9';
  return name == process || is_default ? "Thread" : withoutNumbers(name);
}

} // namespace deepcontext
