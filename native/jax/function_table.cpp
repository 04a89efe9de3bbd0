#include "jax/function_table.h"

#include <cctype>

namespace deepcontext::jax {

std::string plainName(std::string_view name) {
  std::string plain;
  for (char letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter))) {
      plain += letter;
    }
  }
  return plain;
}

FunctionTable &FunctionTable::instance() {
  static FunctionTable *const table = new FunctionTable();
  return *table;
}

const Function &FunctionTable::add(const std::string &name, const std::string &qualified_name,
                                   const std::string &file, int first_line,
                                   const std::string &shown) {
  std::string key = name + '\0' + qualified_name + '\0' + file + '\0' + std::to_string(first_line);
  std::lock_guard<Mutex> lock(mutex_);
  auto [place, is_new] = ids_.emplace(key, static_cast<uint32_t>(functions_.size()));
  if (is_new) {
    Function &function = functions_.emplace_back();
    function.id = place->second;
    function.frame_name =
        Interner::instance().intern("jit(" + (shown.empty() ? name : shown) + ")");
    function.name = name;
    function.shown = shown.empty() ? name : shown;
    function.plain_name = plainName(name);
    function.qualified_name = qualified_name;
    function.file = file;
    function.first_line = first_line;
    frame_names_.push_back(function.frame_name);
  }
  return functions_[place->second];
}

void FunctionTable::forgetPrograms() {
  std::lock_guard<Mutex> lock(mutex_);
  for (Function &function : functions_) {
    function.program_count.store(0, std::memory_order_relaxed);
  }
}

Function &FunctionTable::at(uint32_t id) {
  std::lock_guard<Mutex> lock(mutex_);
  return functions_[id];
}

} // namespace deepcontext::jax
