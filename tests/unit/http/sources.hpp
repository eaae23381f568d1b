#pragma once

#include "rw/core/http/server.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace rw::http::test {

/// What a source gives, written by the test. On the host's thread, but for the counters.
struct script {
  std::string text;
  body_source::state then = body_source::state::pending;
  std::function<void()> ready;
  std::size_t piece = std::string::npos;  ///< at most, at once; more than was asked for if it must
  bool ends_when_drained = false;

  std::atomic<int> open{0};  ///< sources that live
  std::atomic<std::size_t> given{0};
  std::atomic<int> reads{0};
};

class scripted_source final : public body_source {
 public:
  explicit scripted_source(std::shared_ptr<script> what) : what_(std::move(what)) { ++what_->open; }
  ~scripted_source() override { --what_->open; }

  state read(std::string& into, std::size_t room) override {
    ++what_->reads;
    const auto size = what_->piece == std::string::npos ? room : what_->piece;
    into.append(what_->text, 0, size);
    what_->given += std::min(size, what_->text.size());
    what_->text.erase(0, size);
    return what_->text.empty() ? what_->then : state::more;
  }
  void on_ready(std::function<void()> ready) override { what_->ready = std::move(ready); }
  bool drain() override {
    if (!what_->ends_when_drained) return false;
    what_->then = state::end;
    what_->text += "goodbye";
    what_->ready();
    return true;
  }

 private:
  const std::shared_ptr<script> what_;
};

/// Never has enough.
class endless_source final : public body_source {
 public:
  explicit endless_source(std::shared_ptr<script> what) : what_(std::move(what)) { ++what_->open; }
  ~endless_source() override { --what_->open; }
  state read(std::string& into, std::size_t room) override {
    into.append(room, 'x');
    what_->given += room;
    return state::more;
  }
  void on_ready(std::function<void()>) override {}

 private:
  const std::shared_ptr<script> what_;
};

/// `/endless` never ends, `/broken` is broken off without an answer, `/fields` has many fields,
/// `/plain` is answered at once, and anything else by a source that does what the script says.
class streamer final : public handler {
 public:
  std::size_t body_limit(const request&) const override { return 1024; }

  boost::asio::awaitable<void> handle(request& from, response& into) override {
    ++seen;
    if (from.target == "/broken") {
      into.status = 0;
    } else if (from.target == "/plain") {
      into.body = "plain";
    } else if (from.target == "/fields") {
      for (std::size_t i = 0; i < from.headers.size(); ++i) {
        const auto [name, value] = from.headers[i];
        if (name.starts_with("x-")) into.headers.add(name, value);
      }
    } else if (from.target == "/endless") {
      into.source = std::make_unique<endless_source>(what);
    } else {
      into.headers.add("x-kind", "stream");
      into.source = std::make_unique<scripted_source>(what);
    }
    return {};
  }

  const std::shared_ptr<script> what = std::make_shared<script>();
  std::atomic<int> seen{0};
};

}  // namespace rw::http::test
