#pragma once
// A vendor's library, opened at run time; no vendor's library is linked.
#include <string>
#include <vector>

namespace deepcontext::gpu {

/// A library that stays loaded for the life of the process, because vendors keep threads and
/// callbacks in it. Any thread.
class DynLib {
public:
  /// Load `path`, preferring a copy that the process has mapped already. False leaves `reason`.
  bool open(const std::string &path, std::string *reason);
  /// Use `path` only if the process has mapped it already.
  bool openMapped(const std::string &path);
  void *symbol(const char *name) const;

  /// Point `function` to `name`; false when the library lacks it.
  template <typename Function> bool bind(Function **function, const char *name) const {
    *function = reinterpret_cast<Function *>(symbol(name));
    return *function != nullptr;
  }

private:
  void *handle_ = nullptr;
  std::string path_;
};

/// Files mapped into this process whose name begins with `stem`, for example "libcupti.so".
std::vector<std::string> mappedLibraries(const std::string &stem);

} // namespace deepcontext::gpu
