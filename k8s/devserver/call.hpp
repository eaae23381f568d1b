#pragma once

#include "rw/core/http/message.hpp"
#include "rw/k8s/devserver/cluster.hpp"
#include "rw/k8s/devserver/identity.hpp"
#include "rw/k8s/devserver/presentation.hpp"
#include "rw/k8s/devserver/refusals.hpp"
#include "rw/k8s/devserver/target.hpp"

#include <boost/json/value.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace rw::k8s::devserver {

/// A request for a resource, parsed up to its verb.
struct call {
  std::shared_ptr<cluster> in;
  served_resource view;
  object_key key = {};  ///< without a name: the collection
  std::string subresource = {};
  query parameters = {};
  presentation show = {};
  identity by = {};
  std::string user_agent = {};
  bool authorization = false;       ///< roles count
  bool refuse_unsupported = false;  ///< what is beyond this server gets 501, not a warning
  warning_list warnings = std::make_shared<std::vector<std::string>>();

  /// Returns the subject of rejections: "configmaps", or "deployments.apps".
  subject target() const { return {view.of->group, view.of->plural, key.name}; }
  /// Returns the subject of an invalid object: "ConfigMap", or "Deployment.apps".
  subject what_kind() const { return {view.of->group, view.of->kind, key.name}; }
  std::shared_ptr<collection> objects() const { return in->objects.open(view.of->storage_key); }
  std::string path() const { return storage_path(key.ns, key.name); }
};

/// Writes the response: an object in the requested representation.
void answer(http::response& into, unsigned status, const call& to, const record& record);
/// Writes the response: any JSON.
void answer(http::response& into, unsigned status, const boost::json::value& body);
/// Adds a warning to the response (RFC 7234, "Warning"), which clients of Kubernetes show; a text
/// that it has already has no effect.
void warn(http::response& into, std::string_view text);
/// Writes the response: a Status, with Retry-After if it has one.
void answer(http::response& into, const problem& problem);

}  // namespace rw::k8s::devserver
