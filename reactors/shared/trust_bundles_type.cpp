#include "rw/reactors/shared/trust_bundles_type.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace rw {
namespace {

namespace asio = boost::asio;

constexpr auto bundle_group = "certificates.k8s.io";
constexpr std::chrono::minutes discovery_period(1);  ///< if they are not served

class trust_bundle_source final : public k8s::api_source {
 public:
  trust_bundle_source(k8s::client& api, core::clock& clock, core::logger& log)
      : api_(api), source_(k8s::source_of(api)), clock_(clock), log_(log) {}

  asio::any_io_executor get_executor() const noexcept override { return source_->get_executor(); }

  asio::awaitable<k8s::result<std::pair<unsigned, unsigned>>> server_version() override {
    return source_->server_version();
  }

  asio::awaitable<k8s::result<std::string>> list_text(k8s::resource_type, k8s::selection selection,
                                                      k8s::list_options page) override {
    if (page.continue_token.empty()) {
      auto found = co_await find();
      if (!found) co_return found.error();
      const bool was_served = served_.has_value();
      if (!*found) note_absence(was_served);
      if (!*found && was_served) {
        co_return k8s::failure{.code = k8s::errc::not_found,
                               .message = "certificates.k8s.io has no ClusterTrustBundle"};
      }
      if (*found && served_ != *found) {
        absence_noted_ = false;
        log_.info("ClusterTrustBundles are served", {{"version", (*found)->gvk.version}});
      }
      served_ = std::move(*found);
    }
    if (!served_) co_return std::string(R"({"metadata":{"resourceVersion":"0"},"items":[]})");
    auto listed = co_await source_->list_text(*served_, std::move(selection), std::move(page));
    co_return listed;
  }

  asio::awaitable<k8s::result<k8s::opened_watch>> open_watch(k8s::resource_type,
                                                             k8s::selection selection,
                                                             k8s::watch_options options,
                                                             k8s::watch_sink& into) override {
    if (served_) {
      auto watched =
          co_await source_->open_watch(*served_, std::move(selection), std::move(options), into);
      // The next list discovers the served version.
      if (!watched && watched.error().is(k8s::errc::not_found)) {
        watched = k8s::failure{.code = k8s::errc::gone, .message = watched.error().message};
      }
      co_return watched;
    }
    const auto timer = clock_.make_timer(get_executor());
    for (bool found = false; !found;) {
      timer->expires_at(clock_.now() + discovery_period);
      const bool due = co_await timer->wait();
      if (!due) co_return k8s::failure{.code = k8s::errc::shut_down, .message = "cancelled"};
      const auto now = co_await find();
      found = now && *now;
    }
    co_return k8s::failure{.code = k8s::errc::gone,
                           .message = "ClusterTrustBundles are served from now on"};
  }

 private:
  using type = std::optional<k8s::resource_type>;

  /// Returns the first version that has the kind; nothing: it is not served.
  asio::awaitable<k8s::result<type>> find() {
    const auto versions = co_await api_.versions(bundle_group);
    if (!versions) co_return versions.error();
    for (const auto& version : *versions) {
      const auto resources = co_await api_.resources(bundle_group + ("/" + version));
      if (!resources && resources.error().is(k8s::errc::not_found)) continue;
      if (!resources) co_return resources.error();
      for (const auto& each : *resources) {
        if (each.type.gvk.kind == trust_bundle_kind) co_return type(each.type);
      }
    }
    co_return type();
  }

  void note_absence(bool was_served) {
    if (std::exchange(absence_noted_, true)) return;
    log_.warning(was_served ? "ClusterTrustBundles are no longer served; the last content stays"
                            : "ClusterTrustBundles are not served; trust bundles count as absent");
  }

  k8s::client& api_;
  const std::shared_ptr<k8s::api_source> source_;
  core::clock& clock_;
  core::logger& log_;
  type served_ = {};
  bool absence_noted_ = false;
};

}  // namespace

const k8s::resource_type& trust_bundles_type() {
  static const k8s::resource_type type{
      {bundle_group, "v1beta1", std::string(trust_bundle_kind)}, "clustertrustbundles", false};
  return type;
}

std::unique_ptr<k8s::informer> trust_bundle_informer(k8s::client& api, k8s::selection selection,
                                                     k8s::informer_environment in) {
  // A stream would begin without discovery.
  return std::make_unique<k8s::informer>(
      std::make_shared<trust_bundle_source>(api, in.clock, in.log), trust_bundles_type(),
      k8s::informer_options{
          .objects = std::move(selection), .streaming_list = false, .any_version = true},
      in);
}

}  // namespace rw
