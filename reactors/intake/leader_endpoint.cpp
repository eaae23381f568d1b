#include "rw/reactors/intake/leader_endpoint.hpp"

#include "rw/k8s/objects/types.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <utility>

namespace rw::listener {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr auto service_label = "kubernetes.io/service-name";
constexpr auto manager_label = "endpointslice.kubernetes.io/managed-by";
constexpr auto manager = "runtime-watcher.operator.kyma-project.io";

bool is_special(const asio::ip::address& of) {
  if (of.is_unspecified() || of.is_loopback() || of.is_multicast()) return true;
  if (of.is_v6()) return of.to_v6().is_link_local();
  const auto bytes = of.to_v4().to_bytes();
  return bytes[0] == 169 && bytes[1] == 254;
}

/// Returns whether each member of `wanted` is in `present` with the same value.
bool has_all(const json::value& present, const json::value& wanted) {
  if (wanted.is_array()) {
    const auto* const list = present.if_array();
    return list != nullptr && list->size() == wanted.get_array().size() &&
           std::ranges::equal(*list, wanted.get_array(), has_all);
  }
  if (!wanted.is_object()) return present == wanted;
  return std::ranges::all_of(wanted.get_object(), [&](const auto& member) {
    const auto* const found = k8s::find(present, {member.key()});
    return found != nullptr && has_all(*found, member.value());
  });
}

}  // namespace

std::string endpoint_address_error(const std::string& text) {
  boost::system::error_code error;
  const auto address = asio::ip::make_address(text, error);
  if (error) return "must be an IP address, not: " + text;
  if (!is_special(address)) return {};
  return "must be the pod's address in the cluster, which " + text + " can't be";
}

leader_endpoint::leader_endpoint(k8s::client& kcp, endpoint_options options,
                                 endpoint_environment in)
    : kcp_(kcp),
      options_(std::move(options)),
      clock_(in.clock),
      log_(in.log),
      backoff_(std::chrono::milliseconds(200), std::chrono::seconds(5), std::move(in.random)) {}

json::value leader_endpoint::desired() const {
  const bool v6 = asio::ip::make_address(options_.address).is_v6();
  return {
      {"apiVersion", type_->gvk.api_version()},
      {"kind", type_->gvk.kind},
      {"metadata",
       {{"name", options_.service.name},
        {"namespace", options_.service.ns},
        {"labels", {{service_label, options_.service.name}, {manager_label, manager}}}}},
      {"addressType", v6 ? "IPv6" : "IPv4"},
      {"endpoints", json::array{{{"addresses", json::array{options_.address}},
                                 {"conditions", {{"ready", true}}}}}},
      {"ports",
       json::array{{{"name", options_.port_name}, {"protocol", "TCP"}, {"port", options_.port}}}}};
}

asio::awaitable<k8s::result<k8s::resource_type>> find_endpoint_slices(k8s::client& kcp) {
  const auto versions = co_await kcp.versions("discovery.k8s.io");
  if (!versions) co_return versions.error();
  const bool stable = std::ranges::find(*versions, "v1") != versions->end();
  co_return k8s::resource_type{{"discovery.k8s.io", stable ? "v1" : "v1beta1", "EndpointSlice"},
                               "endpointslices"};
}

/// The address type of a slice is immutable, so a slice of another type is replaced.
asio::awaitable<k8s::result<void>> leader_endpoint::ensure() {
  if (!type_) {
    auto found = co_await find_endpoint_slices(kcp_);
    if (!found) co_return found.error();
    type_ = std::move(*found);
  }
  auto wanted = desired();
  auto present = co_await kcp_.get(*type_, options_.service);
  bool missing = present.has_error() && present.error().is(k8s::errc::not_found);
  if (present.has_error() && !missing) co_return present.error();
  if (!missing && has_all(*present, wanted)) co_return k8s::result<void>();
  if (!missing && present->at("addressType") != wanted.at("addressType")) {
    k8s::delete_options as_read{.resource_version =
                                    std::string(k8s::resource_version_of(*present))};
    const auto removed = co_await kcp_.remove(*type_, options_.service, std::move(as_read));
    if (!removed && !removed.error().is(k8s::errc::not_found)) co_return removed.error();
    missing = true;
  }
  if (!missing) {
    wanted.at("metadata").as_object()["resourceVersion"] = k8s::resource_version_of(*present);
  }
  auto writing =
      missing ? kcp_.create(*type_, std::move(wanted)) : kcp_.update(*type_, std::move(wanted));
  const auto written = co_await std::move(writing);
  if (!written) co_return written.error();
  log_.info("events are led to this replica", {{"service", k8s::to_string(options_.service)},
                                               {"address", options_.address},
                                               {"port", std::uint64_t{options_.port}}});
  co_return k8s::result<void>();
}

asio::awaitable<void> leader_endpoint::run() {
  const auto executor = co_await asio::this_coro::executor;
  const auto timer = clock_.make_timer(executor);
  for (;;) {
    const auto done = co_await ensure();
    core::duration pause = options_.interval;
    if (done) {
      backoff_.reset();
    } else {
      pause = backoff_.next();
      log_.warning(
          "events are not led to this replica yet",
          {{"service", k8s::to_string(options_.service)}, {"error", done.error().message}});
    }
    timer->expires_at(clock_.now() + pause);
    const bool due = co_await timer->wait();
    if (!due) co_return;
  }
}

}  // namespace rw::listener
