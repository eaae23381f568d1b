#include "rw/reactors/dev/issuer/root_ca.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/shared/trust_bundle.hpp"
#include "rw/tls/certificate.hpp"

#include <boost/json/object.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace rw::dev_issuer {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using k8s::reconcile_result;

json::value secret_of(const k8s::object_key& key, const tls::issuer& root, json::value former) {
  json::value out = std::move(former);
  if (out.is_null()) {
    out = {{"apiVersion", "v1"},
           {"kind", "Secret"},
           {"type", "kubernetes.io/tls"},
           {"metadata", json::object{{"name", key.name}, {"namespace", key.ns}}}};
  }
  k8s::set_secret_data(out, certificate_entry, root.own().certificate);
  k8s::set_secret_data(out, key_entry, root.own().key);
  k8s::set_secret_data(out, authorities_entry, root.own().certificate);
  return out;
}

bool is_valid(const std::string& pem, std::chrono::system_clock::time_point now) {
  const auto parsed = tls::certificate::from_pem(pem);
  return parsed && parsed->valid_at(now);
}

}  // namespace

tls::result<tls::issuer> read_root(const json::value& secret) {
  return tls::issuer::load({k8s::secret_data(secret, certificate_entry).value_or(""),
                            k8s::secret_data(secret, key_entry).value_or("")});
}

root_ca::root_ca(asio::any_io_executor executor, const issuer_options& with, issuer_sources from,
                 issuer_environment in)
    : options_(with),
      environment_(in),
      counter_(
          core::make_counter(in.metrics, "rw_dev_issuer_roots_total", "Number of root CAs made")),
      delay_(executor, in.clock, with.delay, in.random),
      controller_(executor, {.name = "dev-issuer-root", .concurrent = 1}, *this,
                  {in.clock, in.watchdog, in.log, in.metrics, in.random}) {
  controller_.watch(from.secrets, [this](const k8s::delta& change, k8s::controller::keys& keys) {
    if (change.latest().key() == options_.root) keys.push_back(options_.root);
  });
  controller_.add(options_.root);  // no event triggers the reconcile of a missing Secret
}

bool root_ca::is_due() const {
  return environment_.clock.now() >= next_ &&
         (options_.rotations == 0 || rotations_ < options_.rotations);
}

reconcile_result root_ca::later() {
  const bool ever = options_.rotate_root_every > core::duration::zero() &&
                    (options_.rotations == 0 || rotations_ < options_.rotations);
  if (!ever) return reconcile_result::done();
  const auto now = environment_.clock.now();
  if (next_ == core::time_point::max()) next_ = now + options_.rotate_root_every;
  return reconcile_result::requeue_after(std::max(next_ - now, core::duration::zero()));
}

asio::awaitable<reconcile_result> root_ca::reconcile(k8s::object_key key) {
  auto live = co_await environment_.api.get(secrets_type(), std::move(key));
  if (live.has_error() && !live.error().is(k8s::errc::not_found)) {
    co_return reconcile_result::error(live.error());
  }
  json::value former = live ? std::move(*live) : json::value(nullptr);
  const auto root = read_root(former);
  const bool usable = root && is_valid(root->certificate_pem(), environment_.clock.wall());
  const bool due = is_due();
  if (usable && !due) co_return later();
  auto outcome = co_await make(std::move(former), usable);
  co_return outcome;
}

/// Replaces the root, if it is still `former`.
asio::awaitable<reconcile_result> root_ca::make(json::value former, bool by_clock) {
  const bool go_on = co_await delay_.pause();
  if (!go_on) co_return reconcile_result::done();
  auto root = tls::issuer::create({.common_name = options_.issuer + "-ca",
                                   .dns_names = options_.root_dns_names,
                                   .ips = options_.root_ips,
                                   .key = options_.key,
                                   .validity = options_.root_validity});
  if (!root) {
    co_return reconcile_result::terminal("no root can be made: " + root.error().message());
  }
  const bool is_first = former.is_null();
  auto object = secret_of(options_.root, *root, std::move(former));
  auto request = is_first ? environment_.api.create(secrets_type(), std::move(object))
                          : environment_.api.update(secrets_type(), std::move(object));
  const auto written = co_await std::move(request);
  if (!written) {
    const auto& error = written.error();
    const bool outdated = error.is(k8s::errc::conflict) || error.is(k8s::errc::already_exists) ||
                          error.is(k8s::errc::not_found);
    co_return outdated ? reconcile_result::requeue_after(std::chrono::milliseconds(50))
                       : reconcile_result::error(error);
  }
  ++made_;
  counter_.Increment();
  if (by_clock) {
    ++rotations_;
    next_ = std::max(next_ + options_.rotate_root_every, environment_.clock.now());
  }
  environment_.log.info(
      "dev issuer: new root",
      {{"secret", to_string(options_.root)}, {"made", made_}, {"rotations", rotations_}});
  co_return later();
}

}  // namespace rw::dev_issuer
