#pragma once

#include "core/clock.hpp"
#include "k8s/failure.hpp"
#include "reactors/certificates/renewal.hpp"
#include "reactors/certificates/usable_pairs.hpp"
#include "reactors/trust_bundle.hpp"
#include "tls/certificate.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace rw::certificates {

/// What a runtime cluster gets: its certificate, and the bundle to check KCP's gateway, and itself,
/// against. The two fit together: the bundle has the certificate's authority.
struct runtime_certificate {
  std::string certificate;  ///< PEM, as it stands in the Secret
  std::string key;
  tls::certificate leaf;  ///< what `certificate` begins with
  tls::ca_bundle authorities;
};

/// How far a Kyma's certificate is.
struct certificate_state {
  enum class kind : std::uint8_t {
    ready,    ///< `current` may be brought to the runtime
    waiting,  ///< not yet, and `why`; a change of the watched objects, or `again`, will tell
    refused,  ///< not before somebody changes the Kyma, and `why`
    failed,   ///< a request failed: `failure`
  };

  kind what = kind::waiting;
  std::optional<runtime_certificate> current = {};
  std::string why = {};
  bool must_be_reissued = false;        ///< by the issuer; until then `current` stays good
  reissue_cause cause = {};             ///< if it must
  std::optional<validity> issued = {};  ///< the certificate in the Secret
  core::duration again{0};              ///< when time alone changes something; 0: it does not
  /// Why it failed; or, beside another kind, why the issuer could not be asked for a new one.
  std::optional<k8s::failure> failure = {};
};

struct judge_options {
  /// A bundle that has just grown gets so long to reach the gateway itself before certificates of
  /// the new authority go out. Not asked of the first authority, before which there was nothing.
  std::chrono::seconds gateway_settles = std::chrono::seconds(10);
};

/// What is known of one Kyma's certificate.
struct evidence {
  std::string runtime_id;
  boost::json::value certificate = nullptr;  ///< the Certificate object
  boost::json::value secret = nullptr;       ///< its Secret; null: not there
  const trust_bundle* trust = nullptr;       ///< null: there is no gateway Secret
};

/// Decides whether the certificate in the Secret may go to the runtime. It may not if the gateway
/// would refuse it, so one of a CA that the bundle lacks waits; and since the runtime's own API
/// server checks the webhook against the same bundle, that would refuse it, too.
certificate_state judge(const evidence& of, usable_pairs& pairs, dialect speaks,
                        const judge_options& options, time_point now);

}  // namespace rw::certificates
