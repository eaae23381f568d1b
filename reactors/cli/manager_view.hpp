#pragma once

#include "rw/core/metrics_snapshot.hpp"
#include "rw/reactors/admin/live_feed.hpp"
#include "rw/reactors/cli/manager_app.hpp"
#include "rw/reactors/cli/runtimes_view.hpp"
#include "rw/reactors/shared/fleet_history.hpp"
#include "rw/reactors/shared/fleet_verdict.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::cli {

/// What a manager shows of itself and of all runtimes: the JSON of `/runtimes`, and the state and
/// rows of the live page (reactors/admin/page.html). Reads what the reactors keep in memory.
class manager_app::view final : public admin::live_source {
 public:
  explicit view(const manager_app& of) : manager_(of) {}

  /// Returns a page of runtimes (runtimes_view.hpp), and the state of the landscape.
  std::string runtimes(std::string_view query, std::string& error);

  /// Its reason is that of the installation.
  runtime_summary summary_of(const k8s::object_key& kyma) const;
  /// Empty if they are in order, or none are known. Valid until the next one.
  std::string_view reason_of_heartbeats(const k8s::object_key& kyma) const;

  /// Judges the landscape. Called every few seconds while this replica leads, and for `/runtimes`;
  /// the page and the metrics `rw_fleet_*` show the latest verdict.
  void judge();

  /// Returns the JSON of `/history`: the last 24 hours; with `at=SECONDS`, the runtimes that were
  /// not well then.
  std::string history(std::string_view query, std::string& error) const;
  /// What the next leader restores.
  std::string encoded_history() const { return history_.encode(); }
  /// Goes on where the Secret's writer ended.
  void restore(const boost::json::value& secret);
  bool has_history() const { return !history_.minutes().empty(); }

  boost::json::object state() override;
  void for_each_row(const visitor& visit) override;
  boost::json::object row(std::string_view kyma) override;

 private:
  /// What is known of one runtime; null: nothing.
  struct runtime {
    const rw::runtimes::status* installed = nullptr;
    const heartbeats::runtime_health* health = nullptr;
    bool is_deleted = false;  ///< its Kyma is being deleted

    /// "unknown": not reconciled since this process leads.
    std::string_view state() const;
    /// True if the watcher can't be taken off the runtime of a Kyma that is being deleted.
    bool fails_removal() const {
      return is_deleted && installed != nullptr &&
             installed->reason == status_reason::removal_failed;
    }
  };
  /// Sums over all runtimes. All but the first two are of the latest heartbeats.
  struct totals {
    std::size_t runtimes = 0;
    std::map<std::string_view, std::size_t> states = {};
    std::size_t holding = 0;  ///< runtimes with events that are not delivered
    std::chrono::milliseconds oldest{0};
    std::chrono::system_clock::time_point earliest = {};  ///< expiry of a client certificate
    std::string earliest_runtime = {};
    std::size_t expiring = 0;  ///< client certificates that expire within three days
  };

  runtime find(const k8s::object_key& kyma) const;
  void add(const k8s::object_key& kyma, const heartbeat& last);
  std::uint64_t digest_of(const k8s::object& kyma, const runtime& known) const;
  void describe(const k8s::object_key& kyma, boost::json::object& row) const;
  void describe_heartbeat(const k8s::object_key& kyma, boost::json::object& row) const;
  /// What this process recorded of the Kyma, its Runtime and its RuntimeBootstrapper, lately.
  boost::json::array events_of(const k8s::object_key& kyma) const;
  /// Of a runtime of which nothing has been heard, and nothing is expected: unknown.
  static liveness liveness_of(const heartbeats::runtime_health* known);
  boost::json::object heartbeat_counts() const;
  /// What is known of a runtime, to be judged.
  runtime_observation observation_of(const k8s::object_key& kyma, const runtime& known) const;
  judged_runtime judged(const k8s::object_key& kyma, const runtime& known) const;
  std::vector<fleet_fault> faults() const;
  /// The latest verdict; `no_leader` if there is none that is new enough.
  fleet_verdict verdict() const;
  void remember(const std::vector<judged_runtime>& runtimes);
  std::array<std::uint64_t, history_stages.size()> stage_totals() const;
  boost::json::array conditions() const;
  bool is_unreadable(const k8s::informer& informer) const;
  /// Empty before this process has looked at it as leader.
  boost::json::object rotation(const core::metrics_snapshot* values) const;
  boost::json::array rollouts() const;
  boost::json::object events() const;
  boost::json::object certificates() const;
  void add_flow(const core::metrics_snapshot& values, boost::json::object& to) const;

  const manager_app& manager_;
  totals totals_ = {};  ///< of the latest pass over all rows
  fleet_verdict verdict_ = {};
  fleet_history history_ = {};
  std::optional<core::time_point> remembers_since_ = {};
  std::optional<core::time_point> judged_at_ = {};
};

}  // namespace rw::cli
