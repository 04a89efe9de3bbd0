#pragma once
// Text between Python and C++: every str is accepted and every std::string is returned. Replaces
// nanobind/stl/string.h and string_view.h, which must not be included beside this file: they refuse
// a str with lone surrogates (a file name with undecodable bytes) with a TypeError, which would
// reach the program under test, and names from C that are no UTF-8.
#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

namespace nanobind::detail {

template <> struct type_caster<std::string_view> {
  static constexpr auto Name = const_name("str");

  static handle from_cpp(std::string_view value, rv_policy, cleanup_list *) noexcept {
    return PyUnicode_DecodeUTF8(value.data(), static_cast<Py_ssize_t>(value.size()), "replace");
  }
};

template <> struct type_caster<std::string> {
  NB_TYPE_CASTER(std::string, const_name("str"))

  bool from_python(handle source, uint32_t, cleanup_list *) noexcept {
    if (!PyUnicode_Check(source.ptr())) {
      return false;
    }
    Py_ssize_t size = 0;
    if (const char *text = PyUnicode_AsUTF8AndSize(source.ptr(), &size)) {
      value.assign(text, static_cast<size_t>(size));
      return true;
    }
    PyErr_Clear();
    // As in the code table and in profiles: "?" for each lone surrogate.
    object encoded = steal(PyUnicode_AsEncodedString(source.ptr(), "utf-8", "replace"));
    if (!encoded.is_valid()) {
      PyErr_Clear(); // no memory
      return false;
    }
    value.assign(PyBytes_AS_STRING(encoded.ptr()),
                 static_cast<size_t>(PyBytes_GET_SIZE(encoded.ptr())));
    return true;
  }

  static handle from_cpp(const std::string &value, rv_policy policy,
                         cleanup_list *cleanup) noexcept {
    return type_caster<std::string_view>::from_cpp(value, policy, cleanup);
  }
};

} // namespace nanobind::detail
