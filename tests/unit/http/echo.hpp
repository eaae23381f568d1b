#pragma once

#include "rw/core/http/server.hpp"
#include "rw/core/stream.hpp"
#include "rw/core/wake.hpp"

#include <boost/asio/post.hpp>

#include <atomic>
#include <list>
#include <string>

namespace rw::http::test {

/// Answers with what it was sent. `/big` is answered with 16 MiB, `/wait` when the test says so,
/// `/last` as the connection's last answer.
class echo final : public handler {
 public:
  explicit echo(boost::asio::any_io_executor executor, std::size_t limit = 8u << 20)
      : executor_(std::move(executor)), limit_(limit) {}

  std::size_t body_limit(const request&) const override { return limit_; }

  boost::asio::awaitable<void> handle(request& from, response& into) override {
    ++seen;
    into.headers.add("x-target", from.target);
    if (from.target == "/big") {
      into.body.assign(16u << 20, 'x');
      return {};
    }
    if (from.target == "/wait") return wait(&from, &into);
    into.last = from.target == "/last";
    into.body = from.body;
    return {};
  }

  void refused(unsigned status) noexcept override { last_refused = status; }

  /// Lets those go on that wait.
  void release() {
    boost::asio::post(executor_, [this] {
      for (auto* one : waiters_) one->set();
    });
  }

  std::atomic<int> seen{0};
  std::atomic<int> waiting{0};
  std::atomic<unsigned> last_refused{0};

 private:
  struct registration {
    registration(echo& o, core::wake& w) : owner(o), at(o.waiters_.insert(o.waiters_.end(), &w)) {
      ++owner.waiting;
    }
    ~registration() {
      owner.waiters_.erase(at);
      --owner.waiting;
    }
    registration(const registration&) = delete;
    registration& operator=(const registration&) = delete;
    echo& owner;
    std::list<core::wake*>::iterator at;
  };

  boost::asio::awaitable<void> wait(request* from, response* into) {
    core::wake woken(executor_);
    const registration registered(*this, woken);
    co_await woken.wait();
    into->body = from->body;
  }

  const boost::asio::any_io_executor executor_;
  const std::size_t limit_;
  std::list<core::wake*> waiters_;
};

/// Plain streams on which HTTP/2 was chosen, as it were.
class h2_transport final : public core::transport {
 public:
  std::unique_ptr<core::stream> wrap(boost::asio::ip::tcp::socket socket) override {
    return std::make_unique<h2_stream>(plain_->wrap(std::move(socket)));
  }

 private:
  class h2_stream final : public core::stream {
   public:
    explicit h2_stream(std::unique_ptr<core::stream> plain) : plain_(std::move(plain)) {}
    boost::asio::ip::tcp::socket& socket() noexcept override { return plain_->socket(); }
    core::io_result handshake() override { return plain_->handshake(); }
    core::io_result read(std::span<char> into) override { return plain_->read(into); }
    core::io_result write(std::span<const char> from) override { return plain_->write(from); }
    core::io_result shutdown() override { return plain_->shutdown(); }
    std::string_view protocol() const noexcept override { return "h2"; }
    std::string_view peer_certificate() const noexcept override { return {}; }

   private:
    std::unique_ptr<core::stream> plain_;
  };

  std::unique_ptr<core::transport> plain_ = core::make_plain_transport();
};

}  // namespace rw::http::test
