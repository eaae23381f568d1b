#pragma once

#include "reactors/certificates/renewal.hpp"
#include "reactors/certificates/usable_pairs.hpp"
#include "reactors/shared/runtime_certificate.hpp"
#include "reactors/shared/trust_bundle.hpp"
#include "tls/certificate.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace rw::certificates {

/// How far a certificate is, and what it takes to have it issued anew.
struct judged_certificate : certificate_state {
  reissue_cause cause = {};             ///< if it must be reissued
  std::optional<validity> issued = {};  ///< the certificate in the Secret
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
judged_certificate judge(const evidence& of, usable_pairs& pairs, dialect speaks,
                         const judge_options& options, time_point now);

}  // namespace rw::certificates
