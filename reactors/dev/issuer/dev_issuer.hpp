#pragma once

#include "core/backoff.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/metrics.hpp"
#include "core/watchdog.hpp"
#include "k8s/cache/informer.hpp"
#include "k8s/client/client.hpp"
#include "k8s/objects/names.hpp"
#include "reactors/shared/certificate_dialect.hpp"
#include "tls/issuer.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace rw::dev_issuer {

struct options {
  certificates::dialect speaks = certificates::dialect::cert_manager;
  std::string issuer = "klm-watcher-selfsigned";  ///< whose Certificates it honours
  k8s::object_key root = {"istio-system", "klm-watcher"};

  /// Names of the root's certificate, which the gateway serves with: the hosts by which runtimes
  /// reach it.
  std::vector<std::string> root_dns_names = {"localhost"};
  std::vector<std::string> root_ips = {"127.0.0.1"};
  std::chrono::seconds root_validity = std::chrono::hours(24 * 90);

  /// What keys are made with. The specs ask for RSA with 4096 bits, which costs a core about half
  /// a second each: with 100 runtimes that would be most of the time that a trial takes. ECDSA
  /// costs a tenth of a millisecond and is accepted by everybody who only reads PEM.
  tls::key_type key = tls::key_type::ecdsa_p256;
  /// Make what `spec.privateKey` asks for instead (RSA of 2048, 3072 and 4096 bits, ECDSA of 256),
  /// for certificates; the root's is still `key`.
  bool honour_private_key = false;

  /// A new root takes the place of the former so often; 0: only when its Secret is deleted.
  core::duration rotate_root_every{0};
  std::size_t rotations = 0;  ///< at most so many times by the clock; 0: for ever
  /// Each step (making the root, signing, writing the Secret, writing the status) comes up to so
  /// much later than it could, at random.
  core::duration delay{0};

  std::size_t concurrent = 16;  ///< Certificates at once
  std::string field_manager = "dev-issuer";
};

/// What the issuer reads of the control plane, kept by informers that others may share and somebody
/// else runs. All of it must outlive the issuer.
struct sources {
  k8s::informer& certificates;  ///< of the dialect (certificates::certificates_type)
  /// Secrets with data, at least the root and those that Certificates ask for; may hold others.
  k8s::informer& secrets;
};

/// All of it must outlive the issuer.
struct environment {
  k8s::client& api;  ///< the control plane
  core::clock& clock;
  core::watchdog& watchdog;
  core::logger& log;
  core::metrics& metrics;
  core::random_source random;
};

/// Does for a control plane without cert-manager (or Gardener's cert-management) what that does
/// there.
///
/// The root: a self-signed CA in its Secret, tls.crt and ca.crt being the same; made when it is
/// missing or can't be used, and anew as the options say.
///
/// Each Certificate whose issuerRef names the issuer: its Secret has a certificate for its names
/// and usages, signed by the root of that moment, with the labels of secretTemplate or
/// secretLabels; its status says what was issued. It is issued anew when that is asked for
/// (cert-manager: condition Issuing; Gardener: spec.renew), when it is due (renewBefore, by default
/// a third of the duration), and when the Secret is missing, damaged or not for these names. A new
/// root by itself is no reason, as it is none for cert-manager.
///
/// Each step reads the world again, so it may be ended and begun anew at any point; a status is
/// written to the version that was read only, so that a request to issue again is never lost.
///
/// Metrics: `rw_dev_issuer_roots_total`, `rw_dev_issuer_certificates_total`; and those of the
/// controllers `dev-issuer` and `dev-issuer-root`.
///
/// Everything happens on one executor (thread or strand), which is also the client's and the
/// informers'.
class issuer {
 public:
  issuer(boost::asio::any_io_executor executor, options with, sources from, environment in);
  ~issuer();
  issuer(const issuer&) = delete;
  issuer& operator=(const issuer&) = delete;

  /// Runs until cancelled.
  boost::asio::awaitable<void> run();

  std::uint64_t roots() const noexcept;         ///< made by this issuer
  std::uint64_t certificates() const noexcept;  ///< issued by this issuer

 private:
  class implementation;
  std::unique_ptr<implementation> impl_;
};

}  // namespace rw::dev_issuer
