// Sends one request over HTTP/1.1 again and again at a constant rate, whatever the responses, as
// clients do that do not know of each other. The time of a request begins when it was due, also if
// every connection was still busy then: a server that stops for a second delays each request of
// that second, not one for each connection (G. Tene, "How NOT to measure latency": coordinated
// omission). Prints one line of JSON.
//
//   bench_open_loop --to IP:PORT --path PATH --body FILE [--header LINE]... [--tls]
//                   [--rate N] [--seconds N] [--connections N]
//
// The body's text @NUMBER@ becomes the request's number, of eight digits as well.

#include <CLI/CLI.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/impl/src.hpp>  // the house's own TLS has no need of it
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using asio::use_awaitable;
using asio::ip::tcp;
using clock_type = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::string_view placeholder = "@NUMBER@";

struct load {
  std::string to;
  std::string path;
  std::string body_file;
  std::vector<std::string> headers;
  bool tls = false;
  double rate = 1000;
  double seconds = 4;
  std::size_t connections = 32;
};

/// The bytes of each request, in which the number is written in place.
class request {
 public:
  explicit request(const load& of) {
    std::ifstream file(of.body_file, std::ios::binary);
    if (!file) throw std::runtime_error("can't read " + of.body_file);
    const std::string body{std::istreambuf_iterator<char>(file), {}};
    text_ = "POST " + of.path + " HTTP/1.1\r\nhost: " + of.to + "\r\n";
    for (const auto& line : of.headers) text_ += line + "\r\n";
    text_ += "content-length: " + std::to_string(body.size()) + "\r\n\r\n";
    const auto at = body.find(placeholder);
    if (at != std::string::npos) number_ = text_.size() + at;
    text_ += body;
  }

  asio::const_buffer numbered(std::size_t number) {
    for (auto i = placeholder.size(); number_ && i-- > 0; number /= 10) {
      text_[*number_ + i] = static_cast<char>('0' + number % 10);
    }
    return asio::buffer(text_);
  }

 private:
  std::string text_;
  std::optional<std::size_t> number_;
};

/// What all connections share: whose turn is when, and the times so far.
class schedule {
 public:
  explicit schedule(const load& of)
      : interval_(1.0 / of.rate), all_(static_cast<std::size_t>(of.rate * of.seconds)) {
    times_.reserve(all_);
  }

  void begin() { begun_ = clock_type::now() + 50ms; }
  /// The next request's number; nothing: all were sent.
  std::optional<std::size_t> next() { return next_ < all_ ? std::optional(next_++) : std::nullopt; }
  clock_type::time_point due(std::size_t number) const {
    return begun_ + std::chrono::duration_cast<clock_type::duration>(interval_ *
                                                                     static_cast<double>(number));
  }
  void responded(std::size_t number, bool well) {
    times_.push_back(clock_type::now() - due(number));
    failed_ += well ? 0 : 1;
  }

  void print() {
    std::ranges::sort(times_);
    const auto at = [this](double share) {
      if (times_.empty()) return 0.0;
      const auto rank = std::ceil(share * static_cast<double>(times_.size()));
      const auto index = static_cast<std::size_t>(std::max(rank, 1.0)) - 1;
      return std::chrono::duration<double, std::milli>(times_[index]).count();
    };
    std::printf(
        R"({"requests":%zu,"lost":%zu,"failed":%zu,"p50":%.4f,"p99":%.4f,"p999":%.4f,"max":%.4f})"
        "\n",
        times_.size(), all_ - times_.size(), failed_, at(0.5), at(0.99), at(0.999), at(1));
  }

 private:
  const std::chrono::duration<double> interval_;
  const std::size_t all_;
  std::size_t next_ = 0;
  std::size_t failed_ = 0;
  clock_type::time_point begun_;
  std::vector<clock_type::duration> times_;
};

/// Reads a response; whether it is 200.
template <class Stream>
asio::awaitable<bool> read_response(Stream& from, std::string& in) {
  constexpr std::string_view length_field = "content-length: ";
  const auto head =
      co_await asio::async_read_until(from, asio::dynamic_buffer(in), "\r\n\r\n", use_awaitable);
  std::transform(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(head), in.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const auto length = in.find(length_field);
  if (length >= head) throw std::runtime_error("a response without content-length");
  const auto all = head + std::stoul(in.substr(length + length_field.size(), 20));
  if (in.size() < all) {
    co_await asio::async_read(from, asio::dynamic_buffer(in),
                              asio::transfer_exactly(all - in.size()), use_awaitable);
  }
  const bool well = in.starts_with("http/1.1 200");
  in.erase(0, all);
  co_return well;
}

template <class Stream>
asio::awaitable<void> send_all(Stream& stream, request send, schedule& of) {
  asio::steady_timer timer(stream.get_executor());
  std::string in;
  while (const auto number = of.next()) {
    const auto due = of.due(*number);
    if (clock_type::now() < due) {
      timer.expires_at(due);
      co_await timer.async_wait(use_awaitable);
    }
    co_await asio::async_write(stream, send.numbered(*number), use_awaitable);
    const bool well = co_await read_response(stream, in);
    of.responded(*number, well);
  }
}

tcp::endpoint endpoint_of(const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos) throw std::runtime_error("--to is IP:PORT");
  const auto port = std::stoul(text.substr(colon + 1));
  return {asio::ip::make_address(text.substr(0, colon)), static_cast<unsigned short>(port)};
}

asio::awaitable<void> run_connections(const load& of, schedule& when) {
  const auto executor = co_await asio::this_coro::executor;
  asio::ssl::context context(asio::ssl::context::tls_client);
  std::vector<asio::ssl::stream<tcp::socket>> streams;
  streams.reserve(of.connections);
  for (std::size_t i = 0; i < of.connections; ++i) {
    auto& stream = streams.emplace_back(tcp::socket(executor), context);
    co_await stream.next_layer().async_connect(endpoint_of(of.to), use_awaitable);
    stream.next_layer().set_option(tcp::no_delay(true));
    if (of.tls) {
      co_await stream.async_handshake(asio::ssl::stream_base::client, use_awaitable);
    }
  }
  const request one(of);
  when.begin();
  std::size_t busy = streams.size();
  asio::steady_timer ended(executor, clock_type::time_point::max());
  for (auto& stream : streams) {
    const auto done = [&](const std::exception_ptr& error) {
      if (error) std::fprintf(stderr, "bench_open_loop: a connection failed\n");
      if (--busy == 0) ended.cancel();
    };
    if (of.tls) {
      asio::co_spawn(executor, send_all(stream, one, when), done);
    } else {
      asio::co_spawn(executor, send_all(stream.next_layer(), one, when), done);
    }
  }
  boost::system::error_code cancelled;
  co_await ended.async_wait(asio::redirect_error(use_awaitable, cancelled));
}

}  // namespace

int main(int argc, char** argv) {
  load of;
  CLI::App app("Sends a request at a constant rate, and prints the times of the responses");
  app.add_option("--to", of.to, "IP:PORT")->required();
  app.add_option("--path", of.path)->required();
  app.add_option("--body", of.body_file)->required()->check(CLI::ExistingFile);
  app.add_option("--header", of.headers, "A whole line; may be repeated");
  app.add_flag("--tls", of.tls, "Does not check the server's certificate");
  app.add_option("--rate", of.rate, "Requests a second")->check(CLI::Range(1.0, 1e6));
  app.add_option("--seconds", of.seconds)->check(CLI::Range(0.1, 600.0));
  app.add_option("--connections", of.connections)->check(CLI::Range(1, 10'000));
  CLI11_PARSE(app, argc, argv);
  try {
    asio::io_context here(1);
    schedule when(of);
    std::exception_ptr failed;
    asio::co_spawn(here, run_connections(of, when),
                   [&failed](const std::exception_ptr& error) { failed = error; });
    here.run_for(std::chrono::duration_cast<std::chrono::seconds>(
        std::chrono::duration<double>(of.seconds + 60)));
    if (failed) std::rethrow_exception(failed);
    when.print();
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_open_loop: %s\n", e.what());
    return 1;
  }
}
