#include "tests/simulation/runtime.hpp"

#include "rw/core/join_by.hpp"
#include "rw/reactors/events/admission.hpp"
#include "rw/reactors/events/dispatch.hpp"
#include "rw/reactors/events/heartbeat_sender.hpp"
#include "rw/reactors/events/watcher_report.hpp"

#include <boost/asio/this_coro.hpp>

#include "tests/simulation/api_model.hpp"
#include "tests/simulation/writer.hpp"
#include <algorithm>
#include <utility>

namespace rw::simulation {
namespace {

namespace asio = boost::asio;

constexpr std::size_t channel_capacity = 1024;
constexpr std::size_t requests_at_once = 64;
constexpr auto drain_timeout = seconds(20);

k8s::config api_config() {
  k8s::config config;
  config.server = "http://127.0.0.1:" + std::to_string(api_model::port);
  config.source = "simulation";
  return config;
}

}  // namespace

/// What ends with the process.
struct runtime::process {
  explicit process(runtime& of)
      : owner(of),
        to_kcp(make_transport(of.options_.http2)),
        api(of.in_.executor(), api_config(), {.user_agent = "webhook", .field_manager = "webhook"},
            {of.in_.clock, of.in_.watchdog, of.in_.log, metrics, make_seeded_source}),
        objects({.objects = of.options_.objects, .settle = of.options_.observer.settle},
                [this](const std::string& manager, dispatch::resync_cause cause) {
                  owner.in_.note("raised for " + manager + ": " + std::string(to_string(cause)));
                  if (is_loss(cause)) owner.history_.forgotten(manager);
                }),
        dispatcher(of.in_.executor(), dispatch_options(),
                   {of.in_.clock, of.in_.watchdog, *to_kcp, of.in_.log, metrics,
                    make_seeded_source(), objects}),
        observer(of.in_.executor(), observation_options(), reviews,
                 {of.in_.clock, of.in_.log, metrics, make_seeded_source(), dispatcher, objects,
                  &api, &of.managers_}),
        webhook({.on_event = [this](const watch_event& review) { owner.history_.reviewed(review); },
                 .managers = &of.managers_,
                 .on_loss = [this](const watch_event& event) { return observer.missed(event); }},
                reviews, of.in_.clock, of.in_.log, metrics),
        server(of.in_.executor(),
               {"webhook", {asio::ip::address_v4::loopback(), of.options_.port}, {}}, webhook,
               {*plain, of.in_.watchdog, of.in_.log, metrics}),
        heartbeat(of.in_.executor(), {},
                  {of.in_.clock, of.in_.log, metrics, make_seeded_source(), dispatcher.upstream(),
                   [this] { return report(); }}),
        intake(of.in_.executor()),
        delivery(of.in_.executor()),
        reporting(of.in_.executor()) {
    delivery.spawn(dispatcher.run());
    delivery.spawn(observer.run());
    intake.spawn(server.run());
    reporting.spawn(heartbeat.run());
  }

  heartbeats::watcher_report report() const {
    return webhook::watcher_report_of({.webhook = webhook,
                                       .dispatcher = dispatcher,
                                       .observation = &observer,
                                       .managers = &owner.managers_,
                                       .delivery = &objects});
  }

  dispatch::dispatch_options dispatch_options() {
    dispatch::dispatch_options made;
    made.upstream.name = "kcp";
    made.upstream.host = "127.0.0.1";
    made.upstream.port = gateway_port;
    made.schedule.capacity = owner.options_.set_capacity;
    return made;
  }
  observation::observation_options observation_options() const {
    observation::observation_options made;
    made.observer = owner.options_.observer;
    made.watches = owner.options_.watches;
    return made;
  }

  /// As `webhook_pipeline::run` ends.
  asio::awaitable<void> drain(bool* ended) {
    reporting.cancel();
    co_await reporting.join();
    const auto end = owner.in_.now() + drain_timeout;
    server.drain();
    co_await core::join_by(owner.in_.clock, intake, end - drain_timeout / 2);
    reviews.close();
    co_await core::join_by(owner.in_.clock, delivery, end);
    co_await api.close();
    *ended = true;
  }
  asio::awaitable<void> close() { co_await api.close(); }

  runtime& owner;
  core::metrics metrics;
  const std::unique_ptr<core::transport> plain = core::make_plain_transport();
  const std::unique_ptr<core::transport> to_kcp;
  core::channel<watch_event> reviews{channel_capacity};
  k8s::client api;
  dispatch::delivery objects;
  dispatch::dispatcher dispatcher;
  observation::observation observer;
  admission::webhook webhook;
  http::server server;
  heartbeats::sender heartbeat;
  core::task_group intake;
  core::task_group delivery;
  core::task_group reporting;
};

runtime::runtime(environment& in, simulated_network& net, history& told, options how)
    : in_(in), network_(net), history_(told), options_(how) {
  history_.pods.push_back(
      {[this](const managed_watch& watch, const k8s::object_key& key) { return knows(watch, key); },
       [this] {
         if (running_) most_pending_ = std::max(most_pending_, running_->dispatcher.pending());
       }});
}

bool runtime::knows(const managed_watch& watch, const k8s::object_key& key) const {
  bool known = false;
  const auto see = [&](const dispatch::delivery::table& table) {
    if (running_->objects.watch_of(table) != watch) return;
    known = running_->objects.state_of(table, key) != dispatch::absent_state;
  };
  if (running_) running_->objects.visit(see);
  return known;
}

runtime::~runtime() {
  if (running_) crash();
}

void runtime::set_managers(std::vector<managed_watch> watches) {
  history_.want(watches);
  managers_.replace(known_managers(std::move(watches)));
}

bool runtime::observes(const managed_watch& watch) const {
  return running_ && running_->observer.report_of(watch).state == watch_state::live;
}

void runtime::start() {
  if (running_) return;
  in_.note("webhook process starts");
  most_pending_ = 0;
  running_ = std::make_unique<process>(*this);
}

void runtime::crash() {
  if (!running_) return;
  in_.note("webhook process crashes");
  inspect();
  // Its tasks, which end now, reach nobody.
  const bool refuses = std::exchange(network_.path(gateway_port).refuses, true);
  for (const auto port : {api_model::port, options_.port, gateway_port}) network_.cut(port);
  running_->intake.cancel();
  in_.finish(running_->reporting);
  in_.finish(running_->delivery);
  in_.finish(running_->intake);
  core::task_group last(in_.executor());
  last.spawn(running_->close());
  in_.settle();
  in_.finish(last);
  running_.reset();
  network_.path(gateway_port).refuses = refuses;
  history_.forgotten();
}

void runtime::stop() {
  if (!running_) return;
  in_.note("webhook process ends");
  bool ended = false;
  core::task_group last(in_.executor());
  last.spawn(running_->drain(&ended));
  const auto end = in_.now() + 2 * drain_timeout;
  while (!ended && in_.step(end)) inspect();
  if (!ended) history_.violate("the webhook process does not end in time");
  inspect();
  in_.finish(last);
  if (!ended) return crash();
  const auto left = running_->dispatcher.pending() + running_->objects.undelivered();
  running_.reset();
  left > 0 ? history_.forgotten() : history_.ended();
}

void runtime::inspect() {
  if (!running_) return;
  most_pending_ = std::max(most_pending_, running_->dispatcher.pending());
  running_->objects.visit([&](const auto& table) {
    // A list may have as many again, and what is sent does not count until it has arrived.
    const auto& watch = running_->objects.watch_of(table);
    const auto most = (observes(watch) ? 1 : 2) * options_.objects + most_pending_;
    if (running_->objects.size_of(table) > most) {
      history_.violate(std::to_string(running_->objects.size_of(table)) +
                       " objects are known, which may be " + std::to_string(most));
    }
  });
  const auto& observer = options_.observer;
  // Beyond it each request that is under way may have one change.
  if (running_->dispatcher.pending() > options_.set_capacity + requests_at_once) {
    history_.violate("dispatch knows more events than its capacity");
  }
  if (running_->observer.waiting() >
      2 * observer.settling + observer.confirmations + channel_capacity) {
    history_.violate("more reviews wait than may");
  }
}

std::uint64_t runtime::lost() const {
  if (!running_) return 0;
  std::uint64_t all = 0;
  for (const auto& [manager, count] : running_->objects.losses()) all += count;
  return all;
}

std::string runtime::waiting() const {
  if (!running_) return "no process";
  std::string text;
  const auto add = [&](std::string_view what, std::size_t count) {
    if (count > 0) text += " " + std::to_string(count) + " " + std::string(what);
  };
  add("undecided reviews", running_->observer.waiting() + running_->reviews.size());
  add("events", running_->dispatcher.pending());
  add("changes", running_->objects.waiting());
  // One that knows no resyncs is owed one for ever.
  const auto owed = running_->objects.owed();
  const auto forever = history_.limits.without_resyncs.size();
  add("resyncs", owed - std::min(owed, forever));
  return text;
}

}  // namespace rw::simulation
