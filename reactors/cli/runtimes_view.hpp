#pragma once

#include "rw/k8s/objects/names.hpp"

#include <boost/json/object.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::cli {

/// The state of one runtime, available without reading anything: enough to count and to filter.
struct runtime_summary {
  k8s::object_key kyma;
  std::string_view state;                  ///< "unknown": not reconciled since this process leads
  std::string_view reason;                 ///< of an unhealthy state; may be empty
  std::string_view heartbeat = "unknown";  ///< state of the heartbeats
  std::chrono::system_clock::time_point since = {};
  std::string_view condition = "unknown";  ///< as it is judged (shared/fleet_verdict.hpp)
};

/// Filter of runtimes, from the query of a URL: `state=failed,unreachable`,
/// `heartbeat=silent,degraded`, `condition=ill`, `reason=TEXT` and `name=TEXT`
/// (substrings), `kyma=NAME` (exact), `for=SECONDS` (minimum time in that state),
/// `limit=N` (of one page) and `continue=TOKEN` (from the previous page).
struct runtimes_query {
  static constexpr std::array<std::string_view, 6> known_states{
      "installed", "not_ready", "failed", "unreachable", "deleting", "unknown"};
  static constexpr std::array<std::string_view, 4> known_heartbeats{"unknown", "live", "degraded",
                                                                    "silent"};
  static constexpr std::array<std::string_view, 5> known_conditions{"well", "ill", "underWay",
                                                                    "unknown", "leftOut"};

  std::vector<std::string> states = {};      ///< empty: all
  std::vector<std::string> heartbeats = {};  ///< likewise
  std::vector<std::string> conditions = {};  ///< likewise
  std::string reason = {};
  std::string name = {};
  std::string kyma = {};  ///< empty: all
  std::chrono::seconds at_least{0};
  std::size_t limit = 500;  ///< 1 to 5,000
  std::string after = {};   ///< the last Kyma of the previous page

  /// Parses a query. Sets `error` if it is invalid.
  static runtimes_query parse(std::string_view query, std::string& error);

  bool matches(const runtime_summary& runtime, std::chrono::system_clock::time_point now) const;
};

/// Returns one page: `{"total", "states": {STATE: COUNT}, "matching", "runtimes": [...],
/// "continue"}`, the runtimes by the names of their Kymas. `describe` adds details that are read
/// only for those on the page.
boost::json::object runtimes_page(
    std::vector<runtime_summary> all, const runtimes_query& query,
    std::chrono::system_clock::time_point now,
    const std::function<void(const runtime_summary&, boost::json::object&)>& describe);

}  // namespace rw::cli
