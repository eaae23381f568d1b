#include "rw/reactors/observation/journal.hpp"

#include "rw/core/task_group.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/manual_clock.hpp"
#include "tests/unit/run.hpp"
#include "tests/unit/source_dir.hpp"
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>

namespace rw::journal_test {
BOOST_AUTO_TEST_SUITE(journal)

using namespace std::chrono_literals;
using namespace rw::observation;
namespace asio = boost::asio;

namespace {

constexpr std::size_t mebibyte = 1U << 20;
const managed_watch specs{"klm", {"op", "*", "kymas"}, "spec", {{"l", "1"}}};
const k8s::resource_type kymas{{"op", "v1", "Kyma"}, "kymas", true};

std::string name(int i) {
  return "ns/object-" + std::to_string(i);
}

/// An owner of objects, and their journal. Writes take place when the test lets them, unless they
/// have a thread.
struct environment {
  explicit environment(bool own_thread = false) {
    std::string made = (std::filesystem::temp_directory_path() / "rw-journal-XXXXXX").string();
    directory = ::mkdtemp(made.data());
    file = (directory / "journal").string();
    if (!own_thread) blocking.emplace();
    open();
  }
  ~environment() {
    end();
    std::filesystem::remove_all(directory);
  }

  void end() {
    if (tasks) tasks->cancel();
    poll();
    tasks.reset();
    under_test.reset();
  }
  /// Restarts the journal, and defines the Watcher if all may be written.
  journal_content open(std::string boot = "boot") {
    end();
    journal_environment in{.clock = time,
                           .log = log,
                           .metrics = metrics,
                           .random = [this] { return ++randoms; },
                           .boot_id = std::move(boot),
                           .write_all = [this](const record_writer& to) { write_all(to); },
                           .on_written = [this] { ++advances; }};
    if (blocking) in.blocking = blocking->get_executor();
    under_test.emplace(context.get_executor(), file, std::move(in));
    auto content = under_test->load();
    tasks.emplace(context.get_executor());
    tasks->spawn(under_test->run());
    poll();
    return content;
  }

  void write_all(const record_writer& to) {
    ++rewrites;
    to.watch(1, specs, kymas);
    for (const auto& [key, state] : objects) to.told(1, key, state);
    to.gap("klm", {gaps, 0});
  }

  // What happens to the owner's objects, and is told to the journal.

  std::uint64_t left(const std::string& key) {
    objects[key] = unknown_state;
    return under_test->left(1, key);
  }
  std::uint64_t told(const std::string& key, state_hash state) {
    objects[key] = state;
    if (state == absent_state) objects.erase(key);
    return under_test->told(1, key, state);
  }

  /// Lets everything happen on the executor.
  void poll() {
    context.restart();
    context.poll();
  }
  /// Lets the write that has begun take place. Returns how many.
  std::size_t write() {
    blocking->restart();
    return blocking->poll();
  }
  /// Lets everything be written, at once, and the pause after it pass.
  void settle() {
    core::task_group flushing(context.get_executor());
    if (under_test) flushing.spawn(under_test->flush());
    poll();
    while (write() > 0) poll();
    flushing.cancel();
    advance(5ms);
  }
  void advance(core::duration by) {
    time.advance(by);
    poll();
  }
  /// The file is complete, and has the owner's objects.
  bool is_current() const {
    std::ifstream in(file, std::ios::binary);
    const auto content =
        decode_journal(std::string(std::istreambuf_iterator<char>(in), {}), "boot");
    if (!content.complete || !content.watches.contains(specs)) return false;
    const auto& states = content.watches.at(specs).states;
    return std::map<std::string, state_hash>(states.begin(), states.end()) == objects;
  }
  bool exists() const { return std::filesystem::exists(file); }
  double writes(const char* outcome) {
    return core::make_counter(metrics, "rw_observation_journal_writes_total",
                              "Number of writes of the journal", {{"outcome", outcome}})
        .Value();
  }

  asio::io_context context;
  std::optional<asio::io_context> blocking;  ///< where the file is written
  core::manual_clock time;
  core::metrics metrics;
  core::logger log{core::log_level::warning, [this](std::string_view) { ++messages; }};
  int messages = 0;
  std::map<std::string, state_hash> objects;
  std::uint64_t gaps = 0;
  std::uint64_t randoms = 0;
  int advances = 0;
  int rewrites = 0;
  std::filesystem::path directory;
  std::string file;
  std::optional<rw::observation::journal> under_test;
  std::optional<core::task_group> tasks;
};

/// Files of this process are not longer than `bytes`.
class size_limit {
 public:
  explicit size_limit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &former_);
    signal_ = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, former_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~size_limit() {
    ::setrlimit(RLIMIT_FSIZE, &former_);
    std::signal(SIGXFSZ, signal_);
  }

 private:
  rlimit former_{};
  void (*signal_)(int) = nullptr;
};

}  // namespace

BOOST_AUTO_TEST_CASE(records_are_read_at_the_next_start) {
  environment env;
  BOOST_TEST(env.under_test->state() == "missing");
  BOOST_TEST(env.messages == 0, "a first start is no warning");
  env.left("ns/a");
  env.settle();
  env.told("ns/a", 10);
  env.left("ns/b");
  env.left("ns/c");
  env.told("ns/c", absent_state);
  env.gaps = 3;
  const auto last = env.under_test->gap("klm", {3, 1});
  BOOST_TEST(env.under_test->written() < last);
  env.settle();
  BOOST_TEST(env.under_test->written() == last);
  BOOST_TEST(env.is_current());
  const auto content = env.open();
  BOOST_TEST(content.complete);
  BOOST_TEST(content.watches.at(specs).states.at("ns/a") == 10U);
  BOOST_TEST(content.watches.at(specs).states.at("ns/b") == unknown_state);
  BOOST_TEST((content.watches.at(specs).type == kymas));
  BOOST_TEST(content.gaps.at("klm").raised == 3U);
  BOOST_TEST(content.gaps.at("klm").told == 1U);
  BOOST_TEST(env.under_test->state() == "read");
}

BOOST_AUTO_TEST_CASE(series_is_kept_while_the_journal_is_complete) {
  environment env;
  env.left("a");
  env.settle();
  BOOST_TEST(env.open().series == "1");
  env.left("b");
  env.settle();
  BOOST_TEST(env.open().series == "1");
  const auto rebooted = env.open("other");
  BOOST_TEST(!rebooted.complete);
  BOOST_TEST(env.messages == 1);
  BOOST_TEST(rebooted.series == "4");
  BOOST_TEST(rebooted.watches.at(specs).states.size() == 2U, "as a hint");
  BOOST_TEST(env.under_test->state() == "missing", "what is missing in it is not known");
}

BOOST_AUTO_TEST_CASE(records_of_one_turn_are_one_write) {
  environment env;
  env.left("first");
  env.settle();
  for (int i = 0; i < 100; ++i) env.left(name(i));
  env.poll();
  BOOST_TEST(env.write() == 1U);
  env.poll();
  BOOST_TEST(env.write() == 0U);
  BOOST_TEST(env.writes("written") == 2);
  BOOST_TEST(env.advances == 2);
  BOOST_TEST(env.rewrites == 1);
  BOOST_TEST(env.is_current());
}

BOOST_AUTO_TEST_CASE(delivery_is_written_a_tenth_of_a_second_later_with_what_comes_meanwhile) {
  environment env;
  env.left("a");
  env.settle();
  env.told("a", 9);
  env.advance(99ms);
  env.told("b", 9);
  env.poll();
  BOOST_TEST(env.write() == 0U);
  env.advance(1ms);
  BOOST_TEST(env.write() == 1U);
  env.advance(5ms);
  BOOST_TEST(env.is_current());
  env.told("a", 10);
  env.left("b");
  env.poll();
  BOOST_TEST(env.write() == 1U, "what leaves is written at once");
  env.poll();
  BOOST_TEST(env.is_current());
  env.told("a", 11);
  env.advance(100ms);
  env.advance(99ms);
  BOOST_TEST(env.under_test->state() == "missing");
  env.advance(1ms);
  BOOST_TEST(env.under_test->state() == "failed", "the write takes too long");
}

BOOST_AUTO_TEST_CASE(records_within_five_milliseconds_of_a_write_follow_it_together) {
  environment env;
  env.left("a");
  env.settle();
  const auto first = env.left("a");
  env.poll();
  env.left("b");
  env.poll();
  env.write();
  env.poll();
  BOOST_TEST(env.under_test->written() == first);
  env.advance(4ms);
  const auto last = env.left("c");
  env.advance(999us);
  BOOST_TEST(env.write() == 0U);
  env.advance(1us);
  BOOST_TEST(env.write() == 1U);
  env.poll();
  BOOST_TEST(env.under_test->written() == last);
  BOOST_TEST(env.is_current());
  env.advance(5ms);
  env.left("d");
  env.poll();
  BOOST_TEST(env.write() == 1U, "the first one after a pause does not wait");
}

BOOST_AUTO_TEST_CASE(record_that_comes_during_a_long_write_is_written_at_its_end) {
  environment env;
  env.left("a");
  env.settle();
  env.left("a");
  env.poll();
  env.advance(4ms);
  env.left("b");
  env.advance(1ms);
  env.write();
  env.poll();
  BOOST_TEST(env.write() == 1U);
  env.poll();
  BOOST_TEST(env.is_current());
}

BOOST_AUTO_TEST_CASE(flush_writes_at_once_and_without_run) {
  environment env;
  env.left("a");
  env.settle();
  env.left("a");
  env.poll();
  env.write();
  env.poll();
  env.left("b");
  env.tasks->cancel();
  env.poll();
  env.settle();
  BOOST_TEST(env.is_current());
}

BOOST_AUTO_TEST_CASE(file_that_has_doubled_is_compacted) {
  environment env;
  env.left("a");
  env.settle();
  for (state_hash state = 2; std::filesystem::file_size(env.file) <= mebibyte; ++state) {
    for (int i = 0; i < 100; ++i) env.told(name(i), state);
    env.settle();
  }
  env.left("before");
  env.poll();
  env.left("during");
  env.write();
  const auto last = env.told("before its end is known", 7);
  env.settle();
  BOOST_TEST(std::filesystem::file_size(env.file) < mebibyte);
  BOOST_TEST(env.under_test->written() == last);
  BOOST_TEST(env.is_current());
  BOOST_TEST(env.rewrites == 1, "from the file itself");
  BOOST_TEST(env.open().series == "1");
}

BOOST_AUTO_TEST_CASE(large_content_is_compacted_when_it_has_doubled) {
  environment env;
  for (int i = 0; i < 30000; ++i) env.told(name(i), 5);
  env.settle();
  const auto size = std::filesystem::file_size(env.file);
  BOOST_TEST(size > mebibyte);
  auto largest = size;
  for (int round = 0; round < 300; ++round) {
    for (int i = 0; i < 200; ++i) env.told(name(i), 10 + static_cast<state_hash>(round));
    env.settle();
    largest = std::max(largest, std::filesystem::file_size(env.file));
  }
  BOOST_TEST(largest >= 2 * size);
  BOOST_TEST(largest < 2 * size + 10'000);
  BOOST_TEST(env.is_current());
}

BOOST_AUTO_TEST_CASE(damaged_file_is_written_whole_instead_of_compacted) {
  environment env;
  for (int i = 0; i < 30000; ++i) env.told(name(i), 5);
  env.settle();
  for (int i = 0; i < 31000; ++i) env.told(name(i), 6);
  env.settle();
  {
    std::fstream out(env.file, std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(5000).put('!').put('?');
  }
  env.told("a", 9);
  env.settle();
  BOOST_TEST(env.under_test->state() == "failed");
  BOOST_TEST(!env.exists());
  env.advance(1s);
  env.settle();
  BOOST_TEST(env.is_current());
  BOOST_TEST(env.under_test->state() == "missing");
}

BOOST_AUTO_TEST_CASE(record_is_waited_for_a_tenth_of_a_second) {
  environment env;
  env.left("a");
  env.settle();
  const auto advances = env.advances;
  const auto first = env.left("a");
  env.poll();
  env.advance(60ms);
  const auto second = env.left("b");
  env.advance(39ms);
  BOOST_TEST(env.under_test->written() < first);
  env.advance(1ms);
  BOOST_TEST(env.under_test->written() == second, "a failed journal is not waited for");
  BOOST_TEST(env.under_test->state() == "failed");
  BOOST_TEST(env.advances == advances + 1);
  const auto third = env.left("c");
  BOOST_TEST(env.under_test->written() == third);
  env.write();
  env.poll();
  BOOST_TEST(env.under_test->state() == "missing");
  BOOST_TEST(env.under_test->written() == third, "it does not decrease");
  env.settle();
  BOOST_TEST(env.is_current(), "the write was late, but nothing is missing");
  BOOST_TEST(env.rewrites == 1);
  const auto fourth = env.left("d");
  BOOST_TEST(env.under_test->written() < fourth);
}

BOOST_AUTO_TEST_CASE(record_behind_a_write_is_waited_for_from_its_own_time) {
  environment env;
  env.left("a");
  env.settle();
  env.left("a");
  env.poll();
  env.advance(60ms);
  const auto second = env.left("b");
  env.advance(30ms);
  env.write();
  env.poll();
  env.advance(69ms);
  BOOST_TEST(env.under_test->written() < second);
  BOOST_TEST(env.under_test->state() == "missing");
  env.advance(1ms);
  BOOST_TEST(env.under_test->written() == second);
}

BOOST_AUTO_TEST_CASE(directory_in_place_of_the_file_is_a_failure_until_it_goes) {
  environment env;
  std::filesystem::create_directory(env.file);
  env.open();
  const auto first = env.told("a", 9);
  env.settle();
  BOOST_TEST(env.under_test->state() == "failed");
  BOOST_TEST(env.under_test->written() == first);
  BOOST_TEST(env.writes("failed") == 1);
  env.told("b", 9);
  env.advance(994ms);
  BOOST_TEST(env.write() == 0U);
  env.advance(1ms);
  env.settle();
  BOOST_TEST(env.writes("failed") == 2);
  std::filesystem::remove(env.file);
  env.advance(1994ms);
  BOOST_TEST(env.write() == 0U, "the pause has doubled");
  env.advance(1ms);
  env.settle();
  BOOST_TEST(env.under_test->state() == "missing");
  BOOST_TEST(env.is_current());
  const auto last = env.told("c", 9);
  BOOST_TEST(env.under_test->written() < last);
  env.settle();
  BOOST_TEST(env.is_current());
  BOOST_TEST(env.writes("failed") == 2);
}

BOOST_AUTO_TEST_CASE(pause_after_failures_is_a_minute_at_most) {
  environment env;
  std::filesystem::create_directory(env.file);
  env.told("a", 9);
  env.settle();
  for (int i = 0; i < 10; ++i) {
    env.advance(60s);
    env.settle();
  }
  BOOST_TEST(env.writes("failed") == 11);
}

BOOST_AUTO_TEST_CASE(full_device_fails_the_write_and_leaves_no_file) {
  environment env;
  env.told("a", 9);
  env.settle();
  env.open();
  std::filesystem::create_symlink("/dev/full", env.file + ".new");
  env.told("b", 9);
  env.settle();
  BOOST_TEST(env.under_test->state() == "failed");
  BOOST_TEST(!env.exists(), "the next start is to know that a record is missing");
  env.advance(1s);
  env.settle();
  BOOST_TEST(env.is_current());
}

BOOST_AUTO_TEST_CASE(record_that_is_appended_in_part_leaves_no_file) {
  environment env;
  env.told("a", 9);
  env.settle();
  const auto size = std::filesystem::file_size(env.file);
  {
    const size_limit limit(size + 10);
    env.told("b", 9);
    env.settle();
  }
  BOOST_TEST(!env.exists());
  BOOST_TEST(env.under_test->state() == "failed");
  env.told("c", 9);
  env.advance(1s);
  env.settle();
  BOOST_TEST(env.is_current());
  BOOST_TEST(env.under_test->state() == "missing");
}

BOOST_AUTO_TEST_CASE(removed_directory_is_a_failure_until_it_is_back) {
  environment env;
  std::filesystem::remove_all(env.directory);
  env.told("a", 9);
  env.settle();
  BOOST_TEST(env.under_test->state() == "failed");
  std::filesystem::create_directory(env.directory);
  env.advance(1s);
  env.settle();
  BOOST_TEST(env.is_current());
}

BOOST_AUTO_TEST_CASE(waiting_records_are_bounded) {
  environment env;
  env.told("a", 9);
  env.settle();
  env.left("a");
  env.poll();
  const std::string key(1000, 'k');
  std::uint64_t last = 0;
  for (int i = 0; i < 5000; ++i) last = env.told(key, static_cast<state_hash>(i) + 2);
  BOOST_TEST(env.under_test->written() == last);
  BOOST_TEST(env.under_test->state() == "failed");
  env.write();
  env.poll();
  BOOST_TEST(env.under_test->state() == "failed", "what was dropped is not in the file");
  env.left("c");
  env.write();
  env.poll();
  BOOST_TEST(env.rewrites == 2);
  BOOST_TEST(env.under_test->state() == "missing");
  env.settle();
  BOOST_TEST(env.is_current());
}

BOOST_AUTO_TEST_CASE(file_without_dropped_records_is_removed_before_it_is_written_whole) {
  environment env;
  env.told("a", 9);
  env.settle();
  env.left("a");
  env.poll();
  const std::string key(1000, 'k');
  for (int i = 0; i < 5000; ++i) env.told(key, static_cast<state_hash>(i) + 2);
  env.write();
  env.poll();
  BOOST_TEST(env.exists());
  const auto temporary = env.file + ".new";
  BOOST_REQUIRE(::mkfifo(temporary.c_str(), 0600) == 0);  // opening it waits for a reader
  std::thread disk([&] { env.write(); });
  const auto end = std::chrono::steady_clock::now() + test::patience;
  while (env.exists() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  BOOST_TEST(!env.exists());
  const std::ifstream reader(temporary);
  disk.join();
}

BOOST_AUTO_TEST_CASE(old_ledger_is_read_once) {
  environment env;
  std::filesystem::copy_file(rw::test::source_file("tests/fuzz/corpus/journal/old-ledger"),
                             env.file);
  auto content = env.open();
  BOOST_TEST(content.old_format);
  BOOST_TEST(!content.complete);
  BOOST_TEST(content.watches.at(specs).states.at("ns/a") == 10U);
  BOOST_TEST(content.series == "2");
  BOOST_TEST(env.under_test->state() == "read");
  env.told("ns/a", 10);
  env.settle();
  content = env.open();
  BOOST_TEST(content.complete);
  BOOST_TEST(content.series == "2");
}

BOOST_AUTO_TEST_CASE(file_that_is_too_large_is_not_read) {
  environment env;
  std::ofstream(env.file).close();
  std::filesystem::resize_file(env.file, (256u << 20) + 1);
  BOOST_TEST(env.open().reason == "it is larger than 268435456 bytes");
}

BOOST_AUTO_TEST_CASE(journal_without_a_file_waits_for_nothing) {
  environment env;
  env.file.clear();
  BOOST_TEST(!env.open().complete);
  BOOST_TEST(env.under_test->state() == "none");
  const auto position = env.told("a", 9);
  BOOST_TEST(position <= env.under_test->written());
  env.settle();
  BOOST_TEST(env.rewrites == 0);
}

BOOST_AUTO_TEST_CASE(torn_end_is_no_loss) {
  environment env;
  env.told("a", 9);
  env.settle();
  env.told("b", 9);
  env.settle();
  std::filesystem::resize_file(env.file, std::filesystem::file_size(env.file) - 1);
  const auto content = env.open();
  BOOST_TEST(content.complete);
  BOOST_TEST(content.watches.at(specs).states.size() == 1U);
  env.told("c", 9);
  env.settle();
  BOOST_TEST(env.is_current(), "nothing is appended to a torn end");
}

BOOST_AUTO_TEST_CASE(flush_waits_for_what_was_appended) {
  environment env;
  env.told("a", 9);
  core::task_group last(env.context.get_executor());
  last.spawn(env.under_test->flush());
  env.poll();
  BOOST_TEST(last.size() == 1U);
  env.write();
  env.poll();
  BOOST_TEST(last.size() == 0U);
  BOOST_TEST(env.is_current());
}

BOOST_AUTO_TEST_CASE(flush_ends_when_records_are_given_up_or_it_is_cancelled) {
  environment env;
  env.told("a", 9);
  core::task_group late(env.context.get_executor());
  late.spawn(env.under_test->flush());
  env.poll();
  env.advance(100ms);
  BOOST_TEST(late.size() == 0U);
  env.settle();
  env.told("b", 9);
  core::task_group cancelled(env.context.get_executor());
  cancelled.spawn(env.under_test->flush());
  env.poll();
  cancelled.cancel();
  env.poll();
  BOOST_TEST(cancelled.size() == 0U);
}

BOOST_AUTO_TEST_CASE(write_that_ends_after_the_journal_is_harmless) {
  environment env;
  env.left("a");
  env.poll();
  env.end();
  env.settle();
  BOOST_TEST(env.is_current());
}

BOOST_AUTO_TEST_CASE(thread_of_its_own_writes_and_ends) {
  environment env(true);
  test::run(env.context, [](environment* in) -> asio::awaitable<void> {
    for (int i = 0; i < 1000; ++i) {
      in->told(name(i), 7);
      if (i % 10 == 0) co_await in->under_test->flush();
    }
    co_await in->under_test->flush();
  }(&env));
  BOOST_TEST(env.is_current());
  env.end();
  BOOST_TEST(std::distance(std::filesystem::directory_iterator(env.directory), {}) == 1);
}

BOOST_AUTO_TEST_CASE(disk_that_hangs_delays_the_end_by_a_second_only) {
  environment env(true);
  const auto temporary = env.file + ".new";
  BOOST_REQUIRE(::mkfifo(temporary.c_str(), 0600) == 0);  // opening it waits for a reader
  env.left("a");
  env.poll();
  env.end();
  std::ifstream reader(temporary);
  const std::string bytes(std::istreambuf_iterator<char>(reader), {});
  BOOST_TEST(!bytes.empty());  // the thread that was left behind goes on, and ends
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::journal_test
