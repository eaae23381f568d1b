#include "rw/k8s/devserver/admission.hpp"

#include "rw/core/backoff.hpp"
#include "rw/core/task_group.hpp"
#include "rw/core/wake.hpp"
#include "rw/k8s/devserver/object_meta.hpp"
#include "rw/k8s/devserver/patch.hpp"
#include "rw/k8s/devserver/refusals.hpp"
#include "rw/k8s/devserver/webhook.hpp"
#include "rw/k8s/devserver/webhook_client.hpp"

#include <boost/asio/this_coro.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <utility>

namespace rw::k8s::devserver {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

/// Maximum number of writes of one cluster that wait for webhooks.
constexpr std::size_t most_writes = 200;
/// Maximum number of attempts of a call that the webhook did not process.
constexpr unsigned tries = 4;
/// Maximum number of redirects of a call, as in Go's HTTP client.
constexpr unsigned most_redirects = 10;

/// A configured webhook, with its connections once there are any.
struct active_webhook {
  json::value source;
  webhook spec;
  std::shared_ptr<webhook_client> client = {};
};
using active_ptr = std::shared_ptr<active_webhook>;

/// Results of the webhooks of one write.
struct hearing {
  const review_text review;
  std::vector<std::vector<std::string>> warnings;  ///< in the order of the webhooks
  std::optional<problem> refusal = {};             ///< the first
  json::value patch = {};                          ///< of a mutating webhook
};

}  // namespace

class webhooks::implementation {
 public:
  implementation(asio::any_io_executor executor, environment with)
      : executor_(std::move(executor)),
        environment_(with),
        allowed_(count(with, "allowed")),
        denied_(count(with, "denied")),
        failed_(count(with, "failed")),
        ignored_(count(with, "ignored")),
        refused_(
            core::make_counter(with.metrics, "rw_devserver_admission_refused_total",
                               "Number of writes rejected because too many wait for webhooks")),
        tasks_(executor_),
        idle_(executor_) {}

  using configuration_map = std::map<std::string, std::vector<active_ptr>>;

  void set_configuration(const std::string& name, const json::value& configuration, bool mutates);
  asio::awaitable<outcome<json::value>> mutate(admission_attributes write);
  asio::awaitable<outcome<void>> admit(admission_attributes write);
  asio::awaitable<void> close();

  service_resolver resolver;
  configuration_map configurations;
  configuration_map mutating;

 private:
  /// Counts a write during its admission.
  class in_flight_guard {
   public:
    explicit in_flight_guard(implementation& in) : owner_(in) { ++owner_.present_; }
    ~in_flight_guard() {
      if (--owner_.present_ == 0) owner_.idle_.set();
    }
    in_flight_guard(const in_flight_guard&) = delete;
    in_flight_guard& operator=(const in_flight_guard&) = delete;

   private:
    implementation& owner_;
  };

  static core::counter& count(environment with, const std::string& result) {
    return core::make_counter(with.metrics, "rw_devserver_webhook_calls_total",
                              "Number of calls of webhooks", {{"result", result}});
  }

  static std::vector<active_ptr> concerned(const configuration_map& among,
                                           const admission_attributes& write);
  static outcome<void> report_missed(const configuration_map& among,
                                     const admission_attributes& write);
  asio::awaitable<std::optional<problem>> mutate_by(active_ptr active, admission_attributes* write,
                                                    bool* changed);
  std::shared_ptr<webhook_client> line_to(active_webhook& active_webhook, webhook_address at,
                                          std::string& reason);
  asio::awaitable<webhook_decision> send(active_ptr active, webhook_call* call);
  asio::awaitable<void> call(active_ptr active, hearing* of, std::size_t place);
  void settle(const webhook& webhook, webhook_decision decision, hearing& of, std::size_t place);

  const asio::any_io_executor executor_;
  const environment environment_;
  core::counter& allowed_;
  core::counter& denied_;
  core::counter& failed_;
  core::counter& ignored_;
  core::counter& refused_;
  core::log_limit log_limit_;
  core::random_source random_ = core::make_random_source();
  core::task_group tasks_;
  core::wake idle_;
  std::vector<std::weak_ptr<webhook_client>>
      clients_;  ///< draining ones too, until they are closed
  std::size_t present_ = 0;
  bool closed_ = false;
};

/// An unchanged webhook keeps its connections.
void webhooks::implementation::set_configuration(const std::string& name,
                                                 const json::value& configuration, bool mutates) {
  auto& all = mutates ? mutating : configurations;
  auto before = std::exchange(all[name], {});
  const auto* const fields = configuration.if_object();
  const auto* const given = fields != nullptr ? fields->if_contains("webhooks") : nullptr;
  if (given != nullptr && given->is_array() && !closed_) {
    auto& now = all[name];
    for (const auto& entry : given->get_array()) {
      const auto same = std::ranges::find_if(before, [&entry](const auto& webhook) {
        return webhook != nullptr && webhook->source == entry;
      });
      now.push_back(same != before.end() ? std::exchange(*same, nullptr)
                                         : std::make_shared<active_webhook>(active_webhook{
                                               entry, webhook::parse(entry, mutates)}));
    }
  }
  if (all[name].empty()) all.erase(name);
  for (const auto& webhook : before) {
    if (webhook != nullptr && webhook->client) std::exchange(webhook->client, nullptr)->drain();
  }
}

std::vector<active_ptr> webhooks::implementation::concerned(const configuration_map& among,
                                                            const admission_attributes& write) {
  std::vector<active_ptr> found;
  for (const auto& [name, all] : among) {
    std::ranges::copy_if(all, std::back_inserter(found),
                         [&write](const auto& webhook) { return webhook->spec.concerns(write); });
  }
  return found;
}

/// Adds a warning for each webhook that is not called though kube-apiserver would call it.
outcome<void> webhooks::implementation::report_missed(const configuration_map& among,
                                                      const admission_attributes& write) {
  if (write.other_versions.empty()) return {};
  for (const auto& [name, all] : among) {
    for (const auto& webhook : all) {
      if (!webhook->spec.misses(write)) continue;
      auto warning = "webhook \"" + webhook->spec.name +
                     "\" is not called: its rules name another version, and this API server treats "
                     "matchPolicy Equivalent as Exact";
      if (write.refuse_unsupported) return unsupported(warning);
      write.warnings->push_back(std::move(warning));
    }
  }
  return {};
}

std::shared_ptr<webhook_client> webhooks::implementation::line_to(active_webhook& active_webhook,
                                                                  webhook_address at,
                                                                  std::string& reason) {
  if (closed_) {
    reason = "the server is being shut down";
    return nullptr;
  }
  if (active_webhook.client && active_webhook.client->address().shares_server(at)) {
    return active_webhook.client;
  }
  if (active_webhook.client) std::exchange(active_webhook.client, nullptr)->drain();
  active_webhook.client =
      webhook_client::open(tasks_, active_webhook.spec, std::move(at), environment_, reason);
  std::erase_if(clients_, [](const auto& client) { return client.expired(); });
  if (active_webhook.client) clients_.push_back(active_webhook.client);
  return active_webhook.client;
}

/// Sends a review to a webhook, and to where that redirects it.
asio::awaitable<webhook_decision> webhooks::implementation::send(active_ptr active,
                                                                 webhook_call* call) {
  webhook_decision decision;
  auto at = webhook_address::of(active->spec, resolver, decision.failed);
  for (unsigned i = 0; at && i < most_redirects; ++i) {
    call->at = *at;
    const auto line = line_to(*active, *at, decision.failed);
    if (!line) co_return decision;
    decision = co_await line->ask(call);
    if (decision.location.empty()) co_return decision;
    at = at->redirected(decision.location, decision.failed);
  }
  if (at) decision.failed = "Post \"" + at->url + "\": stopped after 10 redirects";
  co_return decision;
}

/// A webhook that shuts down reports which calls it has not processed (RFC 9113, section 6.8).
/// Those are repeated, at the webhook's current address, as Go's HTTP client does for
/// kube-apiserver.
asio::awaitable<void> webhooks::implementation::call(active_ptr active, hearing* of,
                                                     std::size_t place) {
  const auto uid = make_uid(random_);
  webhook_call call{active->spec, of->review.body(active->spec.version, uid), uid,
                    environment_.clock.now() + active->spec.timeout};
  webhook_decision decision{.failed = active->spec.error, .unseen = active->spec.error.empty()};
  for (unsigned i = 0; i < tries && decision.unseen && environment_.clock.now() < call.end; ++i) {
    decision = co_await send(active, &call);
  }
  settle(active->spec, std::move(decision), *of, place);
}

void webhooks::implementation::settle(const webhook& webhook, webhook_decision decision,
                                      hearing& of, std::size_t place) {
  of.warnings[place] = std::move(decision.warnings);
  of.patch = std::move(decision.patch);
  if (!decision.failed.empty()) {
    (webhook.may_fail ? ignored_ : failed_).Increment();
    environment_.log.limited(log_limit_, core::log_level::warning, "cannot call a webhook",
                             {{"webhook", webhook.name},
                              {"error", decision.failed},
                              {"then", webhook.may_fail ? "ignored" : "write rejected"}});
    if (!webhook.may_fail && !of.refusal) of.refusal = webhook_failed(webhook, decision.failed);
  } else if (decision.refusal) {
    denied_.Increment();
    if (!of.refusal) of.refusal = std::move(decision.refusal);
  } else {
    allowed_.Increment();
  }
}

/// Calls one mutating webhook, and applies its patch to the write's object.
asio::awaitable<std::optional<problem>> webhooks::implementation::mutate_by(
    active_ptr active, admission_attributes* write, bool* changed) {
  *changed = false;
  if (write->dry_run && active->spec.side_effects) co_return no_dry_run(active->spec);
  hearing of{review_text(*write), std::vector<std::vector<std::string>>(1)};
  co_await call(active, &of, 0);
  std::ranges::move(of.warnings[0], std::back_inserter(*write->warnings));
  if (of.refusal) co_return std::move(*of.refusal);
  if (of.patch.is_null() || write->object.is_null()) co_return std::nullopt;
  auto object = write->object;
  const auto applied = json_patch(object, of.patch);
  if (applied.has_error()) {
    co_return internal_error("admission webhook \"" + active->spec.name +
                             "\": its patch can't be applied: " + applied.error().message);
  }
  *changed = object != write->object;
  write->object = std::move(object);
  co_return std::nullopt;
}

asio::awaitable<outcome<json::value>> webhooks::implementation::mutate(admission_attributes write) {
  const auto reported = report_missed(mutating, write);
  if (reported.has_error()) co_return reported.error();
  const auto called = concerned(mutating, write);
  if (called.empty()) co_return json::value();
  if (present_ >= most_writes) {
    refused_.Increment();
    co_return too_many_requests();
  }
  const in_flight_guard here(*this);
  bool changed_at_all = false;
  std::size_t last_change = 0;  // the place of the last webhook that changed the object
  const auto run = [&](std::size_t i, bool* changed) {
    return mutate_by(called[i], &write, changed);
  };
  for (std::size_t i = 0; i < called.size(); ++i) {
    // A webhook before may have changed what selects this one.
    if (!called[i]->spec.concerns(write)) continue;
    bool changed = false;
    auto wrong = co_await run(i, &changed);
    if (wrong) co_return std::move(*wrong);
    if (changed) last_change = i;
    changed_at_all = changed_at_all || changed;
  }
  for (std::size_t i = 0; changed_at_all && i < last_change; ++i) {
    if (!called[i]->spec.reinvoked || !called[i]->spec.concerns(write)) continue;
    bool changed = false;
    auto wrong = co_await run(i, &changed);
    if (wrong) co_return std::move(*wrong);
  }
  co_return changed_at_all ? std::move(write.object) : json::value();
}

asio::awaitable<outcome<void>> webhooks::implementation::admit(admission_attributes write) {
  const auto reported = report_missed(configurations, write);
  if (reported.has_error()) co_return reported.error();
  const auto called = concerned(configurations, write);
  if (called.empty()) co_return outcome<void>();
  if (present_ >= most_writes) {
    refused_.Increment();
    co_return too_many_requests();
  }
  for (const auto& webhook : called) {
    if (write.dry_run && webhook->spec.side_effects) co_return no_dry_run(webhook->spec);
  }
  const in_flight_guard here(*this);
  hearing of{review_text(write), std::vector<std::vector<std::string>>(called.size())};
  core::task_group calls(executor_);
  for (std::size_t i = 0; i < called.size(); ++i) calls.spawn(call(called[i], &of, i));

  // The calls refer to this frame: they are awaited even if the write was cancelled.
  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);
  std::exception_ptr aborted;
  try {
    co_await calls.join();
  } catch (...) {
    aborted = std::current_exception();
  }
  co_await asio::this_coro::throw_if_cancelled(throws);
  if (aborted) std::rethrow_exception(aborted);
  for (auto& warning : of.warnings) {
    std::ranges::move(warning, std::back_inserter(*write.warnings));
  }
  if (of.refusal) co_return std::move(*of.refusal);
  co_return outcome<void>();
}

asio::awaitable<void> webhooks::implementation::close() {
  closed_ = true;
  // Owned here, so that no webhook destroys its client before it is closed.
  std::vector<std::shared_ptr<webhook_client>> lines;
  for (const auto& client : std::exchange(clients_, {})) {
    if (auto line = client.lock()) lines.push_back(std::move(line));
  }
  configurations.clear();
  mutating.clear();
  for (const auto& line : lines) co_await line->close();
  while (present_ > 0) co_await idle_.wait();
  co_await tasks_.join();
}

webhooks::webhooks(asio::any_io_executor executor, environment with)
    : impl_(std::make_unique<implementation>(std::move(executor), with)) {}
webhooks::~webhooks() = default;

void webhooks::resolve_services_by(service_resolver resolver) {
  impl_->resolver = std::move(resolver);
}

void webhooks::set_configuration(const std::string& name, const json::value& configuration,
                                 bool mutates) {
  impl_->set_configuration(name, configuration, mutates);
}

bool webhooks::empty() const noexcept {
  return impl_->configurations.empty() && impl_->mutating.empty();
}

asio::awaitable<outcome<json::value>> webhooks::mutate(admission_attributes write) {
  return impl_->mutate(std::move(write));
}

asio::awaitable<outcome<void>> webhooks::admit(admission_attributes write) {
  return impl_->admit(std::move(write));
}

asio::awaitable<void> webhooks::close() {
  return impl_->close();
}

}  // namespace rw::k8s::devserver
