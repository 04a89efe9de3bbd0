#include "unwind/symbols.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "unwind/build_id.h"

namespace deepcontext::unwind {

namespace {

/// A file mapped for reading; every access is checked against its size.
class MappedFile {
public:
  explicit MappedFile(const std::string &path) {
    int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (descriptor >= 0 && fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_size > 0) {
      auto bytes = static_cast<size_t>(status.st_size);
      void *memory = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
      if (memory != MAP_FAILED) {
        begin_ = static_cast<const uint8_t *>(memory);
        bytes_ = bytes;
      }
    }
    if (descriptor >= 0) {
      close(descriptor);
    }
  }
  ~MappedFile() {
    if (begin_) {
      munmap(const_cast<uint8_t *>(begin_), bytes_);
    }
  }
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  /// `count` records from `offset` on, or null when the file ends before.
  template <typename Record> const Record *records(uint64_t offset, uint64_t count = 1) const {
    bool fits = offset <= bytes_ && count <= (bytes_ - offset) / sizeof(Record) &&
                offset % alignof(Record) == 0;
    return fits ? reinterpret_cast<const Record *>(begin_ + offset) : nullptr;
  }
  /// A text that ends inside the file, or "".
  const char *text(uint64_t offset) const {
    if (offset >= bytes_ || !std::memchr(begin_ + offset, 0, bytes_ - offset)) {
      return "";
    }
    return reinterpret_cast<const char *>(begin_ + offset);
  }

private:
  const uint8_t *begin_ = nullptr;
  size_t bytes_ = 0;
};

class ElfFile {
public:
  explicit ElfFile(const std::string &path) : file_(path) {
    const auto *header = file_.records<Elf64_Ehdr>(0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64) {
      return;
    }
    sections_ = file_.records<Elf64_Shdr>(header->e_shoff, header->e_shnum);
    section_count_ = sections_ ? header->e_shnum : 0;
  }

  std::string buildId() const {
    for (size_t i = 0; i < section_count_; ++i) {
      const Elf64_Shdr &section = sections_[i];
      const auto *notes = section.sh_type == SHT_NOTE
                              ? file_.records<uint8_t>(section.sh_offset, section.sh_size)
                              : nullptr;
      std::string id = notes ? buildIdIn(notes, section.sh_size) : "";
      if (!id.empty()) {
        return id;
      }
    }
    return "";
  }

  const Elf64_Shdr *table(uint32_t type) const {
    for (size_t i = 0; i < section_count_; ++i) {
      if (sections_[i].sh_type == type && sections_[i].sh_link < section_count_) {
        return &sections_[i];
      }
    }
    return nullptr;
  }

  /// Name those of `wanted` (offset, place in `names`; ascending) that have no name yet.
  void name(const Elf64_Shdr &table, const std::vector<std::pair<uint64_t, size_t>> &wanted,
            std::vector<std::string> &names) const {
    uint64_t count = table.sh_size / sizeof(Elf64_Sym);
    const auto *symbols = file_.records<Elf64_Sym>(table.sh_offset, count);
    const Elf64_Shdr &strings = sections_[table.sh_link];
    for (uint64_t i = 0; symbols && i < count; ++i) {
      const Elf64_Sym &symbol = symbols[i];
      int type = ELF64_ST_TYPE(symbol.st_info);
      if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol.st_shndx == SHN_UNDEF) {
        continue;
      }
      auto place = std::lower_bound(wanted.begin(), wanted.end(),
                                    std::make_pair(symbol.st_value, size_t{0}));
      for (; place != wanted.end() && place->first - symbol.st_value < symbol.st_size; ++place) {
        if (names[place->second].empty()) {
          names[place->second] = file_.text(strings.sh_offset + symbol.st_name);
        }
      }
    }
  }

private:
  MappedFile file_;
  const Elf64_Shdr *sections_ = nullptr;
  size_t section_count_ = 0;
};

/// Where distributions put the debug file of a build id.
std::string debugFile(const std::string &build_id) {
  return "/usr/lib/debug/.build-id/" + build_id.substr(0, 2) + "/" + build_id.substr(2) + ".debug";
}

} // namespace

std::vector<std::string> symbolsAt(const std::string &path, const std::string &build_id,
                                   const std::vector<uint64_t> &offsets) {
  std::vector<std::string> names(offsets.size());
  std::vector<std::pair<uint64_t, size_t>> wanted;
  for (size_t i = 0; i < offsets.size(); ++i) {
    wanted.emplace_back(offsets[i], i);
  }
  std::sort(wanted.begin(), wanted.end());
  ElfFile object(path);
  if (!build_id.empty() && object.buildId() != build_id) {
    return names;
  }
  const Elf64_Shdr *all = object.table(SHT_SYMTAB);
  if (all) {
    object.name(*all, wanted, names);
  } else if (build_id.size() > 2) {
    ElfFile debug(debugFile(build_id));
    const Elf64_Shdr *separate = debug.buildId() == build_id ? debug.table(SHT_SYMTAB) : nullptr;
    if (separate) {
      debug.name(*separate, wanted, names);
    }
  }
  if (const Elf64_Shdr *exported = object.table(SHT_DYNSYM)) {
    object.name(*exported, wanted, names);
  }
  return names;
}

} // namespace deepcontext::unwind
