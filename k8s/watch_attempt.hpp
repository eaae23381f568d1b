#pragma once

#include "core/clock.hpp"
#include "k8s/client.hpp"
#include "k8s/failure.hpp"
#include "k8s/watch_decoder.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace rw::k8s {

/// A watch that is under way, between the coroutine that feeds it and the one that looks after it.
class watch_attempt final : public watch_sink {
 public:
  /// The watch may last for `limit`, and be silent for `silence` (0: as long as it lasts).
  /// `after_bytes` is called after each portion.
  watch_attempt(core::clock& clock, boost::asio::any_io_executor executor, watch_decoder decoder,
                core::duration limit, core::duration silence, std::function<void()> after_bytes)
      : clock_(clock),
        decoder_(std::move(decoder)),
        alarm_(clock.make_timer(std::move(executor))),
        latest_(clock.now()),
        end_(latest_ + limit),
        silence_(silence),
        after_bytes_(std::move(after_bytes)) {}

  void begin() override {
    latest_ = clock_.now();
    if (!began_) began_ = latest_;
  }

  bool take(std::string_view bytes) override {
    begin();
    const bool go_on = decoder_.feed(bytes);
    after_bytes_();
    return go_on;
  }

  /// Waits until the watch has ended, or it is time to give it up. Cancelled, it just ends.
  boost::asio::awaitable<void> wait() {
    while (!ended_) {
      silent_ = clock_.now() >= due();
      if (silent_) co_return;
      alarm_->expires_at(due());
      const bool rang = co_await alarm_->wait();
      if (!rang) co_return;
    }
  }

  void end(result<void> outcome) {
    ended_ = true;
    outcome_ = std::move(outcome);
    alarm_->cancel();
  }

  /// True if the watch was given up because its time was over.
  bool silent() const noexcept { return silent_; }
  /// How the request ended, if it was not given up.
  const result<void>& outcome() const noexcept { return outcome_; }
  /// Why what came could not be read; no code if it could.
  const failure& problem() const noexcept { return decoder_.problem(); }
  /// Since the first byte of its answer: the time that it took to reach the server says nothing
  /// good of it.
  core::duration lasted() const { return began_ ? clock_.now() - *began_ : core::duration::zero(); }

 private:
  core::time_point due() const {
    return silence_ > core::duration::zero() ? std::min(end_, latest_ + silence_) : end_;
  }

  core::clock& clock_;
  watch_decoder decoder_;
  const std::unique_ptr<core::timer> alarm_;
  std::optional<core::time_point> began_;  ///< when the answer's head came
  core::time_point latest_;                ///< when something came
  const core::time_point end_;
  const core::duration silence_;
  const std::function<void()> after_bytes_;
  result<void> outcome_;
  bool ended_ = false;
  bool silent_ = false;
};

}  // namespace rw::k8s
