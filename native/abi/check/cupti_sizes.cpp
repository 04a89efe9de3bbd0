// Prints the record sizes of one CUDA release, for the table of the fake (tests/fakes).
#include <stddef.h>
#include <stdint.h>

#include <cstdio>

#include <cupti_version.h>

#include <cupti_activity.h>

#if CUPTI_API_VERSION >= 130400
using TrueKernel = CUpti_ActivityKernel13;
using TrueMemcpy = CUpti_ActivityMemcpy7;
using TrueMemset = CUpti_ActivityMemset5;
#else
#if CUPTI_API_VERSION >= 130300
using TrueKernel = CUpti_ActivityKernel12;
#elif CUPTI_API_VERSION >= 130100
using TrueKernel = CUpti_ActivityKernel11;
#elif CUPTI_API_VERSION >= 130000
using TrueKernel = CUpti_ActivityKernel10;
#else
using TrueKernel = CUpti_ActivityKernel9;
#endif
using TrueMemcpy = CUpti_ActivityMemcpy6;
using TrueMemset = CUpti_ActivityMemset4;
#endif

int main() {
  std::printf("%d %zu %zu %zu %zu %zu\n", CUPTI_API_VERSION, sizeof(TrueKernel), sizeof(TrueMemcpy),
              sizeof(CUpti_ActivityMemcpyPtoP4), sizeof(TrueMemset),
              sizeof(CUpti_ActivityOverhead3));
}
