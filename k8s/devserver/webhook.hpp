#pragma once

#include "rw/k8s/devserver/admission.hpp"
#include "rw/k8s/objects/label_selector.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The content of webhook configurations, and the evaluation of responses: decisions only,
// no sockets.

namespace rw::k8s::devserver {

/// The requests that a webhook is for (admissionregistration.k8s.io/v1, RuleWithOperations).
struct webhook_rule {
  enum class extent : std::uint8_t { any, cluster, namespaced };

  std::vector<std::string> operations = {};
  std::vector<std::string> groups = {};
  std::vector<std::string> versions = {};
  std::vector<std::string> resources = {};  ///< "pods", "pods/status", "*", "*/*", "pods/*"
  extent scope = extent::any;

  bool matches(const admission_attributes& write) const;
};

/// One of the webhooks of a ValidatingWebhookConfiguration or MutatingWebhookConfiguration
/// (admissionregistration.k8s.io/v1).
struct webhook {
  /// Parses an entry. An error in it becomes `error`: every call of the webhook then fails.
  static webhook parse(const boost::json::value& entry, bool mutates = false);

  /// Returns true if the webhook is to be called: by rules, namespaceSelector and objectSelector.
  /// Treats matchPolicy Equivalent as Exact (a write is reviewed only as the resource that it was
  /// sent to), and matchConditions (CEL) as true.
  bool concerns(const admission_attributes& write) const;
  /// Returns true if kube-apiserver would call the webhook, with the object in another version.
  bool misses(admission_attributes write) const;

  std::string name;
  std::string url = {};     ///< clientConfig.url; empty: a service
  object_key service = {};  ///< clientConfig.service
  unsigned service_port = 443;
  std::string service_path = {};
  std::string authorities = {};  ///< PEM; empty: the system's
  std::vector<webhook_rule> rules = {};
  label_selector namespaces = {};
  label_selector objects = {};
  std::chrono::seconds timeout{10};
  bool may_fail = false;      ///< failurePolicy Ignore
  bool side_effects = false;  ///< it does not support dry run
  bool equivalent = true;     ///< matchPolicy
  bool mutates = false;       ///< it is of a MutatingWebhookConfiguration
  bool reinvoked = false;     ///< again, if a later webhook changes the object
  std::string version = {};   ///< of AdmissionReview, "v1" or "v1beta1"
  std::string error = {};

 private:
  void read_client_config(const boost::json::object& from);
  void read_selectors(const boost::json::object& from);
  void read_policies(const boost::json::object& from);
};

/// Returns the labels of an object, null if there are none.
const boost::json::value* labels_of(const boost::json::value& object);

/// The text of a write's AdmissionReview: most of it is the same for all webhooks.
class review_text {
 public:
  explicit review_text(const admission_attributes& write);

  std::string body(std::string_view version, std::string_view uid) const;

 private:
  std::string request_;  ///< what follows the uid
};

struct webhook_decision {
  std::string failed = {};              ///< the error of the call
  bool unseen = false;                  ///< with `failed`: the webhook has not processed the review
  std::string location = {};            ///< where the review is to be sent instead (307, 308)
  std::optional<problem> refusal = {};  ///< the webhook denies the write
  std::vector<std::string> warnings = {};  ///< for the client
  boost::json::value patch = {};           ///< operations of a mutating webhook; null: none
};

/// Evaluates a response to the review `uid` as kube-apiserver does.
webhook_decision judge_answer(const webhook& by, std::string_view uid, unsigned status,
                              std::string_view body);

/// 'Internal error occurred: failed calling webhook "x": …'.
problem webhook_failed(const webhook& webhook, const std::string& reason);

/// 'admission webhook "x" does not support dry run'.
problem no_dry_run(const webhook& webhook);

}  // namespace rw::k8s::devserver
