#pragma once

#include "core/http/message.hpp"
#include "k8s/devserver/cluster.hpp"
#include "k8s/devserver/identity.hpp"
#include "k8s/devserver/presentation.hpp"
#include "k8s/devserver/refusals.hpp"
#include "k8s/devserver/target.hpp"

#include <boost/json/value.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace rw::k8s::devserver {

/// A request for a resource, as far as it was understood before its verb is looked at.
struct call {
  std::shared_ptr<cluster> in;
  resource_view view;
  object_key key;  ///< without a name: the collection
  std::string subresource;
  query parameters;
  presentation show;
  identity by;
  std::string user_agent;

  /// What refusals name: "configmaps", or "deployments.apps".
  subject what() const { return {view.of->group, view.of->plural, key.name}; }
  /// What an invalid object is called by: "ConfigMap", or "Deployment.apps".
  subject what_kind() const { return {view.of->group, view.of->kind, key.name}; }
  std::shared_ptr<collection> objects() const { return in->objects.open(view.of->storage_key); }
  std::string path() const { return storage_path(key.ns, key.name); }
};

/// The answer: an object in the form that was asked for.
void answer(http::response& into, unsigned status, const call& to, const record& one);
/// The answer: any JSON.
void answer(http::response& into, unsigned status, const boost::json::value& body);
/// A warning beside the answer (RFC 7234, "Warning"), as clients of Kubernetes show it.
void warn(http::response& into, std::string_view text);
/// The answer: a Status, with Retry-After where it has one.
void answer(http::response& into, const problem& why);

}  // namespace rw::k8s::devserver
