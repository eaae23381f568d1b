// Informers against a server on which everything happens by chance, for ten minutes of simulated
// time: when it has calmed down each store must be equal to the server, no object may ever have
// gone backwards, and each must have been told as deleted once. RW_HISTORY_SEEDS says how many
// histories (200, and fewer under a sanitizer), RW_HISTORY_FIRST which is the first; one that goes
// wrong prints its seed and its end.

#include "rw/core/task_group.hpp"
#include "rw/k8s/cache/informer.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/k8s/history_participant.hpp"
#include "tests/unit/k8s/model_server.hpp"
#include "tests/unit/manual_clock.hpp"
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

BOOST_AUTO_TEST_SUITE(informer_history)

namespace asio = boost::asio;
namespace core = rw::core;
using namespace std::chrono_literals;
using namespace rw::k8s;
using namespace rw::k8s::test;

namespace {

/// Whether the server's storage is ever set back, and how.
enum class storage_kind : std::uint8_t { keeps, restored, restored_carelessly };

class history {
 public:
  history(std::uint64_t seed, storage_kind storage) : seed_(seed), storage_(storage) {
    join("lists", {.keep = projection::whole(), .streaming_list = false}, {1, 20}, 1000);
    join("pages",
         {.keep = projection::whole(), .page = 3, .streaming_list = false, .watch_timeout = 40s},
         {1, 20}, 1000);
    join("metadata only, streams",
         {.objects = {.metadata_only = true}, .keep = projection::metadata()}, {1, 34}, 1000);
    join("notices silence, small answers",
         {.keep = projection::whole(), .page = 16, .watch_timeout = 60s, .silence = 45s}, {1, 32},
         10);
    join("streams, small events", {.keep = projection::whole(), .page = 5, .event_bytes = 1500},
         {1, 33}, 1000);
    join("small events, small answers",
         {.keep = projection::whole(), .silence = 45s, .event_bytes = 1500}, {1, 25}, 20);
  }

  void run() {
    for (auto& each : participants_) each->start(tasks_);
    const auto began = clock_.now();
    while (clock_.now() < began + 10min) {
      happen();
      set_back(clock_.now() - began);
      pass(chance_.up_to(chance_.likely(0.05) ? 30s : 1s));
    }
    server_.faulty = false;
    // A silent watch, the longest pause, and all that slow listeners have still to hear.
    const auto patience = clock_.now() + 60min;
    while (!is_level() && clock_.now() < patience) pass(1s);
    judge();
    tasks_.cancel();
    settle();
    BOOST_TEST(tasks_.size() == 0U);
  }

  std::size_t deltas() const {
    std::size_t sum = 0;
    for (const auto& each : participants_) sum += each->deltas();
    return sum;
  }
  core::metrics& metrics() noexcept { return metrics_; }

 private:
  void join(const char* name, informer_options options, std::pair<unsigned, unsigned> version,
            std::size_t large) {
    participants_.push_back(std::make_unique<participant>(
        name, seed_ * 100 + participants_.size(),
        std::make_shared<model_source>(server_, version, large), std::move(options),
        view_rules{.restored = storage_ != storage_kind::keeps},
        participant_environment{server_, clock_, log_, metrics_}));
  }

  void happen() {
    const auto what = chance_.draw(1000);
    if (what < 3) {
      server_.front_end_fails();
    } else if (what < 8) {
      server_.restart();
    } else if (what < 15) {
      server_.compact();
    } else if (what < 100) {
      server_.others_change();
    } else if (what < 150) {
      for (int i = 0; i < 100; ++i) server_.change();
    } else {
      server_.change();
    }
  }

  /// Backups after two minutes and restores after five and eight, or one that is careless.
  void set_back(core::duration passed) {
    if (storage_ == storage_kind::keeps) return;
    if (passed >= 2min && std::exchange(backups_, 1) == 0) {
      server_.back_up();
      if (storage_ == storage_kind::restored_carelessly) server_.much_else_changes();
    }
    const int due = passed >= 8min ? 2 : passed >= 5min ? 1 : 0;
    if (restores_ >= due) return;
    ++restores_;
    if (storage_ == storage_kind::restored) {
      server_.restore();
    } else if (restores_ == 1) {
      server_.restore_carelessly();
    }
  }

  void judge() const {
    std::string wrong;
    for (const auto& each : participants_) wrong += each->problems();
    BOOST_CHECK_MESSAGE(wrong.empty(), "history " << seed_ << " went wrong\n"
                                                  << wrong << "  what happened at last:\n"
                                                  << server_.happened.tail());
  }

  void settle() {
    while (context_.poll() > 0) {
    }
  }

  /// Lets time pass, alarm by alarm.
  void pass(core::duration by) {
    const auto until = clock_.now() + by;
    for (;;) {
      settle();
      const auto next = std::min(clock_.next_alarm(), until);
      clock_.advance(std::max(next - clock_.now(), core::duration::zero()));
      if (next == until) break;
    }
    settle();
  }

  bool is_level() const {
    return std::ranges::all_of(participants_, [](const auto& each) { return each->is_level(); });
  }

  asio::io_context context_{1};
  core::manual_clock clock_;
  core::metrics metrics_;
  core::logger log_{core::log_level::error};
  const std::uint64_t seed_;
  const storage_kind storage_;
  int backups_ = 0;
  int restores_ = 0;
  chance chance_{seed_};
  model_server server_{context_.get_executor(), clock_, chance_};
  std::vector<std::unique_ptr<participant>> participants_;
  core::task_group tasks_{context_.get_executor()};
};

void run_histories(storage_kind storage, std::uint64_t seeds) {
  const auto first = from_environment("RW_HISTORY_FIRST", 1);
  seeds = from_environment("RW_HISTORY_SEEDS", seeds);
  std::size_t deltas = 0;
  for (auto seed = first; seed < first + seeds; ++seed) {
    BOOST_TEST_CONTEXT("replay it with RW_HISTORY_SEEDS=1 RW_HISTORY_FIRST=" << seed) {
      history one(seed, storage);
      one.run();
      deltas += one.deltas();
      if (seed == first) BOOST_TEST_MESSAGE(core::expose(one.metrics()));
    }
  }
  BOOST_TEST_MESSAGE(seeds << " histories, " << deltas << " deltas");
  BOOST_TEST(deltas > 1000 * seeds);
}

}  // namespace

BOOST_AUTO_TEST_CASE(after_any_history_each_store_is_equal_to_the_server) {
  run_histories(storage_kind::keeps, sanitized ? 10 : 60);
}

BOOST_AUTO_TEST_CASE(after_a_restored_backup_each_store_is_equal_to_the_server) {
  run_histories(storage_kind::restored, sanitized ? 5 : 20);
}

BOOST_AUTO_TEST_CASE(after_versions_are_given_out_once_more_each_store_is_equal_to_the_server) {
  run_histories(storage_kind::restored_carelessly, sanitized ? 5 : 20);
}

BOOST_AUTO_TEST_SUITE_END()
