#pragma once

#include "core/clock.hpp"
#include "k8s/objects/failure.hpp"
#include "k8s/objects/names.hpp"
#include "tls/issuer.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace rw {

/// How far a runtime's certificate is in the control plane.
struct certificate_state {
  enum class kind : std::uint8_t {
    ready,    ///< `current` may be brought to the runtime
    waiting,  ///< not yet, and `why`; a change of the watched objects, or `again`, will tell
    refused,  ///< not before somebody changes the Kyma, and `why`
    failed,   ///< a request failed: `failure`, and `why`
  };

  kind what = kind::waiting;
  tls::key_pair current = {};  ///< if it is ready
  std::string why = {};
  bool must_be_reissued = false;  ///< by the issuer; until then `current` stays good
  core::duration again{0};        ///< when time alone changes something; 0: it does not
  /// Why it failed; or, beside another kind, why the issuer could not be asked for a new one.
  std::optional<k8s::failure> failure = {};
};

/// Where the certificates of the runtimes come from.
class certificate_provider {
 public:
  virtual ~certificate_provider() = default;

  /// Sees to it that the Kyma's runtime gets a certificate, and reports the one that it has.
  virtual boost::asio::awaitable<certificate_state> ensure(boost::json::value kyma) = 0;
  /// The Kyma is going. Not found is no failure.
  virtual boost::asio::awaitable<k8s::result<void>> remove(k8s::object_key kyma) = 0;
};

}  // namespace rw
