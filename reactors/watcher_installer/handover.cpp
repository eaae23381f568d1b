#include "rw/reactors/watcher_installer/handover.hpp"

#include "rw/k8s/objects/manifests.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/field_owners.hpp"
#include "rw/reactors/shared/probe.hpp"
#include "rw/reactors/watcher_installer/webhooks.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <string>
#include <utility>

namespace rw::watcher_installer {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr int tries = 5;  // others may write it meanwhile

/// Removes the webhook of probes by the merge patch, which replaces the list.
void drop_probe(const json::value& configuration, json::value& patch) {
  const auto kept =
      webhooks_of(&configuration, [](std::string_view name) { return name != probe_webhook; });
  patch.as_object()["webhooks"] = json::array(kept.begin(), kept.end());
}

}  // namespace

asio::awaitable<k8s::result<void>> hand_over(std::shared_ptr<k8s::client> api,
                                             const install_options* options) {
  const auto type =
      *k8s::well_known_type("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration");
  const k8s::object_key key{{}, std::string(skr_webhook_name)};
  for (int i = 1;; ++i) {
    const auto live = co_await api->get(type, key);
    if (!live && live.error().is(k8s::errc::not_found)) co_return k8s::result<void>();
    if (!live) co_return live.error();
    auto patch = take_over_fields(*live, options->former_manager, options->field_manager);
    if (!patch) co_return k8s::result<void>();
    drop_probe(*live, *patch);
    k8s::write_options by{.field_manager = options->former_manager};
    const auto written =
        co_await api->patch(type, key, k8s::patch_type::merge, std::move(*patch), std::move(by));
    if (written || written.error().is(k8s::errc::not_found)) co_return k8s::result<void>();
    if (!written.error().is(k8s::errc::conflict) || i == tries) co_return written.error();
  }
}

}  // namespace rw::watcher_installer
