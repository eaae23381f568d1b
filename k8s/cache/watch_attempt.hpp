#pragma once

#include "core/clock.hpp"
#include "core/wake.hpp"
#include "k8s/cache/watch_decoder.hpp"
#include "k8s/client/client.hpp"
#include "k8s/objects/failure.hpp"

#include <functional>
#include <optional>
#include <string_view>
#include <utility>

namespace rw::k8s {

/// A watch that is under way: has what comes decoded, and knows how long it has lasted.
class watch_attempt final : public watch_sink {
 public:
  /// `after_bytes` is called after each portion.
  watch_attempt(boost::asio::any_io_executor executor, core::clock& clock, watch_decoder decoder,
                std::function<void()> after_bytes)
      : clock_(clock),
        decoder_(std::move(decoder)),
        after_bytes_(std::move(after_bytes)),
        over_(std::move(executor)) {}

  void begin() override {
    if (!began_) began_ = clock_.now();
  }

  bool take(std::string_view bytes) override {
    begin();
    const bool go_on = decoder_.feed(bytes);
    after_bytes_();
    return go_on;
  }

  void end(boost::system::error_code error) override {
    if (error != http::client_error::abandoned) error_ = error;  // it had enough
    over_.set();
  }

  /// Waits for the end of an opened watch; an error only if cancelled. Nobody else waits.
  boost::asio::awaitable<boost::system::error_code> over() { return over_.wait(); }
  /// What an opened watch ended with.
  boost::system::error_code error() const noexcept { return error_; }

  /// True once the answer's head came.
  bool begun() const noexcept { return began_.has_value(); }
  /// Since then: the time that it took to reach the server says nothing good of it.
  core::duration lasted() const { return began_ ? clock_.now() - *began_ : core::duration::zero(); }
  /// Why what came could not be read; no code if it could.
  const failure& problem() const noexcept { return decoder_.problem(); }

 private:
  core::clock& clock_;
  watch_decoder decoder_;
  const std::function<void()> after_bytes_;
  std::optional<core::time_point> began_;
  boost::system::error_code error_;
  core::wake over_;
};

}  // namespace rw::k8s
