#include "tests/simulation/runtime.hpp"

#include "rw/reactors/admission/admission.hpp"
#include "rw/reactors/cli/join_by.hpp"
#include "rw/reactors/cli/watcher_report.hpp"
#include "rw/reactors/dispatch/dispatch.hpp"
#include "rw/reactors/heartbeat/sender.hpp"

#include <boost/asio/this_coro.hpp>

#include "tests/simulation/api_model.hpp"
#include "tests/simulation/writer.hpp"
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdlib.h>
#include <utility>

namespace rw::simulation {
namespace {

namespace asio = boost::asio;

constexpr std::size_t channel_capacity = 1024;
constexpr std::size_t requests_at_once = 64;
constexpr std::size_t journals_kept = 3;
// Until the journal has a record, and a delivery.
constexpr auto write_pause = milliseconds(5);
constexpr auto delivery_delay = milliseconds(100);
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
        api(of.in_.executor(), api_config(), {.user_agent = "webhook", .field_manager = "webhook"},
            {of.in_.clock, of.in_.watchdog, of.in_.log, metrics, make_seeded_source}),
        gaps("series " + std::to_string(++of.starts_),
             [this](const std::string& manager, const gap_counts& now) {
               // No manager takes heartbeats here.
               const bool is_told = now.told == now.raised && !manager.empty();
               if (is_told && manager != heartbeat_component) owner.history_.sent_again(manager);
               observer.record(manager, now);
             }),
        objects(of.options_.objects,
                {.on_record =
                     [this](const auto& table, std::string_view key, dispatch::state_hash told,
                            auto now) {
                       owner.history_.recorded(objects.watch_of(table), key, told,
                                               now != time_point());
                       observer.record(table, key, told, now);
                     },
                 .on_gap = [this](const std::string& manager) { gaps.raise(manager); }}),
        dispatcher(
            of.in_.executor(), dispatch_options(),
            {of.in_.clock, of.in_.watchdog, *to_kcp, of.in_.log, metrics, make_seeded_source(),
             &objects, [this](const watch_event& event) { gaps.raise(event.manager); }}),
        observer(
            of.in_.executor(), observation_options(), reviews,
            {of.in_.clock, of.in_.log, metrics, make_seeded_source(), dispatcher, objects, &api,
             &of.managers_, &gaps, "boot " + std::to_string(of.boots_), of.in_.executor()}),
        webhook({.on_event = [this](const watch_event& review) { owner.reviewed(review); },
                 .managers = &of.managers_,
                 .on_loss =
                     [this](const watch_event& event) {
                       const bool replaced = observer.missed(event);
                       if (!replaced) gaps.raise(event.manager);
                       return replaced;
                     }},
                reviews, of.in_.clock, of.in_.log, metrics),
        server(of.in_.executor(),
               {"webhook", {asio::ip::address_v4::loopback(), writer::webhook_port}, {}}, webhook,
               {*plain, of.in_.watchdog, of.in_.log, metrics}),
        heartbeat(
            of.in_.executor(), {},
            {of.in_.clock, of.in_.log, metrics, make_seeded_source(), dispatcher.upstream(),
             [this] { return report(); }, [] { return std::vector<std::string>(); },
             [this](const std::string& manager, std::uint64_t count) { gaps.told(manager, count); },
             [this] { observer.reported(); }}),
        intake(of.in_.executor()),
        delivery(of.in_.executor()),
        reporting(of.in_.executor()) {
    delivery.spawn(dispatcher.run());
    delivery.spawn(observer.run());
    intake.spawn(server.run());
    reporting.spawn(heartbeat.run());
  }

  heartbeats::watcher_report report() const {
    return cli::watcher_report_of({.webhook = webhook,
                                   .dispatcher = dispatcher,
                                   .observation = &observer,
                                   .managers = &owner.managers_,
                                   .source = "both",
                                   .gaps = &gaps});
  }

  dispatch::dispatch_options dispatch_options() {
    dispatch::dispatch_options made;
    made.upstream.name = "kcp";
    made.upstream.host = "127.0.0.1";
    made.upstream.port = gateway_port;
    made.schedule.capacity = owner.options_.set_capacity;
    made.schedule.max_age = owner.options_.max_age;
    return made;
  }
  observation::observation_options observation_options() const {
    observation::observation_options made;
    made.observer = owner.options_.observer;
    made.journal = owner.journal_;
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
  k8s::client api;
  gap_account gaps;
  dispatch::observed_objects objects;
  dispatch::dispatcher dispatcher;
  observation::observation observer;
  admission::webhook webhook;
  http::server server;
  heartbeats::sender heartbeat;
  core::counter& written = counter("rw_observation_journal_writes_total", "outcome", "written");
  core::task_group intake;
  core::task_group delivery;
  core::task_group reporting;
};

runtime::runtime(environment& in, simulated_network& net, history& told, options how)
    : in_(in),
      network_(net),
      history_(told),
      options_(how),
      folder_(make_folder()),
      journal_(folder_ + "/journal") {}

runtime::~runtime() {
  if (running_) crash(disk::intact);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

/// A journal that began anew does not know what the operators were told of Watchers that were not
/// in the file then.
void runtime::set_managers(std::vector<managed_watch> watches) {
  std::vector<managed_watch> forgotten;
  for (const auto& each : watches) {
    const bool was_live = std::ranges::any_of(live_, [&](const managed_watch& other) {
      return other.manager == each.manager && other.watched == each.watched;
    });
    if (running_ && !was_live) forgotten.push_back(each);
  }
  history_.want(watches, forgotten);
  managers_.replace(known_managers(std::move(watches)));
}

bool runtime::observes(const managed_watch& watch) const {
  return running_ && running_->observer.report_of(watch).state == watch_state::live;
}

void runtime::start() {
  if (running_) return;
  in_.note("webhook process starts");
  written_ = 0;
  most_pending_ = 0;
  if (journals_.empty()) journals_.push_back({in_.now(), read(journal_)});
  const auto journal =
      observation::decode_journal(read(journal_), "boot " + std::to_string(boots_));
  if (!journal.complete) live_.clear();
  history_.restarted(journal, complete_, delivered_);
  running_ = std::make_unique<process>(*this);
}

void runtime::remember_journal() {
  const auto writes = running_->written.Value();
  if (writes == written_) return;
  written_ = writes;
  journals_.push_back({in_.now(), read(journal_)});
  if (journals_.size() > journals_kept) journals_.pop_front();
}

void runtime::crash(disk left) {
  if (!running_) return;
  in_.note("webhook process crashes, disk " + std::to_string(static_cast<int>(left)));
  inspect();
  const auto ended = in_.now();
  // Its tasks, which end now, reach nobody.
  const bool refuses = std::exchange(network_.path(gateway_port).refuses, true);
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
  network_.path(gateway_port).refuses = refuses;
  covered_.clear();
  leave(left, ended - write_pause, ended - delivery_delay);
}

void runtime::leave(disk left, time_point complete, time_point delivered) {
  complete_ = complete;
  delivered_ = delivered;
  if (left == disk::older && journals_.size() > 1) journals_.pop_back();
  // What the disk of a node loses is no fault of the process.
  if (left != disk::intact && left != disk::torn) complete_ = delivered_ = time_point::min();
  const bool lost = left == disk::truncated || left == disk::empty;
  boots_ += left == disk::older || left == disk::truncated ? 1 : 0;
  auto bytes = journals_.empty() ? std::string() : journals_.back().bytes;
  if (lost) journals_.clear();
  if (left == disk::truncated) bytes.resize(bytes.size() / 2);
  // The begin of a record: that of the header will do.
  if (left == disk::torn) bytes += bytes.substr(0, bytes.empty() ? 0 : 12);
  std::filesystem::remove(journal_);
  if (left == disk::empty || bytes.empty()) return;
  std::ofstream(journal_, std::ios::binary) << bytes;
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
  covered_.clear();
  leave(left, in_.now(), in_.now());
}

runtime::cover runtime::cover_of(const watch_event& review) const {
  cover found;
  for (const auto& each : managers_.current()->watches()) {
    if (each.manager != review.manager || each.watched.group != review.gvk.group) continue;
    const auto report = running_->observer.report_of(each);
    // Reviews of a resource that is not served, though it may be by now, are sent.
    const bool covers = report.state == watch_state::live && report.reason.empty();
    if (!covers || !report.live_since) return {};
    found.push_back(*report.live_since);
  }
  return found;
}

void runtime::reviewed(const watch_event& review) {
  auto by = cover_of(review);
  if (by.empty()) return history_.uncovered(review);
  const auto known = std::ranges::find(covered_, review, &covered_review::review);
  if (known == covered_.end()) covered_.push_back({review, std::move(by)});
}

/// Events of reviews that lost their cover are sent.
void runtime::release_reviews() {
  std::erase_if(covered_, [this](const covered_review& each) {
    const bool released = cover_of(each.review) != each.by;
    if (released) history_.uncovered(each.review);
    return released;
  });
  if (running_->observer.waiting() + running_->reviews.size() > 0) return;
  covered_.clear();
  const auto& api = network_.path(api_model::port);
  const bool rests = running_->dispatcher.pending() == 0 && running_->objects.undelivered() == 0 &&
                     !api.stalls && api.delay == duration::zero();
  if (rests) history_.came_to_rest();
}

void runtime::explain() {
  if (!running_) return history_.observe({});
  release_reviews();
  std::vector<managed_watch> observed;
  most_pending_ = std::max(most_pending_, running_->dispatcher.pending());
  running_->objects.visit([&](const auto& table) {
    observed.push_back(running_->objects.watch_of(table));
    // A list may have as many again, and what is sent does not count until it has arrived.
    const auto& watch = running_->objects.watch_of(table);
    const auto most = (observes(watch) ? 1 : 2) * options_.objects + most_pending_;
    if (running_->objects.size_of(table) > most) {
      history_.violate(std::to_string(running_->objects.size_of(table)) +
                       " objects are known, which may be " + std::to_string(most));
    }
  });
  history_.observe(observed);
}

void runtime::inspect() {
  if (!running_) return;
  for (const auto& each : managers_.current()->watches()) {
    if (observes(each) && std::ranges::find(live_, each) == live_.end()) live_.push_back(each);
  }
  remember_journal();
  explain();
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
  return running_ ? running_->report().content.events.lost : 0;
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
  return text;
}

}  // namespace rw::simulation
