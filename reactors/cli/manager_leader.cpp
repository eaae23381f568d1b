// How the leader's pages are found: a port and a token of its term in a Secret, for `status` and
// `doctor`, and the leader's pod in the responses of the other replicas.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/cli/leader_secret.hpp"
#include "rw/reactors/cli/manager_app.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/tls/random.hpp"

#include <boost/json/object.hpp>

#include <chrono>
#include <string>

namespace rw::cli {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr std::chrono::seconds between_checks(30);
constexpr std::uint16_t usual_port = 8080;  ///< of --metrics-address

bool has_data(const json::value& secret, const json::object& wanted) {
  const auto* const data = k8s::find(secret, {"data"});
  return data != nullptr && *data == wanted;
}

}  // namespace

/// Keeps the Secret as it should be while this replica leads.
asio::awaitable<void> manager_app::publish_token() {
  term_token_ = tls::random_token();
  const k8s::object_key key{settings_.runtime_config.direct.state_namespace,
                            std::string(leader_secret::name)};
  const auto data =
      write_leader_secret({elector_->holder(), admin_->address().port(), term_token_});
  const auto timer = services_.clock.make_timer(services_.executor);
  core::log_limit limit;
  for (bool due = true; due;) {
    auto got = co_await kcp_.get(secrets_type(), key);
    if (!got && got.error().is(k8s::errc::not_found)) {
      got = co_await kcp_.create(
          secrets_type(), json::object{{"apiVersion", "v1"},
                                       {"kind", "Secret"},
                                       {"metadata", {{"name", key.name}, {"namespace", key.ns}}},
                                       {"data", data}});
    } else if (got && !has_data(*got, data)) {
      got->as_object()["data"] = data;
      got = co_await kcp_.update(secrets_type(), *got);
    }
    if (!got) {
      services_.log.limited(limit, core::log_level::warning,
                            "leader's Secret not written, status and doctor need --address",
                            {{"error", got.error().message}});
    }
    timer->expires_at(services_.clock.now() + between_checks);
    due = co_await timer->wait();
  }
}

/// The command that opens this leader's page; empty outside of a pod.
std::string manager_app::page_command() const {
  if (!elector_ || settings_.pod_ip.empty()) return {};
  return port_forward_command(settings_.lease_namespace, pod_of(elector_->holder()),
                              admin_->address().port());
}

std::string manager_app::proxied_pod() const {
  const auto holder = elector_ ? elector_->holder() : std::string();
  return pod_of(holder) + ":" + std::to_string(admin_->address().port());
}

std::optional<admin::other_leader> manager_app::other_leader() const {
  if (leads_ || !elector_) return std::nullopt;
  const auto leader = elector_->observed();
  // Pods of one Deployment have the same port.
  const auto port = settings_.pod_ip.empty() ? usual_port : admin_->address().port();
  return admin::other_leader{
      leader.leads ? pod_of(leader.holder) : std::string(),
      text_of_leader(leader, settings_.lease_namespace, port, services_.clock.wall())};
}

}  // namespace rw::cli
