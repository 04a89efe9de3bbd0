#include "unwind/symbols.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <string>
#include <thread>
#include <unistd.h>

#include "tests/check.h"
#include "unwind/build_id.h"
#include "unwind/loaded_objects.h"

using namespace deepcontext::unwind;

namespace {

__attribute__((noinline)) int aLocalFunction(int x) {
  return x + 1;
}

struct Found {
  ObjectFile file;
  uint64_t offset = 0;
};

Found find(const void *address) {
  LoadedObjects objects;
  objects.refresh();
  const LoadedObject *object = objects.find(reinterpret_cast<uintptr_t>(address));
  CHECK(object != nullptr);
  return object ? Found{objects.file(object->file),
                        reinterpret_cast<uintptr_t>(address) - object->bias}
                : Found();
}

std::string nameAt(const std::string &path, const std::string &build_id, uint64_t offset) {
  return symbolsAt(path, build_id, {offset})[0];
}

} // namespace

TEST(a_function_that_is_not_exported_has_a_name) {
  Found place = find(reinterpret_cast<const void *>(&aLocalFunction));
  CHECK(nameAt(place.file.path, place.file.build_id, place.offset).find("aLocalFunction") !=
        std::string::npos);
}

TEST(a_stripped_library_names_what_it_exports) {
  Found place = find(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
  std::string name = nameAt(place.file.path, place.file.build_id, place.offset);
  CHECK(name.find("gnu_get_libc_version") != std::string::npos);
}

TEST(another_file_at_the_same_path_names_nothing) {
  Found place = find(reinterpret_cast<const void *>(&aLocalFunction));
  CHECK_EQ(nameAt(place.file.path, "00ff", place.offset), "");
}

TEST(a_file_for_another_processor_names_nothing) {
  Found place = find(reinterpret_cast<const void *>(&aLocalFunction));
  std::ifstream whole(place.file.path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(whole)), std::istreambuf_iterator<char>());
  char path[] = "/tmp/deepcontext-symbols-XXXXXX";
  close(mkstemp(path));
  auto nameIn = [&](const std::string &content) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
    return nameAt(path, "", place.offset);
  };
  CHECK(nameIn(bytes).find("aLocalFunction") != std::string::npos);
  constexpr size_t kMachine = 18; // of an ELF header
  bytes[kMachine] = static_cast<char>(bytes[kMachine] + 1);
  CHECK_EQ(nameIn(bytes), "");
  unlink(path);
}

TEST(a_file_that_is_gone_or_no_object_names_nothing) {
  CHECK_EQ(nameAt("/nonexistent/libx.so", "", 0x1000), "");
  CHECK_EQ(nameAt("/proc/self/maps", "", 0x1000), "");
  char path[] = "/tmp/deepcontext-symbols-XXXXXX";
  int descriptor = mkstemp(path);
  close(descriptor);
  Found place = find(reinterpret_cast<const void *>(&aLocalFunction));
  std::ifstream whole(place.file.path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(whole)), std::istreambuf_iterator<char>());
  for (size_t length : {size_t{3}, size_t{63}, size_t{64}, bytes.size() / 2, bytes.size() - 1}) {
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(length));
    nameAt(path, "", place.offset); // whatever it finds, it does not read past the end
  }
  unlink(path);
}

TEST(a_file_that_is_cut_while_it_is_read_harms_nothing) {
  char path[] = "/tmp/deepcontext-symbols-XXXXXX";
  int descriptor = mkstemp(path);
  Found place = find(reinterpret_cast<const void *>(&aLocalFunction));
  std::ifstream whole(place.file.path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(whole)), std::istreambuf_iterator<char>());
  std::atomic<bool> is_over{false};
  std::thread builder([&] {
    while (!is_over) {
      CHECK_EQ(pwrite(descriptor, bytes.data(), bytes.size(), 0),
               static_cast<ssize_t>(bytes.size()));
      CHECK_EQ(ftruncate(descriptor, 64), 0);
    }
  });
  for (int turn = 0; turn < 100000; ++turn) {
    nameAt(path, "", place.offset);
  }
  is_over = true;
  builder.join();
  close(descriptor);
  unlink(path);
}

TEST(a_build_id_is_read_from_notes) {
  // name size 4, content size 2, type 3 (build id), "GNU", AB CD
  const uint8_t notes[] = {4, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 0xAB, 0xCD, 0, 0};
  CHECK_EQ(buildIdIn(notes, sizeof notes), "abcd");
  CHECK_EQ(buildIdIn(notes, 17), "");
  CHECK_EQ(buildIdIn(notes, 0), "");
}

TEST(objects_know_their_role) {
  Found libc = find(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
  LoadedObjects objects;
  objects.hide(reinterpret_cast<uintptr_t>(&aLocalFunction));
  objects.refresh();
  const LoadedObject *own = objects.find(reinterpret_cast<uintptr_t>(&aLocalFunction));
  const LoadedObject *c =
      objects.find(reinterpret_cast<uintptr_t>(dlsym(RTLD_DEFAULT, "gnu_get_libc_version")));
  CHECK(own && own->role == ObjectRole::kHidden);
  CHECK(c && c->role == ObjectRole::kThreadStart);
  CHECK(objects.find(1) == nullptr);
}
