#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/cache/store.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/controller/event_sink.hpp"
#include "rw/k8s/objects/failure.hpp"
#include "rw/k8s/objects/names.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/certificates/rendering.hpp"
#include "rw/reactors/certificates/state.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <chrono>
#include <string>
#include <unordered_map>

namespace rw::certificates {

struct service_options {
  certificate_options certificates = {};
  judge_options judge = {};
  reissue_backoff backoff = {};
  k8s::object_key gateway = {"istio-system", "klm-istio-gateway"};
  std::string field_manager{default_field_manager};
  /// Time after the bundle's growth at which a re-issue is overdue.
  std::chrono::seconds overdue_after = std::chrono::hours(24);
};

/// The caches of the service; the caller runs their informers.
struct service_caches {
  const k8s::store& certificates;  ///< Certificates of the issuer_kind
  const k8s::store& secrets;       ///< their Secrets (see `secrets_informer`)
  const k8s::store& gateways;      ///< the gateway Secret
};

/// All of it must outlive the service.
struct service_environment {
  core::clock& clock;
  core::logger& log;
  core::metrics& metrics;
  k8s::event_sink& events;  ///< on the Kymas
};

/// Returns the options of the informers of Certificates, and of their Secrets. A change of one of
/// these objects concerns the Kyma that `kyma_of` derives from its name; one of the gateway Secret
/// concerns all.
k8s::informer_options certificates_informer(const certificate_options& options);
k8s::informer_options secrets_informer(const certificate_options& options);

/// Provides each Kyma with its certificate: keeps the Certificate object in its desired state,
/// requests a new one from the issuer after the gateway's bundle has grown, with a backoff stored
/// on the Certificate (renewal.hpp), and reports whether the issued certificate may be installed on
/// the runtime. Reads caches only, and writes only differences. Used by the leader only.
///
/// If it can't request a new certificate, it reports the beginning of that state: by a log line,
/// and a Kubernetes event of the Kyma (CertificateNotReissued).
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

  /// Ensures one Kyma's certificate. `kyma` is the object as the API returns it.
  boost::asio::awaitable<certificate_state> ensure(boost::json::value kyma) override;
  certificate_state current(const boost::json::value& kyma) override;

  /// Deletes a Kyma's Certificate and Secret. Succeeds if they do not exist.
  boost::asio::awaitable<k8s::result<void>> remove(k8s::object_key kyma) override;
  boost::asio::awaitable<k8s::result<void>> try_removal(
      k8s::object_key kyma, std::shared_ptr<k8s::write_preview> into) override;

 private:
  issuer_kind kind() const noexcept;
  k8s::object_key key_for(const std::string& kyma) const;
  evidence evidence_of(const boost::json::value& kyma);
  /// Returns whether to request a new certificate now; otherwise sets when to reconcile again.
  bool must_ask(judged_certificate& state, const boost::json::value& present, wall_time now);
  /// Requests a new certificate. Also succeeds if another writer has changed the object meanwhile,
  /// or it is deleted: its informer reports that, and the Kyma is reconciled again. The count is
  /// written before the request, so that a crash in between delays the request instead of repeating
  /// it.
  boost::asio::awaitable<k8s::result<void>> reissue(std::string kyma, boost::json::value present,
                                                    reissue_cause cause, wall_time now);
  boost::asio::awaitable<k8s::result<boost::json::value>> patch(
      boost::json::value change, const boost::json::value& certificate, const char* subresource);
  /// Reports why the request failed, if the reason is new. Empty: it succeeded.
  void tell_refusal(const boost::json::value& kyma, const std::string& reason);
  /// Returns the gateway's bundle, parsed once for each of the Secret's states; null if there is
  /// none.
  const trust_bundle* trust();
  void watch_overdue(const std::string& kyma, certificate_state& state, wall_time now);
  void forget_overdue(const std::string& kyma);

  k8s::client& api_;
  const service_caches caches_;
  const service_options options_;
  const service_environment environment_;
  const k8s::resource_type type_;
  k8s::object trust_from_;
  trust_bundle trust_;
  usable_pairs pairs_;
  prometheus::Family<core::gauge>& overdue_family_;
  core::counter& reissues_;
  std::unordered_map<std::string, core::gauge*> overdue_;  ///< by Kyma; the overdue ones
  std::unordered_map<std::string, std::string> refusals_;  ///< by Kyma; the last error reported
};

}  // namespace rw::certificates
