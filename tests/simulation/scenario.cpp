#include "tests/simulation/scenario.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <set>
#include <utility>

namespace rw::simulation {
namespace {

/// What is owed for losses is paid every ten minutes, and a receiver is judged as often.
constexpr auto longest_repair = std::chrono::minutes(45);
constexpr std::size_t most_names = 6;   ///< of objects of each kind
constexpr std::size_t most_links = 64;  ///< connections at once
constexpr auto quiet = seconds(5);      ///< nothing may happen when all is told

const std::vector<model_kind>& kinds() {
  static const std::vector<model_kind> all = {
      {"operator.kyma-project.io", "v1beta2", "kymas", "Kyma", true},
      {"example.io", "v1", "gadgets", "Gadget"}};
  return all;
}

/// Managers with one Watcher and with two, with and without a selector, of spec and of status.
std::vector<managed_watch> watches() {
  const watcher::resource kymas{"operator.kyma-project.io", "v1beta2", "kymas", {}};
  const watcher::resource gadgets{"example.io", "*", "gadgets", {}};
  return {{"lifecycle-manager", kymas, "spec", {{"watched", "yes"}}},
          {"lifecycle-manager", kymas, "status", {}},
          {"gadget-manager", gadgets, "spec", {}},
          {"lifecycle-manager", gadgets, "spec", {{"watched", "yes"}}}};
}

/// The same Watcher, edited.
managed_watch edited(managed_watch from) {
  const bool selects = !from.labels.empty();
  from.labels.clear();
  if (!selects) from.labels["watched"] = "yes";
  return from;
}

/// Whatever the managers' file may name.
std::vector<managed_watch> all_watches() {
  auto all = watches();
  for (const auto& each : watches()) all.push_back(edited(each));
  return all;
}

/// Calm: nothing is broken. Blind: nothing but the watches, which show nothing for long. Rough:
/// everything breaks. Small: likewise, with small capacities.
enum class mood : std::uint8_t { calm, blind, rough, small };

mood choose(k8s::test::chance& by) {
  if (by.likely(0.1)) return mood::calm;
  if (by.likely(0.2)) return mood::blind;
  return by.likely(0.3) ? mood::small : mood::rough;
}

/// All parties of a seed.
class scenario {
 public:
  scenario(std::uint64_t seed, bool verbose)
      : in_(seed, verbose),
        mood_(choose(in_.chance)),
        api_http2_(in_.chance.likely(0.5)),
        kcp_http2_(in_.chance.likely(0.5)),
        without_resyncs_(mood_ != mood::calm && in_.chance.likely(0.3)
                             ? std::set<std::string>{"gadget-manager"}
                             : std::set<std::string>{}) {}

  outcome run(std::uint64_t seed);

 private:
  using fault = void (scenario::*)();

  runtime::options runtime_options();
  runtime::options second_options() const;
  void set_managers(const std::vector<managed_watch>& file);
  void begin();
  void disturb();
  void check();
  bool go_on(time_point end);
  void at(duration later, std::function<void()> what) {
    agenda_.emplace(in_.now() + later, std::move(what));
  }
  duration up_to(duration most) { return in_.chance.up_to(most); }
  bool likely(double part) { return in_.chance.likely(part); }
  std::uint16_t any_port();

  void delay();
  void cut();
  void half_close();
  void stall();
  void lose();
  void answer_resyncs();
  void overlap();
  void crash();
  void restart_runtime();
  void restart_api();
  void compact();
  void fail_api();
  void forbid();
  void stall_watches();
  void stall_watches_for(duration length);
  void remove_webhooks();
  void fail_gateway();
  void refuse_gateway();
  void unseat_manager();
  void refuse_events();
  void edit_managers();
  void restore();
  void turn_over();
  void delete_definition();
  void hide_definition();
  void step_clock();
  void silence_runtime();
  way heartbeats_way();
  bool is_known_well();
  std::string unobserved() const;

  environment in_;
  const mood mood_;
  const bool api_http2_;
  const bool kcp_http2_;
  const std::set<std::string> without_resyncs_;
  history history_{in_, kinds(), all_watches()};
  simulated_network network_{in_, api_http2_};
  store store_{in_, kinds(), history_};
  api_model api_{in_, store_, api_http2_};
  control_plane kcp_{in_,
                     history_,
                     {"gadget-manager", "lifecycle-manager", std::string(heartbeat_component)},
                     without_resyncs_,
                     kcp_http2_};
  writer writer_{in_, store_, watches()};
  const runtime::options options_ = runtime_options();
  runtime runtime_{in_, network_, history_, options_};
  runtime second_{in_, network_, history_, second_options()};
  silence silence_{in_, history_};
  std::multimap<time_point, std::function<void()>> agenda_;
  std::size_t edits_ = 0;               ///< of the managers' file, under way
  duration overdue_ = duration::max();  ///< from a change to its event, at most
  time_point checked_ = in_.now();
};

runtime::options scenario::runtime_options() {
  runtime::options made;
  made.http2 = kcp_http2_;
  made.watches = mood_ == mood::calm || mood_ == mood::blind || in_.chance.likely(0.9);
  history_.limits = {without_resyncs_, !made.watches, made.observer.settle};
  if (mood_ != mood::small) return made;
  // Fewer than there may be: then nothing is observed until some are deleted.
  made.objects = in_.chance.likely(0.4) ? 2 + in_.chance.draw(4) : most_names + in_.chance.draw(10);
  made.set_capacity = 1 + in_.chance.draw(8);
  made.observer.confirmations = 1 + in_.chance.draw(4);
  made.observer.reads = 1 + in_.chance.draw(2);
  return made;
}

runtime::options scenario::second_options() const {
  auto made = options_;
  made.port = writer::second_port;
  return made;
}

void scenario::set_managers(const std::vector<managed_watch>& file) {
  runtime_.set_managers(file);
  second_.set_managers(file);
}

void scenario::begin() {
  writer_.now.rejected = likely(0.5) ? 0.2 : 0;
  writer_.now.latency = milliseconds(in_.chance.draw(likely(0.2) ? 400 : 20));
  writer_.now.timeout = seconds(likely(0.5) ? 10 : 2);
  api_.now.minor = likely(0.5) ? 30 : 34;
  api_.now.page = likely(0.3) ? 2 : 500;
  api_.now.watch_delay = likely(0.3) ? milliseconds(in_.chance.draw(300)) : milliseconds(0);
  api_.start();
  set_managers(watches());
  writer_.now.relabels = mood_ != mood::blind;
  writer_.now.names = mood_ == mood::blind ? 2 : most_names;
  // Some objects are older than the process.
  for (int i = 0; i < 4; ++i) writer_.write();
  runtime_.start();
  const auto length = seconds(15 + in_.chance.draw(25));
  // Many reviews of an object are confirmed by few reads.
  const auto longest = mood_ == mood::blind ? 400 : 1000;
  const auto pause = milliseconds(100 + in_.chance.draw(longest - 100));
  for (duration when{}; when < length; when += up_to(2 * pause)) {
    at(when, [this] { writer_.write(); });
  }
  // A live watch shows a change at once.
  if (mood_ == mood::calm) overdue_ = seconds(1);
  if (mood_ == mood::calm) return;
  if (mood_ == mood::blind) {
    // Its review is confirmed in time, or sent `settle` later where a watch is begun again.
    overdue_ = seconds(4);
    writer_.now.latency = milliseconds(in_.chance.draw(80));
    at(seconds(5), [this, length] { stall_watches_for(length); });
    return;
  }
  for (duration when = up_to(seconds(5)); when < length; when += up_to(seconds(12))) {
    at(when, [this] { disturb(); });
  }
}

void scenario::disturb() {
  static constexpr std::array<fault, 32> faults = {&scenario::delay,
                                                   &scenario::cut,
                                                   &scenario::cut,
                                                   &scenario::half_close,
                                                   &scenario::stall,
                                                   &scenario::lose,
                                                   &scenario::crash,
                                                   &scenario::crash,
                                                   &scenario::crash,
                                                   &scenario::restart_runtime,
                                                   &scenario::restart_api,
                                                   &scenario::compact,
                                                   &scenario::fail_api,
                                                   &scenario::forbid,
                                                   &scenario::stall_watches,
                                                   &scenario::remove_webhooks,
                                                   &scenario::fail_gateway,
                                                   &scenario::refuse_gateway,
                                                   &scenario::unseat_manager,
                                                   &scenario::step_clock,
                                                   &scenario::silence_runtime,
                                                   &scenario::refuse_events,
                                                   &scenario::edit_managers,
                                                   &scenario::edit_managers,
                                                   &scenario::restore,
                                                   &scenario::turn_over,
                                                   &scenario::delete_definition,
                                                   &scenario::hide_definition,
                                                   &scenario::answer_resyncs,
                                                   &scenario::unseat_manager,
                                                   &scenario::overlap,
                                                   &scenario::overlap};
  (this->*faults.at(in_.chance.draw(faults.size())))();
}

std::uint16_t scenario::any_port() {
  static constexpr std::array ports = {api_model::port, writer::webhook_port,
                                       runtime::gateway_port};
  return ports.at(in_.chance.draw(ports.size()));
}

void scenario::delay() {
  const auto port = any_port();
  network_.path(port).delay = up_to(milliseconds(800));
  in_.note("path " + std::to_string(port) + " is slow");
  at(up_to(seconds(10)), [this, port] { network_.path(port).delay = {}; });
}

void scenario::cut() {
  const auto port = any_port();
  in_.note("path " + std::to_string(port) + " is cut");
  silence_.interrupted();
  network_.cut(port);
}

void scenario::half_close() {
  const auto port = any_port();
  in_.note("path " + std::to_string(port) + " is half-closed");
  silence_.interrupted();
  network_.half_close(port, likely(0.5));
}

void scenario::stall() {
  const auto port = any_port();
  in_.note("path " + std::to_string(port) + " stalls");
  network_.path(port).stalls = true;
  const bool resets = likely(0.5);
  const auto end = [this, port, resets] {
    in_.note("path " + std::to_string(port) + " goes on");
    network_.path(port).stalls = false;
    network_.resume(port);
    if (resets) network_.cut(port);
  };
  at(up_to(seconds(20)), end);
}

void scenario::lose() {
  const auto port = any_port();
  in_.note("path " + std::to_string(port) + " loses new connections");
  network_.path(port).loses = true;
  network_.cut(port);
  at(up_to(seconds(20)), [this, port] { network_.path(port).loses = false; });
}

void scenario::crash() {
  runtime_.crash();
  at(up_to(seconds(6)), [this] { runtime_.start(); });
}

void scenario::restart_runtime() {
  runtime_.stop();
  at(up_to(seconds(6)), [this] { runtime_.start(); });
}

/// As a roll-out: another pod begins, and then one of the two ends.
void scenario::overlap() {
  second_.start();
  at(up_to(seconds(10)), [this] {
    if (likely(0.5)) return;
    likely(0.5) ? runtime_.crash() : runtime_.stop();
    at(up_to(seconds(20)), [this] { runtime_.start(); });
  });
  at(up_to(seconds(25)), [this] { likely(0.5) ? second_.crash() : second_.stop(); });
}

void scenario::restart_api() {
  in_.note("API server restarts");
  api_.stop();
  if (likely(0.5)) store_.compact();
  at(up_to(seconds(8)), [this] { api_.start(); });
}

void scenario::compact() {
  in_.note("compaction");
  store_.compact();
  network_.cut(api_model::port);
}

void scenario::fail_api() {
  static constexpr std::array<unsigned, 4> codes = {500, 503, 429, 403};
  api_.now.failing = codes.at(in_.chance.draw(codes.size()));
  in_.note("API server answers " + std::to_string(api_.now.failing));
  if (likely(0.5)) network_.cut(api_model::port);
  at(up_to(seconds(15)), [this] { api_.now.failing = 0; });
}

void scenario::forbid() {
  in_.note("API server forbids a list");
  api_.now.forbids = true;
  network_.cut(api_model::port);
  const bool lasts = likely(0.2);
  at(up_to(lasts ? duration(std::chrono::minutes(20)) : seconds(15)),
     [this] { api_.now.forbids = false; });
}

void scenario::stall_watches_for(duration length) {
  in_.note("watches show nothing");
  api_.now.stalls = true;
  at(length, [this] {
    in_.note("watches go on");
    api_.now.stalls = false;
  });
}

void scenario::stall_watches() {
  stall_watches_for(up_to(seconds(15)));
}

void scenario::remove_webhooks() {
  in_.note("webhook configuration removed");
  writer_.now.calls = false;
  at(up_to(seconds(15)), [this] { writer_.now.calls = true; });
}

void scenario::fail_gateway() {
  static constexpr std::array<unsigned, 6> codes = {400, 404, 421, 429, 502, 503};
  kcp_.now.failing = codes.at(in_.chance.draw(codes.size()));
  in_.note("gateway answers " + std::to_string(kcp_.now.failing));
  at(up_to(seconds(30)), [this] { kcp_.now.failing = 0; });
}

void scenario::refuse_gateway() {
  in_.note("KCP unreachable");
  network_.path(runtime::gateway_port).refuses = true;
  network_.cut(runtime::gateway_port);
  at(up_to(seconds(60)), [this] { network_.path(runtime::gateway_port).refuses = false; });
}

void scenario::unseat_manager() {
  const auto* manager = likely(0.5) ? "gadget-manager" : "lifecycle-manager";
  in_.note(std::string(manager) + " takes no events");
  kcp_.now.away[manager] = true;
  at(up_to(seconds(30)), [this, manager] {
    if (std::exchange(kcp_.now.away[manager], false)) history_.started(manager);
  });
}

/// As a portal, or a listener of before in the place of one that knows resyncs.
void scenario::answer_resyncs() {
  in_.note("resyncs are answered by the gateway");
  kcp_.now.portal = true;
  at(up_to(seconds(60)), [this] { kcp_.now.portal = false; });
}

/// A receiver, or what is before it, refuses an object, all events, or resyncs as well.
void scenario::refuse_events() {
  static constexpr std::array<unsigned, 6> codes = {400, 403, 404, 413, 422, 431};
  const auto* manager = likely(0.5) ? "gadget-manager" : "lifecycle-manager";
  auto& refusal = kcp_.now.refusals[manager];
  refusal.status = codes.at(in_.chance.draw(codes.size()));
  refusal.part = "o" + std::to_string(in_.chance.draw(most_names)) + '"';
  if (likely(0.4)) refusal.part = likely(0.5) ? "" : "{";
  if (refusal.part == "{") {
    // Changes wait, and a resync is taken meanwhile.
    refusal.status = 503;
    at(seconds(5) + up_to(seconds(15)), [this] { compact(); });
  }
  in_.note(std::string(manager) + " answers " + std::to_string(refusal.status) + " for " +
           (refusal.part.empty() ? "all" : refusal.part));
  const auto length = up_to(seconds(refusal.part == "{" ? 60 : 30));
  at(length, [this, manager] { kcp_.now.refusals.erase(manager); });
}

/// A Watcher is removed or edited, and comes back; or the file is empty when a process starts.
void scenario::edit_managers() {
  auto file = watches();
  const auto which = in_.chance.draw(file.size() + 1);
  if (which == file.size()) {
    file.clear();
    runtime_.crash();
    at(up_to(seconds(6)), [this] { runtime_.start(); });
  } else if (likely(0.6)) {
    file.erase(file.begin() + static_cast<std::ptrdiff_t>(which));
  } else {
    file[which] = edited(file[which]);
  }
  in_.note("managers' file has another Watcher " + std::to_string(which));
  // What happens before the first list of the new Watcher is seen by none.
  const bool lists_late = likely(0.5);
  const auto edit = [this, lists_late](const std::vector<managed_watch>& next) {
    if (lists_late) restart_api();
    if (lists_late && likely(0.5)) writer_.turn_over(in_.chance.draw(kinds().size()));
    set_managers(next);
  };
  edit(file);
  ++edits_;
  at(up_to(seconds(20)), [this, edit] {
    if (--edits_ > 0) return;
    in_.note("managers' file is as it was");
    edit(watches());
  });
}

/// Once: of a second one a watch may see nothing.
void scenario::restore() {
  if (store_.was_restored()) return;
  api_.stop();
  const auto version = store_.any_version();
  const bool at_once = likely(0.5);
  if (at_once) store_.restore(version);
  at(up_to(seconds(8)), [this, version] {
    if (!store_.was_restored() && !api_.up() && version <= store_.version())
      store_.restore(version);
    api_.start();
  });
}

void scenario::turn_over() {
  const auto kind = in_.chance.draw(kinds().size());
  const auto times = 1 + in_.chance.draw(5);
  const bool cuts = likely(0.5);  // before a list can be complete
  for (std::size_t i = 0; i < times; ++i) {
    at(up_to(seconds(2)), [this, kind, cuts] {
      writer_.turn_over(kind);
      if (cuts) network_.cut(api_model::port);
    });
  }
}

/// With luck it is never added again.
void scenario::delete_definition() {
  const auto kind = in_.chance.draw(kinds().size());
  if (!store_.defines(kind)) return;
  if (likely(0.5)) restart_api();
  store_.define(kind, false);
  if (likely(0.3)) return;
  at(up_to(seconds(60)), [this, kind] { store_.define(kind, true); });
}

/// For a shorter time than two proofs take that there is no definition.
void scenario::hide_definition() {
  in_.note("discovery has a gap");
  api_.now.hides = true;
  network_.cut(api_model::port);
  at(up_to(seconds(25)), [this] { api_.now.hides = false; });
}

void scenario::step_clock() {
  in_.note("the wall clock steps");
  in_.clock.step_wall(std::chrono::hours(in_.chance.draw(24)));
}

/// For about as long as heartbeats may be missing.
void scenario::silence_runtime() {
  const auto length = seconds(40) + up_to(seconds(40));
  if (likely(0.5)) {
    runtime_.crash();
    at(length, [this] { runtime_.start(); });
    return;
  }
  in_.note("KCP unreachable for long");
  network_.path(runtime::gateway_port).refuses = true;
  network_.cut(runtime::gateway_port);
  at(length, [this] { network_.path(runtime::gateway_port).refuses = false; });
}

way scenario::heartbeats_way() {
  const auto& path = network_.path(runtime::gateway_port);
  // What was sent before may come when a path goes on.
  const bool up = runtime_.up() || second_.up();
  if (!up || path.refuses || kcp_.now.failing != 0) return way::broken;
  return path.loses || path.stalls || path.delay > duration::zero() ? way::doubtful : way::intact;
}

/// The runtime is live, and what it lost is known.
bool scenario::is_known_well() {
  const auto& health = kcp_.health();
  const bool told = runtime_.lost() == 0 || health.losses > 0;
  return told && health.state == heartbeats::liveness::live;
}

/// Watchers without a live watch, though there are no more objects than may be.
std::string scenario::unobserved() const {
  std::string names;
  for (const auto& each : watches()) {
    const auto at = std::ranges::find(kinds(), each.watched.plural, &model_kind::plural);
    const auto kind = static_cast<std::size_t>(at - kinds().begin());
    const bool may = store_.defines(kind) && store_.all(kind).size() <= runtime_.most_objects();
    if (may && !runtime_.observes(each) && !history_.limits.reviews_only)
      names += " " + each.manager + "/" + each.watched.plural;
  }
  return names;
}

/// Lets time go by; false at the end.
bool scenario::go_on(time_point end) {
  const auto next = agenda_.empty() ? end : std::min(end, agenda_.begin()->first);
  const bool more = in_.step(next);
  runtime_.inspect();
  second_.inspect();
  writer_.now.first = runtime_.up();
  writer_.now.second = second_.up();
  silence_.inspect(heartbeats_way(), kcp_.health());
  if (network_.links() > most_links) history_.violate("connections pile up");
  if (overdue_ != duration::max() && in_.now() >= checked_ + milliseconds(500)) {
    checked_ = in_.now();
    for (const auto& name : history_.late(in_.now() - overdue_)) {
      history_.violate("late: " + name);
      overdue_ = duration::max();
    }
  }
  if (!agenda_.empty() && agenda_.begin()->first <= in_.now()) {
    const auto first = agenda_.extract(agenda_.begin());
    first.mapped()();
    return true;
  }
  return more || in_.now() < end;
}

void scenario::check() {
  const auto end = in_.now() + longest_repair;
  auto next = in_.now();
  while (go_on(end)) {
    if (in_.now() < next) continue;
    next = in_.now() + seconds(1);
    writer_.delete_surplus(runtime_.most_objects());  // writes may be under way yet
    const bool idle = runtime_.waiting().empty() && unobserved().empty();
    if (idle && history_.missing().empty() && is_known_well()) break;
  }
  for (const auto& name : history_.missing()) history_.violate("never told: " + name);
  const auto waiting = runtime_.waiting();
  if (!waiting.empty()) history_.violate("waits for ever:" + waiting);
  const auto blind = unobserved();
  if (!blind.empty()) history_.violate("not observed for ever:" + blind);
  if (!is_known_well()) {
    const auto& health = kcp_.health();
    history_.violate("KCP holds the runtime for " + std::string(to_string(health.state)) +
                     ", with " + std::to_string(health.losses) + " losses for " +
                     std::to_string(runtime_.lost()) + ": " + health.message);
  }
  const auto rest = in_.now() + quiet;
  while (go_on(rest)) {
  }
}

outcome scenario::run(std::uint64_t seed) {
  outcome result;
  result.seed = seed;
  try {
    begin();
    while (!agenda_.empty()) go_on(time_point::max());
    in_.note("all is well again");
    second_.stop();
    runtime_.start();
    check();
  } catch (const std::exception& error) {
    history_.violate(std::string("exception: ") + error.what());
  }
  result.violations = history_.violations();
  result.trace = in_.events.lines();
  result.hash = in_.events.hash();
  result.changes = history_.changes();
  result.events = history_.told();
  for (const auto& [reason, count] : history_.resyncs()) result.resyncs[reason] += count;
  return result;
}

}  // namespace

outcome run(std::uint64_t seed, bool verbose) {
  scenario one(seed, verbose);
  return one.run(seed);
}

}  // namespace rw::simulation
