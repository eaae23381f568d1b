#pragma once

#include "rw/core/backoff.hpp"
#include "rw/core/clock.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

namespace rw::dev_issuer {

/// Delays each step at random, so that steps of several parts interleave in every order.
class random_delay {
 public:
  random_delay(boost::asio::any_io_executor executor, core::clock& clock, core::duration most,
               core::random_source random);

  /// Returns false if cancelled meanwhile.
  boost::asio::awaitable<bool> pause();

 private:
  const boost::asio::any_io_executor executor_;
  core::clock& clock_;
  const core::duration most_;
  const core::random_source random_;
};

}  // namespace rw::dev_issuer
