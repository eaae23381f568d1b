#include "rw/k8s/config/process.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/http/host.hpp"
#include "tests/unit/tls/scratch.hpp"
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

BOOST_AUTO_TEST_SUITE(process)

using namespace rw::k8s;
using rw::http::test::eventually;
using rw::http::test::host;
namespace asio = boost::asio;

namespace {

process_request shell(std::string script) {
  return {.command = "sh", .arguments = {"-c", std::move(script)}};
}

process_result ran(host& here, process_request program) {
  return here.call(run_process(here.executor(), here.watchdog, std::move(program)));
}

}  // namespace

BOOST_AUTO_TEST_CASE(output_errors_and_status_are_told) {
  host here;
  const auto got = ran(here, shell("echo out; echo err >&2; exit 3"));
  BOOST_TEST(got.error == "");
  BOOST_TEST(got.started);
  BOOST_TEST(got.output == "out\n");
  BOOST_TEST(got.errors == "err\n");
  BOOST_TEST(got.status == 3);
  BOOST_TEST(ran(here, shell("kill -TERM $$")).status == 128 + SIGTERM);
}

BOOST_AUTO_TEST_CASE(program_gets_the_environment_and_no_input) {
  host here;
  auto program = shell("cat; echo $PATH; echo $MORE; echo \"$1\"");
  program.arguments.insert(program.arguments.end(), {"sh", "an argument"});
  program.environment = {{"MORE", "more"}, {"PATH", "/usr/bin:/bin"}};
  BOOST_TEST(ran(here, program).output == "/usr/bin:/bin\nmore\nan argument\n");
}

BOOST_AUTO_TEST_CASE(program_that_is_missing_is_not_started) {
  host here;
  for (const auto* name : {"no-such-program", "/no/such/program", "/tmp"}) {
    const auto got = ran(here, {.command = name});
    BOOST_TEST(!got.started);
    BOOST_TEST(got.error.starts_with("cannot be started: "), got.error);
  }
}

BOOST_AUTO_TEST_CASE(program_beyond_its_time_limit_is_killed_with_its_children) {
  host here;
  const rw::tls::test::scratch dir;
  auto program = shell("sleep 1000 & echo $! > " + dir.in("child") + "; wait");
  program.limit = std::chrono::milliseconds(300);
  const auto got = ran(here, program);
  BOOST_TEST(got.error == "did not end within 0 s");
  pid_t child = 0;
  std::ifstream(dir.in("child")) >> child;
  BOOST_REQUIRE(child > 0);
  // Orphaned, it is reaped by init, or stays a zombie where there is none.
  BOOST_TEST(eventually([&] {
    std::string state;
    std::ifstream stat("/proc/" + std::to_string(child) + "/stat");
    return !(stat >> state >> state >> state) || state == "Z";
  }));
}

BOOST_AUTO_TEST_CASE(program_beyond_its_output_limit_is_killed) {
  host here;
  auto program = shell("yes");
  program.output_bytes = 100'000;
  BOOST_TEST(ran(here, program).error == "wrote more than 100000 bytes");
  const auto got = ran(here, shell("yes nonsense | head -c 1000000 >&2; echo last >&2; exit 1"));
  BOOST_TEST(got.status == 1);
  BOOST_TEST(got.errors.size() <= 16 * 1024);
  BOOST_TEST(got.errors.ends_with("last\n"));
}

BOOST_AUTO_TEST_CASE(remaining_child_does_not_delay_the_end_of_its_program) {
  host here;
  const auto got = ran(here, shell("sleep 30 & echo done"));
  BOOST_TEST(got.error == "");
  BOOST_TEST(got.output == "done\n");
}

BOOST_AUTO_TEST_CASE(program_is_killed_when_its_caller_is_cancelled) {
  host here;
  const rw::tls::test::scratch dir;
  asio::cancellation_signal stop;
  auto done = asio::co_spawn(
      here.context,
      run_process(here.executor(), here.watchdog, shell("touch " + dir.in("up") + "; sleep 1000")),
      asio::bind_cancellation_slot(stop.slot(), asio::use_future));
  BOOST_TEST(eventually([&] { return std::filesystem::exists(dir.in("up")); }));
  here.on_thread([&] { stop.emit(asio::cancellation_type::terminal); });
  BOOST_TEST(done.get().error == "was cancelled");
}

BOOST_AUTO_TEST_SUITE_END()
