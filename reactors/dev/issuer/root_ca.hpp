#pragma once

#include "rw/k8s/controller/controller.hpp"
#include "rw/k8s/controller/reconciler.hpp"
#include "rw/reactors/dev/issuer/dev_issuer.hpp"
#include "rw/reactors/dev/issuer/random_delay.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <cstdint>

namespace rw::dev_issuer {

/// Reads the CA in a root Secret, with its private key.
tls::result<tls::issuer> read_root(const boost::json::value& secret);

/// Keeps the root Secret present, usable, and as new as the options say.
class root_ca final : private k8s::reconciler {
 public:
  root_ca(boost::asio::any_io_executor executor, const issuer_options& with, issuer_sources from,
          issuer_environment in);

  boost::asio::awaitable<void> run() { return controller_.run(); }
  std::uint64_t made() const noexcept { return made_; }

 private:
  boost::asio::awaitable<k8s::reconcile_result> reconcile(k8s::object_key key) override;
  boost::asio::awaitable<k8s::reconcile_result> make(boost::json::value former, bool by_clock);
  bool is_due() const;
  k8s::reconcile_result later();

  const issuer_options options_;
  const issuer_environment environment_;
  core::counter& counter_;
  random_delay delay_;
  std::uint64_t made_ = 0;
  std::size_t rotations_ = 0;                        ///< periodic ones
  core::time_point next_ = core::time_point::max();  ///< of the next periodic rotation
  k8s::controller controller_;
};

}  // namespace rw::dev_issuer
