#pragma once

#include "k8s/devserver/admission.hpp"
#include "k8s/objects/label_selector.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What a ValidatingWebhookConfiguration says, and what is to be made of answers: decisions alone,
// no sockets.

namespace rw::k8s::devserver {

/// Which requests a webhook is for (admissionregistration.k8s.io/v1, RuleWithOperations).
struct webhook_rule {
  enum class extent : std::uint8_t { any, cluster, namespaced };

  std::vector<std::string> operations = {};
  std::vector<std::string> groups = {};
  std::vector<std::string> versions = {};
  std::vector<std::string> resources = {};  ///< "pods", "pods/status", "*", "*/*", "pods/*"
  extent scope = extent::any;

  bool matches(const admission_attributes& write) const;
};

/// One of the webhooks of a ValidatingWebhookConfiguration (admissionregistration.k8s.io/v1).
struct webhook {
  /// What is not valid in it becomes `error`: it then fails whenever it should be called.
  static webhook parse(const boost::json::value& entry);

  /// True if it is to be called: by rules, namespaceSelector and objectSelector. matchPolicy
  /// Equivalent is treated as Exact (a write is told only as the resource that it was sent to), and
  /// matchConditions (CEL) as if they held.
  bool concerns(const admission_attributes& write) const;

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
  bool side_effects = false;  ///< it can't take part in a dry run
  std::string version = {};   ///< of AdmissionReview, "v1" or "v1beta1"
  std::string error = {};

 private:
  void read_client_config(const boost::json::object& from);
  void read_selectors(const boost::json::object& from);
  void read_policies(const boost::json::object& from);
};

/// The labels of an object, null where there are none.
const boost::json::value* labels_of(const boost::json::value& object);

/// A write as an AdmissionReview tells it: most of the text is the same for all webhooks.
class review_text {
 public:
  explicit review_text(const admission_attributes& write);

  std::string body(std::string_view version, std::string_view uid) const;

 private:
  std::string request_;  ///< what follows the uid
};

/// What a webhook said, or why it said nothing.
struct webhook_decision {
  std::string failed = {};                 ///< why it is of no use
  bool unseen = false;                     ///< and nobody has looked at the review
  std::optional<problem> refusal = {};     ///< it does not allow the write
  std::vector<std::string> warnings = {};  ///< for the client
};

/// Judges an answer to the review `uid` as the real API server does.
webhook_decision judge_answer(const webhook& by, std::string_view uid, unsigned status,
                              std::string_view body);

/// 'Internal error occurred: failed calling webhook "x": …'.
problem webhook_failed(const webhook& which, const std::string& why);

/// 'admission webhook "x" does not support dry run'.
problem no_dry_run(const webhook& which);

}  // namespace rw::k8s::devserver
