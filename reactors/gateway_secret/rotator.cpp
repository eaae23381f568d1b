#include "rw/reactors/gateway_secret/rotator.hpp"

#include "rw/k8s/controller/controller.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/value.hpp>

#include <algorithm>
#include <utility>

namespace rw::gateway_secret {
namespace {

using k8s::reconcile_result;

/// Another write came first, or the informer is late: its next delta carries the current state.
bool is_overtaken(const k8s::failure& error) {
  return error.is(k8s::errc::conflict) || error.is(k8s::errc::already_exists) ||
         error.is(k8s::errc::not_found);
}

}  // namespace

k8s::informer_options informer_of(const k8s::object_key& secret) {
  k8s::informer_options options;
  options.objects.ns = secret.ns;
  options.objects.fields = "metadata.name=" + secret.name;
  return options;
}

template <typename T>
bool rotator::read_once<T>::changed(const k8s::object& now) {
  if (bool(from) == bool(now) && same_state(from, now)) return false;
  from = now;
  content.reset();
  return true;
}

rotator::rotator(boost::asio::any_io_executor executor, k8s::client& api, k8s::informer& roots,
                 k8s::informer& gateways, cluster_states& clusters, rotator_options options,
                 rotator_environment environment)
    : executor_(std::move(executor)),
      api_(api),
      roots_(roots),
      gateways_(gateways),
      clusters_(clusters),
      options_(std::move(options)),
      environment_(std::move(environment)),
      report_(environment_.log, environment_.metrics, environment_.events) {
  read_root({});
}

boost::asio::awaitable<void> rotator::run() {
  state_.last_whole.reset();  // another replica may have led meanwhile
  k8s::controller controller(executor_, {.name = "gateway_secret", .concurrent = 1}, *this,
                             {environment_.clock, environment_.watchdog, environment_.log,
                              environment_.metrics, environment_.random});
  const auto always = [this](const k8s::delta&, k8s::controller::keys& keys) {
    keys.push_back(options_.gateway);
  };
  controller.watch(roots_, always);
  controller.watch(gateways_, always);
  const auto on_change = clusters_.subscribe([&] { controller.add(options_.gateway); });
  controller.add(options_.gateway);  // neither Secret may exist, which has to be reported
  co_await controller.run();
}

boost::asio::awaitable<reconcile_result> rotator::reconcile(k8s::object_key) {
  read();
  const auto now = environment_.clock.wall();
  last_ = make_plan(state_, clusters_, options_.rotation, now);
  has_planned_ = true;
  const auto about = reference();
  const auto* gateway = state_.gateway ? &*state_.gateway : nullptr;
  report_.planned(last_, gateway, about);
  report_.expiry(gateway == nullptr ? std::nullopt : gateway->served, state_.root, now,
                 options_.close_to_expiry, about);
  if (!last_.write) co_return later(now);
  auto object = write_gateway_secret(*last_.write, options_.gateway, gateway_.from.parse());
  // The object has the resourceVersion that the plan was made for.
  auto request = gateway_.from ? api_.update(secrets_type(), std::move(object))
                               : api_.create(secrets_type(), std::move(object));
  const auto written = co_await std::move(request);
  if (written) {
    if (!api_.is_dry()) report_.done(last_, k8s::reference_to(*written));
    co_return later(now);
  }
  if (is_overtaken(written.error())) {
    co_return reconcile_result::requeue_after(std::chrono::milliseconds(500));
  }
  co_return reconcile_result::error(written.error());
}

std::optional<tls::ca_bundle> rotator::foreseen() const {
  if (!api_.is_dry() || state_.gateway || !last_.write) return std::nullopt;
  return last_.write->bundle;
}

void rotator::read() {
  if (const auto now = roots_.objects().get(options_.root); root_.changed(now)) read_root(now);
  state_.root = root_.content;
  if (const auto now = gateways_.objects().get(options_.gateway); gateway_.changed(now) && now) {
    gateway_.content = read_gateway_secret(now.parse());
    const auto& content = *gateway_.content;
    const bool whole = content.served && content.ca_added_at && content.bundle_error.empty();
    if (whole) state_.last_whole = content;
  }
  state_.gateway = gateway_.content;
}

void rotator::read_root(const k8s::object& now) {
  state_.root_error = "the root Secret " + to_string(options_.root) + " is missing";
  if (!now) return;
  auto root = read_root_secret(now.parse());
  if (root) {
    for (const auto& warning : root->warnings) {
      environment_.log.warning("the root Secret may not do",
                               {{"secret", to_string(options_.root)}, {"reason", warning}});
    }
    root_.content = std::move(*root);
    state_.root_error.clear();
  } else {
    state_.root_error = "the root Secret " + to_string(options_.root) +
                        " cannot be used: " + root.error().message();
  }
}

k8s::object_reference rotator::reference() const {
  if (gateway_.from) return k8s::reference_to(gateway_.from.parse());
  return {.api_version = "v1",
          .kind = "Secret",
          .ns = options_.gateway.ns,
          .name = options_.gateway.name};
}

reconcile_result rotator::later(wall_time now) const {
  auto wait = options_.revisit;
  if (last_.recheck_at) {
    const auto until = *last_.recheck_at - now;
    wait = std::clamp<core::duration>(until, std::chrono::milliseconds(100), wait);
  }
  return reconcile_result::requeue_after(wait);
}

}  // namespace rw::gateway_secret
