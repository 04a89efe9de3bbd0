#pragma once
// Code objects as ids that, unlike addresses, are never reused.
#include <Python.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/address_cache.h"
#include "core/mutex.h"

namespace deepcontext {

class MemoryReader;

/// What the frames of a code object become in the tree.
enum class CodeRole : uint8_t {
  kPlain,         // a Python frame
  kHidden,        // no node: the profiler's frames, import machinery, a framework's plumbing
  kScopePlumbing, // hidden, and called by the function that opened a scope
  kModuleCall,    // the call of a module: a module node, named after the instance in `self`
  kFolded,        // one marker node, and no frame below it
};

/// Assigns a role to code objects by where they were defined.
struct CodeRule {
  enum class FileMatch : uint8_t { kExact, kPrefix, kSuffix };
  FileMatch match;
  std::string file;
  std::string qualified_name; // "" for every function of the file
  CodeRole role;
  std::string marker; // kFolded: the marker's name
};

struct CodeInfo {
  std::string name;  // co_qualname
  std::string file;  // co_filename
  std::string table; // co_linetable
  int first_line = 0;
  bool is_function = true; // not the body of a module or a class
  CodeRole role = CodeRole::kPlain;
  uint32_t marker = 0; // interned
};

struct CodeEntry {
  static constexpr uint32_t kOther = 0; // all functions for which the table has no room

  uint32_t id = kOther;
  CodeRole role = CodeRole::kPlain;
  uint32_t marker = 0;

  /// Whether nodes distinguish instructions.
  bool hasPlaces() const { return id != kOther; }
};

/// All code objects seen. Their names and line tables are copied at the first lookup, without the
/// GIL: the fields are immutable and a running frame keeps its code alive. No reference is taken
/// (that needs the GIL); instead a code watcher (on 3.11 a wrapped tp_dealloc) forgets the address
/// when the code object is destroyed. From 3.12 on, such a watcher does not see the code objects of
/// sub-interpreters, where a later object at the same address would get the old name. The sampler
/// reads threads of the main interpreter only, and no framework supports the others.
///
/// Two code objects with equal name, file, first line and line table get one id, so that a program
/// that compiles the same source repeatedly has a bounded tree. Once the table takes kMostBytes,
/// new contents get the id CodeEntry::kOther.
class CodeTable {
public:
  static constexpr size_t kMostBytes = 64 << 20;

  static CodeTable &instance();

  /// For caches keyed by the address of a code object.
  static const AddressEpochs &epochs() { return epochs_; }

  /// The entry of a code object that is kept alive by a frame of the calling thread.
  CodeEntry entry(const PyCodeObject *code);
  /// Number of code objects destroyed so far. Async-signal-safe.
  static uint64_t deaths() { return deaths_.load(std::memory_order_acquire); }
  /// The entry of a possible code object that ran when `deaths()` was `since`; none when it is not
  /// a
  /// code object or may have been destroyed since. Does not keep it alive: see
  /// `describeForeignCode`.
  std::optional<CodeEntry> entrySince(const void *code, uint64_t since, const MemoryReader &memory);
  bool isWatching() const { return is_watching_.load(std::memory_order_acquire); }
  const CodeInfo &info(uint32_t id) const;
  /// How many code objects got CodeEntry::kOther since `clearRefused`.
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }
  void clearRefused() { refused_.store(0, std::memory_order_relaxed); }

  void addRule(CodeRule rule);

  /// Watch for destroyed code objects during a session. GIL held. False with a reason when that is
  /// not possible.
  bool watch(std::string *reason);
  void unwatch();
  /// A code object is about to be freed. GIL held.
  void forget(const void *code);
  Mutex &forkLock() { return mutex_; }

private:
  static CodeInfo describe(const PyCodeObject *code);
  void applyRules(CodeInfo *info) const;
  CodeTable();
  uint32_t idOf(CodeInfo info);

  // Static, so that the hot path reads it without going through instance().
  static inline AddressEpochs epochs_; // written with the mutex held
  static inline std::atomic<uint64_t> deaths_{0};
  static constexpr uint64_t kRecentDeaths = 1024;
  static constexpr size_t kCodeBytes = 256; // of memory, besides the texts

  CodeEntry store(const void *code, CodeInfo info);
  bool mayHaveDied(const void *code, uint64_t since) const;

  mutable Mutex mutex_;
  std::atomic<bool> is_watching_{false};
  std::array<const void *, kRecentDeaths> recent_deaths_{}; // a ring, by number of death
  std::unordered_map<const void *, CodeEntry> by_address_;
  std::unordered_multimap<size_t, uint32_t> by_content_; // by hash
  std::deque<CodeInfo> infos_;                           // never moved, never removed
  size_t bytes_ = 0;
  std::atomic<uint64_t> refused_{0};
  std::vector<CodeRule> rules_;
};

/// UTF-8 copy of a str without the GIL; the object must be kept alive by the caller's frame.
std::string copyText(PyObject *text);
/// UTF-8 of characters as a str holds them, `kind` bytes each.
std::string utf8Of(int kind, const void *characters, Py_ssize_t length);

} // namespace deepcontext
