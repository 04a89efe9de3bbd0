#include "python/code_table.h"

#include <algorithm>

#include "core/interner.h"
#include "python/foreign_code.h"

namespace deepcontext {

namespace {

void appendUtf8(std::string &out, uint32_t code_point) {
  if (code_point < 0x80) {
    out += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    out += static_cast<char>(0xC0 | (code_point >> 6));
    out += static_cast<char>(0x80 | (code_point & 0x3F));
  } else if (code_point >= 0xD800 && code_point < 0xE000) {
    out += '?'; // a lone surrogate (an undecodable byte of a file name) has no UTF-8 form
  } else if (code_point < 0x10000) {
    out += static_cast<char>(0xE0 | (code_point >> 12));
    out += static_cast<char>(0x80 | ((code_point >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code_point & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (code_point >> 18));
    out += static_cast<char>(0x80 | ((code_point >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((code_point >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code_point & 0x3F));
  }
}

bool matches(const CodeRule &rule, const CodeInfo &info) {
  if (!rule.qualified_name.empty() && rule.qualified_name != info.name) {
    return false;
  }
  if (rule.role == CodeRole::kFolded && !info.is_function) {
    return false; // such a body runs at import and is not what the marker names
  }
  size_t length = rule.file.size();
  if (info.file.size() < length) {
    return false;
  }
  switch (rule.match) {
  case CodeRule::FileMatch::kExact:
    return info.file == rule.file;
  case CodeRule::FileMatch::kPrefix:
    return info.file.compare(0, length, rule.file) == 0;
  case CodeRule::FileMatch::kSuffix:
    return info.file.compare(info.file.size() - length, length, rule.file) == 0;
  }
  return false;
}

size_t hashContent(const CodeInfo &info) {
  std::hash<std::string> hash;
  size_t value = static_cast<size_t>(info.first_line);
  for (const std::string *part : {&info.file, &info.name, &info.table}) {
    value = value * 0x9E3779B97F4A7C15u + hash(*part);
  }
  return value;
}

bool isSameContent(const CodeInfo &left, const CodeInfo &right) {
  return left.first_line == right.first_line && left.name == right.name &&
         left.file == right.file && left.table == right.table;
}

#if PY_VERSION_HEX >= 0x030c0000

int g_watcher = -1;

int onCodeEvent(PyCodeEvent event, PyCodeObject *code) {
  if (event == PY_CODE_EVENT_DESTROY) {
    CodeTable::instance().forget(code);
  }
  return 0;
}

#else

// 3.11 has no code watcher. tp_dealloc is read at each deallocation, so a wrapper in the type's
// slot sees all of them; the slot is restored when the session ends.
destructor g_original_dealloc = nullptr;

void deallocAndForget(PyObject *code) {
  CodeTable::instance().forget(code);
  g_original_dealloc(code);
}

#endif

} // namespace

std::string copyText(PyObject *text) {
  std::string out;
  if (!text || !PyUnicode_Check(text)) {
    return out;
  }
  Py_ssize_t length = PyUnicode_GET_LENGTH(text);
  if (PyUnicode_IS_COMPACT_ASCII(text)) {
    out.assign(static_cast<const char *>(PyUnicode_DATA(text)), static_cast<size_t>(length));
    return out;
  }
  return utf8Of(PyUnicode_KIND(text), PyUnicode_DATA(text), length);
}

std::string utf8Of(int kind, const void *characters, Py_ssize_t length) {
  std::string out;
  for (Py_ssize_t i = 0; i < length; ++i) {
    appendUtf8(out, PyUnicode_READ(kind, characters, i));
  }
  return out;
}

CodeTable::CodeTable() {
  infos_.emplace_back().name = "(other functions)"; // CodeEntry::kOther
}

CodeTable &CodeTable::instance() {
  // never destroyed: code objects die after static destructors
  static CodeTable *const table = new CodeTable();
  return *table;
}

CodeInfo CodeTable::describe(const PyCodeObject *code) {
  CodeInfo info;
  info.name = copyText(code->co_qualname);
  info.file = copyText(code->co_filename);
  info.first_line = code->co_firstlineno;
  info.is_function = (code->co_flags & CO_OPTIMIZED) != 0;
  PyObject *table = code->co_linetable;
  if (table && PyBytes_Check(table)) {
    info.table.assign(PyBytes_AS_STRING(table), static_cast<size_t>(PyBytes_GET_SIZE(table)));
  }
  return info;
}

void CodeTable::applyRules(CodeInfo *info) const {
  auto rule = std::find_if(rules_.begin(), rules_.end(),
                           [&](const CodeRule &candidate) { return matches(candidate, *info); });
  if (rule != rules_.end()) {
    info->role = rule->role;
    info->marker = Interner::instance().intern(rule->marker);
  }
}

CodeEntry CodeTable::entry(const PyCodeObject *code) {
  std::lock_guard<Mutex> lock(mutex_);
  auto known = by_address_.find(code);
  return known != by_address_.end() ? known->second : store(code, describe(code));
}

std::optional<CodeEntry> CodeTable::entrySince(const void *code, uint64_t since,
                                               const MemoryReader &memory) {
  std::lock_guard<Mutex> lock(mutex_);
  if (mayHaveDied(code, since)) {
    return std::nullopt;
  }
  auto known = by_address_.find(code);
  if (known != by_address_.end()) {
    return known->second;
  }
  std::optional<CodeInfo> info = describeForeignCode(code, memory);
  return info ? std::optional(store(code, std::move(*info))) : std::nullopt;
}

bool CodeTable::mayHaveDied(const void *code, uint64_t since) const {
  uint64_t deaths = deaths_.load(std::memory_order_relaxed);
  if (deaths - since > kRecentDeaths) {
    return true;
  }
  for (; since < deaths; ++since) {
    if (recent_deaths_[since % kRecentDeaths] == code) {
      return true;
    }
  }
  return false;
}

CodeEntry CodeTable::store(const void *code, CodeInfo info) {
  applyRules(&info);
  CodeEntry entry{CodeEntry::kOther, info.role, info.marker};
  entry.id = idOf(std::move(info));
  by_address_.emplace(code, entry);
  return entry;
}

uint32_t CodeTable::idOf(CodeInfo info) {
  size_t hash = hashContent(info);
  auto [same, end] = by_content_.equal_range(hash);
  for (; same != end; ++same) {
    CodeInfo &known = infos_[same->second];
    if (isSameContent(known, info)) {
      known.role = info.role; // rules may have been added since this content was first seen
      known.marker = info.marker;
      return same->second;
    }
  }
  if (bytes_ >= kMostBytes) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return CodeEntry::kOther;
  }
  auto id = static_cast<uint32_t>(infos_.size());
  bytes_ += info.name.size() + info.file.size() + info.table.size() + kCodeBytes;
  infos_.push_back(std::move(info));
  by_content_.emplace(hash, id);
  return id;
}

const CodeInfo &CodeTable::info(uint32_t id) const {
  std::lock_guard<Mutex> lock(mutex_);
  return infos_[id];
}

void CodeTable::addRule(CodeRule rule) {
  std::lock_guard<Mutex> lock(mutex_);
  auto same = [&](const CodeRule &other) {
    return other.match == rule.match && other.file == rule.file &&
           other.qualified_name == rule.qualified_name;
  };
  rules_.erase(std::remove_if(rules_.begin(), rules_.end(), same), rules_.end());
  rules_.push_back(std::move(rule));
  by_address_.clear();
  epochs_.changeAll();
}

bool CodeTable::watch(std::string *reason) {
#if PY_VERSION_HEX >= 0x030c0000
  if (g_watcher < 0) {
    g_watcher = PyCode_AddWatcher(onCodeEvent);
  }
  if (g_watcher < 0) {
    PyErr_Clear();
    *reason = "all of the interpreter's code watchers are taken by other tools";
    return false;
  }
#else
  (void)reason;
  if (!g_original_dealloc) {
    g_original_dealloc = PyCode_Type.tp_dealloc;
    PyCode_Type.tp_dealloc = deallocAndForget;
  }
#endif
  std::lock_guard<Mutex> lock(mutex_);
  by_address_.clear(); // entries from before the watch may be out of date
  epochs_.changeAll();
  is_watching_.store(true, std::memory_order_release);
  return true;
}

void CodeTable::unwatch() {
  is_watching_.store(false, std::memory_order_release);
#if PY_VERSION_HEX >= 0x030c0000
  if (g_watcher >= 0) {
    PyCode_ClearWatcher(g_watcher);
    g_watcher = -1;
  }
#else
  if (g_original_dealloc && PyCode_Type.tp_dealloc == deallocAndForget) {
    PyCode_Type.tp_dealloc = g_original_dealloc;
    g_original_dealloc = nullptr;
  }
#endif
  std::lock_guard<Mutex> lock(mutex_);
  by_address_.clear();
  epochs_.changeAll();
}

void CodeTable::forget(const void *code) {
  std::lock_guard<Mutex> lock(mutex_);
  uint64_t deaths = deaths_.load(std::memory_order_relaxed);
  recent_deaths_[deaths % kRecentDeaths] = code;
  deaths_.store(deaths + 1, std::memory_order_release);
  if (by_address_.erase(code) > 0) {
    epochs_.change(code);
  }
}

} // namespace deepcontext
