#pragma once

#include "reactors/bootstrapper/record.hpp"

#include <boost/json/value.hpp>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::bootstrapper {

/// Puts a set into the order in which it is applied, so that each state on the way is safe:
/// namespaces and definitions, what is trusted, credentials, what workloads need, the
/// configuration, workloads, and webhook configurations last (k8s::apply_rank). With
/// `configuration_last` the configuration follows the workloads: they alone know the features that
/// it names.
void sort_for_apply(known_set& set, bool configuration_last);

/// One object that is to be applied.
struct planned_write {
  std::size_t item = 0;         ///< of the set
  std::string difference = {};  ///< the first field that is not as it is to be; empty: it is there,
                                ///< but is not known to be as this reactor wrote it last
  bool missing = false;
};

struct sync_plan {
  std::vector<planned_write> writes = {};  ///< in their order
  std::vector<inventory_item> prune = {};  ///< in their order: the last applied first

  bool empty() const noexcept { return writes.empty() && prune.empty(); }
};

/// What has to happen on a runtime for it to have `set`, which is sorted: an object is written
/// where it is missing, where it differs from what it is to be, and where the record does not say
/// that exactly this was written last, since fields that a former set had are seen in no
/// comparison. What is in the inventory and not in the set goes, but never a Namespace, which may
/// hold what is not ours, nor what was there before as somebody else's. `live`: for each item of
/// the set what the runtime has; null: nothing. Pure.
sync_plan make_plan(const known_set& set, const sync_record& record,
                    const std::vector<boost::json::value>& live, const std::string& ns);

/// The record before the first write of the plan: its target is `set`, and the inventory has both
/// what is there and what may be from now on. `parts`: in how many Secrets the set is kept.
sync_record begin_record(const sync_record& from, const known_set& set, std::size_t parts,
                         const std::string& ns, std::chrono::system_clock::time_point now);
/// And after the last one.
sync_record settled_record(const known_set& set, std::size_t parts, const std::string& ns,
                           std::chrono::system_clock::time_point now);

/// An object as the API server has it, without what only the API server decides: what applying it
/// again would need.
boost::json::value without_server_fields(boost::json::value live);

/// Where an item of the inventory stands in the order of application.
int rank_of(const inventory_item& one) noexcept;

}  // namespace rw::bootstrapper
