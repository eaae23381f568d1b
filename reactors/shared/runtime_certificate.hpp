#pragma once

#include "rw/core/clock.hpp"
#include "rw/k8s/client/write_preview.hpp"
#include "rw/k8s/objects/failure.hpp"
#include "rw/k8s/objects/names.hpp"
#include "rw/tls/issuer.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace rw {

/// State of a runtime's certificate in the control plane.
struct certificate_state {
  enum class kind : std::uint8_t {
    ready,    ///< `current` may be installed on the runtime
    waiting,  ///< not yet, because of `reason`; a change of the watched objects triggers a check,
              ///< or `again`
    refused,  ///< not before a user changes the Kyma, because of `reason`
    failed,   ///< a request failed: `failure`, and `reason`
  };

  kind state = kind::waiting;
  tls::key_pair current = {};  ///< if it is ready
  std::string reason = {};
  bool must_be_reissued = false;  ///< by the issuer; until then `current` stays valid
  core::duration again{0};        ///< delay after which time alone changes the state; 0: never
  /// The failure; or, with another kind, why no new certificate could be requested.
  std::optional<k8s::failure> failure = {};
};

class certificate_provider {
 public:
  virtual ~certificate_provider() = default;

  /// Ensures that the Kyma's runtime gets a certificate, and returns its state.
  virtual boost::asio::awaitable<certificate_state> ensure(boost::json::value kyma) = 0;
  /// Returns that state as it is now: requests nothing and writes nothing.
  virtual certificate_state current(const boost::json::value& kyma) = 0;
  /// Deletes the certificate of a Kyma that is being deleted. Not found is no failure.
  virtual boost::asio::awaitable<k8s::result<void>> remove(k8s::object_key kyma) = 0;
  /// Tries that as dry runs, and adds what is known to exist to `into`.
  virtual boost::asio::awaitable<k8s::result<void>> try_removal(
      k8s::object_key kyma, std::shared_ptr<k8s::write_preview> into) = 0;
};

}  // namespace rw
