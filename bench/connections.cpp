// What a quiet connection costs: 1,000 TLS connections, each with one open HTTP/2 stream that has
// brought one event and now waits for the next, as the watches of idle clusters do. Server and
// client are processes of their own, so that each one's memory is seen for itself; each connection
// has a client and a TLS context of its own, as each cluster's has. Prints one line of JSON for
// each figure, with the limit that it must keep: resident memory, and what of it is allocated. Ends
// with 1 if the client misses one.
//
//   bench_connections [connections]

#include "rw/core/clock.hpp"
#include "rw/core/http/client.hpp"
#include "rw/core/http/server.hpp"
#include "rw/core/task_group.hpp"
#include "rw/core/wake.hpp"
#include "rw/core/watchdog.hpp"
#include "rw/tls/issuer.hpp"
#include "rw/tls/transport.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "bench/figure.hpp"
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <malloc.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

namespace asio = boost::asio;
using namespace rw;

constexpr double limit_kib = 64;

template <class T>
T need(tls::result<T> from) {
  if (!from) throw std::runtime_error(from.error().message());
  return std::move(*from);
}

/// What the process holds, in bytes.
struct memory {
  double resident = 0;
  double allocated = 0;

  static memory now() {
    ::malloc_trim(0);  // what was given back counts for nobody
    const auto info = ::mallinfo2();
    memory result;
    result.allocated = static_cast<double>(info.uordblks + info.hblkhd);
    std::ifstream status("/proc/self/statm");
    double pages = 0;
    status >> pages >> pages;
    result.resident = pages * static_cast<double>(::sysconf(_SC_PAGESIZE));
    return result;
  }
};

/// False if a limit is missed.
bool report(const std::string& side, const memory& before, const memory& after, int connections) {
  const auto print = [&](const char* kind, double bytes) {
    return bench::print({.name = "connections/" + side + kind,
                         .value = bytes / 1024 / connections,
                         .unit = "KiB",
                         .limit = limit_kib});
  };
  const bool resident = print("_resident", after.resident - before.resident);
  return print("_allocated", after.allocated - before.allocated) && resident;
}

/// What both sides need.
struct surroundings {
  surroundings() { tasks.spawn(watchdog.run()); }

  asio::io_context context{1};
  core::real_clock clock;
  core::metrics metrics;
  core::logger log{core::log_level::error};
  core::watchdog watchdog{clock, context.get_executor()};
  core::task_group tasks{context.get_executor()};
};

/// One event, and then nothing.
class quiet_watch final : public http::body_source {
 public:
  state read(std::string& into, std::size_t) override {
    into.append(400, 'x');
    into += '\n';
    return state::pending;
  }
  void on_ready(std::function<void()> ready) override { ready_ = std::move(ready); }

 private:
  std::function<void()> ready_;
};

class watches final : public http::handler {
 public:
  std::size_t body_limit(const http::request&) const override { return 0; }
  asio::awaitable<void> handle(http::request&, http::response& into) override {
    into.headers.add("content-type", "application/json");
    into.source = std::make_unique<quiet_watch>();
    return {};
  }
};

/// The server's process: says its port, then measures at each byte that it is sent.
int serve(int from_client, int to_client, const tls::issuer& ca, int connections) {
  surroundings here;
  const auto own =
      need(ca.issue({.common_name = "server", .ips = {"127.0.0.1"}, .server_auth = true}));
  const auto transport = need(tls::make_server_transport(need(tls::credentials::from_text(
      {.certificate = own.certificate, .key = own.key, .ca = ca.certificate_pem()}))));
  watches answers;
  http::server server(here.context.get_executor(),
                      {"bench", {asio::ip::address_v4::loopback(), 0}, {.connections = 1u << 20}},
                      answers, {*transport, here.watchdog, here.log, here.metrics});
  here.tasks.spawn(server.run());
  const auto port = server.address().port();
  if (::write(to_client, &port, sizeof port) != sizeof port) return 1;
  asio::posix::stream_descriptor pipe(here.context, from_client);
  std::array<char, 1> signal{};
  memory before;
  const std::function<void(boost::system::error_code, std::size_t)> measure =
      [&](boost::system::error_code error, std::size_t) {
        if (error) return here.context.stop();
        if (before.resident == 0) {
          before = memory::now();
        } else {
          report("server", before, memory::now(), connections);
        }
        if (::write(to_client, "x", 1) != 1) here.context.stop();
        pipe.async_read_some(asio::buffer(signal), measure);
      };
  pipe.async_read_some(asio::buffer(signal), measure);
  here.context.run();
  std::_Exit(0);  // the connections are still open, which is the point
}

/// One cluster's client, with its watch.
class watcher final : public http::body_sink {
 public:
  watcher(surroundings& here, const std::string& ca, std::uint16_t port, core::wake& seen)
      : seen_(seen),
        transport_(need(tls::make_client_transport(
            need(tls::credentials::from_text({.certificate = {}, .key = {}, .ca = ca})),
            {.server_name = "127.0.0.1"}))),
        client_(here.context.get_executor(), {"bench", "127.0.0.1", port, {}},
                {*transport_, here.watchdog, here.log, here.metrics}) {
    what_.method = "GET";
    what_.target = "/watch";
  }

  bool take(std::string_view bytes) override {
    if (bytes.ends_with('\n')) seen_.set();
    return true;
  }

  static asio::awaitable<void> watch(watcher* self) {
    http::client_slot slot;
    const auto refused = co_await self->client_.acquire(slot);
    if (refused) throw std::runtime_error("cannot connect: " + refused.message());
    const auto error = co_await slot.exchange(self->what_, self->answer_,
                                              {.sink = self, .limit = std::chrono::hours(1)});
    throw std::runtime_error("the watch ended: " + error.message());
  }

 private:
  core::wake& seen_;
  const std::unique_ptr<core::transport> transport_;
  http::client client_;
  http::request what_;
  http::response answer_;
};

struct link {
  int to_server;
  int from_server;

  void measure() const {
    char answer = 0;
    if (::write(to_server, "x", 1) != 1 || ::read(from_server, &answer, 1) != 1) {
      throw std::runtime_error("the server has gone");
    }
  }
};

asio::awaitable<void> connect(surroundings* here, link server, std::string ca, std::uint16_t port,
                              int connections) {
  static std::vector<std::unique_ptr<watcher>> all;
  core::wake seen(here->context.get_executor());
  memory before;
  for (int i = 0; i <= connections; ++i) {
    all.push_back(std::make_unique<watcher>(*here, ca, port, seen));
    here->tasks.spawn(watcher::watch(all.back().get()));
    co_await seen.wait();
    if (i > 0) continue;
    // The first one is not counted: it makes what all share.
    server.measure();
    before = memory::now();
  }
  server.measure();
  std::_Exit(report("client", before, memory::now(), connections) ? 0 : 1);
}

int run(int connections) {
  ::signal(SIGPIPE, SIG_IGN);
  const rlimit files{static_cast<rlim_t>(2 * connections + 100), static_cast<rlim_t>(1u << 20)};
  rlimit now{};
  ::getrlimit(RLIMIT_NOFILE, &now);
  if (now.rlim_cur < files.rlim_cur) {
    now.rlim_cur = std::min(now.rlim_max, files.rlim_cur);
    ::setrlimit(RLIMIT_NOFILE, &now);
  }
  const auto ca = need(tls::issuer::create({.common_name = "bench"}));
  std::array<int, 2> down{};
  std::array<int, 2> up{};
  if (::pipe(down.data()) != 0 || ::pipe(up.data()) != 0) throw std::runtime_error("no pipe");
  const auto child = ::fork();
  if (child == 0) {
    ::close(down[1]);
    ::close(up[0]);
    return serve(down[0], up[1], ca, connections);
  }
  ::close(down[0]);
  ::close(up[1]);
  std::uint16_t port = 0;
  if (::read(up[0], &port, sizeof port) != sizeof port) throw std::runtime_error("no server");
  surroundings here;
  here.tasks.spawn(connect(&here, {down[1], up[0]}, ca.certificate_pem(), port, connections));
  here.context.run();
  throw std::runtime_error("the watches ended");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? std::max(1, std::atoi(argv[1])) : 1000);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_connections: %s\n", e.what());
    return 1;
  }
}
