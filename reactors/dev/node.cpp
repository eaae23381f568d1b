#include "rw/reactors/dev/node.hpp"

#include "rw/core/backoff.hpp"
#include "rw/core/join_by.hpp"
#include "rw/core/within.hpp"
#include "rw/k8s/config/config.hpp"
#include "rw/k8s/objects/manifests.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/dev/deployment_status.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/watcher_installer/templates.hpp"

#include <boost/asio/this_coro.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

namespace rw::dev {

using namespace cli;
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr auto retry_base = std::chrono::milliseconds(200);
constexpr auto retry_limit = std::chrono::seconds(10);

const k8s::resource_type& endpoints_type() {
  static const k8s::resource_type type{{"", "v1", "Endpoints"}, "endpoints"};
  return type;
}

/// core/v1, Endpoints: the port has the name of the Service's.
json::value endpoints_of(const k8s::object_key& key, const asio::ip::tcp::endpoint& at) {
  return {{"apiVersion", "v1"},
          {"kind", "Endpoints"},
          {"metadata", {{"name", key.name}, {"namespace", key.ns}}},
          {"subsets",
           json::array{
               {{"addresses", json::array{{{"ip", at.address().to_string()}}}},
                {"ports",
                 json::array{{{"name", "webhook"}, {"port", at.port()}, {"protocol", "TCP"}}}}}}}};
}

k8s::config config_of(const std::string& runtime, const std::string& kubeconfig) {
  auto parsed = k8s::parse_foreign_kubeconfig(kubeconfig, "kubeconfig of " + runtime,
                                              k8s::local_servers::allowed);
  if (!parsed) throw setting_error(parsed.error().message);
  return std::move(*parsed);
}

k8s::informer_options only(std::string_view name) {
  k8s::informer_options options;
  options.objects.ns = skr_namespace;
  options.objects.fields = "metadata.name=" + std::string(name);
  return options;
}

const k8s::resource_type& services_type() {
  static const k8s::resource_type type{{"", "v1", "Service"}, "services"};
  return type;
}

/// Returns whether a Service has the pods of a Deployment as endpoints (core/v1, ServiceSpec).
bool selects(const json::value& service, const json::value& deployment) {
  const auto* selector = k8s::find(service, {"spec", "selector"});
  const auto* labels = k8s::find(deployment, {"spec", "template", "metadata", "labels"});
  const bool usable = selector != nullptr && selector->is_object() && labels != nullptr;
  return usable && std::ranges::all_of(selector->get_object(), [&](const auto& wanted) {
           const auto* found = k8s::find(*labels, {wanted.key()});
           return found != nullptr && *found == wanted.value();
         });
}

/// core/v1, PodStatus: each container runs, and is ready.
json::object running_status(const json::value& pod, std::chrono::system_clock::time_point now) {
  const auto since = k8s::format_time(now);
  json::array containers;
  if (const auto* const all = k8s::find_array(pod, {"spec", "containers"}); all != nullptr) {
    for (const auto& each : *all) {
      containers.push_back({{"name", k8s::find_string(each, {"name"})},
                            {"image", k8s::find_string(each, {"image"})},
                            {"imageID", ""},
                            {"ready", true},
                            {"restartCount", 0},
                            {"state", {{"running", {{"startedAt", since}}}}}});
    }
  }
  return {{"phase", "Running"},
          {"startTime", since},
          {"conditions", json::array{{{"type", "ContainersReady"}, {"status", "True"}},
                                     {{"type", "Ready"}, {"status", "True"}}}},
          {"containerStatuses", std::move(containers)}};
}

}  // namespace

node::node(services& with, core::metrics& webhooks, options options)
    : services_(with),
      metrics_(webhooks),
      options_(std::move(options)),
      log_(options_.log_level, options_.log_to),
      api_(with.executor, config_of(options_.runtime, options_.kubeconfig),
           {.name = "node",
            .user_agent = "runtime-watcher-dev",
            .field_manager = "runtime-watcher-dev"},
           {with.clock, with.watchdog, log_, with.metrics}),
      deployments_(api_, deployments_type(), only(skr_webhook_name),
                   {with.clock, log_, with.metrics, core::make_random_source()}),
      secrets_(api_, secrets_type(), only(watcher_installer::secret_name),
               {with.clock, log_, with.metrics, core::make_random_source()}),
      service_(api_, services_type(), only(skr_webhook_name),
               {with.clock, log_, with.metrics, core::make_random_source()}),
      changed_(with.executor),
      stop_(with.executor),
      pods_(with.executor, [this](std::exception_ptr thrown) {
        if (!failure_) failure_ = thrown;
        stop();
      }) {}

node::~node() = default;

k8s::devserver::service_route node::find(std::string_view service) const {
  static const auto name =
      std::string(skr_namespace) + "/" + std::string(skr_webhook_name) + ":443";
  if (service != name || !service_.objects().get(skr_namespace, skr_webhook_name)) return {};
  return {true, endpoint()};
}

std::optional<asio::ip::tcp::endpoint> node::endpoint() const {
  if (!current_ || !selected_) return {};
  return current_->address();
}

asio::awaitable<void> node::run() {
  co_await asio::this_coro::throw_if_cancelled(false);
  core::task_group watching(services_.executor, [this](std::exception_ptr thrown) {
    if (!failure_) failure_ = thrown;
    stop();
  });
  watching.spawn(deployments_.run());
  watching.spawn(secrets_.run());
  watching.spawn(service_.run());
  watching.spawn(follow(&deployments_));
  watching.spawn(follow(&secrets_));
  watching.spawn(follow(&service_));
  watching.spawn(keep());

  const auto cancelled = co_await stop_.wait();

  watching.cancel();
  co_await core::join_all(watching);
  if (cancelled) pods_.cancel();
  end_pod();
  co_await core::join_all(pods_);
  co_await api_.close();
  if (failure_) std::rethrow_exception(failure_);
}

asio::awaitable<void> node::follow(k8s::informer* from) {
  const auto changes = from->subscribe();
  std::vector<k8s::delta> deltas;
  for (;;) {
    deltas.clear();
    const auto got = co_await changes->receive_some(deltas, 64);
    if (got.has_error()) co_return;
    changed_.set();
  }
}

/// Keeps the pod in step with the objects, now and whenever they change.
asio::awaitable<void> node::keep() {
  bool synced = co_await deployments_.wait_synced();
  if (synced) synced = co_await secrets_.wait_synced();
  if (synced) synced = co_await service_.wait_synced();
  if (!synced) co_return;
  core::backoff pauses(retry_base, retry_limit, core::make_random_source());
  for (;;) {
    const auto done = co_await step();
    if (done) {
      pauses.reset();
      const auto cancelled = co_await changed_.wait();
      if (cancelled) co_return;
      continue;
    }
    log_.warning("the webhook is not as it is to be; trying again",
                 {{"reason", done.error().message}});
    const auto until = services_.clock.now() + pauses.next();
    co_await core::within(services_.clock, until, changed_.wait());
  }
}

asio::awaitable<k8s::result<void>> node::step() {
  const auto stored = deployments_.objects().get(skr_namespace, skr_webhook_name);
  auto deployment = stored.parse();
  if (!stored || k8s::is_being_deleted(deployment)) {
    end_pod();
    const auto gone = co_await tell_endpoints();
    co_return gone;
  }
  selected_ = selects(service_.objects().get(skr_namespace, skr_webhook_name).parse(), deployment);
  const bool crashing = crashes(deployment);
  if (crashing || crashing_) {
    const auto kept = co_await keep_crashing_pod(&api_, deployment, crashing);
    if (!kept) co_return kept.error();
    crashing_ = crashing;
  }
  // The pod of another template serves while a new one crashes.
  const auto placed = crashing ? refuse("its pods crash") : place(deployment);
  if (!placed) co_return placed.error();
  const auto reachable = co_await tell_endpoints();
  if (!reachable) co_return reachable.error();
  co_await tell_pod(&deployment);
  const auto told = co_await tell_deployment_status(&api_, &services_.clock, std::move(deployment),
                                                    current_ != nullptr && !crashing, error_);
  co_return told;
}

/// Makes the pod match the objects, or records why that is impossible. A failure may be transient.
k8s::result<void> node::place(const json::value& deployment) {
  auto spec = read_pod_spec(deployment, options_.pod_address);
  if (!spec) return refuse(spec.error().message);
  const auto secret = secrets_.objects().get(skr_namespace, watcher_installer::secret_name);
  if (!secret)
    return refuse("the Secret " + std::string(watcher_installer::secret_name) + " is not there");
  auto files = mounted(*spec, secret.parse());
  if (!files) return refuse(files.error().message);
  error_.clear();
  const std::string version(secret.resource_version());
  if (current_ && current_->spec().pod_template == spec->pod_template) {
    if (version != mounted_) pods_.spawn(remount(current_, std::move(*files)));
    mounted_ = version;
    return {};
  }
  ++pod_count_;
  spec->settings.pod_name = pod_key().name;
  std::shared_ptr<pod> next;
  try {
    next = std::make_shared<pod>(
        services_.executor, std::move(*spec), std::move(*files),
        webhook::pipeline_environment{services_.clock, services_.watchdog, log_, metrics_, nullptr,
                                      &api_},
        [this](const watch_event& event) { options_.on_event(options_.runtime, event); });
  } catch (const std::exception& e) {
    return watcher_installer::defect(e.what());
  }
  mounted_ = version;
  pods_.spawn(run_pod(next, pod_key()));
  end_pod();
  current_ = std::move(next);
  log_.info("the webhook runs", {{"port", std::uint64_t{current_->address().port()}}});
  return {};
}

/// Kubelet's part.
asio::awaitable<void> node::remount(std::shared_ptr<pod> pod, mounted_files files) {
  const auto timer = services_.clock.make_timer(services_.executor);
  timer->expires_at(services_.clock.now() + options_.kubelet_delay);
  const bool due = co_await timer->wait();
  if (!due || pod != current_) co_return;
  if (pod->remount(std::move(files))) log_.info("the webhook's certificates changed");
}

k8s::result<void> node::refuse(const std::string& reason) {
  if (reason == error_) return {};
  error_ = reason;
  log_.warning(current_ ? "the webhook stays as it is" : "there is no webhook yet",
               {{"reason", reason}});
  return {};
}

void node::end_pod() {
  if (!current_) return;
  current_->stop();
  current_.reset();
}

k8s::object_key node::pod_key() const {
  return {std::string(skr_namespace),
          std::string(skr_webhook_name) + "-" + std::to_string(pod_count_)};
}

asio::awaitable<void> node::run_pod(std::shared_ptr<pod> pod, k8s::object_key key) {
  std::exception_ptr failure;
  try {
    co_await pod->run();
  } catch (...) {
    failure = std::current_exception();
  }
  lost_ += pod->undelivered();
  if (failure) std::rethrow_exception(failure);
  const auto gone = co_await api_.remove(pods_type(), std::move(key));
  if (gone || gone.error().is(k8s::errc::not_found)) co_return;
  log_.warning("a pod that has ended can't be deleted", {{"reason", gone.error().message}});
}

/// Creates the Pod object, which runs. The API server may reject it, as it may require more of a
/// pod than there is here; the pod runs nevertheless.
asio::awaitable<void> node::tell_pod(const json::value* deployment) {
  if (!current_ || told_pod_ == pod_count_) co_return;
  told_pod_ = pod_count_;
  auto key = pod_key();
  auto object = pod_of(*deployment, key);
  json::value change{{"status", running_status(object, services_.clock.wall())}};
  auto made = co_await api_.create(pods_type(), std::move(object));
  if (made) {
    made = co_await api_.patch(pods_type(), std::move(key), k8s::patch_type::merge,
                               std::move(change), {.subresource = "status"});
  }
  if (made || made.error().is(k8s::errc::not_found)) co_return;
  log_.warning("the API server does not take the webhook's pod",
               {{"reason", made.error().message}});
}

/// Writes the Service's Endpoints. A loopback address is invalid in them, and useless to others.
asio::awaitable<k8s::result<void>> node::tell_endpoints() {
  const auto here = endpoint();
  const bool local = here && here->address().is_loopback();
  if (here == told_ || local) co_return k8s::result<void>();
  const k8s::object_key key{std::string(skr_namespace), std::string(skr_webhook_name)};
  if (here) {
    const k8s::apply_options options{.field_manager = "runtime-watcher-dev", .force = true};
    const auto done = co_await api_.apply(endpoints_type(), endpoints_of(key, *here), options);
    if (!done) co_return done.error();
  } else {
    const auto done = co_await api_.remove(endpoints_type(), key);
    if (!done && !done.error().is(k8s::errc::not_found)) co_return done.error();
  }
  told_ = here;
  co_return k8s::result<void>();
}

}  // namespace rw::dev
