#include "rw/reactors/watcher_installer/handover.hpp"

#include "rw/core/gather.hpp"
#include "rw/k8s/objects/manifests.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/field_owners.hpp"
#include "rw/reactors/shared/probe.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <optional>
#include <utility>
#include <vector>

namespace rw::watcher_installer {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr int tries = 5;  // others may write it meanwhile

/// Removes the webhook of probes by the merge patch, which replaces the list.
void drop_probe(const json::value& configuration, json::value& patch) {
  const auto* const all = k8s::find_array(configuration, {"webhooks"});
  if (all == nullptr) return;
  json::array kept;
  for (const auto& one : *all) {
    if (k8s::find_string(one, {"name"}) != probe_webhook) kept.push_back(one);
  }
  patch.as_object()["webhooks"] = std::move(kept);
}

asio::awaitable<k8s::result<void>> hand_over_one(k8s::client* api, const method* how,
                                                 k8s::resource_type type, k8s::object_key key) {
  for (int i = 1;; ++i) {
    const auto live = co_await api->get(type, key);
    if (!live && live.error().is(k8s::errc::not_found)) co_return k8s::result<void>();
    if (!live) co_return live.error();
    auto patch = take_over_fields(*live, how->former_manager, how->field_manager);
    if (!patch) co_return k8s::result<void>();
    if (type.gvk.kind == "ValidatingWebhookConfiguration") drop_probe(*live, *patch);
    k8s::write_options by{.field_manager = how->former_manager, .dry_run = how->only_tries()};
    const auto written =
        co_await api->patch(type, key, k8s::patch_type::merge, std::move(*patch), std::move(by));
    if (written || written.error().is(k8s::errc::not_found)) co_return k8s::result<void>();
    if (!written.error().is(k8s::errc::conflict) || i == tries) co_return written.error();
  }
}

}  // namespace

asio::awaitable<k8s::result<void>> hand_over(std::shared_ptr<k8s::client> api, const method* how) {
  std::vector<asio::awaitable<k8s::result<void>>> work;
  for (const auto& one : how->manifests.objects()) {
    auto type = *k8s::well_known_type(k8s::find_string(one, {"apiVersion"}),
                                      k8s::find_string(one, {"kind"}));
    work.push_back(hand_over_one(api.get(), how, std::move(type), k8s::key_of(one)));
  }
  const auto done = co_await core::gather(std::move(work));
  for (const auto& each : done) {
    if (!each) co_return each.error();
  }
  co_return k8s::result<void>();
}

}  // namespace rw::watcher_installer
