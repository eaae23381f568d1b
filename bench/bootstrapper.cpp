// How fast a rotated pull Secret comes to many runtimes while some of them hang: the reactor, and
// an embedded API server that is the control plane and all runtimes, in one process with a thread
// each. Prints one line of JSON for each figure. Ends with 1 if 99 % of the runtimes do not have it
// within the limit.
//
//   bench_bootstrapper [runtimes [hanging [limit in seconds [0: runtimes are not watched]]]]
//
// The resident set of this process, with and without watches, has what they cost both sides.

#include <boost/asio/co_spawn.hpp>

#include "bench/figure.hpp"
#include "tests/unit/bootstrapper/test_env.hpp"
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

namespace asio = boost::asio;
using rw::bootstrapper_test::test_env;
using namespace std::chrono_literals;

/// The API server, on a thread of its own.
class host : public rw::test::environment {
 public:
  explicit host(std::size_t runtimes) {
    for (std::size_t i = 0; i < runtimes; ++i) add_cluster("r" + std::to_string(i));
    on_request = [this](const std::string& cluster, const std::string&, const std::string&) {
      rw::k8s::devserver::fault out;
      if (std::stoul(cluster.substr(1)) < hanging) out.latency = 1h;
      return out;
    };
  }
  void start() {
    thread_ = std::thread([this] { context.run(); });
  }

  std::atomic<std::size_t> hanging = 0;

 private:
  std::thread thread_;
};

rw::bootstrapper::direct_sync_options options(bool watch) {
  rw::bootstrapper::direct_sync_options out;
  out.mode = rw::bootstrapper_mode::direct;
  out.watch_runtimes = watch;
  out.create_for_runtimes = true;
  out.ready_interval = out.ready_interval_limit = 1h;  // there are no pods
  return out;
}

/// Seconds until so many runtimes have what is wanted; negative: not within the limit.
asio::awaitable<double> until_current(test_env* of, std::size_t count, std::chrono::seconds limit) {
  const auto begin = of->clock.now();
  const auto pause = of->clock.make_timer(of->context.get_executor());
  for (;;) {
    const std::chrono::duration<double> passed = of->clock.now() - begin;
    if (of->reactor->contents().count("current") >= count) co_return passed.count();
    if (passed > limit) co_return -1;
    pause->expires_at(of->clock.now() + 5ms);
    co_await pause->wait();
  }
}

double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

asio::awaitable<void> measure(test_env* of, host* with, std::size_t count, std::size_t hanging,
                              std::chrono::seconds limit, int* result) {
  co_await of->begin();
  for (std::size_t i = 0; i < count; ++i) {
    co_await of->register_runtime("r" + std::to_string(i));
  }
  const auto installed = co_await until_current(of, count, 300s);
  if (installed < 0) throw std::runtime_error("the runtimes were not installed in time");
  rw::bench::print({.name = "bootstrapper/installed", .value = installed, .unit = "s"});
  with->hanging = hanging;
  const auto cpu = cpu_seconds();
  co_await of->set_source(rw::bootstrapper_test::pull_secret("second"));
  // It is noticed by the watch, which marks all at once.
  const auto pause = of->clock.make_timer(of->context.get_executor());
  const auto begin = of->clock.now();
  while (of->reactor->contents().count("current") == count && of->clock.now() - begin < limit) {
    pause->expires_at(of->clock.now() + 1ms);
    co_await pause->wait();
  }
  const auto enough = (count * 99 + 99) / 100;
  const auto taken = co_await until_current(of, enough, limit);
  const std::chrono::duration<double> passed = of->clock.now() - begin;
  const auto used = cpu_seconds() - cpu;
  const bool kept = rw::bench::print({.name = "bootstrapper/rotated_pull_secret_on_99_percent",
                                      .value = passed.count(),
                                      .unit = "s",
                                      .peer = std::to_string(hanging) + " hang",
                                      .limit = static_cast<double>(limit.count())});
  rw::bench::print({.name = "bootstrapper/cpu_of_both_sides_for_a_runtime",
                    .value = 1000 * used / static_cast<double>(count),
                    .unit = "ms"});
  *result = kept && taken >= 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int at, std::size_t usual) {
    return argc > at ? static_cast<std::size_t>(std::strtoul(argv[at], nullptr, 10)) : usual;
  };
  const auto count = number(1, 1000);
  const auto hanging = number(2, count / 100);
  const std::chrono::seconds limit(number(3, 10));
  host with(count);
  test_env of(options(number(4, 1) != 0),
              {.capacity = 2 * count, .client = {.name = "runtimes", .request = 5s, .retries = 1}});
  of.use("kcp", with.kubeconfig("kcp"));
  for (std::size_t i = 0; i < count; ++i) {
    const auto name = "r" + std::to_string(i);
    of.use(name, with.kubeconfig(name));
  }
  with.start();
  int result = 1;
  asio::co_spawn(of.context, measure(&of, &with, count, hanging, limit, &result),
                 [&](const std::exception_ptr& failed) {
                   if (failed) {
                     try {
                       std::rethrow_exception(failed);
                     } catch (const std::exception& e) {
                       std::fprintf(stderr, "%s\n", e.what());
                     }
                   }
                   std::fflush(stdout);
                   std::_Exit(result);  // thousands of connections need not be closed one by one
                 });
  of.context.run();
}
