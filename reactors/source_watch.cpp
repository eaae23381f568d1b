#include "reactors/source_watch.hpp"

#include "core/task_group.hpp"
#include "k8s/informer.hpp"
#include "k8s/types.hpp"
#include "reactors/content_digest.hpp"
#include "reactors/kyma_resources.hpp"
#include "reactors/trust_bundles_type.hpp"

#include <boost/asio/this_coro.hpp>
#include <boost/json/value.hpp>

#include <algorithm>
#include <charconv>
#include <exception>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace rw {
namespace {

namespace asio = boost::asio;

/// One source, and what watches it. The trust bundle's type is not known at first, and may change.
struct watched_source {
  source which = source::config;
  k8s::object_key key = {};
  std::string kind = {};
  k8s::object now = {};
  std::string digest = {};  ///< of the content; empty: not known yet
  std::unique_ptr<k8s::informer> informer = {};
};

}  // namespace

std::string_view to_string(source which) {
  switch (which) {
    case source::config:
      return "configuration";
    case source::manifests:
      return "manifests";
    case source::pull_secret:
      return "pull Secret";
    case source::trust_bundle:
      return "trust bundle";
  }
  return {};
}

std::string digest_of(source which, const k8s::object& now) {
  content_digest digest;
  digest.add(to_string(which));
  if (!now) return digest.add(std::string_view("absent")).hex();
  const auto value = now.parse();
  const auto add = [&](std::string_view member) {
    const auto* const found = k8s::find(value, {member});
    const auto* const object = found == nullptr ? nullptr : found->if_object();
    const bool nothing = found == nullptr || (object != nullptr && object->empty());
    if (!nothing) digest.add(member).add(*found);
  };
  // Their order is part of the digest.
  for (const auto* member : {"data", "binaryData", "type", "spec"}) add(member);
  return digest.hex();
}

class source_watch::implementation {
 public:
  implementation(k8s::client& api, source_watch_options options,
                 source_watch_environment environment)
      : api_(api), options_(std::move(options)), environment_(std::move(environment)) {
    const auto& names = options_.names;
    const std::string ns(kcp_namespace);
    all_ = {watched_source{source::config, {ns, names.config}, config_maps_type().gvk.kind},
            watched_source{source::manifests, {ns, names.manifests}, config_maps_type().gvk.kind},
            watched_source{source::pull_secret, {ns, names.pull_secret}, secrets_type().gvk.kind},
            watched_source{
                source::trust_bundle, {{}, names.trust_bundle}, std::string(trust_bundle_kind)}};
  }

  asio::awaitable<void> run();

  const watched_source& at(source which) const { return all_.at(static_cast<std::size_t>(which)); }
  const std::array<watched_source, all_sources.size()>& all() const noexcept { return all_; }
  std::string name_of(const watched_source& one) const {
    return one.kind + " " + k8s::to_string(one.key);
  }

  std::vector<std::weak_ptr<std::function<void()>>> listeners;
  std::uint64_t version = 0;

 private:
  void start(watched_source& one, const k8s::resource_type& type, core::task_group& tasks);
  void update(watched_source& one, k8s::object now);
  asio::awaitable<void> follow(watched_source* one);
  asio::awaitable<void> discover();
  asio::awaitable<void> adopt(std::optional<k8s::resource_type> found);
  asio::awaitable<void> end_bundle();

  watched_source& bundle() { return all_.back(); }

  k8s::client& api_;
  const source_watch_options options_;
  const source_watch_environment environment_;
  std::array<watched_source, all_sources.size()> all_;
  std::unique_ptr<core::task_group> bundle_tasks_;  ///< of the trust bundle's informer
  bool absence_logged_ = false;
  core::log_limit log_limit_{1, std::chrono::minutes(5)};
};

void source_watch::implementation::start(watched_source& one, const k8s::resource_type& type,
                                         core::task_group& tasks) {
  one.informer = std::make_unique<k8s::informer>(
      api_, type,
      k8s::informer_options{.what = {.ns = one.key.ns, .fields = "metadata.name=" + one.key.name}},
      k8s::informer_environment{environment_.clock, environment_.log, environment_.metrics,
                                environment_.random});
  tasks.spawn(one.informer->run());
  tasks.spawn(follow(&one));
}

void source_watch::implementation::update(watched_source& one, k8s::object now) {
  auto digest = digest_of(one.which, now);
  if (digest != one.digest && one.informer) {
    const std::string_view text = one.informer->resource_version();
    std::uint64_t number = 0;
    const auto* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    const bool is_number = error == std::errc() && stop == end;
    version = is_number ? std::max(version, number) : std::numeric_limits<std::uint64_t>::max();
  }
  one.now = std::move(now);
  one.digest = std::move(digest);
  std::erase_if(listeners, [](const auto& each) { return each.expired(); });
  const auto notified = listeners;
  for (const auto& each : notified) {
    if (const auto listener = each.lock()) (*listener)();
  }
}

/// Objects of other names are ignored, for servers without field selectors.
asio::awaitable<void> source_watch::implementation::follow(watched_source* one) {
  const auto& informer = *one->informer;
  const auto changes = one->informer->subscribe();
  const bool synced = co_await one->informer->wait_synced();
  if (!synced) co_return;
  for (;;) {
    update(*one, informer.objects().get(one->key));
    const auto change = co_await changes->receive();
    if (change.has_error()) co_return;
  }
}

/// As long as the watch runs: looks for ClusterTrustBundles.
asio::awaitable<void> source_watch::implementation::discover() {
  const auto executor = co_await asio::this_coro::executor;
  const auto timer = environment_.clock.make_timer(executor);
  core::backoff backoff(std::chrono::seconds(1), std::chrono::seconds(30), environment_.random);
  bool due = true;
  while (due) {
    auto found = co_await find_trust_bundles(api_);
    core::duration wait = options_.ask_again;
    if (found.has_error()) {
      environment_.log.limited(log_limit_, core::log_level::warning,
                               "discovery of ClusterTrustBundles failed",
                               {{"error", found.error().message}, {"next", "retry"}});
      wait = backoff.next();
    } else {
      backoff.reset();
      co_await adopt(std::move(*found));
    }
    timer->expires_at(environment_.clock.now() + wait);
    due = co_await timer->wait();
  }
}

asio::awaitable<void> source_watch::implementation::adopt(std::optional<k8s::resource_type> found) {
  auto& one = bundle();
  if (found) {
    absence_logged_ = false;
    if (one.informer && one.informer->type() == *found) co_return;
    environment_.log.info("ClusterTrustBundles are served", {{"version", found->gvk.version}});
    const auto executor = co_await asio::this_coro::executor;
    co_await end_bundle();
    // The content stays as it was until the new informer has listed.
    bundle_tasks_ = std::make_unique<core::task_group>(executor);
    start(one, *found, *bundle_tasks_);
    co_return;
  }
  if (std::exchange(absence_logged_, true)) co_return;
  environment_.log.warning(one.informer
                               ? "ClusterTrustBundles are no longer served; the last content stays"
                               : "ClusterTrustBundles are not served; the trust bundle counts as "
                                 "absent",
                           {{"name", one.key.name}});
  if (one.digest.empty()) update(one, {});
}

asio::awaitable<void> source_watch::implementation::end_bundle() {
  if (!bundle_tasks_) co_return;
  bundle_tasks_->cancel();
  co_await bundle_tasks_->join();
}

asio::awaitable<void> source_watch::implementation::run() {
  const auto executor = co_await asio::this_coro::executor;
  core::task_group tasks(executor);
  for (auto& one : all_) {
    if (&one == &bundle()) continue;
    start(one, one.which == source::pull_secret ? secrets_type() : config_maps_type(), tasks);
  }
  tasks.spawn(discover());
  std::exception_ptr failure;
  try {
    co_await tasks.join();
  } catch (...) {
    failure = std::current_exception();
  }
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await end_bundle();
  if (failure) std::rethrow_exception(failure);
}

source_watch::source_watch(k8s::client& api, source_watch_options options,
                           source_watch_environment environment)
    : impl_(std::make_unique<implementation>(api, std::move(options), std::move(environment))) {}

source_watch::~source_watch() = default;

asio::awaitable<void> source_watch::run() {
  return impl_->run();
}

bool source_watch::ready() const noexcept {
  return std::ranges::none_of(impl_->all(), &std::string::empty, &watched_source::digest);
}

std::string source_watch::not_ready() const {
  std::string text;
  for (const auto& one : impl_->all()) {
    if (one.digest.empty()) text += "not known yet: " + impl_->name_of(one) + "\n";
  }
  return text;
}

k8s::object source_watch::get(source which) const {
  return impl_->at(which).now;
}

std::string source_watch::name_of(source which) const {
  return impl_->name_of(impl_->at(which));
}

std::string source_watch::digest() const {
  if (!ready()) return {};
  content_digest all;
  for (const auto& one : impl_->all()) all.add(std::string_view(one.digest));
  return all.hex();
}

std::uint64_t source_watch::version() const noexcept {
  return impl_->version;
}

std::shared_ptr<void> source_watch::subscribe(std::function<void()> changed) {
  auto listener = std::make_shared<std::function<void()>>(std::move(changed));
  impl_->listeners.push_back(listener);
  return listener;
}

}  // namespace rw
