#include "python/foreign_code.h"

#include <cstdint>

#include "core/memory_reader.h"

namespace deepcontext {

namespace {

constexpr Py_ssize_t kMostCharacters = 1 << 20;
constexpr Py_ssize_t kMostTableBytes = 1 << 26;

/// Copies one object of an expected type.
class ForeignReader {
public:
  explicit ForeignReader(const MemoryReader &memory) : memory_(memory) {}

  /// Copy the fixed part of an object; false when no living object of the type is there.
  template <typename Object>
  bool readObject(const void *address, const PyTypeObject *type, Object *copy) const {
    return memory_.read(address, copy, sizeof *copy) && isAlive(copy, type);
  }

  bool readText(const void *address, std::string *text) const {
    PyASCIIObject head;
    if (!readObject(address, &PyUnicode_Type, &head) || !head.state.compact || head.length < 0 ||
        head.length > kMostCharacters) {
      return false;
    }
    size_t header = head.state.ascii ? sizeof(PyASCIIObject) : sizeof(PyCompactUnicodeObject);
    auto kind = static_cast<size_t>(head.state.kind);
    if (kind != 1 && kind != 2 && kind != 4) {
      return false;
    }
    std::string characters;
    if (!readBytes(address, header, static_cast<size_t>(head.length) * kind, &characters)) {
      return false;
    }
    *text = utf8Of(static_cast<int>(kind), characters.data(), head.length);
    return true;
  }

  bool readTable(const void *address, std::string *table) const {
    PyVarObject head;
    return readObject(address, &PyBytes_Type, &head) && head.ob_size >= 0 &&
           head.ob_size <= kMostTableBytes &&
           readBytes(address, offsetof(PyBytesObject, ob_sval), static_cast<size_t>(head.ob_size),
                     table);
  }

private:
  static bool isAlive(const void *copy, const PyTypeObject *type) {
    auto *object = static_cast<const PyObject *>(copy);
    if (Py_TYPE(object) != type || Py_REFCNT(object) <= 0) {
      return false;
    }
#if PY_VERSION_HEX < 0x030e0000
    // The allocator stores a link in the first word of a free block, where the count was.
    return object->ob_refcnt <= static_cast<Py_ssize_t>(UINT32_MAX);
#else
    return true;
#endif
  }

  bool readBytes(const void *address, size_t offset, size_t bytes, std::string *to) const {
    to->resize(bytes);
    auto from = reinterpret_cast<uintptr_t>(address) + offset;
    return bytes == 0 || memory_.read(reinterpret_cast<const void *>(from), to->data(), bytes);
  }

  const MemoryReader &memory_;
};

} // namespace

std::optional<CodeInfo> describeForeignCode(const void *address, const MemoryReader &memory) {
  alignas(PyCodeObject) char copy[sizeof(PyCodeObject)];
  auto *code = reinterpret_cast<PyCodeObject *>(copy);
  ForeignReader reader(memory);
  CodeInfo info;
  if (!reader.readObject(address, &PyCode_Type, code) ||
      !reader.readText(code->co_qualname, &info.name) ||
      !reader.readText(code->co_filename, &info.file) ||
      !reader.readTable(code->co_linetable, &info.table)) {
    return std::nullopt;
  }
  info.first_line = code->co_firstlineno;
  info.is_function = (code->co_flags & CO_OPTIMIZED) != 0;
  return info;
}

} // namespace deepcontext
