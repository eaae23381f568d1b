#include "rw/reactors/watcher_installer/lifecycle_manager_lease.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/explanations.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include <utility>

namespace rw {

namespace asio = boost::asio;
namespace {

constexpr auto long_ago = std::chrono::hours(24);

}  // namespace

bool is_held(const boost::json::value& lease, std::chrono::system_clock::time_point now,
             std::chrono::seconds patience) {
  const auto renewed = k8s::parse_rfc3339(k8s::find_string(lease, {"spec", "renewTime"}));
  return renewed && now < *renewed + patience &&
         !k8s::find_string(lease, {"spec", "holderIdentity"}).empty();
}

lifecycle_manager_lease::lifecycle_manager_lease(k8s::client& api,
                                                 lifecycle_manager_options options,
                                                 core::clock& clock, core::logger& log)
    : api_(api), options_(std::move(options)), clock_(clock), log_(log) {}

/// What was renewed not long ago may be renewed again: the API server was down, lifecycle-manager
/// restarts, or a clock was set. So it counts as given up when its holder has released it, when no
/// renewal was seen for so long as it is held without one (as in client-go's leader election), or
/// when the last one is a day old.
bool lifecycle_manager_lease::is_abandoned(const boost::json::value& lease) {
  if (k8s::find_string(lease, {"spec", "holderIdentity"}).empty()) return true;
  const auto renewed = k8s::parse_rfc3339(k8s::find_string(lease, {"spec", "renewTime"}));
  if (!renewed || clock_.wall() > *renewed + long_ago) return true;
  std::string version(k8s::resource_version_of(lease));
  if (version != seen_) {
    seen_ = std::move(version);
    seen_since_ = clock_.now();
    log_.info("lifecycle-manager's Lease is not renewed; it may be soon, so this manager waits",
              {{"lease", k8s::to_string(options_.lease)},
               {"wait_s", std::int64_t{options_.patience.count()}}});
  }
  return clock_.now() - seen_since_ >= options_.patience;
}

void lifecycle_manager_lease::wait_for(const k8s::result<boost::json::value>& lease) {
  const auto since = waits_ ? waits_->since : clock_.wall();
  const auto name = "lifecycle-manager's Lease " + k8s::to_string(options_.lease);
  if (!lease) {
    waits_ = wait{"LeaseUnreadable"_reason,
                  name + " can't be read, and nothing is written to runtimes before: " +
                      lease.error().message,
                  since};
    return;
  }
  const auto left = options_.patience - (clock_.now() - seen_since_);
  const auto until = clock_.wall() + std::chrono::ceil<std::chrono::seconds>(left);
  waits_ = wait{
      "LeaseNotAbandoned"_reason,
      name + " was renewed at " + std::string(k8s::find_string(*lease, {"spec", "renewTime"})) +
          " and may be again: this manager takes events, and writes nothing to runtimes before " +
          k8s::format_time(until) + ", unless --take-over is set",
      since};
}

asio::awaitable<bool> lifecycle_manager_lease::runs() {
  static const k8s::resource_type leases{{"coordination.k8s.io", "v1", "Lease"}, "leases"};
  const auto executor = co_await asio::this_coro::executor;
  const auto timer = clock_.make_timer(executor);
  for (;;) {
    const auto lease = co_await api_.get(leases, options_.lease);
    const bool held = lease && is_held(*lease, clock_.wall(), options_.patience);
    const bool absent = !lease && lease.error().is(k8s::errc::not_found);
    if (held || absent || (lease && is_abandoned(*lease))) {
      waits_.reset();
      co_return held;
    }
    wait_for(lease);
    if (!lease) {
      log_.limited(log_limit_, core::log_level::warning,
                   "lifecycle-manager's Lease can't be read, so nothing is begun",
                   {{"lease", k8s::to_string(options_.lease)}, {"error", lease.error().message}});
    }
    timer->expires_at(clock_.now() + options_.interval);
    const bool due = co_await timer->wait();
    if (!due) throw boost::system::system_error(asio::error::operation_aborted);
  }
}

asio::awaitable<void> lifecycle_manager_lease::until_changed(bool running) {
  const auto executor = co_await asio::this_coro::executor;
  const auto timer = clock_.make_timer(executor);
  for (;;) {
    timer->expires_at(clock_.now() + options_.interval);
    const bool due = co_await timer->wait();
    if (!due) throw boost::system::system_error(asio::error::operation_aborted);
    const bool now = co_await runs();
    if (now != running) co_return;
  }
}

}  // namespace rw
