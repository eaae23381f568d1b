#pragma once

#include "rw/reactors/certificates/renewal.hpp"
#include "rw/reactors/certificates/usable_pairs.hpp"
#include "rw/reactors/shared/runtime_certificate.hpp"
#include "rw/reactors/shared/trust_bundle.hpp"
#include "rw/tls/certificate.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace rw::certificates {

/// The state of a certificate, with the cause of a re-issue.
struct judged_certificate : certificate_state {
  reissue_cause cause = {};             ///< if it must be reissued
  std::optional<validity> issued = {};  ///< the certificate in the Secret
};

struct judge_options {
  /// A bundle that has just grown gets this much time to reach the gateway before certificates of
  /// the new authority are installed. Does not apply to the first authority.
  std::chrono::seconds gateway_settles = std::chrono::seconds(10);
};

/// The objects of one Kyma's certificate.
struct evidence {
  std::string runtime_id;
  boost::json::value certificate = nullptr;  ///< the Certificate object
  boost::json::value secret = nullptr;       ///< its Secret; null: it does not exist
  const trust_bundle* trust = nullptr;       ///< null: there is no gateway Secret
};

/// Decides whether the certificate in the Secret may be installed on the runtime. It may not if the
/// gateway would reject it, so a certificate of a CA outside the bundle waits. The runtime's own
/// API server verifies the webhook with the same bundle, and would reject it as well.
judged_certificate judge(const evidence& of, usable_pairs& pairs, issuer_kind kind,
                         const judge_options& options, wall_time now);

}  // namespace rw::certificates
