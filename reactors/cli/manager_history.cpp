// What the leader remembers of its landscape, for /history and the page, and how the next one gets
// it.

#include "rw/core/metrics.hpp"
#include "rw/core/text.hpp"
#include "rw/k8s/objects/base64.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/cli/manager_view.hpp"
#include "rw/reactors/gateway_secret/rotation.hpp"
#include "rw/reactors/shared/fleet_history.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace rw::cli {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr std::string_view secret_name = "runtime-watcher-history";
constexpr std::string_view secret_entry = "history";
constexpr std::chrono::seconds between_writes(60);
constexpr std::chrono::seconds soon(5);  ///< after a failure, or before there is a sample
/// Before it the rotator may not have looked at anything.
constexpr std::chrono::seconds until_rotation(30);

}  // namespace

void manager_app::view::remember(const std::vector<judged_runtime>& runtimes) {
  const auto now = manager_.services_.clock.wall();
  fleet_sample sample{.level = verdict_.level};
  for (std::size_t i = 0; i < runtime_condition_count; ++i) {
    sample.counts[i] = static_cast<std::uint32_t>(verdict_.counts[i]);
  }
  sample.totals = stage_totals();
  history_.record(now, sample);
  for (const auto& each : runtimes) {
    history_.transition(now, each.kyma, each.condition, each.reason);
  }
  manager_.rollouts_.objects().for_each([&](const k8s::object& object) {
    const auto value = object.parse();
    const auto phase = k8s::find_string(value, {"status", "phase"});
    if (phase.empty()) return;
    history_.change(now, "roll-out " + std::string(object.name()), phase,
                    k8s::find_string(value, {"status", "reason"}));
  });
  if (!remembers_since_) remembers_since_ = manager_.services_.clock.now();
  if (manager_.services_.clock.now() - *remembers_since_ < until_rotation) return;
  const auto phase = manager_.rotator_->last().phase;
  history_.change(now, "CA rotation", gateway_secret::name_of(phase),
                  gateway_secret::reason_of(phase));
}

/// In the order of `history_stages`.
std::array<std::uint64_t, history_stages.size()> manager_app::view::stage_totals() const {
  std::array<std::uint64_t, history_stages.size()> out{};
  if (manager_.heartbeats_) {
    const auto& sum = manager_.heartbeats_->health().observed_events();
    out[0] = sum.accepted;
    out[1] = sum.delivered;
  }
  json::object flow;
  add_flow(core::metrics_snapshot(manager_.services_.metrics), flow);
  const auto number = [&](std::string_view group, std::string_view member) {
    const auto* const found = k8s::find(flow[group], {member});
    return found == nullptr ? std::uint64_t{0} : found->to_number<std::uint64_t>();
  };
  const auto& counts = flow["delivery"].at("counts").as_array();
  if (!counts.empty()) out[2] = counts.back().to_number<std::uint64_t>();
  out[3] = number("listener", "requests");
  out[4] = number("channel", "taken");
  out[5] = number("queue", "adds");
  out[6] = number("reconciles", "total");
  return out;
}

std::string manager_app::view::history(std::string_view query, std::string& error) const {
  if (query.empty()) return json::serialize(json_of(history_));
  constexpr std::string_view at = "at=";
  const auto seconds = query.starts_with(at)
                           ? core::parse_number<std::uint32_t>(query.substr(at.size()))
                           : std::optional<std::uint32_t>();
  if (!seconds) {
    error = "there is the parameter at, in seconds since 1970";
    return {};
  }
  return json::serialize(
      json_of(history_, std::chrono::sys_seconds(std::chrono::seconds(*seconds))));
}

/// Restores what an earlier leader remembers, and writes what this one does, each minute.
asio::awaitable<void> manager_app::keep_history() {
  const k8s::object_key key{settings_.runtime_config.direct.state_namespace,
                            std::string(secret_name)};
  auto& failures = core::make_counter(services_.metrics, "rw_fleet_history_write_errors_total",
                                      "Number of attempts to read or write the Secret with the "
                                      "landscape's history that failed");
  const auto timer = services_.clock.make_timer(services_.executor);
  core::log_limit limit;
  bool is_restored = false;
  for (bool due = true; due;) {
    auto got = co_await kcp_.get(secrets_type(), key);
    const bool is_absent = !got && got.error().is(k8s::errc::not_found);
    if (!is_restored && got) view_->restore(*got);
    is_restored = is_restored || got || is_absent;
    // Nothing is stored before there is something.
    const bool has_history = view_->has_history();
    if (got && has_history) {
      k8s::set_secret_data(*got, secret_entry, view_->encoded_history());
      got = co_await kcp_.update(secrets_type(), *got);
    } else if (is_absent && has_history) {
      json::value made{{"apiVersion", "v1"},
                       {"kind", "Secret"},
                       {"metadata", {{"name", key.name}, {"namespace", key.ns}}}};
      k8s::set_secret_data(made, secret_entry, view_->encoded_history());
      got = co_await kcp_.create(secrets_type(), made);
    }
    const bool failed = !got && (has_history || !is_absent);
    if (failed) {
      failures.Increment();
      services_.log.limited(limit, core::log_level::warning,
                            "the history of the landscape is not stored for the next leader",
                            {{"error", got.error().message}});
    }
    timer->expires_at(services_.clock.now() + (failed || !has_history ? soon : between_writes));
    due = co_await timer->wait();
  }
}

void manager_app::view::restore(const boost::json::value& secret) {
  const auto bytes = k8s::secret_data(secret, secret_entry);
  const auto earlier = bytes ? fleet_history::decode(*bytes) : std::nullopt;
  if (earlier) return history_.restore(*earlier, manager_.services_.clock.wall());
  manager_.services_.log.warning(
      "the stored history of the landscape is of another version, or damaged; it begins anew",
      {{"secret", secret_name}});
}

}  // namespace rw::cli
