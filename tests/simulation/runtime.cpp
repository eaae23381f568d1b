#include "tests/simulation/runtime.hpp"

#include "reactors/admission/admission.hpp"
#include "reactors/cli/join_by.hpp"
#include "reactors/cli/watcher_report.hpp"
#include "reactors/dispatch/dispatch.hpp"
#include "reactors/heartbeat/sender.hpp"

#include <boost/asio/this_coro.hpp>

#include "tests/simulation/api_model.hpp"
#include "tests/simulation/writer.hpp"
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdlib.h>
#include <utility>

namespace rw::simulation {
namespace {

namespace asio = boost::asio;

constexpr std::size_t channel_capacity = 1024;
constexpr std::size_t ledgers_kept = 3;
constexpr auto drain_timeout = seconds(20);

k8s::config api_config() {
  k8s::config config;
  config.server = "http://127.0.0.1:" + std::to_string(api_model::port);
  config.source = "simulation";
  return config;
}

std::string make_folder() {
  auto name = (std::filesystem::temp_directory_path() / "rw-simulation-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  return name;
}

std::string read(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

/// What ends with the process.
struct runtime::process {
  explicit process(runtime& of)
      : owner(of),
        to_kcp(make_transport(of.options_.http2)),
        api(of.in_.executor(), api_config(), {},
            {of.in_.clock, of.in_.watchdog, of.in_.log, metrics, make_seeded_source}),
        dispatcher(
            of.in_.executor(), dispatch_options(), events,
            {of.in_.clock, of.in_.watchdog, *to_kcp, of.in_.log, metrics, make_seeded_source()}),
        observer(of.in_.executor(), observation_options(), reviews, events,
                 {of.in_.clock, of.in_.log, metrics, make_seeded_source(), &api, &of.managers_,
                  of.in_.executor()}),
        webhook({.managers = &of.managers_}, reviews, of.in_.clock, of.in_.log, metrics),
        server(of.in_.executor(),
               {"webhook", {asio::ip::address_v4::loopback(), writer::webhook_port}, {}}, webhook,
               {*plain, of.in_.watchdog, of.in_.log, metrics}),
        heartbeat(of.in_.executor(), {},
                  {of.in_.clock, of.in_.log, metrics, make_seeded_source(), dispatcher.upstream(),
                   [this] { return report(); }, [] { return std::vector<std::string>(); }}),
        live(core::make_gauge(metrics, "rw_observation_live_watches", "")),
        undelivered(core::make_gauge(metrics, "rw_observation_undelivered", "")),
        intake(of.in_.executor()),
        delivery(of.in_.executor()),
        reporting(of.in_.executor()) {
    for (const auto* outcome : {"retried", "rejected", "expired", "overflow", "abandoned"}) {
      repeats.push_back(&counter("rw_dispatch_events_total", "outcome", outcome));
    }
    for (const auto* cause : {"review", "unverified"}) {
      repeats.push_back(&counter("rw_observation_events_total", "cause", cause));
    }
    delivery.spawn(dispatcher.run());
    delivery.spawn(observer.run());
    intake.spawn(server.run());
    reporting.spawn(heartbeat.run());
  }

  heartbeats::watcher_report report() const {
    constexpr auto end = std::chrono::sys_days(std::chrono::year(2100) / 1 / 1);
    return cli::watcher_report_of({webhook, dispatcher, &observer, &owner.managers_, "both", end});
  }

  dispatch::dispatch_options dispatch_options() {
    dispatch::dispatch_options made;
    made.upstream.name = "kcp";
    made.upstream.host = "127.0.0.1";
    made.upstream.port = gateway_port;
    made.schedule.capacity = owner.options_.set_capacity;
    made.schedule.max_age = owner.options_.max_age;
    made.on_outcome = [this](const watch_event& event, std::uint64_t mark,
                             dispatch::outcome outcome) {
      if (outcome == dispatch::outcome::lost) observer.lost(event, mark);
      if (outcome != dispatch::outcome::lost) observer.delivered(event, mark);
    };
    return made;
  }
  observation::observation_options observation_options() const {
    observation::observation_options made;
    made.observer = owner.options_.observer;
    made.ledger = owner.ledger_;
    return made;
  }

  /// As `webhook_pipeline::run` ends.
  asio::awaitable<void> drain(bool* ended) {
    reporting.cancel();
    co_await reporting.join();
    const auto end = owner.in_.now() + drain_timeout;
    server.drain();
    co_await cli::join_by(owner.in_.clock, intake, end - drain_timeout / 2);
    reviews.close();
    co_await cli::join_by(owner.in_.clock, delivery, end);
    co_await observer.save();
    co_await api.close();
    *ended = true;
  }
  asio::awaitable<void> close() { co_await api.close(); }

  /// One of the parties' own; its help text is theirs.
  core::counter& counter(const char* name, const char* label, const char* of) {
    return core::make_counter(metrics, name, "", {{label, of}});
  }

  runtime& owner;
  core::metrics metrics;
  const std::unique_ptr<core::transport> plain = core::make_plain_transport();
  const std::unique_ptr<core::transport> to_kcp;
  core::channel<watch_event> reviews{channel_capacity};
  core::channel<watch_event> events{channel_capacity};
  k8s::client api;
  dispatch::dispatcher dispatcher;
  observation::observation observer;
  admission::webhook webhook;
  http::server server;
  heartbeats::sender heartbeat;
  core::gauge& live;
  core::gauge& undelivered;
  core::counter& written = counter("rw_observation_ledger_writes_total", "outcome", "written");
  core::counter& reviews_sent = counter("rw_observation_events_total", "cause", "review");
  core::counter& unverified_sent = counter("rw_observation_events_total", "cause", "unverified");
  std::vector<core::counter*> repeats;  ///< of events that may repeat others
  core::task_group intake;
  core::task_group delivery;
  core::task_group reporting;
};

runtime::runtime(environment& in, simulated_network& net, history& told, known_managers managers,
                 options how)
    : in_(in),
      network_(net),
      history_(told),
      options_(how),
      watches_(managers.watches().size()),
      folder_(make_folder()),
      ledger_(folder_ + "/ledger") {
  managers_.replace(std::move(managers));
}

runtime::~runtime() {
  if (running_) crash(disk::intact);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void runtime::start() {
  if (running_) return;
  in_.note("webhook process starts");
  written_ = 0;
  repeats_ = 0;
  reviews_ = 0;
  history_.restarted(ledgers_.empty() ? time_point::min() : ledgers_.back().at);
  running_ = std::make_unique<process>(*this);
}

void runtime::remember_ledger() {
  const auto writes = running_->written.Value();
  if (writes == written_) return;
  written_ = writes;
  ledgers_.push_back({in_.now(), read(ledger_)});
  if (ledgers_.size() > ledgers_kept) ledgers_.pop_front();
}

void runtime::crash(disk left) {
  if (!running_) return;
  in_.note("webhook process crashes, disk " + std::to_string(static_cast<int>(left)));
  inspect();
  for (const auto port : {api_model::port, writer::webhook_port, gateway_port}) network_.cut(port);
  running_->intake.cancel();
  in_.finish(running_->reporting);
  in_.finish(running_->delivery);
  in_.finish(running_->intake);
  core::task_group last(in_.executor());
  last.spawn(running_->close());
  in_.settle();
  in_.finish(last);
  running_.reset();
  leave(left);
}

void runtime::leave(disk left) {
  if (left == disk::older && ledgers_.size() > 1) ledgers_.pop_back();
  const bool lost = left == disk::truncated || left == disk::empty;
  auto bytes = ledgers_.empty() ? std::string() : ledgers_.back().bytes;
  if (lost) ledgers_.clear();
  if (left == disk::truncated) bytes.resize(bytes.size() / 2);
  std::filesystem::remove(ledger_);
  if (left == disk::empty || bytes.empty()) return;
  std::ofstream(ledger_, std::ios::binary) << bytes;
}

void runtime::stop(disk left) {
  if (!running_) return;
  in_.note("webhook process ends, disk " + std::to_string(static_cast<int>(left)));
  bool ended = false;
  core::task_group last(in_.executor());
  last.spawn(running_->drain(&ended));
  const auto end = in_.now() + 2 * drain_timeout;
  while (!ended && in_.step(end)) inspect();
  if (!ended) history_.violate("the webhook process does not end in time");
  inspect();
  in_.finish(last);
  if (!ended) return crash(left);
  running_.reset();
  leave(left);
}

void runtime::inspect() {
  if (!running_) return history_.gap();
  remember_ledger();
  const bool is_live = running_->live.Value() >= static_cast<double>(watches_);
  if (!is_live) history_.gap();
  double repeats = 0;
  for (const auto* each : running_->repeats) repeats += each->Value();
  // What was sent in bad times may arrive much later.
  const bool waits = running_->dispatcher.pending() > 0 || running_->undelivered.Value() > 0;
  repeating_ = !is_live || repeats != repeats_ || (repeating_ && waits);
  if (repeating_) history_.excuse();
  repeats_ = repeats;
  const auto reviews = running_->reviews_sent.Value() + running_->unverified_sent.Value();
  reviewing_ = reviews != reviews_ || (reviewing_ && waits);
  if (reviewing_) history_.review_sent();
  reviews_ = reviews;
  const auto& observer = options_.observer;
  if (running_->dispatcher.pending() > options_.set_capacity) {
    history_.violate("dispatch knows more events than its capacity");
  }
  if (running_->observer.waiting() >
      2 * observer.settling + observer.confirmations + channel_capacity) {
    history_.violate("more reviews wait than may");
  }
}

std::uint64_t runtime::lost() const {
  return running_ ? running_->report().content.events.lost : 0;
}

bool runtime::is_idle() const {
  return running_->observer.waiting() == 0 && running_->dispatcher.pending() == 0 &&
         running_->reviews.size() == 0 && running_->events.size() == 0 &&
         running_->undelivered.Value() == 0;
}

void runtime::check_counters() {
  double sent = 0;
  for (const auto* cause : {"watch", "resync", "review", "unverified"}) {
    sent += running_->counter("rw_observation_events_total", "cause", cause).Value();
  }
  double ended = static_cast<double>(running_->dispatcher.pending());
  for (const auto* outcome : {"delivered", "expired", "overflow"}) {
    ended += running_->counter("rw_dispatch_events_total", "outcome", outcome).Value();
  }
  const auto coalesced =
      running_->counter("rw_dispatch_events_total", "outcome", "coalesced").Value();
  // An event that coalesces with one in flight is delivered after it.
  if (ended > sent || ended < sent - coalesced) {
    history_.violate("of " + std::to_string(sent) + " events " + std::to_string(ended) +
                     " came to an end, and " + std::to_string(coalesced) + " became one");
  }
}

}  // namespace rw::simulation
