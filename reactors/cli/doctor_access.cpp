// The checks of the way to KCP, of clocks, and of the leader.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/cli/doctor_app.hpp"
#include "rw/reactors/cli/near_names.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace rw::cli {
namespace {

namespace asio = boost::asio;
using enum finding_state;
using std::chrono::seconds;
using std::chrono::system_clock;

/// Clocks that differ by less are taken as equal.
constexpr seconds tolerated(5);

/// By how much a clock that showed a time between `from` and `to` is ahead of another that showed
/// `other`, a whole second; 0: by little.
seconds clock_difference(system_clock::time_point from, system_clock::time_point to,
                         system_clock::time_point other) {
  const auto ahead = std::chrono::floor<seconds>(from - other) - seconds(1);
  const auto behind = std::chrono::floor<seconds>(other - to);
  return ahead > tolerated ? ahead : behind > tolerated ? -behind : seconds(0);
}

/// "95 s ahead of", "95 s behind".
std::string text_of_difference(seconds ahead) {
  return std::to_string(std::abs(ahead.count())) +
         (ahead.count() > 0 ? " s ahead of" : " s behind");
}

}  // namespace

asio::awaitable<void> doctor_app::report_no_access(kcp_error error) {
  verdict_.message = "unknown: " + error.message;
  co_await report(failed, "access", std::move(error.message), std::move(error.next));
}

asio::awaitable<bool> doctor_app::check_access() {
  std::optional<std::chrono::system_clock::time_point> date;
  const auto asked = services_.clock.wall();
  const auto version = co_await kcp_->server_version({.date = &date});
  const auto answered = services_.clock.wall();
  if (!version) {
    co_await report_no_access(describe(version.error(), {"get", "", "version"}, {}));
    co_return false;
  }
  const auto seen = co_await kcp_->get(namespaces_type(), {{}, std::string(kcp_namespace)}, true);
  if (!seen) {
    co_await report_no_access(
        describe(seen.error(), {"get", "", "namespaces", "", "", std::string(kcp_namespace)},
                 "use the kubeconfig of the control plane: it has the namespace kcp-system"));
    co_return false;
  }
  co_await report(proven, "access",
                  "KCP responds, with version " + std::to_string(version->first) + "." +
                      std::to_string(version->second));
  if (!date) co_return true;
  clock_ahead_ = clock_difference(asked, answered, *date);
  if (clock_ahead_.count() == 0) co_return true;
  co_await report(not_proven, "clock",
                  "this machine's clock is " + text_of_difference(clock_ahead_) +
                      " KCP's, which these checks use",
                  "synchronize this machine's clock (NTP)");
  co_return true;
}

/// KCP's time.
std::chrono::system_clock::time_point doctor_app::now() const {
  return services_.clock.wall() - clock_ahead_;
}

/// Throws if KCP has no Kyma of a name that --runtime gives.
asio::awaitable<void> doctor_app::check_names() {
  if (settings_.runtimes.empty()) co_return;
  const auto got =
      co_await kcp_->list(kymas_type(), {.ns = std::string(kcp_namespace), .metadata_only = true});
  if (!got) co_return;  // check_runtimes says so
  std::vector<std::string> known;
  for (const auto& each : got->at("items").as_array()) known.push_back(k8s::key_of(each).name);
  for (const auto& name : settings_.runtimes) {
    if (std::ranges::find(known, name) != known.end()) continue;
    throw std::runtime_error(unknown_kyma(name, known));
  }
}

asio::awaitable<k8s::result<k8s::lease>> doctor_app::read_lease() {
  const auto got =
      co_await kcp_->get(k8s::leases_type(), {settings_.lease_namespace, settings_.lease_name});
  if (!got) co_return got.error();
  co_return k8s::read_lease(*got);
}

/// Waits for the next renewal of a Lease, half as long as it lasts, and reads it within a second.
asio::awaitable<bool> doctor_app::is_renewed(k8s::lease* lease) {
  const auto pause = services_.clock.make_timer(services_.executor);
  const auto until = services_.clock.now() + lease->duration / 2;
  while (services_.clock.now() < until) {
    pause->expires_at(services_.clock.now() + seconds(1));
    co_await pause->wait();
    const auto got = co_await read_lease();
    if (!got || got->holder != lease->holder) co_return false;
    if (got->renewed == lease->renewed) continue;
    *lease = *got;
    co_return true;
  }
  co_return false;
}

/// A Lease has the time of its renewal by the clock of its holder.
asio::awaitable<void> doctor_app::check_leader_clock(k8s::lease lease) {
  const auto renewed = lease.renewed.value_or(now());
  const auto ahead = clock_difference(renewed, renewed, now());
  if (ahead.count() == 0) co_return;  // it was a pause
  co_await report(
      failed, "clock",
      "the clock of " + lease.holder + ", which leads, is " + text_of_difference(ahead) + " KCP's",
      "synchronize the clock of the node where it runs (NTP)");
}

asio::awaitable<void> doctor_app::check_leader() {
  const k8s::object_key key{settings_.lease_namespace, settings_.lease_name};
  const auto name = "Lease " + k8s::to_string(key);
  const auto remedy = lease_remedy(key);
  auto lease = co_await read_lease();
  if (!lease) {
    auto error = describe(lease.error(),
                          {"get", "coordination.k8s.io", "leases", "", settings_.lease_namespace,
                           settings_.lease_name},
                          remedy);
    const bool is_absent = lease.error().is(k8s::errc::not_found);
    if (is_absent) error.message = name + " does not exist: no manager runs with that Lease";
    co_await report(failed, "leader", std::move(error.message), std::move(error.next));
    no_leader_ = name + (is_absent ? " does not exist" : " can't be read");
    co_return;
  }
  const auto renewed = lease->renewed.value_or(now());
  const bool is_old = renewed + 2 * lease->duration < now();
  // It has paused, or its clock is behind: its next renewal tells.
  bool is_timely = renewed + tolerated >= now();
  if (!lease->holder.empty() && !is_timely) is_timely = co_await is_renewed(&*lease);
  if (!lease->holder.empty() && (is_timely || !is_old)) {
    co_await report(proven, "leader", lease->holder + " leads");
    if (is_timely) co_await check_leader_clock(*lease);
    co_return;
  }
  no_leader_ = name + (lease->holder.empty() ? " has no holder"
                                             : " was renewed last at " + k8s::format_time(renewed));
  co_await report(failed, "leader", *no_leader_ + ": no manager runs with that Lease", remedy);
}

}  // namespace rw::cli
