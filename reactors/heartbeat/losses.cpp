#include "rw/reactors/heartbeat/losses.hpp"

#include "rw/core/hash.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

namespace rw::heartbeats {
namespace {

constexpr std::size_t most_named = 256;  // bytes of names in a message

std::uint64_t hash_of(std::string_view name) {
  return core::string_hash().add(name).value();
}

/// Whether its process began after that time. Unknown counts as no.
bool began_after(const heartbeat& from, core::time_point time, core::time_point arrival) {
  using std::chrono::microseconds, std::chrono::floor;
  if (!from.started || !from.sent) return false;
  // In microseconds a difference of any two times can be represented.
  const auto age = floor<microseconds>(from.sent->time_since_epoch()) -
                   floor<microseconds>(from.started->time_since_epoch());
  return age < floor<microseconds>(arrival - time);
}

}  // namespace

std::string reported_losses::message() const {
  std::string names;
  std::size_t named = 0;
  for (const auto& each : managers) {
    if (named > 0 && names.size() + each.size() > most_named) break;
    names += (named++ == 0 ? "" : ", ") + (each.empty() ? "others" : each);
  }
  if (named < managers.size()) names += " and " + std::to_string(managers.size() - named) + " more";
  return "the watcher dropped events, and tells these operators to resync: " + names;
}

reported_losses loss_counter::receive(const heartbeat& now, core::time_point arrival,
                                      core::time_point listening) {
  const auto boot = hash_of(now.boot_id);
  auto found = std::ranges::find(processes_, boot, &process::boot);
  const bool is_known = found != processes_.end();
  const bool counts = is_known || began_after(now, listening, arrival);
  if (!is_known) {
    if (processes_.size() == max_processes) processes_.pop_back();
    found = processes_.insert(processes_.end(), process{.boot = boot});
  }
  std::rotate(processes_.begin(), found, std::next(found));
  auto& latest = processes_.front().counts;
  const auto before = std::exchange(latest, {});

  reported_losses out;
  const auto compare = [&](const std::string& manager, std::uint64_t count) {
    const auto name = hash_of(manager);
    const auto known = std::ranges::find(before, name, [](const auto& each) { return each.first; });
    const auto reported = known == before.end() ? 0 : known->second;
    latest.emplace_back(name, std::max(count, reported));
    if (!counts || count <= reported) return;
    out.managers.push_back(manager);
    out.count += std::min(count - reported, max_growth);
  };
  std::uint64_t others = 0;
  std::size_t named = 0;
  for (const auto& each : now.losses) {
    if (each.manager.empty() || named == max_operators) {
      others += each.count;
    } else {
      compare(each.manager, each.count);
      ++named;
    }
  }
  compare({}, others);
  std::ranges::sort(out.managers);
  return out;
}

}  // namespace rw::heartbeats
