#include "unwind/readable_name.h"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cxxabi.h>
#include <string_view>

#include "core/text.h"

namespace deepcontext::unwind {

namespace {

constexpr std::string_view kOperator = "operator";
constexpr std::string_view kMangled = "_Z";
constexpr std::string_view kWrapper = "__pyx_pw_", kBody = "__pyx_pf_", kFunction = "__pyx_f_";

bool isDigit(char character) {
  return character >= '0' && character <= '9';
}

bool isClosing(char character) {
  return character == ')' || character == '>' || character == '}' || character == ']';
}

bool isOpening(char character) {
  return character == '(' || character == '<' || character == '{' || character == '[';
}

/// Position of the bracket that the last character of `text` closes, or npos. Operators made of
/// brackets ("operator<<") would unbalance the count and are rare enough to be left as they are.
size_t matchingOpening(std::string_view text) {
  int depth = 0;
  for (size_t i = text.size(); i-- > 0;) {
    bool is_arrow = text[i] == '>' && i > 0 && text[i - 1] == '-';
    depth += isClosing(text[i]) && !is_arrow;
    depth -= isOpening(text[i]);
    if (depth == 0) {
      return i;
    }
  }
  return std::string_view::npos;
}

/// "f(int) const" -> "f"; a name without parameters stays as it is.
std::string_view withoutParameters(std::string_view name) {
  std::string_view head = name;
  for (std::string_view qualifier : {" const", " &", " &&", " volatile"}) {
    if (endsWith(head, qualifier)) {
      head.remove_suffix(qualifier.size());
    }
  }
  if (head.empty() || head.back() != ')' || endsWith(head, "(anonymous namespace)")) {
    return name;
  }
  size_t opening = matchingOpening(head);
  bool is_whole = opening == std::string_view::npos || opening == 0;
  return is_whole || endsWith(head.substr(0, opening), kOperator) ? name : head.substr(0, opening);
}

/// "void ns::f<int>" -> "ns::f<int>": names of templates begin with the return type.
std::string_view withoutReturnType(std::string_view name) {
  int depth = 0;
  for (size_t i = name.size(); i-- > 0;) {
    depth += isClosing(name[i]);
    depth -= isOpening(name[i]);
    if (depth == 0 && name[i] == ' ') {
      std::string_view before = name.substr(0, i);
      return endsWith(before, kOperator) || endsWith(before, "(anonymous") ? name
                                                                           : name.substr(i + 1);
    }
  }
  return name;
}

/// A name of Cython's as Python has it: "__pyx_pw_3pkg_1C_5run" -> "pkg.C.run"; others are "".
/// Source: Cython/Compiler/Naming.py: a prefix, each scope with its length, then the function,
/// whose wrapper and body have a number before the name.
std::string nameOfCython(std::string_view symbol) {
  std::string name;
  for (std::string_view prefix : {kWrapper, kBody, kFunction}) {
    if (!startsWith(symbol, prefix)) {
      continue;
    }
    std::string_view rest = symbol.substr(prefix.size());
    while (!rest.empty()) {
      size_t digits = 0, length = 0;
      for (; digits < 4 && digits < rest.size() && isDigit(rest[digits]); ++digits) {
        length = 10 * length + static_cast<size_t>(rest[digits] - '0');
      }
      std::string_view text = rest.substr(digits);
      bool is_scope = digits > 0 && length > 0 && length + 1 < text.size() && text[length] == '_';
      bool is_last = !is_scope || (prefix == kWrapper && !isDigit(text[length + 1]));
      if (is_last) {
        return name.empty() ? name : name.append(text);
      }
      name.append(text.substr(0, length)).append(".");
      rest = text.substr(length + 1);
    }
  }
  return "";
}

} // namespace

std::string demangledName(const std::string &symbol) {
  if (!startsWith(symbol, kMangled)) {
    return symbol;
  }
  int status = 0;
  char *text = ::abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  std::string readable = text ? text : symbol;
  std::free(text);
  return readable;
}

std::string readableName(const std::string &symbol) {
  // a C name, where the compiler's suffix is plain text: "f.cold"
  if (!startsWith(symbol, kMangled)) {
    std::string plain = symbol.substr(0, symbol.find('.', 1));
    std::string cython = nameOfCython(plain);
    return cython.empty() ? plain : cython;
  }
  std::string plain = demangledName(symbol.substr(0, symbol.find('.')));
  std::string_view name = withoutReturnType(withoutParameters(plain));
  return std::string(name.empty() ? plain : name);
}

std::string withoutVariant(const std::string &name) {
  std::string_view plain = name;
  for (std::string_view mark : {"__GI_", "___", "__", "libc_"}) {
    if (startsWith(plain, mark)) {
      plain.remove_prefix(mark.size());
    }
  }
  size_t end = plain.size();
  for (std::string_view variant :
       {"_sse", "_ssse", "_avx", "_evex", "_erms", "_unaligned", "_generic"}) {
    end = std::min(end, plain.find(variant));
  }
  return std::string(end == 0 ? name : plain.substr(0, end));
}

std::string unresolvedName(const std::string &path, uint64_t offset) {
  if (path.empty()) {
    return "[code in no file]";
  }
  char address[24];
  std::snprintf(address, sizeof address, "+0x%" PRIx64, offset);
  return path.substr(path.rfind('/') + 1) + address;
}

} // namespace deepcontext::unwind
