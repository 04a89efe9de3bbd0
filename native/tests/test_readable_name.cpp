#include "unwind/readable_name.h"

#include "tests/check.h"

using namespace deepcontext::unwind;

TEST(a_c_function_keeps_its_name) {
  CHECK_EQ(readableName("cublasLtMatmul"), "cublasLtMatmul");
  CHECK_EQ(readableName("main.cold"), "main");
}

TEST(parameters_and_return_types_are_left_out) {
  CHECK_EQ(readableName("_ZN2at6native6linearERKNS_6TensorES3_RKSt8optionalIS1_E"),
           "at::native::linear");
  // int ns::f<int>(int) const
  CHECK_EQ(readableName("_ZNK2ns1fIiEEiT_"), "ns::f<int>");
  CHECK_EQ(readableName("_ZN2ns1AC1Ei"), "ns::A::A");
  CHECK_EQ(readableName("_ZN2ns1AD2Ev"), "ns::A::~A");
}

TEST(functions_inside_functions_keep_where_they_are) {
  // ns::f(int)::{lambda(int)#1}::operator()(int) const
  CHECK_EQ(readableName("_ZZN2ns1fEiENKUliE_clEi"), "ns::f(int)::{lambda(int)#1}::operator()");
  // (anonymous namespace)::g()
  CHECK_EQ(readableName("_ZN12_GLOBAL__N_11gEv"), "(anonymous namespace)::g");
}

TEST(operators_keep_their_names) {
  CHECK_EQ(readableName("_ZN2ns1AclEv"), "ns::A::operator()");
  CHECK_EQ(readableName("_ZNK2ns1AcvbEv"), "ns::A::operator bool");
  CHECK_EQ(readableName("_Znwm"), "operator new");
  CHECK_EQ(readableName("_ZN2nslsERNS_1AEi"), "ns::operator<<");
  CHECK_EQ(readableName("_ZN2ns1AptEv"), "ns::A::operator->");
}

TEST(suffixes_of_the_compiler_are_left_out) {
  CHECK_EQ(readableName("_ZN2ns1fEi.part.0"), "ns::f");
  CHECK_EQ(readableName("_ZN2ns1fEi.cold"), "ns::f");
}

TEST(functions_of_cython_are_named_as_python_calls_them) {
  CHECK_EQ(readableName("__pyx_pw_5numpy_6random_10_generator_9Generator_27choice"),
           "numpy.random._generator.Generator.choice");
  CHECK_EQ(readableName("__pyx_pf_5numpy_6random_10_generator_default_rng.isra.0"),
           "numpy.random._generator.default_rng");
  CHECK_EQ(readableName("__pyx_pw_3pkg_3get_x"), "pkg.get_x"); // the third function
  CHECK_EQ(readableName("__pyx_pw_3pkg_1C_11__reduce__"), "pkg.C.__reduce__");
  CHECK_EQ(readableName("__pyx_f_6pandas_5_libs_5tslib_first_non_null"),
           "pandas._libs.tslib.first_non_null");
  CHECK_EQ(readableName("__pyx_pw_"), "__pyx_pw_");
  CHECK_EQ(readableName("__pyx_pymod_exec__generator"), "__pyx_pymod_exec__generator");
}

TEST(what_cannot_be_demangled_stays_as_it_is) {
  CHECK_EQ(readableName("_Zoops"), "_Zoops");
  CHECK_EQ(readableName(""), "");
}

TEST(a_function_without_a_symbol_is_called_by_its_place) {
  CHECK_EQ(unresolvedName("/opt/lib/libfoo.so.2", 0x1234), "libfoo.so.2+0x1234");
  CHECK_EQ(unresolvedName("linux-vdso.so.1", 0x10), "linux-vdso.so.1+0x10");
  CHECK_EQ(unresolvedName("", 0), "[code in no file]");
}

TEST(a_demangled_name_keeps_its_parameters) {
  CHECK_EQ(demangledName("_Z4gemmILi3EEvPf"), "void gemm<3>(float*)");
  CHECK_EQ(demangledName("triton_poi_fused_add_0"), "triton_poi_fused_add_0");
  CHECK_EQ(demangledName("_Zbroken"), "_Zbroken");
}
