#pragma once

#include "reactors/bootstrapper/problem.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <string_view>

namespace rw::bootstrapper {

inline constexpr std::string_view pull_secret_type = "kubernetes.io/dockerconfigjson";
inline constexpr std::string_view pull_secret_key = ".dockerconfigjson";

/// A pull Secret as kubelet reads it: its type, and under its key a docker config with credentials
/// for at least one registry (`auths`: for each registry `auth`, which is base64 of user:password,
/// or `username` and `password`, or a token). What is wrong is told without any of its content.
void check_pull_secret(const boost::json::value& secret, findings wrong);

/// A ClusterTrustBundle (certificates.k8s.io): `spec.trustBundle` holds PEM blocks of CA
/// certificates and nothing else but comments between them, none twice, none that has expired at
/// `now`. A certificate is named by its place, counted from 1, and its subject.
void check_trust_bundle(const boost::json::value& bundle, std::chrono::system_clock::time_point now,
                        findings wrong);

}  // namespace rw::bootstrapper
