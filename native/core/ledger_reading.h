#pragma once
// The allocation ledger as of one moment, without keeping allocating threads waiting.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "core/allocation_ledger.h"

namespace deepcontext {

/// What one site held at the moment of a reading.
struct SiteValues {
  uint32_t recorder, node, index;
  size_t pool; // number of the pool
  MetricValues allocated;
  uint64_t live_bytes, own_peak_bytes, at_peak_bytes;
  uint32_t blocks, at_peak_blocks;
  Growth growth;
};

/// A ledger as it was when the reading began. Each call of `next` copies one slice under the
/// ledger's lock. What changes before its slice comes is copied just before the change (`see`), so
/// that all sums are of one moment.
///
/// An allocation moves in the table when others are inserted or erased. So the passes over the
/// table go on until every allocation of the moment was seen; a second pass is rare.
class LedgerReading {
public:
  static constexpr size_t kSitesInSlice = 64;
  static constexpr size_t kSlotsInSlice = 512;

  /// Wait for the end of other readings of the ledger, and begin.
  explicit LedgerReading(AllocationLedger &ledger);
  /// Skip what was not read.
  ~LedgerReading();
  LedgerReading(const LedgerReading &) = delete;
  LedgerReading &operator=(const LedgerReading &) = delete;

  /// Read one more slice, and then let the threads go first that wait for the ledger; false when
  /// all was read. Throws std::bad_alloc.
  bool next();

  /// Under the ledger's lock: this is about to change.
  void see(AllocationSite &site);
  void see(Allocation &entry);
  /// Under the ledger's lock: there was no memory for something that changes.
  void fail() { has_failed_ = true; }
  /// Under the ledger's lock: other ends of steps count from now on, and growth begins at 0.
  void forgetGrowth() { has_growth_ = false; }

  // As of the beginning. The last two are complete when `next` has returned false.
  std::vector<MemoryPool> pools;
  uint64_t session = 0;
  uint32_t steps = 0;
  StepKind step_kind = StepKind::kCall;
  std::deque<SiteValues> sites; // never moves its elements, which would take long
  RolesOfSites roles; // bytes at the peak of each site's pool; they add up to `at_peak_bytes`

  bool hasGrowth() const { return has_growth_; }

private:
  bool readSlice();
  void copy(const AllocationSite &site);
  bool isOfPeak(const AllocationSite &site) const { return site.epoch == epochOf(site); }
  uint32_t epochOf(const AllocationSite &site) const { return pools[poolOf(site)].epoch; }
  size_t poolOf(const AllocationSite &site) const;

  AllocationLedger &ledger_;
  std::lock_guard<SpinLock> only_;
  uint32_t turn_ = 0;
  bool is_frozen_ = false;
  bool has_failed_ = false;
  bool is_kept_ = true; // false: the reading ends early, and only marks what it sees
  bool has_growth_ = true;
  size_t site_count_ = 0; // of the beginning
  size_t next_site_ = 0;
  size_t next_slot_ = 0;
  size_t unseen_ = 0; // allocations
};

} // namespace deepcontext
