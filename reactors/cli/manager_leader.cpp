// How replicas find the leader's pages: its address, and a token of its term, in a Secret that
// replicas alone read.

#include "rw/core/within.hpp"
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
constexpr std::chrono::seconds find_timeout(5);

bool has_data(const json::value& secret, const json::object& wanted) {
  const auto* const data = k8s::find(secret, {"data"});
  return data != nullptr && *data == wanted;
}

}  // namespace

/// Keeps the Secret as it should be while this replica leads.
asio::awaitable<void> manager_app::publish_address() {
  const auto bound = admin_->address();
  auto host = settings_.pod_ip;
  if (host.empty() && !bound.address().is_unspecified()) host = bound.address().to_string();
  if (host.empty()) co_return;  // the others say so
  term_token_ = tls::random_token();
  const k8s::object_key key{settings_.runtime_config.direct.state_namespace,
                            std::string(leader_secret::name)};
  const auto data = write_leader_secret({elector_->holder(), host, bound.port(), term_token_});
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
                            "other replicas do not learn the leader's address",
                            {{"error", got.error().message}});
    }
    timer->expires_at(services_.clock.now() + between_checks);
    due = co_await timer->wait();
  }
}

std::string manager_app::proxied_pod() const {
  const auto holder = elector_ ? elector_->holder() : std::string();
  return pod_of(holder) + ":" + std::to_string(admin_->address().port());
}

asio::awaitable<admin::leader_address> manager_app::find_leader() {
  admin::leader_address out;
  const auto observed = elector_ ? elector_->observed() : k8s::observed_leader();
  const auto& holder = observed.holder;
  if (holder.empty() || !observed.leads) {
    out.error = "no replica leads";
    co_return out;
  }
  const k8s::object_key key{settings_.runtime_config.direct.state_namespace,
                            std::string(leader_secret::name)};
  const auto got = co_await core::within(services_.clock, services_.clock.now() + find_timeout,
                                         shared_.get(secrets_type(), key));
  if (!got || !*got) {
    out.error = got ? got->error().message : "KCP does not respond";
    co_return out;
  }
  const auto leader = read_leader_secret(**got, holder);
  if (!leader) {
    out.error = "the leader has not written its address yet";
    co_return out;
  }
  out.at = {leader->host, leader->port};
  out.token = leader->token;
  co_return out;
}

/// Why this replica can't tell how the landscape is, and who can.
std::string manager_app::leader_text() const {
  const auto leader = elector_ ? elector_->observed() : k8s::observed_leader();
  auto out = text_of_leader(leader, settings_.lease_namespace, admin_->address().port());
  if (leader.leads && !leader_error_.empty()) out += " (" + leader_error_ + ")";
  return out;
}

}  // namespace rw::cli
