#include "core/ledger_reading.h"

#include <algorithm>
#include <new>

namespace deepcontext {

LedgerReading::LedgerReading(AllocationLedger &ledger) : ledger_(ledger), only_(ledger.readings_) {
  {
    std::lock_guard<SpinLock> guard(ledger.lock_);
    site_count_ = ledger.sites_.size();
  }
  roles.reserve(site_count_); // without the lock, as far as it is known now
  std::lock_guard<SpinLock> guard(ledger.lock_);
  pools.assign(ledger.pools_.begin(),
               ledger.pools_.begin() + static_cast<std::ptrdiff_t>(ledger.pool_count_));
  session = ledger.last_session_;
  steps = ledger.countedSteps();
  step_kind = ledger.step_kind_;
  turn_ = ledger.turn_;
  is_frozen_ = ledger.is_frozen_;
  if (is_frozen_) {
    roles = ledger.frozen_roles_;
  }
  site_count_ = ledger.sites_.size();
  unseen_ = ledger.table_.size();
  ledger.seen_mark_ = !ledger.seen_mark_;
  ledger.reading_ = this;
}

LedgerReading::~LedgerReading() {
  is_kept_ = false;
  while (next()) {
  }
  std::lock_guard<SpinLock> guard(ledger_.lock_);
  ledger_.reading_ = nullptr;
}

bool LedgerReading::next() {
  bool has_more;
  {
    std::lock_guard<SpinLock> guard(ledger_.lock_);
    if (has_failed_ && is_kept_) {
      throw std::bad_alloc();
    }
    has_more = readSlice();
  }
  ledger_.lock_.letOthersGoFirst();
  return has_more;
}

bool LedgerReading::readSlice() {
  size_t end = std::min(next_site_ + kSitesInSlice, site_count_);
  if (next_site_ < end) {
    for (; next_site_ < end; ++next_site_) {
      see(ledger_.sites_[next_site_]);
    }
    return true;
  }
  if (unseen_ == 0) {
    return false;
  }
  next_slot_ = ledger_.table_.visitSome(next_slot_, kSlotsInSlice,
                                        [this](Allocation &entry) { see(entry); });
  return unseen_ > 0;
}

void LedgerReading::see(AllocationSite &site) {
  if (site.is_seen == ledger_.seen_mark_) {
    return;
  }
  site.is_seen = ledger_.seen_mark_;
  if (is_kept_) {
    copy(site);
  }
}

void LedgerReading::copy(const AllocationSite &site) {
  bool is_of_peak = isOfPeak(site); // otherwise it still holds what it held then
  sites.push_back({site.recorder, site.node, site.index, poolOf(site), site.allocated.read(),
                   site.live_bytes, site.own_peak_bytes,
                   is_of_peak ? site.at_peak_bytes : site.live_bytes, site.blocks,
                   is_of_peak ? site.at_peak_blocks : site.blocks, ledger_.growthOf(site, steps)});
  if (is_of_peak && site.history && !is_frozen_) {
    RoleBytes &held = roles[site.index];
    for (size_t role = 0; role < kTensorRoles; ++role) {
      held[role] += site.history->freed_since_peak[role];
    }
  }
}

void LedgerReading::see(Allocation &entry) {
  if (entry.is_seen == ledger_.seen_mark_) {
    return;
  }
  entry.is_seen = ledger_.seen_mark_;
  --unseen_;
  if (is_kept_ && entry.epoch < epochOf(*entry.site)) {
    TensorRole role = AllocationLedger::roleOf(entry, Stage::kOther, turn_);
    roles[entry.site->index][static_cast<size_t>(role)] += entry.size_bytes;
  }
}

size_t LedgerReading::poolOf(const AllocationSite &site) const {
  return static_cast<size_t>(site.pool - ledger_.pools_.data());
}

} // namespace deepcontext
