// Random histories once more, end to end: informers and clients over TLS, with HTTP/2 and HTTP/1.1,
// against the embedded API server, for ten minutes on a clock that is moved by hand whenever
// nothing else is left to happen. What is checked is what informer_history_test checks.
// RW_DEVSERVER_HISTORY_SEEDS says how many histories, RW_HISTORY_FIRST which is the first; one that
// goes wrong prints its seed and its end.

#include "rw/core/task_group.hpp"
#include "rw/core/watchdog.hpp"
#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/client/client.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/environment/simulated.hpp"
#include "tests/unit/k8s/history_participant.hpp"
#include "tests/unit/k8s/listed_truth.hpp"
#include "tests/unit/k8s/restartable_server.hpp"
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

BOOST_AUTO_TEST_SUITE(informer_devserver)

namespace asio = boost::asio;
namespace core = rw::core;
namespace json = boost::json;
namespace devserver = rw::k8s::devserver;
using namespace std::chrono_literals;
using namespace rw::k8s;
using namespace rw::k8s::test;

namespace {

constexpr auto cluster = "history";
constexpr auto all_labels = "history=yes";
constexpr auto chosen_labels = "history=yes,chosen=yes";

class history {
 public:
  history(std::uint64_t seed, bool restored) : seed_(seed), restored_(restored) {
    server_.begin(protocols());
    server_->add_cluster(cluster);
    server_->faults(cluster).decide = [this](const std::string& verb, const std::string&) {
      return fault(verb);
    };
    tasks_.spawn(watchdog_.run());
    for (const auto* name : {"writer", "shared", "other"}) clients_.push_back(connect(name));
    join("lists", 1, all_, {.streaming_list = false, .watch_timeout = 100s});
    join("pages", 1, all_, {.page = 3, .streaming_list = false, .watch_timeout = 40s});
    join(
        "metadata only, streams", 1, all_,
        {.objects = {.metadata_only = true}, .keep = projection::metadata(), .watch_timeout = 90s});
    join("notices silence, selects", 2, chosen_,
         {.page = 16, .watch_timeout = 60s, .silence = 45s});
    join("small events", 2, all_, {.watch_timeout = 60s, .event_bytes = 1500});
    join("metadata only, pages, selects", 2, chosen_,
         {.objects = {.metadata_only = true},
          .keep = projection::metadata(),
          .page = 4,
          .streaming_list = false,
          .watch_timeout = 30s});
  }

  void run() {
    for (auto& each : participants_) each->start(tasks_);
    const auto began = clock_.now();
    while (clock_.now() < began + 10min) {
      happen();
      if (restored_) set_back(clock_.now() - began);
      pass(chance_.up_to(chance_.likely(0.05) ? 30s : 2s));
    }
    faulty_ = false;
    finish(take_truth());
    // A silent watch, the longest pause, and all that slow listeners have still to hear.
    const auto patience = clock_.now() + 60min;
    while (!is_level() && clock_.now() < patience) pass(5s);
    judge();
    stop();
  }

  std::size_t deltas() const {
    std::size_t sum = 0;
    for (const auto& each : participants_) sum += each->deltas();
    return sum;
  }
  core::metrics& metrics() noexcept { return metrics_; }

 private:
  std::vector<std::string> protocols() {
    if (chance_.likely(0.5)) return {"http/1.1"};
    return {"h2", "http/1.1"};
  }

  devserver::fault fault(const std::string& verb) {
    devserver::fault out;
    if (!faulty_ || (verb != "list" && verb != "watch")) return out;
    if (chance_.likely(0.1)) out.latency = std::chrono::milliseconds(chance_.draw(5000));
    if (chance_.likely(0.1)) {
      constexpr std::array statuses{410U, 429U, 500U, 503U, 504U};
      out.status = statuses[chance_.draw(statuses.size())];
      out.retry_after = out.status == 429 ? 2 : 0;
    }
    out.drop = chance_.likely(0.05);
    if (verb == "watch") {
      out.silent = chance_.likely(0.05);
      if (chance_.likely(0.4)) out.events = static_cast<unsigned>(chance_.draw(30));
      out.torn = chance_.likely(0.5);
    }
    happened_.note(verb + ": latency " + std::to_string(out.latency.count()) + " ms, status " +
                   std::to_string(out.status) + (out.drop ? ", dropped" : "") +
                   (out.silent ? ", silent" : "") +
                   (out.events ? ", broken off after " + std::to_string(*out.events) : "") +
                   (out.torn ? ", torn" : ""));
    return out;
  }

  std::unique_ptr<client> connect(const std::string& name) {
    auto how = parse_kubeconfig(server_->kubeconfig(cluster, name), name, "");
    BOOST_REQUIRE_MESSAGE(how.has_value(), how.error().message);
    // The client's own jitter is not of the seed: without a base there is none.
    return std::make_unique<client>(
        context_.get_executor(), std::move(*how),
        client_options{
            .name = name, .user_agent = "test", .field_manager = "test", .retry_base = 0ms},
        client_environment{clock_, watchdog_, log_, metrics_});
  }

  void join(const char* name, std::size_t which, const listed_truth& equal_to,
            informer_options options) {
    const bool selects = &equal_to == &chosen_;
    options.objects.ns = "default";
    options.objects.labels = selects ? chosen_labels : all_labels;
    participants_.push_back(std::make_unique<participant>(
        name, seed_ * 100 + participants_.size(), source_of(*clients_.at(which)),
        std::move(options), view_rules{.leaves = selects, .restored = restored_},
        participant_environment{equal_to, clock_, log_, metrics_}));
  }

  void happen() {
    const auto what = chance_.draw(1000);
    if (what < 10) {
      happened_.note("all connections break");
      server_->drop_connections();
      // A write on a connection that ends unseen may be lost, and is not repeated.
      clients_.front()->retire();
    } else if (what < 20) {
      restart();
    } else if (what < 40) {
      happened_.note("compaction");
      server_->compact(cluster);
    } else if (what < 70) {
      for (int i = 0; i < 20; ++i) finish(write());
    } else {
      finish(write());
    }
  }

  void restart() {
    const bool gently = chance_.likely(0.5);
    happened_.note(gently ? "the server is drained" : "the server is killed");
    finish(server_.end(gently));
    pass(chance_.up_to(chance_.likely(0.5) ? 0s : 20s));
    auto offered = protocols();
    happened_.note("a server with " + offered.front());
    server_.begin(std::move(offered));
  }

  /// A backup after two minutes, restored after five and after eight, with or without a restart.
  void set_back(core::duration passed) {
    if (!backup_ && passed >= 2min) {
      happened_.note("backup");
      backup_ = server_->back_up(cluster);
    }
    const int due = passed >= 8min ? 2 : passed >= 5min ? 1 : 0;
    if (restores_ >= due) return;
    ++restores_;
    happened_.note("the backup is restored");
    server_->restore(cluster, *backup_);
    if (chance_.likely(0.5)) restart();
    faulty_ = false;
    finish(take_truth());
    faulty_ = true;
    present_.clear();
    for (const auto& [name, unused] : all_.objects()) present_.insert(name);
  }

  /// One change of one of a few objects, whichever makes sense.
  asio::awaitable<void> write() {
    auto& api = *clients_.front();
    const auto name = "o" + std::to_string(chance_.draw(25));
    const std::string value(chance_.likely(0.1) ? 2000 : chance_.draw(100), 'v');
    const auto* chosen = chance_.likely(0.7) ? "yes" : "no";
    json::value object = {{"apiVersion", "v1"},
                          {"kind", "ConfigMap"},
                          {"metadata",
                           {{"name", name},
                            {"namespace", "default"},
                            {"labels", {{"history", "yes"}, {"chosen", chosen}}}}},
                          {"data", {{"k", value}}}};
    if (!present_.contains(name)) {
      const auto made = co_await api.create(configmaps(), object);
      if (!made) co_return fail(made.error());
      const std::string uid(made->at("metadata").at("uid").as_string());
      all_.lived(uid);
      chosen_.lived(uid);
      present_.insert(name);
      note("created", *made);
    } else if (chance_.likely(0.3)) {
      const auto gone = co_await api.remove(configmaps(), {"default", name});
      if (!gone) co_return fail(gone.error());
      present_.erase(name);
      happened_.note("deleted " + name);
    } else {
      const auto changed = co_await api.update(configmaps(), object);
      if (!changed) co_return fail(changed.error());
      note("updated", *changed);
    }
  }

  /// The test's own requests meet no faults, and must succeed.
  void fail(const failure& why) { failures_ += "  " + why.message + "\n"; }

  void note(const std::string& what, const json::value& object) {
    const auto& metadata = object.at("metadata");
    happened_.note(what + " " + std::string(metadata.at("name").as_string()) + " at " +
                   std::string(metadata.at("resourceVersion").as_string()) + ", chosen " +
                   std::string(metadata.at("labels").at("chosen").as_string()));
  }

  asio::awaitable<void> take_truth() {
    for (const bool chosen : {false, true}) {
      const selection what{.ns = "default", .labels = chosen ? chosen_labels : all_labels};
      const auto found = co_await clients_.front()->list(configmaps(), what);
      if (!found) co_return fail(found.error());
      (chosen ? chosen_ : all_).take(*found);
    }
  }

  void judge() const {
    auto wrong = failures_;
    for (const auto& each : participants_) wrong += each->problems();
    BOOST_CHECK_MESSAGE(wrong.empty(), "history " << seed_ << " went wrong\n"
                                                  << wrong << "  what happened at last:\n"
                                                  << happened_.tail());
  }

  void finish(asio::awaitable<void> work) { time_.finish(std::move(work)); }
  void pass(core::duration by) { time_.pass(by); }

  bool is_level() const {
    return std::ranges::all_of(participants_, [](const auto& each) { return each->is_level(); });
  }

  void stop() {
    for (auto& each : clients_) finish(each->close());
    finish(server_.end(false));
    tasks_.cancel();
    finish(tasks_.join());
  }

  asio::io_context context_{1};
  core::manual_clock clock_;
  rw::test::simulated_time time_{context_, clock_, false};
  core::metrics metrics_;
  core::logger log_{core::log_level::error, [](std::string_view) {}};
  core::watchdog watchdog_{clock_, context_.get_executor(), 1s};
  const std::uint64_t seed_;
  const bool restored_;
  chance chance_{seed_};
  bool faulty_ = true;
  journal happened_{clock_, 150};
  restartable_server server_{context_.get_executor(),
                             {.history = 150, .bookmark_interval = 5s},
                             {clock_, watchdog_, log_, metrics_}};
  std::shared_ptr<const devserver::cluster_backup> backup_;
  int restores_ = 0;
  std::string failures_;  ///< of the test's own requests
  std::vector<std::unique_ptr<client>> clients_;
  std::set<std::string> present_;
  listed_truth all_;
  listed_truth chosen_;
  std::vector<std::unique_ptr<participant>> participants_;
  core::task_group tasks_{context_.get_executor()};
};

void run_histories(bool restored, std::uint64_t seeds) {
  const auto first = from_environment("RW_HISTORY_FIRST", 1);
  seeds = from_environment("RW_DEVSERVER_HISTORY_SEEDS", seeds);
  std::size_t deltas = 0;
  for (auto seed = first; seed < first + seeds; ++seed) {
    BOOST_TEST_CONTEXT("replay it with RW_DEVSERVER_HISTORY_SEEDS=1 RW_HISTORY_FIRST=" << seed) {
      history one(seed, restored);
      one.run();
      deltas += one.deltas();
      if (seed == first) BOOST_TEST_MESSAGE(core::expose(one.metrics()));
    }
  }
  BOOST_TEST_MESSAGE(seeds << " histories, " << deltas << " deltas");
  BOOST_TEST(deltas > 200 * seeds);
}

}  // namespace

BOOST_AUTO_TEST_CASE(after_any_history_each_store_is_equal_to_the_embedded_server) {
  run_histories(false, sanitized ? 10 : 50);
}

BOOST_AUTO_TEST_CASE(after_a_restored_backup_each_store_is_equal_to_the_embedded_server) {
  run_histories(true, sanitized ? 3 : 15);
}

BOOST_AUTO_TEST_SUITE_END()
