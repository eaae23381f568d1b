#include "reactors/observation/ledger_file.hpp"

#include "core/task_group.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/manual_clock.hpp"
#include "tests/unit/run.hpp"
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <sys/stat.h>

namespace rw::ledger_file_test {
BOOST_AUTO_TEST_SUITE(ledger_file)

using namespace std::chrono_literals;
using namespace rw::observation;
namespace asio = boost::asio;

namespace {

const managed_watch specs{"klm", {"op", "*", "kymas"}, "spec", {{"l", "1"}}};
const managed_watch others{"other", {"", "v1", "configmaps"}, "spec", {}};

std::string name(int i) {
  return "ns/object-" + std::to_string(i);
}

/// Objects and their ledger. Writes take place when the test lets them, unless they have a thread.
struct environment {
  explicit environment(bool own_thread = false) {
    std::string made = (std::filesystem::temp_directory_path() / "rw-ledger-XXXXXX").string();
    directory = ::mkdtemp(made.data());
    file = (directory / "ledger").string();
    if (!own_thread) blocking.emplace();
    open();
  }
  ~environment() {
    under_test.reset();
    std::filesystem::remove_all(directory);
  }

  void open() {
    ledger_environment in{time, log, metrics};
    if (blocking) in.blocking = blocking->get_executor();
    under_test.emplace(context.get_executor(), file, objects, in);
  }

  /// Adds delivered objects, or changes their state.
  void add(int from, int to, mark delivered = 7) {
    auto& table = objects.add(specs);
    for (int i = from; i < to; ++i) objects.remember(table, name(i), delivered);
  }
  /// One more version of the objects.
  void change() {
    auto& table = objects.add(specs);
    objects.put(table, {"ns", "changed-" + std::to_string(++changes)}, 9);
  }

  void save() { tasks.spawn(under_test->save()); }
  /// Lets everything happen on the executor.
  void poll() {
    context.restart();
    context.poll();
  }
  /// Lets a write take place.
  void write() {
    blocking->restart();
    blocking->poll();
  }
  std::size_t in_file() const {
    const auto read = read_ledger(file);
    BOOST_REQUIRE(read.has_value());
    return read->empty() ? 0 : read->at(specs).size();
  }

  asio::io_context context;
  std::optional<asio::io_context> blocking;  ///< where files are written
  core::manual_clock time;
  core::metrics metrics;
  core::logger log{core::log_level::error, [](std::string_view) {}};
  observed_objects objects;
  std::filesystem::path directory;
  std::string file;
  std::optional<rw::observation::ledger_file> under_test;
  core::task_group tasks{context.get_executor()};
  int changes = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(objects_may_change_between_slices) {
  observed_objects objects;
  auto* table = &objects.add(specs);
  auto& left = objects.add(others);
  objects.remember(left, "removed", 1);
  for (int i = 0; i < 1000; ++i) objects.remember(*table, name(i), 7);
  ledger_encoder encoder(objects);
  int added = 1000;
  bool more = true;
  for (int slice = 0; more; ++slice) {
    more = encoder.encode(100);
    // The hash table grows, objects are deleted and delivered, a Watcher is removed.
    for (int i = 0; slice < 5 && i < 300; ++i) objects.remember(*table, name(added++), 7);
    objects.put(*table, {"ns", "object-" + std::to_string(slice)}, 8);
    if (slice == 3) objects.remove(others);
  }
  auto bytes = encoder.take();
  seal_ledger(bytes);
  const auto read = decode_ledger(bytes);
  BOOST_REQUIRE(read.has_value());
  std::map<std::string, mark> first;
  for (const auto& [key, delivered] : read->at(specs)) first.try_emplace(key, delivered);
  for (int i = 0; i < 1000; ++i) {
    BOOST_REQUIRE(first.contains(name(i)));
    const auto delivered = first.at(name(i));
    BOOST_TEST((delivered == 7 || delivered == unknown_mark));
  }
}

BOOST_AUTO_TEST_CASE(file_is_written_elsewhere_while_the_executor_goes_on) {
  environment env;
  env.add(0, 10'000);
  BOOST_TEST(env.under_test->due(env.time.now()));
  env.save();
  int turns = 0;
  while (env.blocking->poll() == 0) {
    env.blocking->restart();
    env.context.restart();
    BOOST_REQUIRE(env.context.poll_one() > 0);
    ++turns;
  }
  BOOST_TEST(turns >= 3, "slices take turns with others");
  BOOST_TEST(!env.under_test->due(env.time.now()), "its end is not known");
  env.poll();
  BOOST_TEST(env.in_file() == 10'000U);
  BOOST_TEST(env.tasks.size() == 0U);
  BOOST_TEST(!env.under_test->due(env.time.now()), "nothing has changed");
  env.change();
  BOOST_TEST(env.under_test->due(env.time.now()));
}

BOOST_AUTO_TEST_CASE(last_save_waits_for_the_write_of_a_cancelled_one) {
  environment env;
  env.add(0, 1);
  env.save();
  env.poll();
  env.tasks.cancel();
  env.poll();
  BOOST_TEST(env.tasks.size() == 0U);
  env.change();
  core::task_group last(env.context.get_executor());
  last.spawn(env.under_test->save());
  env.poll();
  BOOST_TEST(last.size() == 1U);
  env.write();
  BOOST_TEST(env.in_file() == 1U, "the first write");
  env.poll();
  env.write();
  env.poll();
  BOOST_TEST(last.size() == 0U);
  BOOST_TEST(env.in_file() == 2U);
}

BOOST_AUTO_TEST_CASE(pause_after_a_write_is_a_hundred_times_as_long) {
  environment env;
  env.add(0, 1);
  env.save();
  env.poll();
  env.time.advance(20ms);
  env.write();
  env.poll();
  env.change();
  env.time.advance(1999ms);
  BOOST_TEST(!env.under_test->due(env.time.now()));
  env.time.advance(1ms);
  BOOST_TEST(env.under_test->due(env.time.now()));
}

BOOST_AUTO_TEST_CASE(failed_write_is_reported_and_repeated) {
  environment env;
  std::filesystem::create_directory(env.file);
  env.add(0, 1);
  BOOST_TEST(env.under_test->state() == "missing");
  env.save();
  env.poll();
  env.write();
  env.poll();
  BOOST_TEST(env.under_test->state() == "failed");
  BOOST_TEST(env.under_test->due(env.time.now()));
  std::filesystem::remove(env.file);
  env.save();
  env.poll();
  env.write();
  env.poll();
  BOOST_TEST(env.under_test->state() == "missing");
  BOOST_TEST(env.in_file() == 1U);
  env.open();
  BOOST_TEST(env.under_test->load().at(specs).size() == 1U);
  BOOST_TEST(env.under_test->state() == "read");
}

BOOST_AUTO_TEST_CASE(thread_of_its_own_keeps_the_context_alive) {
  environment env(true);
  env.add(0, 20'000);
  env.save();
  env.context.run();  // ends when nothing is left to do
  BOOST_TEST(env.tasks.size() == 0U);
  BOOST_TEST(env.in_file() == 20'000U);
}

BOOST_AUTO_TEST_CASE(end_waits_for_the_write_of_a_cancelled_save) {
  environment env(true);
  env.add(0, 20'000);
  test::run(env.context, [](environment* in) -> asio::awaitable<void> {
    in->save();
    while (in->under_test->due(in->time.now()) || in->tasks.size() == 0) co_await test::turn();
    for (int i = 0; i < 20; ++i) co_await test::turn();
    in->tasks.cancel();
    co_await in->tasks.join();
    in->under_test.reset();
  }(&env));
  BOOST_TEST(env.in_file() == 20'000U);
  BOOST_TEST(std::distance(std::filesystem::directory_iterator(env.directory), {}) == 1);
}

BOOST_AUTO_TEST_CASE(disk_that_hangs_delays_the_end_by_a_second_only) {
  environment env(true);
  const auto temporary = env.file + ".new";
  BOOST_REQUIRE(::mkfifo(temporary.c_str(), 0600) == 0);  // opening it waits for a reader
  env.add(0, 1);
  test::run(env.context, [](environment* in) -> asio::awaitable<void> {
    in->save();
    for (int i = 0; i < 20; ++i) co_await test::turn();
    in->tasks.cancel();
    co_await in->tasks.join();
    in->under_test.reset();
  }(&env));
  std::ifstream reader(temporary);
  std::string bytes(std::istreambuf_iterator<char>(reader), {});
  BOOST_TEST(!bytes.empty());  // the thread that was left behind goes on, and ends
}

BOOST_AUTO_TEST_CASE(pause_after_a_slow_write_is_bounded) {
  environment env;
  env.add(0, 1);
  env.save();
  env.poll();
  env.time.advance(10s);
  env.write();
  env.poll();
  env.change();
  env.time.advance(60s);
  BOOST_TEST(env.under_test->due(env.time.now()));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::ledger_file_test
