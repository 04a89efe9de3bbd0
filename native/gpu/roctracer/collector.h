#pragma once
// AMD, ROCm 6 and older: roctracer, which AMD no longer develops.
#include <string>
#include <vector>

#include "abi/roctracer.h"
#include "gpu/dynlib.h"
#include "gpu/hip/calls.h"
#include "gpu/hip/collector.h"
#include "gpu/kernel_names.h"

namespace deepcontext::gpu::roctracer {

using abi::roctracer::Status;

/// One per process, never destroyed. API callbacks give the call paths, a pool of records gives
/// what ran.
class RoctracerCollector final : public HipCollector {
public:
  static RoctracerCollector &instance();

  ProbeResult probe(const Libraries &libraries) override;
  std::string start(const Libraries &libraries, const CollectorOptions &options) override;

protected:
  std::string flushWithDeadline() override;
  void disable() override;
  void addFigures(std::map<std::string, uint64_t> &figures) override;

private:
  struct Call {
    HipFunction function = HipFunction::kOther;
    uint32_t name = 0;
  };

  RoctracerCollector() = default;
  std::string load(const std::string &path);
  std::string enable();
  void listCalls();
  std::string explain(const char *what, Status status) const;

  static void onCall(uint32_t domain, uint32_t id, const void *data, void *user);
  void onHipCall(uint32_t id, const abi::roctracer::HipCall &call);
  void noteEnd(const Call &known, bool is_waiting, uint64_t begun);
  static void onBuffer(const char *begin, const char *end, void *user);
  void decode(const abi::roctracer::Record &record);
  uint32_t copyName(uint32_t kind);

  DynLib library_;
  uint32_t version_ = 0;
  void *pool_ = nullptr;
  std::vector<Call> calls_by_id_;
  std::vector<uint32_t> known_, enabled_; // ids of functions
  KernelNames names_;
  std::vector<uint32_t> copy_names_; // by the record's kind; 0: not yet known

  uint32_t (*version_major)();
  uint32_t (*version_minor)();
  const char *(*error_string)();
  const char *(*op_string)(uint32_t, uint32_t, uint32_t);
  Status (*op_code)(uint32_t, const char *, uint32_t *, uint32_t *);
  Status (*enable_op_callback)(uint32_t, uint32_t, abi::roctracer::ApiCallback, void *);
  Status (*disable_op_callback)(uint32_t, uint32_t);
  Status (*next_record)(const abi::roctracer::Record *, const abi::roctracer::Record **);
  Status (*open_pool_expl)(const abi::roctracer::Properties *, void **);
  Status (*close_pool_expl)(void *);
  Status (*enable_domain_activity_expl)(uint32_t, void *);
  Status (*disable_domain_activity)(uint32_t);
  Status (*flush_activity_expl)(void *);
  Status (*get_timestamp)(uint64_t *);
};

} // namespace deepcontext::gpu::roctracer
