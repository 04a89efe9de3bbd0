#include "gpu/dynlib.h"

#include <algorithm>
#include <dlfcn.h>
#include <fstream>

namespace deepcontext::gpu {

bool DynLib::open(const std::string &path, std::string *reason) {
  if (handle_ && path_ == path) {
    return true;
  }
  // RTLD_LOCAL: a vendor's symbols must not change how the program's libraries are bound.
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (!handle) {
    handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (!handle) {
    const char *why = dlerror();
    *reason = why ? why : "dlopen failed without a reason";
    return false;
  }
  handle_ = handle;
  path_ = path;
  return true;
}

bool DynLib::openMapped(const std::string &path) {
  handle_ = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  path_ = handle_ ? path : "";
  return handle_ != nullptr;
}

void *DynLib::symbol(const char *name) const {
  return handle_ ? dlsym(handle_, name) : nullptr;
}

std::vector<std::string> mappedLibraries(const std::string &stem) {
  std::vector<std::string> found;
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    size_t begin = line.find('/');
    if (begin == std::string::npos) {
      continue;
    }
    std::string path = line.substr(begin);
    size_t name = path.rfind('/') + 1;
    if (path.compare(name, stem.size(), stem) == 0 &&
        std::find(found.begin(), found.end(), path) == found.end()) {
      found.push_back(path);
    }
  }
  return found;
}

} // namespace deepcontext::gpu
