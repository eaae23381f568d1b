#pragma once

#include "rw/k8s/objects/failure.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/value.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rw::watcher_installer {

/// Names that installations everywhere rely on, beside those of kyma_resources.hpp.
inline constexpr std::string_view secret_name = "skr-webhook-tls";  ///< the runtime's certificate
inline constexpr std::string_view ingress_policy = "kyma-project.io--seed-to-watcher";
inline constexpr std::string_view egress_policy = "kyma-project.io--watcher-to-apiserver";
/// Of the ClusterRole with the rights to watch; its rules are filled in where there is one.
inline constexpr std::string_view observer_role = "skr-webhook";
inline constexpr std::string_view managed_by = "kyma";  ///< the value of managed_by_label
inline constexpr std::string_view restart_label = "operator.kyma-project.io/pod-restart-trigger";

/// Why something can't be had, as a sentence for people: `failure::message`.
template <class T>
using in_words = k8s::result<T>;
k8s::failure defect(std::string text);

/// The objects that make the watcher on a runtime, as deploy/skr has them: sorted for application,
/// and complete (Secret, Deployment and ValidatingWebhookConfiguration, with what is to be filled
/// in). Never changes; shared by all runtimes.
class templates {
 public:
  /// Of a text of manifests. The failure is a sentence that begins with `name`.
  static in_words<templates> parse(const std::string& text, const std::string& name);
  /// Those that were built in.
  static const templates& built_in();
  /// Of all files of a directory that end in .yaml, in the order of their names.
  static in_words<templates> load(const std::string& directory);

  /// Of objects with nothing but their names, for their removal.
  static templates named(std::vector<boost::json::value> objects);

  const std::vector<boost::json::value>& objects() const noexcept { return *objects_; }

 private:
  explicit templates(std::vector<boost::json::value> objects)
      : objects_(std::make_shared<const std::vector<boost::json::value>>(std::move(objects))) {}

  std::shared_ptr<const std::vector<boost::json::value>> objects_;
};

/// The type of one of them: there are no others than well-known ones.
k8s::resource_type type_of(const boost::json::value& object);
/// What others need is applied first: its rank is lower.
int rank_of(const boost::json::value& object);

/// True for the object of that kind and name.
bool is(const boost::json::value& object, std::string_view kind, std::string_view name);

}  // namespace rw::watcher_installer
