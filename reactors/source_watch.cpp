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

source_watch::source_watch(k8s::client& api, source_watch_options options,
                           source_watch_environment environment)
    : api_(api), options_(std::move(options)), environment_(std::move(environment)) {
  const auto& names = options_.names;
  const std::string ns(kcp_namespace);
  const k8s::resource_type bundles{{{}, {}, std::string(trust_bundle_kind)}, {}, false};
  all_ = {watched{source::config, {ns, names.config}, config_maps_type()},
          watched{source::manifests, {ns, names.manifests}, config_maps_type()},
          watched{source::pull_secret, {ns, names.pull_secret}, secrets_type()},
          watched{source::trust_bundle, {{}, names.trust_bundle}, bundles}};
}

std::string source_watch::name_of(const watched& one) const {
  return one.type.gvk.kind + " " + k8s::to_string(one.key);
}

void source_watch::start(watched& one, core::task_group& tasks) {
  one.informer = std::make_unique<k8s::informer>(
      api_, one.type,
      k8s::informer_options{.what = {.ns = one.key.ns, .fields = "metadata.name=" + one.key.name}},
      k8s::informer_environment{environment_.clock, environment_.log, environment_.metrics,
                                environment_.random});
  tasks.spawn(one.informer->run());
  tasks.spawn(follow(&one));
}

void source_watch::update(watched& one, k8s::object now) {
  auto digest = digest_of(one.which, now);
  if (digest != one.digest && one.informer) {
    const std::string_view text = one.informer->resource_version();
    std::uint64_t number = 0;
    const auto* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    const bool is_number = error == std::errc() && stop == end;
    version_ = is_number ? std::max(version_, number) : std::numeric_limits<std::uint64_t>::max();
  }
  one.now = std::move(now);
  one.digest = std::move(digest);
  std::erase_if(listeners_, [](const auto& each) { return each.expired(); });
  const auto notified = listeners_;
  for (const auto& each : notified) {
    if (const auto listener = each.lock()) (*listener)();
  }
}

/// Objects of other names are ignored, for servers without field selectors.
asio::awaitable<void> source_watch::follow(watched* one) {
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
asio::awaitable<void> source_watch::discover() {
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

asio::awaitable<void> source_watch::adopt(std::optional<k8s::resource_type> found) {
  auto& one = bundle();
  if (found) {
    absence_logged_ = false;
    if (one.informer && one.type == *found) co_return;
    one.type = *found;
    environment_.log.info("ClusterTrustBundles are served", {{"version", found->gvk.version}});
    const auto executor = co_await asio::this_coro::executor;
    co_await end_bundle();
    // The content stays as it was until the new informer has listed.
    bundle_tasks_ = std::make_unique<core::task_group>(executor);
    start(one, *bundle_tasks_);
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

asio::awaitable<void> source_watch::end_bundle() {
  if (!bundle_tasks_) co_return;
  bundle_tasks_->cancel();
  co_await bundle_tasks_->join();
}

asio::awaitable<void> source_watch::run() {
  const auto executor = co_await asio::this_coro::executor;
  core::task_group tasks(executor);
  for (auto& one : all_) {
    if (&one != &bundle()) start(one, tasks);
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

bool source_watch::ready() const noexcept {
  return std::ranges::none_of(all_, &std::string::empty, &watched::digest);
}

std::string source_watch::not_ready() const {
  std::string text;
  for (const auto& one : all_) {
    if (one.digest.empty()) text += "not known yet: " + name_of(one) + "\n";
  }
  return text;
}

std::string source_watch::digest() const {
  if (!ready()) return {};
  content_digest all;
  for (const auto& one : all_) all.add(std::string_view(one.digest));
  return all.hex();
}

std::shared_ptr<void> source_watch::subscribe(std::function<void()> changed) {
  auto listener = std::make_shared<std::function<void()>>(std::move(changed));
  listeners_.push_back(listener);
  return listener;
}

}  // namespace rw
