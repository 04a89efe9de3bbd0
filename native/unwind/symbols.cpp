#include "unwind/symbols.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "unwind/build_id.h"
#include "unwind/processor.h"

namespace deepcontext::unwind {

namespace {

/// A file, read and not mapped: a mapped file that is truncated meanwhile, by a build for example,
/// would end the process with SIGBUS.
class RegularFile {
public:
  explicit RegularFile(const std::string &path)
      : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat status;
    if (descriptor_ >= 0 && fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode)) {
      bytes_ = static_cast<uint64_t>(status.st_size);
    }
  }
  ~RegularFile() {
    if (descriptor_ >= 0) {
      close(descriptor_);
    }
  }
  RegularFile(const RegularFile &) = delete;
  RegularFile &operator=(const RegularFile &) = delete;

  /// `count` records from `offset` on; none when the file ends before.
  template <typename Record> std::vector<Record> records(uint64_t offset, uint64_t count) const {
    std::vector<Record> read;
    if (offset <= bytes_ && count <= (bytes_ - offset) / sizeof(Record)) {
      read.resize(count);
      if (!readAll(offset, read.data(), count * sizeof(Record))) {
        read.clear();
      }
    }
    return read;
  }
  /// A text that ends inside the file, or "".
  std::string text(uint64_t offset) const {
    constexpr uint64_t kMostBytes = 1 << 16; // longer names exist, but are of no use
    std::string text;
    while (offset < bytes_ && text.size() < kMostBytes) {
      char piece[256];
      uint64_t bytes = std::min<uint64_t>(sizeof piece, bytes_ - offset);
      if (!readAll(offset, piece, bytes)) {
        return "";
      }
      auto *end = static_cast<const char *>(std::memchr(piece, 0, bytes));
      text.append(piece, end ? static_cast<uint64_t>(end - piece) : bytes);
      if (end) {
        return text;
      }
      offset += bytes;
    }
    return "";
  }

private:
  bool readAll(uint64_t offset, void *to, uint64_t bytes) const {
    auto *at = static_cast<char *>(to);
    while (bytes > 0) {
      ssize_t count = pread(descriptor_, at, bytes, static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) {
        continue;
      }
      if (count <= 0) {
        return false;
      }
      at += count;
      offset += static_cast<uint64_t>(count);
      bytes -= static_cast<uint64_t>(count);
    }
    return true;
  }

  int descriptor_;
  uint64_t bytes_ = 0;
};

class ElfFile {
public:
  explicit ElfFile(const std::string &path) : file_(path) {
    std::vector<Elf64_Ehdr> header = file_.records<Elf64_Ehdr>(0, 1);
    if (!header.empty() && std::memcmp(header[0].e_ident, ELFMAG, SELFMAG) == 0 &&
        header[0].e_ident[EI_CLASS] == ELFCLASS64 &&
        header[0].e_machine == Processor::kElfMachine) {
      sections_ = file_.records<Elf64_Shdr>(header[0].e_shoff, header[0].e_shnum);
    }
  }

  std::string buildId() const {
    constexpr uint64_t kMostBytes = 1 << 20;
    for (const Elf64_Shdr &section : sections_) {
      if (section.sh_type == SHT_NOTE && section.sh_size <= kMostBytes) {
        auto notes = file_.records<uint8_t>(section.sh_offset, section.sh_size);
        std::string id = buildIdIn(notes.data(), notes.size());
        if (!id.empty()) {
          return id;
        }
      }
    }
    return "";
  }

  const Elf64_Shdr *table(uint32_t type) const {
    for (const Elf64_Shdr &section : sections_) {
      if (section.sh_type == type && section.sh_link < sections_.size()) {
        return &section;
      }
    }
    return nullptr;
  }

  /// Name those of `wanted` (offset, place in `names`; ascending) that have no name yet.
  void name(const Elf64_Shdr &table, const std::vector<std::pair<uint64_t, size_t>> &wanted,
            std::vector<std::string> &names) const {
    constexpr uint64_t kAtOnce = 1 << 14;
    uint64_t count = table.sh_size / sizeof(Elf64_Sym);
    const Elf64_Shdr &strings = sections_[table.sh_link];
    for (uint64_t first = 0; first < count; first += kAtOnce) {
      auto symbols = file_.records<Elf64_Sym>(table.sh_offset + first * sizeof(Elf64_Sym),
                                              std::min(kAtOnce, count - first));
      if (symbols.empty()) {
        return;
      }
      for (const Elf64_Sym &symbol : symbols) {
        nameFunction(symbol, strings, wanted, names);
      }
    }
  }

private:
  void nameFunction(const Elf64_Sym &symbol, const Elf64_Shdr &strings,
                    const std::vector<std::pair<uint64_t, size_t>> &wanted,
                    std::vector<std::string> &names) const {
    int type = ELF64_ST_TYPE(symbol.st_info);
    if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol.st_shndx == SHN_UNDEF) {
      return;
    }
    auto place =
        std::lower_bound(wanted.begin(), wanted.end(), std::make_pair(symbol.st_value, size_t{0}));
    for (; place != wanted.end() && place->first - symbol.st_value < symbol.st_size; ++place) {
      if (names[place->second].empty()) {
        names[place->second] = file_.text(strings.sh_offset + symbol.st_name);
      }
    }
  }

  RegularFile file_;
  std::vector<Elf64_Shdr> sections_;
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
