#include "unwind/loaded_objects.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <link.h>
#include <string_view>
#include <unistd.h>

#include "core/guard.h"
#include "core/text.h"
#include "unwind/build_id.h"

namespace deepcontext::unwind {

namespace {

// Beginnings of file names. The vendors' compute libraries (cuBLAS, MIOpen, ...) are not among
// them: their frames are shown.
constexpr std::array<std::string_view, 12> kVendorFiles = {
    "libcuda.so",  "libcudart",      "libcupti",     "libnvrtc",
    "libnvidia-",  "libnvToolsExt",  "libamdhip64",  "libhsa-runtime64",
    "libhsa-amd-", "librocprofiler", "libroctracer", "libroctx64",
};
constexpr std::array<std::string_view, 3> kThreadStartFiles = {"libc.so", "libpthread.so",
                                                               "ld-linux"};

template <size_t count>
bool beginsWithOne(std::string_view text, const std::array<std::string_view, count> &beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return startsWith(text, beginning); });
}

std::string_view fileName(std::string_view path) {
  size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string executablePath() {
  char path[PATH_MAX];
  ssize_t bytes = readlink("/proc/self/exe", path, sizeof path);
  return bytes > 0 ? std::string(path, static_cast<size_t>(bytes)) : std::string();
}

/// The object's path; "" when there is no file.
std::string pathOf(const dl_phdr_info &info, bool is_first) {
  std::string_view name = info.dlpi_name ? info.dlpi_name : "";
  if (name.empty()) {
    return is_first ? executablePath() : "";
  }
  return std::string(name);
}

/// The readable segment that an address in the file was loaded with; empty where it was not loaded.
ByteRange loadedSegment(const dl_phdr_info &info, uint64_t address) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const auto &segment = info.dlpi_phdr[i];
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_R) && address >= segment.p_vaddr &&
        address - segment.p_vaddr < segment.p_filesz) {
      auto *begin = reinterpret_cast<const uint8_t *>(info.dlpi_addr + segment.p_vaddr);
      return {begin, begin + segment.p_filesz};
    }
  }
  return {};
}

std::string loadedBuildId(const dl_phdr_info &info) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const auto &segment = info.dlpi_phdr[i];
    if (segment.p_type == PT_NOTE) {
      ByteRange loaded = loadedSegment(info, segment.p_vaddr);
      auto *begin = reinterpret_cast<const uint8_t *>(info.dlpi_addr + segment.p_vaddr);
      size_t most = loaded.begin ? static_cast<size_t>(loaded.end - begin) : 0;
      std::string id = buildIdIn(begin, std::min<size_t>(segment.p_memsz, most));
      if (!id.empty()) {
        return id;
      }
    }
  }
  return "";
}

} // namespace

LoadCounts LoadCounts::now() {
  LoadCounts counts;
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *out) {
        *static_cast<LoadCounts *>(out) = {info->dlpi_adds, info->dlpi_subs};
        return 1; // the counts are the same for each object
      },
      &counts);
  return counts;
}

struct LoadedObjects::Visit {
  LoadedObjects *self;
  bool is_first;
  bool is_complete = true;

  static int onObject(dl_phdr_info *info, size_t, void *user) {
    auto &visit = *static_cast<Visit *>(user);
    visit.is_complete = guarded([&] { visit.add(*info); });
    return !visit.is_complete;
  }

  void add(const dl_phdr_info &info) {
    LoadedObject object;
    object.bias = info.dlpi_addr;
    for (int i = 0; i < info.dlpi_phnum; ++i) {
      const auto &segment = info.dlpi_phdr[i];
      if (segment.p_type == PT_GNU_EH_FRAME) {
        object.eh_frame_hdr = reinterpret_cast<const uint8_t *>(info.dlpi_addr + segment.p_vaddr);
        object.eh_frame_segment = loadedSegment(info, segment.p_vaddr);
      }
    }
    object.file = self->fileOf({pathOf(info, is_first), loadedBuildId(info)});
    is_first = false;
    for (int i = 0; i < info.dlpi_phnum; ++i) {
      const auto &segment = info.dlpi_phdr[i];
      if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X)) {
        object.low = info.dlpi_addr + segment.p_vaddr;
        object.high = object.low + segment.p_memsz;
        self->objects_.push_back(object);
      }
    }
    self->counts_ = {info.dlpi_adds, info.dlpi_subs};
  }
};

LoadedObjects::LoadedObjects() {
  fileOf({});
}

bool LoadedObjects::refresh() {
  LoadCounts before = counts_;
  if (LoadCounts::now() == before && !objects_.empty()) {
    return false;
  }
  objects_.clear();
  Visit visit{this, true};
  dl_iterate_phdr(Visit::onObject, &visit);
  if (!visit.is_complete) {
    objects_.clear(); // the next refresh starts again
  }
  std::sort(objects_.begin(), objects_.end(),
            [](const LoadedObject &a, const LoadedObject &b) { return a.low < b.low; });
  for (LoadedObject &object : objects_) {
    object.role = roleOf(object);
  }
  return counts_.unloaded != before.unloaded;
}

const LoadedObject *LoadedObjects::find(uintptr_t pc) const {
  auto after = std::upper_bound(
      objects_.begin(), objects_.end(), pc,
      [](uintptr_t value, const LoadedObject &object) { return value < object.low; });
  if (after == objects_.begin() || pc >= (after - 1)->high) {
    return nullptr;
  }
  return &*(after - 1);
}

uint32_t LoadedObjects::fileOf(ObjectFile file) {
  auto [place, is_new] = file_ids_.emplace(std::make_pair(file.path, file.build_id),
                                           static_cast<uint32_t>(files_.size()));
  if (is_new) {
    files_.push_back(std::move(file));
  }
  return place->second;
}

ObjectRole LoadedObjects::roleOf(const LoadedObject &object) const {
  for (uintptr_t address : hidden_) {
    if (address >= object.low && address < object.high) {
      return ObjectRole::kHidden;
    }
  }
  std::string_view name = fileName(files_[object.file].path);
  if (beginsWithOne(name, kVendorFiles)) {
    return ObjectRole::kVendor;
  }
  return beginsWithOne(name, kThreadStartFiles) ? ObjectRole::kThreadStart : ObjectRole::kProgram;
}

} // namespace deepcontext::unwind
