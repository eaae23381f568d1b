#include "reactors/source_watch.hpp"

#include "core/task_group.hpp"
#include "core/within.hpp"
#include "k8s/informer.hpp"
#include "k8s/types.hpp"
#include "reactors/content_digest.hpp"
#include "reactors/kyma_resources.hpp"
#include "reactors/trust_bundles_type.hpp"

#include <boost/asio/this_coro.hpp>
#include <boost/json/value.hpp>

#include <optional>
#include <utility>
#include <vector>

namespace rw {
namespace {

namespace asio = boost::asio;

/// How long a first list may take before discovery is asked once more.
constexpr auto first_list = std::chrono::minutes(1);

k8s::informer_options only(const std::string& ns, const std::string& name) {
  return {.what = {.ns = ns, .fields = "metadata.name=" + name}};
}

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
      : api_(api),
        options_(std::move(options)),
        environment_(std::move(environment)),
        fixed_{
            inform(config_maps_type(), only(std::string(kcp_namespace), options_.names.config)),
            inform(config_maps_type(), only(std::string(kcp_namespace), options_.names.manifests)),
            inform(secrets_type(), only(std::string(kcp_namespace), options_.names.pull_secret))} {}

  asio::awaitable<void> run();

  bool known(source which) const noexcept { return !digest_part(which).empty(); }
  const k8s::object& get(source which) const { return now_.at(index(which)); }
  /// Empty: it is not known yet what the source holds.
  const std::string& digest_part(source which) const noexcept { return digests_[index(which)]; }
  std::string name_of(source which) const;

  std::vector<std::weak_ptr<std::function<void()>>> listeners;

 private:
  using informer_ptr = std::unique_ptr<k8s::informer>;

  /// The trust bundle's informer, in the version that was found, with what runs it.
  struct bundle {
    bundle(informer_ptr from, asio::any_io_executor executor)
        : informer(std::move(from)), tasks(std::move(executor)) {}
    informer_ptr informer;
    core::task_group tasks;
  };
  using bundle_ptr = std::unique_ptr<bundle>;

  static std::size_t index(source which) noexcept { return static_cast<std::size_t>(which); }
  const informer_ptr& informer_of(source which) const { return fixed_.at(index(which)); }

  informer_ptr inform(const k8s::resource_type& type, k8s::informer_options how) const {
    return std::make_unique<k8s::informer>(
        api_, type, std::move(how),
        k8s::informer_environment{environment_.clock, environment_.log, environment_.metrics,
                                  environment_.random});
  }
  std::string object_name(source which) const;
  void look(source which, const k8s::informer& at);
  void tell();
  asio::awaitable<void> await_sync(source which);
  asio::awaitable<void> follow(source which, k8s::informer* from);
  asio::awaitable<void> find_bundle();
  asio::awaitable<void> adopt(std::optional<k8s::resource_type> found);
  asio::awaitable<void> change_to(k8s::resource_type type);
  asio::awaitable<bool> pause(core::duration by);

  k8s::client& api_;
  const source_watch_options options_;
  const source_watch_environment environment_;
  const std::array<informer_ptr, 3> fixed_;
  bundle_ptr bundle_;
  bool told_of_absence_ = false;
  core::log_limit log_limit_{1, std::chrono::minutes(5)};
  std::array<k8s::object, all_sources.size()> now_;
  std::array<std::string, all_sources.size()> digests_;
};

std::string source_watch::implementation::object_name(source which) const {
  const auto& names = options_.names;
  switch (which) {
    case source::config:
      return names.config;
    case source::manifests:
      return names.manifests;
    case source::pull_secret:
      return names.pull_secret;
    case source::trust_bundle:
      return names.trust_bundle;
  }
  return {};
}

std::string source_watch::implementation::name_of(source which) const {
  if (which == source::trust_bundle)
    return std::string(trust_bundle_kind) + " " + object_name(which);
  return informer_of(which)->type().gvk.kind + " " + std::string(kcp_namespace) + "/" +
         object_name(which);
}

/// Takes over what an informer has. Objects of other names are passed over, for servers that know
/// no field selectors.
void source_watch::implementation::look(source which, const k8s::informer& at) {
  const std::string ns(which == source::trust_bundle ? "" : kcp_namespace);
  now_.at(index(which)) = at.objects().get(ns, object_name(which));
  digests_.at(index(which)) = digest_of(which, now_.at(index(which)));
  tell();
}

void source_watch::implementation::tell() {
  std::erase_if(listeners, [](const auto& one) { return one.expired(); });
  const auto all = listeners;
  for (const auto& one : all) {
    if (const auto listener = one.lock()) (*listener)();
  }
}

asio::awaitable<void> source_watch::implementation::await_sync(source which) {
  const bool synced = co_await informer_of(which)->wait_synced();
  if (synced) look(which, *informer_of(which));
}

asio::awaitable<void> source_watch::implementation::follow(source which, k8s::informer* from) {
  const auto changes = from->subscribe();
  for (;;) {
    const auto change = co_await changes->receive();
    if (change.has_error()) co_return;
    if (from->synced()) look(which, *from);
  }
}

asio::awaitable<bool> source_watch::implementation::pause(core::duration by) {
  const auto executor = co_await asio::this_coro::executor;
  const auto alarm = environment_.clock.make_timer(executor);
  alarm->expires_at(environment_.clock.now() + by);
  const bool due = co_await alarm->wait();
  co_return due;
}

/// As long as it runs; `bundle_` is ended by `run`.
asio::awaitable<void> source_watch::implementation::find_bundle() {
  core::backoff backoff(std::chrono::seconds(1), std::chrono::seconds(30), environment_.random);
  for (;;) {
    auto found = co_await find_trust_bundles(api_);
    core::duration wait = options_.ask_again;
    if (found.has_error()) {
      environment_.log.limited(log_limit_, core::log_level::warning,
                               "it can't be found out whether ClusterTrustBundles are served; it "
                               "is asked again",
                               {{"error", found.error().message}});
      wait = backoff.next();
    } else {
      backoff.reset();
      co_await adopt(std::move(*found));
    }
    const bool due = co_await pause(wait);
    if (!due) co_return;
  }
}

asio::awaitable<void> source_watch::implementation::adopt(std::optional<k8s::resource_type> found) {
  const bool changed = found && (!bundle_ || bundle_->informer->type() != *found);
  if (found) told_of_absence_ = false;
  if (changed) co_await change_to(std::move(*found));
  if (found || std::exchange(told_of_absence_, true)) co_return;
  environment_.log.warning(
      bundle_ ? "ClusterTrustBundles are not served any more; what was seen last stands"
              : "ClusterTrustBundles are not served; the trust bundle counts as absent until they "
                "are",
      {{"name", object_name(source::trust_bundle)}});
  if (known(source::trust_bundle)) co_return;
  digests_.at(index(source::trust_bundle)) = digest_of(source::trust_bundle, {});
  tell();
}

/// The informer that there was goes on until the new one has listed.
asio::awaitable<void> source_watch::implementation::change_to(k8s::resource_type type) {
  const auto executor = co_await asio::this_coro::executor;
  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);  // what begins here has to be joined
  environment_.log.info("ClusterTrustBundles are served", {{"version", type.gvk.version}});
  auto how = only({}, object_name(source::trust_bundle));
  auto other = std::make_unique<bundle>(inform(type, std::move(how)), executor);
  other->tasks.spawn(other->informer->run());
  std::exception_ptr failure;
  bool synced = false;
  try {
    auto sync = other->informer->wait_synced();
    const auto until = environment_.clock.now() + first_list;
    const auto in_time = co_await core::within(environment_.clock, until, std::move(sync));
    synced = in_time.value_or(false);
  } catch (...) {  // cancelled
    failure = std::current_exception();
  }
  if (synced) {
    std::swap(bundle_, other);
    auto* const informer = bundle_->informer.get();
    bundle_->tasks.spawn(follow(source::trust_bundle, informer));
    look(source::trust_bundle, *informer);
  }
  if (other) {
    other->tasks.cancel();
    co_await other->tasks.join();
  }
  co_await asio::this_coro::throw_if_cancelled(throws);
  if (failure) std::rethrow_exception(failure);
}

asio::awaitable<void> source_watch::implementation::run() {
  const auto executor = co_await asio::this_coro::executor;
  core::task_group tasks(executor);
  for (const auto which : {source::config, source::manifests, source::pull_secret}) {
    auto* const informer = informer_of(which).get();
    tasks.spawn(informer->run());
    tasks.spawn(await_sync(which));
    tasks.spawn(follow(which, informer));
  }
  tasks.spawn(find_bundle());
  std::exception_ptr failure;
  try {
    co_await tasks.join();
  } catch (...) {
    failure = std::current_exception();
  }
  co_await asio::this_coro::throw_if_cancelled(false);
  if (bundle_) {
    bundle_->tasks.cancel();
    co_await bundle_->tasks.join();
    bundle_.reset();
  }
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
  for (const auto which : all_sources) {
    if (!impl_->known(which)) return false;
  }
  return true;
}

std::string source_watch::not_ready() const {
  std::string text;
  for (const auto which : all_sources) {
    if (!impl_->known(which)) text += "not known yet: " + impl_->name_of(which) + "\n";
  }
  return text;
}

k8s::object source_watch::get(source which) const {
  return impl_->get(which);
}

std::string source_watch::name_of(source which) const {
  return impl_->name_of(which);
}

std::string source_watch::digest() const {
  if (!ready()) return {};
  content_digest all;
  for (const auto which : all_sources) all.add(impl_->digest_part(which));
  return all.hex();
}

std::shared_ptr<void> source_watch::subscribe(std::function<void()> changed) {
  auto listener = std::make_shared<std::function<void()>>(std::move(changed));
  impl_->listeners.push_back(listener);
  return listener;
}

}  // namespace rw
