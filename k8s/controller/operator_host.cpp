#include "rw/k8s/controller/operator_host.hpp"

#include "rw/core/config.hpp"
#include "rw/core/http/process_pages.hpp"
#include "rw/core/http/server.hpp"
#include "rw/core/task_group.hpp"
#include "rw/core/watchdog.hpp"
#include "rw/core/within.hpp"
#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/client/object_api.hpp"
#include "rw/k8s/controller/controller.hpp"
#include "rw/k8s/controller/event_recorder.hpp"
#include "rw/k8s/controller/leader_election.hpp"
#include "rw/k8s/controller/plan_reconciler.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string_view>

namespace rw::k8s {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr std::chrono::seconds last_events(2);  // for those not written yet, at the end

struct unusable_config : std::runtime_error {
  using std::runtime_error::runtime_error;
};

config usable(const operator_options& options) {
  if (options.api) return *options.api;
  auto loaded = load_config();
  if (!loaded) throw unusable_config(loaded.error().message);
  return std::move(*loaded);
}

client connect(asio::any_io_executor executor, const operator_options& options,
               client_environment environment) {
  try {
    return {std::move(executor),
            usable(options),
            {.name = options.name, .user_agent = options.name, .field_manager = options.name},
            environment};
  } catch (const boost::system::system_error& unusable) {
    throw unusable_config(unusable.what());
  }
}

/// Waits for a group, whose failures are taken by its handler.
asio::awaitable<bool> join(core::task_group* tasks) {
  co_await asio::this_coro::throw_if_cancelled(false);
  try {
    co_await tasks->join();
  } catch (const boost::system::system_error&) {  // cancelled at the limit, and then joined
  }
  co_return true;
}

void print_list(std::vector<json::value> objects) {
  json::array items;
  for (auto& each : objects) items.push_back(std::move(each));
  const json::value list{{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(items)}};
  std::cout << json::serialize(list) << std::endl;
}

}  // namespace

/// The parts of a host that runs.
class operator_host::running final : private http::handler {
 public:
  running(asio::any_io_executor executor, const operator_options& options,
          const std::vector<operator_plan>& plans);

  asio::awaitable<void> run();

 private:
  struct watched {
    const operator_plan* plan;
    informer* objects;
    std::vector<informer*> owned;
  };

  std::size_t body_limit(const http::request&) const override { return 0; }
  asio::awaitable<void> handle(http::request& from, http::response& into) override;
  std::string not_ready() const;
  informer& inform(const resource_type& type, const selection& objects);
  asio::awaitable<void> lead();
  asio::awaitable<void> stop(core::task_group* leading, core::task_group* recording);
  void fail(std::exception_ptr thrown);

  const asio::any_io_executor executor_;
  const operator_options& options_;
  core::real_clock clock_;
  core::logger own_log_;
  core::metrics own_metrics_;
  core::logger& log_;
  core::metrics& metrics_;
  core::watchdog watchdog_;
  const std::shared_ptr<fence> fence_;
  client shared_;  ///< reads, and writes the Lease
  client api_;
  event_recorder recorder_;
  std::vector<std::unique_ptr<informer>> informers_;
  std::vector<selection> selections_;  ///< of each informer
  std::vector<watched> watched_;
  const std::unique_ptr<core::transport> plain_;
  http::server pages_;
  std::optional<leader_elector> elector_;
  core::wake ending_;
  std::exception_ptr failure_;
};

operator_host::running::running(asio::any_io_executor executor, const operator_options& options,
                                const std::vector<operator_plan>& plans)
    : executor_(executor),
      options_(options),
      own_log_(options.level),
      log_(options.log != nullptr ? *options.log : own_log_),
      metrics_(options.metrics != nullptr ? *options.metrics : own_metrics_),
      watchdog_(clock_, executor),
      fence_(options.elect ? std::make_shared<fence>(clock_) : nullptr),
      shared_(connect(executor, options, {clock_, watchdog_, log_, metrics_})),
      api_(shared_.fenced(fence_)),
      recorder_(executor, objects_of(shared_), {.component = options.name},
                {clock_, log_, metrics_, core::make_random_source()}),
      plain_(core::make_plain_transport()),
      pages_(executor, {"pages", options.pages, {}}, static_cast<http::handler&>(*this),
             {*plain_, watchdog_, log_, metrics_}),
      ending_(executor) {
  for (const auto& plan : plans) {
    watched watched{&plan, &inform(plan.type, plan.objects), {}};
    for (const auto& owned : plan.owned)
      watched.owned.push_back(&inform(owned.type, owned.objects));
    watched_.push_back(std::move(watched));
  }
  if (!options.elect) return;
  auto random = core::make_random_source();
  elector_.emplace(
      executor, objects_of(shared_),
      election_options{.ns = options.ns.empty() ? shared_.configuration().ns : options.ns,
                       .name = options.name,
                       .identity = make_election_identity(random)},
      std::vector<leader_elector::reactor>{[this] { return lead(); }}, *fence_,
      leader_environment{clock_, log_, metrics_, core::make_random_source()});
}

/// Watchers of the same objects share an informer.
informer& operator_host::running::inform(const resource_type& type, const selection& objects) {
  for (std::size_t i = 0; i < informers_.size(); ++i) {
    if (informers_[i]->type() == type && selections_[i] == objects) return *informers_[i];
  }
  selections_.push_back(objects);
  informers_.push_back(std::make_unique<informer>(
      shared_, type, informer_options{.objects = objects},
      informer_environment{clock_, log_, metrics_, core::make_random_source()}));
  return *informers_.back();
}

asio::awaitable<void> operator_host::running::handle(http::request& from, http::response& into) {
  const bool shown = http::show_process(metrics_, [this] { return not_ready(); }, from, into);
  if (!shown) into.text(404, "not found: try /metrics, /healthz, /livez or /readyz");
  return {};
}

std::string operator_host::running::not_ready() const {
  std::string out;
  for (const auto& each : informers_) {
    if (!each->synced()) out += each->type().plural + " are not listed yet\n";
  }
  return out;
}

void operator_host::running::fail(std::exception_ptr thrown) {
  if (!failure_) failure_ = std::move(thrown);
  ending_.set();
}

/// Runs the controllers of one term.
asio::awaitable<void> operator_host::running::lead() {
  std::vector<std::unique_ptr<plan_reconciler>> reconcilers;
  std::vector<std::unique_ptr<controller>> controllers;
  core::task_group tasks(executor_);
  for (const auto& each : watched_) {
    reconcilers.push_back(
        std::make_unique<plan_reconciler>(*each.plan, *each.objects, api_, recorder_));
    controllers.push_back(std::make_unique<controller>(
        executor_,
        controller_options{.name = each.plan->type.plural,
                           .concurrent = each.plan->concurrent,
                           .shutdown = options_.shutdown},
        *reconcilers.back(),
        controller_environment{clock_, watchdog_, log_, metrics_, core::make_random_source()}));
    auto& made = *controllers.back();
    made.watch(*each.objects, keys_of_changed(*each.plan));
    for (auto* const owned : each.owned) made.watch(*owned, keys_of_owners(each.plan->type));
    tasks.spawn(made.run());
  }
  co_await tasks.join();
}

asio::awaitable<void> operator_host::running::run() {
  const auto on_failure = [this](std::exception_ptr thrown) { fail(std::move(thrown)); };
  core::task_group background(executor_, on_failure);
  core::task_group recording(executor_, on_failure);
  core::task_group leading(executor_, on_failure);
  background.spawn(watchdog_.run());
  background.spawn(pages_.run());
  for (const auto& each : informers_) background.spawn(each->run());
  recording.spawn(recorder_.run());
  leading.spawn(elector_ ? elector_->run() : lead());
  if (options_.on_listening) options_.on_listening(pages_.address());

  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await ending_.wait();
  // It ends in order from here, whatever comes.
  co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
  log_.info("stopping: ending the reconciles under way", {{"operator", options_.name}});
  co_await stop(&leading, &recording);
  background.cancel();
  co_await join(&background);
  co_await shared_.close();
  co_await asio::this_coro::reset_cancellation_state(asio::enable_terminal_cancellation());
  co_await asio::this_coro::throw_if_cancelled(throws);
  if (failure_) std::rethrow_exception(failure_);
}

/// The controllers end, then the Lease is released; Events of both are written.
asio::awaitable<void> operator_host::running::stop(core::task_group* leading,
                                                   core::task_group* recording) {
  leading->cancel();
  auto led = join(leading);
  co_await core::within(clock_, clock_.now() + 2 * options_.shutdown, std::move(led));
  recorder_.close();
  auto recorded = join(recording);
  co_await core::within(clock_, clock_.now() + last_events, std::move(recorded));
}

operator_host::operator_host(operator_options options) : options_(std::move(options)) {
  if (options_.name.empty()) throw std::invalid_argument("an operator needs a name");
}

std::vector<json::value> operator_host::definitions() const {
  std::vector<json::value> out;
  for (const auto& plan : plans_) out.push_back(plan.definition);
  return out;
}

asio::awaitable<void> operator_host::serve(asio::any_io_executor executor) {
  running parts(std::move(executor), options_, plans_);
  co_await parts.run();
}

bool operator_host::set_argument(std::string_view argument) {
  constexpr std::string_view flag = "--pages=";
  if (!argument.starts_with(flag)) return false;
  const auto at = core::parse_host_port(argument.substr(flag.size()));
  boost::system::error_code error;
  const auto address = asio::ip::make_address(at ? at->host : "", error);
  if (!error) options_.pages = {address, at->port};
  return !error;
}

int operator_host::run(int argc, const char* const* argv) {
  core::logger own_log(options_.level);
  auto& log = options_.log != nullptr ? *options_.log : own_log;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "definitions") {
      print_list(definitions());
      return 0;
    }
    if (set_argument(argument)) continue;
    log.error("unknown argument, or invalid value", {{"argument", argument}});
    return 2;
  }
  asio::io_context context(1);
  asio::cancellation_signal end;
  asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([&](boost::system::error_code error, int) {
    if (error) return;
    end.emit(asio::cancellation_type::terminal);
    signals.async_wait([](boost::system::error_code again, int) {
      if (!again) std::_Exit(1);
    });
  });
  int code = 0;
  const auto ended = [&](std::exception_ptr failure) {
    signals.cancel();
    if (!failure) return;
    code = 1;
    try {
      std::rethrow_exception(failure);
    } catch (const unusable_config& unusable) {
      code = 2;
      log.error("the configuration cannot be used", {{"error", unusable.what()}});
    } catch (const std::exception& other) {
      log.error("the operator failed", {{"error", other.what()}});
    }
  };
  asio::co_spawn(context, serve(context.get_executor()),
                 asio::bind_cancellation_slot(end.slot(), ended));
  context.run();
  return code;
}

}  // namespace rw::k8s
