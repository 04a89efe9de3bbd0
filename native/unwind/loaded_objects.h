#pragma once
// The executable and shared libraries of the process: addresses and files.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <link.h>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "unwind/dwarf_reader.h"

namespace deepcontext::unwind {

/// How frames of an object are shown.
enum class ObjectRole : uint8_t {
  kProgram,     // shown
  kHidden,      // the interpreter, whose Python frames are shown instead, and the profiler
  kVendor,      // a GPU vendor's driver and profiler: inside of an API call
  kThreadStart, // the C library: hidden where it starts a thread
};

/// One file; kept after it was unloaded.
struct ObjectFile {
  std::string path;     // "" for the kernel's own (vdso) and for code in no file
  std::string build_id; // hexadecimal; "" when it has none
};

/// Executable memory of an object.
struct LoadedObject {
  uintptr_t low = 0, high = 0;
  uintptr_t bias = 0;                    // address minus the address in the file
  const uint8_t *eh_frame_hdr = nullptr; // of an object that has unwind information
  ByteRange eh_frame_segment;            // the loaded segment that it lies in
  uint32_t file = 0;
  ObjectRole role = ObjectRole::kProgram;
};

/// How often objects were loaded and unloaded so far.
struct LoadCounts {
  uint64_t loaded = 0, unloaded = 0;
  bool operator==(const LoadCounts &other) const {
    return loaded == other.loaded && unloaded == other.unloaded;
  }
  static LoadCounts now();
};

/// A snapshot of the loaded objects. Not thread-safe: see AddressTable.
class LoadedObjects {
public:
  static constexpr uint32_t kNoFile = 0; // generated code, or memory of no object

  LoadedObjects();

  /// Hide the object that `address` lies in, from the next snapshot on.
  void hide(uintptr_t address) { hidden_.insert(address); }
  /// Bring the snapshot up to date. Returns whether an object was unloaded since the last time.
  bool refresh();
  /// Call `use` while no object can be unloaded: inside, the dynamic linker's lock is held.
  template <typename Use> static void keepLoaded(Use use) {
    struct Call {
      Use use;
      std::exception_ptr error; // exceptions must not pass through the C library
    } call{std::move(use), nullptr};
    dl_iterate_phdr(
        [](dl_phdr_info *, size_t, void *user) {
          auto &self = *static_cast<Call *>(user);
          try {
            self.use();
          } catch (const std::exception &) {
            self.error = std::current_exception();
          }
          return 1;
        },
        &call);
    if (call.error) {
      std::rethrow_exception(call.error);
    }
  }
  /// The object at `pc`, or null.
  const LoadedObject *find(uintptr_t pc) const;
  const ObjectFile &file(uint32_t id) const { return files_[id]; }
  uint32_t fileCount() const { return static_cast<uint32_t>(files_.size()); }

private:
  struct Visit;
  uint32_t fileOf(ObjectFile file);
  ObjectRole roleOf(const LoadedObject &object) const;

  LoadCounts counts_;
  std::vector<LoadedObject> objects_; // ascending addresses
  std::deque<ObjectFile> files_;
  std::map<std::pair<std::string, std::string>, uint32_t> file_ids_;
  std::set<uintptr_t> hidden_;
};

} // namespace deepcontext::unwind
