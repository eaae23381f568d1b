#pragma once

#include "reactors/config_sync/signal.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace rw::config_sync {

/// The ConfigMap, in `kcp_namespace`, that keeps the target: what the next process, or the next
/// leader, compares the sources with. It is written before the first Runtime is marked for it.
inline constexpr std::string_view record_name = "runtime-watcher-signalled-configuration";

/// None if the ConfigMap does not say.
std::optional<target> read_record(const boost::json::value& config_map);

/// The ConfigMap for a target; at the version of `before` if that is one.
boost::json::value write_record(const target& now, const boost::json::value& before);

/// The target after `last`, when the sources' digest has changed.
target next_target(const target& last, std::string digest,
                   std::chrono::system_clock::time_point now);

/// The target where there is no record. `texts` are what the Runtimes' annotations
/// `signalled_annotation` say.
///
/// Nothing was ever signalled: this is the first start, and the sources as they are become the
/// state that all runtimes are believed to have: KIM brought them there, or whoever told it so far.
/// They can't be asked, and marking all of them would have thousands reconciled for a change that
/// nobody made.
///
/// Something was signalled: the record was lost. The Runtimes say which state was the last; if it
/// is not what the sources hold now, a new one begins. Runtimes that say nothing count as behind.
target recover_target(const std::vector<std::string>& texts, std::string digest,
                      std::chrono::system_clock::time_point now);

}  // namespace rw::config_sync
