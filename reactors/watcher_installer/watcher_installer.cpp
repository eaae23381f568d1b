#include "reactors/watcher_installer/watcher_installer.hpp"

#include "core/task_group.hpp"
#include "core/within.hpp"
#include "k8s/types.hpp"
#include "reactors/kyma_resources.hpp"
#include "reactors/trust_bundle.hpp"
#include "tls/certificate.hpp"

#include <boost/asio/this_coro.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace rw::watcher_installer {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using k8s::delta;
using k8s::object;
using k8s::object_key;

constexpr const char* by_kyma = "watcher-installer/kyma";
constexpr std::string_view certificate_suffix = "-webhook-tls";

k8s::controller_options controller_options_of(const options& with) {
  k8s::controller_options out{.name = "watcher-installer", .concurrent = with.concurrent};
  // Each wait in a reconcile has a limit of its own; this one is a net below them.
  out.reconcile_limit = 4 * (with.runtime_limit + with.sick_limit) + std::chrono::minutes(2);
  out.queue.retry_base = with.backoff_base;
  out.queue.retry_limit = with.backoff_limit;
  out.queue.retries_per_second = 0;  // each runtime has its own backoff
  return out;
}

std::string kyma_of_secret(const object& secret) {
  const auto value = secret.parse();
  const auto name = k8s::label(value, kyma_name_label);
  return name ? std::string(*name) : std::string();
}

/// What the installer reads of an object, out of all that may change in it.
std::string part_of(const object& from, std::initializer_list<std::string_view> path) {
  if (!from) return {};
  const auto value = from.parse();
  const auto* part = k8s::find(value, path);
  return part == nullptr ? std::string() : json::serialize(*part);
}

bool kyma_changed(const delta& change) {
  if (change.what != delta::kind::updated) return true;
  for (const auto* field : {"labels", "annotations", "finalizers", "deletionTimestamp"}) {
    if (part_of(change.before, {"metadata", field}) != part_of(change.now, {"metadata", field})) {
      return true;
    }
  }
  return false;
}

std::optional<watcher> valid_watcher(const object& from) {
  if (!from) return {};
  const auto value = from.parse();
  if (k8s::is_being_deleted(value)) return {};
  auto read = read_watcher(value);
  if (!read) return {};
  return std::move(*read);
}

/// Says something about this process and nothing about the runtime.
bool is_our_own(const k8s::failure& why) {
  return why.is(k8s::errc::fenced) || why.is(k8s::errc::shut_down);
}

bool watcher_changed(const delta& change) {
  const auto before = valid_watcher(change.before);
  const auto now = valid_watcher(change.now);
  if (!before || !now) return before.has_value() != now.has_value();
  return !same_webhook(*before, *now);
}

}  // namespace

k8s::selection kubeconfig_secrets() {
  return {.ns = std::string(kcp_namespace), .labels = std::string(kyma_name_label)};
}

k8s::client_options runtime_client_options() {
  k8s::client_options out{.name = "runtimes"};
  out.connect = std::chrono::seconds(5);
  out.request = std::chrono::seconds(10);
  out.retries = 1;
  // Thousands of runtimes are visited in one process, and none of them is believed.
  out.answer_bytes = 4u << 20;
  return out;
}

watcher_installer::watcher_installer(asio::any_io_executor executor, options with, sources from,
                                     environment in)
    : with_(std::move(with)),
      from_(from),
      in_(std::move(in)),
      writes_(core::make_counter(in_.metrics, "rw_watcher_installer_writes_total",
                                 "Writing requests to runtimes")),
      runtimes_(in_.metrics, std::max<std::size_t>(with_.sick_at_once, 1)),
      controller_(std::move(executor), controller_options_of(with_), *this,
                  {in_.clock, in_.watchdog, in_.log, in_.metrics, in_.random}) {
  from_.kubeconfigs.add_index(by_kyma, [](const object& one, std::vector<std::string>& values) {
    auto name = kyma_of_secret(one);
    if (!name.empty()) values.push_back(std::move(name));
  });
  watch_all();
}

watcher_installer::~watcher_installer() = default;

asio::awaitable<void> watcher_installer::run() {
  const auto executor = co_await asio::this_coro::executor;
  core::task_group tasks(executor);
  tasks.spawn(complete_board());
  tasks.spawn(controller_.run());
  co_await tasks.join();
}

/// Nobody may conclude from the board that all runtimes have something before all are on it.
asio::awaitable<void> watcher_installer::complete_board() {
  if (in_.board == nullptr) co_return;
  const bool synced = co_await from_.kymas.wait_synced();
  if (!synced) co_return;
  for (auto* each : from_.certificates) {
    const bool known = co_await each->wait_synced();
    if (!known) co_return;
  }
  from_.kymas.objects().for_each([this](const object& one) {
    if (may_have_certificate(one)) in_.board->expect(one.key());
  });
  in_.board->complete();
}

/// Nobody has to wait for a runtime that never got a certificate: no gateway will see one of it.
bool watcher_installer::may_have_certificate(const object& kyma) const {
  const auto name = std::string(kyma.name()) + std::string(certificate_suffix);
  const auto has = [&](const k8s::informer* from) {
    return static_cast<bool>(from->objects().get(istio_namespace, name));
  };
  return from_.certificates.empty() || std::ranges::any_of(from_.certificates, has);
}

bool watcher_installer::requeue(const object_key& kyma) {
  const auto added = controller_.add(kyma);
  return added == core::add_result::added || added == core::add_result::merged;
}

// --- what changes, and whom it concerns ------------------------------------------------

void watcher_installer::watch_all() {
  using keys = k8s::controller::keys;
  controller_.watch(from_.kymas, [](const delta& change, keys& some) {
    if (kyma_changed(change)) some.push_back(change.any().key());
  });
  controller_.watch(from_.watchers, [this](const delta& change, keys& some) {
    if (watcher_changed(change)) fan_out(some);
  });
  controller_.watch(from_.kubeconfigs, [](const delta& change, keys& some) {
    // It may have been given to another Kyma.
    const auto before = change.before ? kyma_of_secret(change.before) : std::string();
    const auto now = change.now ? kyma_of_secret(change.now) : std::string();
    if (!now.empty()) some.push_back({std::string(kcp_namespace), now});
    if (!before.empty() && before != now) some.push_back({std::string(kcp_namespace), before});
  });
  controller_.watch(from_.gateways, [this](const delta& change, keys& some) {
    if (change.any().name() != with_.gateway) return;
    if (part_of(change.before, {"spec"}) != part_of(change.now, {"spec"})) fan_out(some);
  });
  controller_.watch(from_.gateway_secrets, [this](const delta& change, keys& some) {
    if (change.any().name() != gateway_secret_name) return;
    if (part_of(change.before, {"data", "ca.crt"}) != part_of(change.now, {"data", "ca.crt"})) {
      fan_out(some);
    }
  });
  for (auto* const one : from_.certificates) {
    controller_.watch(*one, [](const delta& change, keys& some) {
      auto name = change.any().name();
      if (!name.ends_with(certificate_suffix)) return;
      name.remove_suffix(certificate_suffix.size());
      some.push_back({std::string(kcp_namespace), std::string(name)});
    });
  }
}

core::duration watcher_installer::up_to(core::duration most) const {
  const auto range = static_cast<std::uint64_t>(std::max<core::duration::rep>(most.count(), 0)) + 1;
  return core::duration(static_cast<core::duration::rep>(in_.random() % range));
}

/// All runtimes, each at a moment of its own, so that neither they nor this process are flooded.
void watcher_installer::fan_out(k8s::controller::keys& some) {
  const auto& kymas = from_.kymas.objects();
  const auto count = static_cast<core::duration::rep>(kymas.size());
  const auto within = std::min(with_.spread * count, with_.spread_limit);
  kymas.for_each([&](const object& one) {
    const auto added = controller_.add_after(one.key(), up_to(within));
    if (added == core::add_result::full) some.push_back(one.key());  // the source then waits
  });
}

// --- one runtime -----------------------------------------------------------------------

asio::awaitable<k8s::reconcile_result> watcher_installer::reconcile(object_key key) {
  if (in_.on_reconcile) in_.on_reconcile(key);
  auto kyma = from_.kymas.objects().get(key);
  if (!kyma) {
    forget(key);
    co_return result::done();
  }
  if (k8s::is_being_deleted(kyma.parse())) {
    auto removed = co_await keep_removed(std::move(kyma));
    co_return removed;
  }
  auto installed = co_await keep_installed(std::move(kyma));
  co_return installed;
}

asio::awaitable<k8s::reconcile_result> watcher_installer::keep_installed(object kyma) {
  const auto key = kyma.key();
  if (in_.board != nullptr && may_have_certificate(kyma)) in_.board->expect(key);
  const auto kubeconfig = kubeconfig_of(kyma.name(), kubeconfigs_for(kyma));
  if (!kubeconfig) co_return no_access(kyma, kubeconfig.error().message);
  auto marked = co_await add_finalizer(kyma);
  if (marked) co_return *marked;
  auto value = kyma.parse();
  const auto own = co_await in_.certificates.ensure(std::move(value));
  if (own.what == certificate_answer::kind::refused) co_return failed(kyma, own.why, false);
  if (own.what == certificate_answer::kind::failed) co_return failed(kyma, own.why, true);
  auto what = order_for(own);
  if (!what) co_return failed(kyma, what.error().message, false);
  if (in_.board != nullptr) in_.board->expect(key);

  if (runtimes_.sick(key)) {
    const auto place = runtimes_.take_place();
    if (!place) co_return come_again(key);
    const auto silent = co_await sign_of_life(key, *kubeconfig);
    if (silent) co_return unreachable(kyma, *silent);
  }
  auto api = in_.runtimes.get(to_string(key), *kubeconfig);
  if (!api) co_return no_access(kyma, api.error().message);
  auto work = install(*api, &with_.how, std::move(*what), in_.clock.wall());
  const auto until = in_.clock.now() + with_.runtime_limit;
  const auto seen = co_await core::within(in_.clock, until, std::move(work));
  if (!seen) co_return unreachable(kyma, "the runtime did not answer in time");
  if (!*seen && k8s::is_sick(seen->error())) {
    co_return unreachable(kyma, seen->error().message);
  }
  if (!*seen && is_our_own(seen->error())) co_return result::error(seen->error());
  set_healthy(key);
  if (!*seen) co_return failed(kyma, seen->error());
  co_return settle(kyma, **seen);
}

/// A runtime that did not answer last time is asked for little first. None: it answered.
asio::awaitable<std::optional<std::string>> watcher_installer::sign_of_life(
    object_key key, std::string kubeconfig) {
  auto api = in_.runtimes.get(to_string(key), kubeconfig);
  if (!api) co_return api.error().message;
  auto work = (*api)->get(namespaces_type(), {{}, std::string(skr_namespace)}, true);
  const auto until = in_.clock.now() + with_.sick_limit;
  const auto got = co_await core::within(in_.clock, until, std::move(work));
  if (!got) co_return runtimes_.complaint(key);
  if (!*got && k8s::is_sick(got->error())) co_return got->error().message;
  set_healthy(key);
  co_return std::nullopt;
}

void watcher_installer::set_healthy(const object_key& key) {
  runtimes_.set_healthy(key);
  if (in_.board != nullptr) in_.board->reached(key);
}

/// All places for sick runtimes are taken: soon again, but in the same state as before.
k8s::reconcile_result watcher_installer::come_again(const object_key& key) {
  controller_.add_after(key, with_.sick_limit + up_to(with_.sick_limit));
  return result::error("the runtime does not answer: " + runtimes_.complaint(key), "unreachable");
}

std::vector<object> watcher_installer::kubeconfigs_for(const object& kyma) const {
  return from_.kubeconfigs.objects().by_index(by_kyma, kyma.name());
}

in_words<order> watcher_installer::order_for(const certificate_answer& own) const {
  const auto gateway = from_.gateways.objects().get(kcp_namespace, with_.gateway);
  auto address = address_of(gateway, with_.gateway, with_.kcp_port);
  if (!address) return address.error();
  const auto secret = from_.gateway_secrets.objects().get(istio_namespace, gateway_secret_name);
  const auto trust = read_trust_bundle(secret.parse());
  if (trust.authorities.empty()) {
    return defect("Secret " + std::string(gateway_secret_name) + " has no CA bundle yet");
  }
  // A bundle that was damaged, or cut short, stays away from the runtimes, which have a good one,
  // until the rotation has repaired it.
  if (!trust.problem.empty()) {
    return defect("Secret " + std::string(gateway_secret_name) + ": " + trust.problem);
  }
  const auto served = tls::certificate::from_pem(
      k8s::secret_data(secret.parse(), certificate_entry).value_or(std::string()));
  if (!served || trust.authorities.issuer_of(*served) == nullptr) {
    return defect("Secret " + std::string(gateway_secret_name) +
                  ": ca.crt lacks the authority of tls.crt");
  }
  order out{.trust = {.bundle = trust.authorities},
            .address = std::move(*address),
            .certificate_pending = own.why,
            .certificate_again = own.again};
  if (own.what == certificate_answer::kind::ready) {
    out.trust.certificate = own.current.certificate;
    out.trust.key = own.current.key;
    out.trust.version = own.current.version;
  }
  from_.watchers.objects().for_each([&](const object& one) {
    auto valid = valid_watcher(one);
    if (valid) out.watchers.push_back(std::move(*valid));
  });
  return out;
}

// --- what came of it -------------------------------------------------------------------

k8s::reconcile_result watcher_installer::settle(const object& kyma, const outcome& seen) {
  const auto key = kyma.key();
  writes_.Increment(static_cast<double>(seen.writes));
  record(kyma, seen);
  auto again = a_little_longer(with_.success_interval);
  const bool on_their_way = !seen.ready || !seen.rolled_out;
  const auto looks = std::min(runtimes_.look(key, on_their_way), 10U);
  if (on_their_way) {
    const auto pause = std::min(with_.ready_interval * (1U << looks), with_.ready_interval_limit);
    again = std::min(again, a_little_longer(pause));
  }
  if (!seen.ready) {
    tell(kyma, state::not_ready, seen.not_ready,
         seen.details.empty() ? seen.not_ready : seen.not_ready + ": " + seen.details);
  } else {
    // What only has to wait for its time is no news.
    const auto stuck = seen.again > core::duration::zero() ? std::string() : seen.pending;
    tell(kyma, state::installed, stuck, stuck, seen.writes > 0);
  }
  if (seen.again > core::duration::zero()) {
    again = std::min(again, seen.again + std::chrono::milliseconds(1));
  } else if (!seen.pending.empty()) {
    again = std::min(again, a_little_longer(with_.certificate_interval));
  }
  return result::requeue_after(again);
}

k8s::reconcile_result watcher_installer::unreachable(const object& kyma, const std::string& why) {
  const auto key = kyma.key();
  in_.runtimes.evict(to_string(key));
  runtimes_.set_sick(key, why);
  if (in_.board != nullptr) in_.board->unreachable(key, in_.clock.wall());
  tell(kyma, state::unreachable, {}, why);
  return result::error("the runtime does not answer: " + why, "unreachable");
}

/// There is no way to the runtime until somebody changes a Secret.
k8s::reconcile_result watcher_installer::no_access(const object& kyma, const std::string& why) {
  if (in_.board != nullptr) in_.board->unreachable(kyma.key(), in_.clock.wall());
  return failed(kyma, why, false);
}

k8s::reconcile_result watcher_installer::failed(const object& kyma, const std::string& why,
                                                bool again) {
  tell(kyma, state::failed, why, why);
  return again ? result::error(why) : result::terminal(why);
}

k8s::reconcile_result watcher_installer::failed(const object& kyma, const k8s::failure& why) {
  auto again = result::error(why);
  tell(kyma, state::failed, again.reason, why.message);
  return again;
}

/// What the pods run with, as far as their Deployment tells.
void watcher_installer::record(const object& kyma, const outcome& seen) {
  if (in_.board == nullptr || !seen.rolled_out) return;
  const auto own = tls::certificate::from_pem(seen.certificate);
  if (!own) return;
  in_.board->observed(kyma.key(), observe_rollout(seen.webhook_bundle, seen.secret_bundle, *own));
}

/// Tells a state when it begins.
void watcher_installer::tell(const object& kyma, state now, const std::string& reason,
                             const std::string& message, bool done) {
  const bool news = runtimes_.set(kyma.key(), now, reason, done);
  if (!news) return;
  const auto about = k8s::reference_to(kyma.parse());
  switch (now) {
    case state::installed:
      in_.events.normal(about, "WatcherInstalled",
                        message.empty() ? "The watcher is installed on the runtime and ready"
                                        : "The watcher is installed on the runtime; " + message);
      break;
    case state::not_ready:
      in_.events.warning(about, "WatcherNotReady",
                         "The watcher is not ready on the runtime: " + message);
      break;
    case state::failed:
      in_.events.warning(about, "WatcherFailed", "The watcher can't be installed: " + message);
      break;
    case state::unreachable:
      in_.events.warning(about, "RuntimeUnreachable", "The runtime does not answer: " + message);
      break;
  }
}

void watcher_installer::forget(const object_key& key) {
  runtimes_.forget(key);
  in_.runtimes.evict(to_string(key));
  if (in_.board != nullptr) in_.board->forget(key);
}

}  // namespace rw::watcher_installer
