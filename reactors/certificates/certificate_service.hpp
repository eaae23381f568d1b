#pragma once

#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/metrics.hpp"
#include "k8s/cache/informer.hpp"
#include "k8s/cache/store.hpp"
#include "k8s/client/client.hpp"
#include "k8s/controller/event_recorder.hpp"
#include "k8s/objects/failure.hpp"
#include "k8s/objects/names.hpp"
#include "reactors/certificates/rendering.hpp"
#include "reactors/certificates/state.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <chrono>
#include <memory>

namespace rw::certificates {

struct service_options {
  certificate_options certificates = {};
  judge_options judge = {};
  reissue_pace pace = {};
  k8s::object_key gateway = {"istio-system", "klm-istio-gateway"};
  std::string field_manager = "runtime-watcher";
  /// Re-issue is overdue so long after the bundle has grown.
  std::chrono::seconds overdue_after = std::chrono::hours(24);
};

/// What the service reads from: kept up to date by informers that somebody else runs.
struct service_caches {
  const k8s::store& certificates;  ///< Certificates of the dialect
  const k8s::store& secrets;       ///< their Secrets (see `secrets_informer`)
  const k8s::store& gateways;      ///< the gateway Secret
};

/// All of it must outlive the service.
struct service_environment {
  core::clock& clock;
  core::logger& log;
  core::metrics& metrics;
  k8s::event_recorder* events = nullptr;  ///< on the Kymas; may be none
};

/// How the informers of Certificates, and of their Secrets, are to be made. A change of one of
/// these objects concerns the Kyma that `kyma_of` tells from its name; one of the gateway Secret
/// concerns all.
k8s::informer_options certificates_informer(const certificate_options& options);
k8s::informer_options secrets_informer(const certificate_options& options);

/// Provides each Kyma with its certificate: keeps the Certificate object as it should be, asks the
/// issuer for a new one when the gateway's bundle has grown, with a backoff that the Certificate
/// remembers (renewal.hpp), and tells whether what has been issued may go to the runtime. Reads
/// caches only, and writes only where something differs. To be used by the leader only.
///
/// That the issuer can't be asked for a new certificate is told when it begins: it is logged, and a
/// Kubernetes event of the Kyma (CertificateNotReissued).
///
/// Metrics: `lifecycle_mgr_self_signed_cert_not_renew{kyma_name}` (1 while re-issue is overdue),
/// `rw_certificate_reissues_total`.
///
/// Everything happens on the client's executor.
class certificate_service final : public certificate_provider {
 public:
  certificate_service(k8s::client& api, service_caches caches, service_options options,
                      service_environment environment);
  ~certificate_service() override;
  certificate_service(const certificate_service&) = delete;
  certificate_service& operator=(const certificate_service&) = delete;

  /// One Kyma's certificate, by the Kyma as the API gives it.
  boost::asio::awaitable<certificate_state> ensure(boost::json::value kyma) override;

  /// Deletes a Kyma's Certificate and Secret. That they are not there is fine.
  boost::asio::awaitable<k8s::result<void>> remove(k8s::object_key kyma) override;

 private:
  class implementation;
  std::unique_ptr<implementation> impl_;
};

}  // namespace rw::certificates
