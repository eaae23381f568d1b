#pragma once

#include "rw/core/backoff.hpp"
#include "rw/core/clock.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/core/watchdog.hpp"
#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/objects/names.hpp"
#include "rw/reactors/shared/issuer_kind.hpp"
#include "rw/tls/issuer.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace rw::dev_issuer {

struct issuer_options {
  certificates::issuer_kind kind = certificates::issuer_kind::cert_manager;
  std::string issuer = "klm-watcher-selfsigned";  ///< issues Certificates that name this issuer
  k8s::object_key root = {"istio-system", "klm-watcher"};

  /// Names of the root's certificate, which the gateway serves with: the hosts by which runtimes
  /// reach it.
  std::vector<std::string> root_dns_names = {"localhost"};
  std::vector<std::string> root_ips = {"127.0.0.1"};
  std::chrono::seconds root_validity = std::chrono::hours(24 * 90);

  /// Type of generated keys. The specs request RSA with 4096 bits, which costs a core about half a
  /// second each: with 100 runtimes that would be most of the time of a trial. ECDSA costs a tenth
  /// of a millisecond, and every client that only reads PEM accepts it.
  tls::key_type key = tls::key_type::ecdsa_p256;
  /// Generate keys by `spec.privateKey` instead (RSA of 2048, 3072 and 4096 bits, ECDSA of 256),
  /// for certificates; the root's is still `key`.
  bool honour_private_key = false;

  /// Period after which a new root replaces the previous one; 0: only when its Secret is deleted.
  core::duration rotate_root_every{0};
  std::size_t rotations = 0;  ///< maximum number of periodic rotations; 0: unlimited
  /// Maximum random delay of each step (making the root, signing, writing the Secret, writing the
  /// status).
  core::duration delay{0};

  std::size_t concurrent = 16;  ///< concurrent Certificates
  std::string field_manager = "dev-issuer";
};

/// The issuer's sources in the control plane. The caller runs these informers, and may share them.
/// All of it must outlive the issuer.
struct issuer_sources {
  k8s::informer& certificates;  ///< of the issuer_kind (certificates::certificates_type)
  /// Secrets with data, at least the root and those of Certificates; may include others.
  k8s::informer& secrets;
};

/// All of it must outlive the issuer.
struct issuer_environment {
  k8s::client& api;  ///< the control plane
  core::clock& clock;
  core::watchdog& watchdog;
  core::logger& log;
  core::metrics& metrics;
  core::random_source random;
};

/// Replaces cert-manager (or Gardener's cert-management) in a control plane without it.
///
/// The root: a self-signed CA in its Secret, with equal tls.crt and ca.crt. The issuer makes it if
/// it is missing or unusable, and again as the options say.
///
/// Each Certificate whose issuerRef names the issuer: its Secret has a certificate for its names
/// and usages, signed by the root of that moment, with the labels of secretTemplate or
/// secretLabels; its status names the issued certificate. It is issued again on request
/// (cert-manager: condition Issuing; Gardener: spec.renew), when it is due (renewBefore, by default
/// a third of the duration), and when the Secret is missing, damaged or for other names. A new root
/// by itself is no reason, as in cert-manager.
///
/// Each step reads the state again, so it may end and restart at any point. A status is written
/// only to the version that was read, so that a request to issue again is never lost.
///
/// Metrics: `rw_dev_issuer_roots_total`, `rw_dev_issuer_certificates_total`; and those of the
/// controllers `dev-issuer` and `dev-issuer-root`.
///
/// Everything happens on one executor (thread or strand), which is also the client's and the
/// informers'.
class issuer_simulator {
 public:
  issuer_simulator(boost::asio::any_io_executor executor, issuer_options with, issuer_sources from,
                   issuer_environment in);
  ~issuer_simulator();
  issuer_simulator(const issuer_simulator&) = delete;
  issuer_simulator& operator=(const issuer_simulator&) = delete;

  /// Runs until cancelled.
  boost::asio::awaitable<void> run();

  std::uint64_t roots() const noexcept;         ///< made by this issuer
  std::uint64_t certificates() const noexcept;  ///< issued by this issuer

 private:
  class implementation;
  std::unique_ptr<implementation> impl_;
};

}  // namespace rw::dev_issuer
