// What a listener costs: CPU of its thread for each event of batches of 256, all of which the host
// takes at once, against Boost.JSON, which parses the same bytes and does nothing else; and how
// much the process grows between the first and the last of a million of these.
//
// And what a runtime that floods costs another: the time from sending an event until the host has
// it. The host takes 1,000 events a second. The one that floods sends batches of 512 events over 8
// connections without a pause, whatever the responses; the other sends one event at a time, and
// repeats it after 100 ms when it gets 503. Without the flood, with it, and with it where both have
// one certificate and thus one share of the listener's queue, which is what every runtime would
// have without shares. Prints one line of JSON for each figure, with its limit; ends with 1 where
// one is missed.
//
//   bench_listener

#include "rw/reactors/intake/listener.hpp"

#include "rw/tls/issuer.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/asio/write.hpp>
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/parse.hpp>

#include "bench/figure.hpp"
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <ctime>
#include <exception>
#include <fstream>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

namespace asio = boost::asio;
using namespace rw;
using clock_type = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto patience = 3s;  // an event that takes longer counts as this

double milliseconds(clock_type::duration of) {
  return std::chrono::duration<double, std::milli>(of).count();
}

std::string event_of(const std::string& name) {
  return R"({"watched":{"Namespace":"kyma-system","Name":")" + name +
         R"("},"watchedGvk":{"group":"","version":"v1","kind":"ConfigMap"}})";
}

/// Events of objects that no other batch has.
std::string batch_of(int events, int number) {
  std::string out;
  for (int i = 0; i < events; ++i) {
    out += (i == 0 ? "[" : ",") + event_of(std::to_string(number) + "-" + std::to_string(i));
  }
  return out + "]";
}

/// The header by which a gateway names a runtime.
std::string sender_of(const std::string& runtime) {
  const auto made = tls::issuer::create({.common_name = runtime});
  if (!made) throw std::runtime_error(made.error().message());
  std::string header = "x-forwarded-client-cert: Cert=\"";
  for (const char each : made->certificate_pem()) {
    std::array<char, 4> code{};
    std::snprintf(code.data(), code.size(), "%%%02X", static_cast<unsigned>(each));
    header += code.data();
  }
  return header + "\"\r\n";
}

/// A connection that waits for each response.
class connection {
 public:
  explicit connection(const asio::ip::tcp::endpoint& to) {
    socket_.connect(to);
    socket_.set_option(asio::ip::tcp::no_delay(true));
  }

  static std::string request(const std::string& form, const std::string& sender,
                             const std::string& body) {
    return "POST /v2/m/" + form + " HTTP/1.1\r\nhost: h\r\n" + sender +
           "content-length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

  /// Returns the status.
  int send(const std::string& request) {
    asio::write(socket_, asio::buffer(request));
    const auto head = asio::read_until(socket_, asio::dynamic_buffer(in_), "\r\n\r\n");
    const auto length = in_.find("content-length: ");
    const auto body = length < head ? std::stoul(in_.substr(length + 16)) : 0;
    const auto rest = head + body - std::min(in_.size(), head + body);
    asio::read(socket_, asio::dynamic_buffer(in_), asio::transfer_exactly(rest));
    const auto status = std::stoi(in_.substr(9, 3));
    in_.erase(0, head + body);
    return status;
  }

 private:
  asio::io_context context_;
  asio::ip::tcp::socket socket_{context_};
  std::string in_;
};

/// How a host takes events.
enum class host_rate { thousand_a_second, at_once };

/// A listener on a thread of its own, and a host that takes events on that thread, or slowly on
/// another one.
class control_plane {
 public:
  explicit control_plane(host_rate rate) {
    tasks_.spawn(watchdog_.run());
    tasks_.spawn(made_.runnable->run());
    if (rate == host_rate::at_once) tasks_.spawn(take_at_once());
    library_ = std::jthread([this] { context_.run(); });
    if (rate == host_rate::at_once) return;
    host_ = std::jthread([this](std::stop_token stop) { take_slowly(stop); });
  }
  ~control_plane() {
    host_.request_stop();
    asio::co_spawn(context_, finish(), asio::use_future).get();
    keeps_running_.reset();
  }
  control_plane(const control_plane&) = delete;
  control_plane& operator=(const control_plane&) = delete;

  asio::ip::tcp::endpoint address() const { return made_.runnable->address(); }

  /// CPU that the listener's thread has had.
  std::chrono::nanoseconds cpu() {
    clockid_t clock{};
    timespec now{};
    pthread_getcpuclockid(library_.native_handle(), &clock);
    clock_gettime(clock, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
  }

  /// Waits until the host has taken as many.
  void wait_until_taken(std::size_t events) const {
    for (const auto end = clock_type::now() + patience; taken_ < events;) {
      if (clock_type::now() > end) throw std::runtime_error("the host lacks events");
      std::this_thread::yield();
    }
  }

  /// Waits until the host has the object's event; returns when that was, or `until`.
  clock_type::time_point arrival(const std::string& name, clock_type::time_point until) {
    std::unique_lock lock(guard_);
    const bool seen = arrived_.wait_until(lock, until, [&] { return seen_.contains(name); });
    return seen ? seen_.extract(name).mapped() : until;
  }

 private:
  asio::awaitable<void> finish() {
    tasks_.cancel();
    try {
      co_await tasks_.join();
    } catch (const boost::system::system_error&) {  // cancelled, and joined
    }
  }

  asio::awaitable<void> take_at_once() {
    std::vector<listener::received_event> some;
    for (;;) {
      const auto got = co_await made_.events->receive_some(some, 1024);
      if (got.has_error()) co_return;
      taken_ += *got;
      some.clear();
    }
  }

  void take_slowly(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::promise<std::string> next;
      auto name = next.get_future();
      made_.events->async_receive(
          [&next](boost::system::error_code, std::optional<listener::received_event> one) {
            next.set_value(one ? one->event.watched.name : "");
          });
      const auto got = name.get();
      if (got.starts_with("other")) {
        const std::lock_guard lock(guard_);
        seen_[got] = clock_type::now();
        arrived_.notify_all();
      }
      std::this_thread::sleep_for(1ms);
    }
  }

  static listener::listener_options options() {
    listener::listener_options out;
    out.address = {asio::ip::address_v4::loopback(), 0};
    out.component = "m";
    return out;
  }

  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> keeps_running_{
      context_.get_executor()};
  core::real_clock clock_;
  core::metrics metrics_;
  core::logger log_{core::log_level::error, [](std::string_view) {}};
  core::watchdog watchdog_{clock_, context_.get_executor()};
  listener::registration made_ = listener::register_component(context_.get_executor(), options(),
                                                              {clock_, watchdog_, log_, metrics_});
  core::task_group tasks_{context_.get_executor()};
  std::mutex guard_;
  std::condition_variable arrived_;
  std::map<std::string, clock_type::time_point> seen_;
  std::atomic<std::size_t> taken_ = 0;
  std::jthread library_;
  std::jthread host_;
};

/// Floods until it is destroyed.
class flood {
 public:
  flood(const asio::ip::tcp::endpoint& to, const std::string& sender) {
    for (int number = 0; number < 8; ++number) {
      threads_.emplace_back([=](std::stop_token stop) {
        std::vector<std::string> requests;
        for (int batch = 0; batch < 16; ++batch) {
          requests.push_back(
              connection::request("events", sender, batch_of(512, number * 16 + batch)));
        }
        connection own(to);
        for (std::size_t i = 0; !stop.stop_requested(); ++i) own.send(requests[i % 16]);
      });
    }
    std::this_thread::sleep_for(500ms);  // until it has filled what it can
  }

 private:
  std::vector<std::jthread> threads_;
};

/// Sends events one at a time; returns the 99th percentile of their times in milliseconds.
double late(control_plane& to, const std::string& sender, int events) {
  static int number = 0;
  connection own(to.address());
  std::vector<double> times;
  for (int i = 0; i < events; ++i) {
    const auto name = "other-" + std::to_string(number++);
    const auto request = connection::request("event", sender, event_of(name));
    const auto begun = clock_type::now();
    const auto end = begun + patience;
    while (own.send(request) != 200 && clock_type::now() < end) std::this_thread::sleep_for(100ms);
    times.push_back(milliseconds(to.arrival(name, end) - begun));
  }
  std::ranges::sort(times);
  return times[(times.size() * 99 + 99) / 100 - 1];
}

std::size_t resident() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// Nanoseconds of this thread's CPU for each event that Boost.JSON parses, into memory that is
/// there.
double parsing(const std::vector<std::string>& batches, std::size_t events) {
  std::vector<unsigned char> memory(1U << 20);
  const auto cpu = [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
  };
  const auto begun = cpu();
  for (int round = 0; round < 20; ++round) {
    for (const std::string& batch : batches) {
      boost::json::monotonic_resource resource(memory.data(), memory.size());
      const auto parsed = boost::json::parse(batch, &resource);
      if (!parsed.is_array()) throw std::runtime_error("a batch is no array");
    }
  }
  return (cpu() - begun) / (20.0 * static_cast<double>(batches.size() * events));
}

/// A million events in batches of 256, one request at a time; false if a limit is missed.
bool batches() {
  constexpr std::size_t events = 256;
  constexpr std::size_t requests = 4000;
  constexpr std::size_t first = 200;  // after which nothing grows
  const auto sender = sender_of("sender");
  std::vector<std::string> bodies;
  for (int i = 0; i < 64; ++i) bodies.push_back(batch_of(events, i));
  std::vector<std::string> sent;
  for (const std::string& body : bodies) {
    sent.push_back(connection::request("events", sender, body));
  }
  control_plane kcp(host_rate::at_once);
  connection own(kcp.address());
  std::chrono::nanoseconds cpu{};
  std::size_t memory = 0;
  for (std::size_t i = 0; i < requests; ++i) {
    if (i == first) {
      cpu = kcp.cpu();
      memory = resident();
    }
    if (const int status = own.send(sent[i % sent.size()]); status != 200) {
      throw std::runtime_error("a batch was answered with " + std::to_string(status));
    }
    kcp.wait_until_taken((i + 1) * events);
  }
  const auto each = std::chrono::duration<double, std::nano>(kcp.cpu() - cpu).count() /
                    static_cast<double>((requests - first) * events);
  const auto grown = resident() - std::min(memory, resident());
  const bool is_fast = bench::print({.name = "listener/batch_event",
                                     .value = each,
                                     .unit = "ns of CPU",
                                     .peer = "Boost.JSON parses the same bytes",
                                     .peer_value = parsing(bodies, events),
                                     .ratio_limit = 4});
  return bench::print({.name = "listener/growth_over_a_million_events",
                       .value = static_cast<double>(grown) / (1U << 20),
                       .unit = "MiB",
                       .limit = 1}) &&
         is_fast;
}

int run() {
  const bool batches_kept = batches();
  const auto flooding = sender_of("flooding");
  const auto other = sender_of("other");
  control_plane kcp(host_rate::thousand_a_second);
  const auto idle = late(kcp, other, 200);
  const flood from(kcp.address(), flooding);
  const auto shares = late(kcp, other, 200);
  const auto one_share = late(kcp, flooding, 2);
  const auto report = [](const char* name, double value, double limit, double at_least) {
    return bench::print({.name = std::string("listener/") + name,
                         .value = value,
                         .unit = "ms, p99",
                         .limit = limit,
                         .at_least = at_least});
  };
  const bool idle_kept = report("idle", idle, 50, 0);
  const bool shares_kept = report("flooded", shares, std::max(50.0, 3 * idle), 0);
  return report("flooded_one_share", one_share, 0, 1000) && shares_kept && idle_kept && batches_kept
             ? 0
             : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_listener: %s\n", e.what());
    return 1;
  }
}
