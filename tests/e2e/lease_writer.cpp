// A manager in small, for leader_test.py: tries for a Lease, and while it leads writes its identity
// and a counter into a ConfigMap, over and over. Says what it does on standard output, one JSON
// object a line.
//
//   lease_writer KUBECONFIG IDENTITY [--no-fence]
//
// SIGTERM ends it in order, with the lease given back. Without the fence it shows what the fence is
// for.

#include "rw/core/task_group.hpp"
#include "rw/core/watchdog.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/controller/leader_election.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace {

namespace asio = boost::asio;
namespace core = rw::core;
namespace json = boost::json;
using namespace rw::k8s;
using namespace std::chrono_literals;

constexpr auto between_writes = 20ms;

void say(const json::object& what) {
  const auto line = json::serialize(what) + "\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

class lease_writer {
 public:
  lease_writer(asio::any_io_executor executor, const config& how, std::string identity, bool fenced)
      : executor_(std::move(executor)),
        identity_(std::move(identity)),
        leases_(executor_, how,
                {.name = "lease", .user_agent = "lease-writer", .field_manager = identity_},
                environment()),
        writes_(client(executor_, how,
                       {.name = "writes", .user_agent = "lease-writer", .field_manager = identity_},
                       environment())
                    .fenced(fenced ? fence_ : nullptr)),
        elector_(executor_, objects_of(leases_),
                 {.ns = "default",
                  .name = "writer",
                  .identity = identity_,
                  .lease_duration = 3s,
                  .renew_deadline = 2s,
                  .retry_period = 500ms,
                  .margin = 500ms},
                 {[this] { return lead(); }}, *fence_,
                 {clock_, log_, metrics_, core::make_random_source()}),
        around_(executor_),
        tasks_(executor_) {}

  /// Until a signal comes.
  asio::awaitable<void> run() {
    asio::signal_set signals(executor_, SIGTERM);
    around_.spawn(watchdog_.run());
    tasks_.spawn(elector_.run());
    co_await signals.async_wait(asio::use_awaitable);
    tasks_.cancel();
    co_await tasks_.join();
    co_await writes_.close();
    co_await leases_.close();
    around_.cancel();
    co_await around_.join();
  }

 private:
  client_environment environment() { return {clock_, watchdog_, log_, metrics_}; }

  /// What only the leader may do.
  asio::awaitable<void> lead() {
    say({{"event", "leading"}});
    const auto alarm = clock_.make_timer(executor_);
    for (bool more = true; more;) {
      // A write that was begun is awaited, also when the term is over: given up, it might be
      // carried out after the lease was given back.
      co_await asio::this_coro::reset_cancellation_state(asio::enable_terminal_cancellation(),
                                                         asio::disable_cancellation());
      co_await write();
      const auto state = co_await asio::this_coro::cancellation_state;
      if (state.cancelled() != asio::cancellation_type::none) break;
      co_await asio::this_coro::reset_cancellation_state();
      alarm->expires_at(clock_.now() + between_writes);
      more = co_await alarm->wait();
    }
    say({{"event", "over"}});
  }

  asio::awaitable<void> write() {
    const auto number = std::to_string(++written_);
    json::value change = {{"data", {{"writer", identity_}, {"n", number}}}};
    const auto done = co_await writes_.patch(configmaps(), {"default", "counter"},
                                             patch_type::merge, std::move(change));
    if (done.has_value()) {
      const auto& version = done->at("metadata").at("resourceVersion").as_string();
      say({{"event", "wrote"}, {"n", number}, {"version", version}});
    } else {
      say({{"event", done.error().is(errc::fenced) ? "fenced" : "failed"},
           {"n", number},
           {"why", done.error().message}});
    }
  }

  static resource_type configmaps() {
    return {.gvk = {"", "v1", "ConfigMap"}, .plural = "configmaps", .namespaced = true};
  }

  const asio::any_io_executor executor_;
  const std::string identity_;
  core::real_clock clock_;
  core::metrics metrics_;
  core::logger log_;
  core::watchdog watchdog_{clock_, executor_, 100ms};
  const std::shared_ptr<fence> fence_ = std::make_shared<fence>(clock_);
  client leases_;
  client writes_;
  leader_elector elector_;
  core::task_group around_;
  core::task_group tasks_;
  unsigned written_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const bool fenced = argc < 4 || std::string_view(argv[3]) != "--no-fence";
  if (argc < 3 || argc > 4 || (argc == 4 && fenced)) {
    std::fputs("usage: lease_writer KUBECONFIG IDENTITY [--no-fence]\n", stderr);
    return 2;
  }
  const auto how = load_kubeconfig({argv[1]});
  if (!how) {
    std::fprintf(stderr, "lease_writer: %s\n", how.error().message.c_str());
    return 1;
  }
  asio::io_context context(1);
  lease_writer writer(context.get_executor(), *how, argv[2], fenced);
  std::exception_ptr failure;
  asio::co_spawn(context, writer.run(), [&](std::exception_ptr thrown) { failure = thrown; });
  context.run();
  if (!failure) return 0;
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "lease_writer: %s\n", e.what());
  }
  return 1;
}
