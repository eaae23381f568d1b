#include "rw/k8s/devserver/selection.hpp"

#include "rw/k8s/devserver/refusals.hpp"

#include <boost/json/object.hpp>

#include <algorithm>
#include <array>

namespace rw::k8s::devserver {
namespace {

struct selectable {
  std::string_view resource;
  std::string_view path;
  std::string_view stored = path;  ///< where the stored object has it
};

// Kubernetes, "Field Selectors", and the conversion functions of its API groups.
constexpr std::array selectables{
    selectable{"pods", "spec.nodeName"},
    selectable{"pods", "spec.restartPolicy"},
    selectable{"pods", "spec.schedulerName"},
    selectable{"pods", "spec.serviceAccountName"},
    selectable{"pods", "spec.hostNetwork"},
    selectable{"pods", "status.phase"},
    selectable{"pods", "status.podIP"},
    selectable{"pods", "status.podIPs"},
    selectable{"pods", "status.nominatedNodeName"},
    selectable{"events", "involvedObject.kind"},
    selectable{"events", "involvedObject.namespace"},
    selectable{"events", "involvedObject.name"},
    selectable{"events", "involvedObject.uid"},
    selectable{"events", "involvedObject.apiVersion"},
    selectable{"events", "involvedObject.resourceVersion"},
    selectable{"events", "involvedObject.fieldPath"},
    selectable{"events", "reason"},
    selectable{"events", "reportingComponent"},
    selectable{"events", "source", "source.component"},
    selectable{"events", "type"},
    selectable{"events.events.k8s.io", "regarding.kind", "involvedObject.kind"},
    selectable{"events.events.k8s.io", "regarding.namespace", "involvedObject.namespace"},
    selectable{"events.events.k8s.io", "regarding.name", "involvedObject.name"},
    selectable{"events.events.k8s.io", "regarding.uid", "involvedObject.uid"},
    selectable{"events.events.k8s.io", "regarding.apiVersion", "involvedObject.apiVersion"},
    selectable{"events.events.k8s.io", "regarding.resourceVersion",
               "involvedObject.resourceVersion"},
    selectable{"events.events.k8s.io", "regarding.fieldPath", "involvedObject.fieldPath"},
    selectable{"events.events.k8s.io", "reason"},
    selectable{"events.events.k8s.io", "reportingController", "reportingComponent"},
    selectable{"events.events.k8s.io", "type"},
    selectable{"secrets", "type"},
    selectable{"namespaces", "status.phase"},
    selectable{"nodes", "spec.unschedulable"},
    selectable{"services", "spec.clusterIP"},
    selectable{"services", "spec.type"},
    selectable{"replicationcontrollers", "status.replicas"},
    selectable{"jobs.batch", "status.successful"},
    selectable{"clustertrustbundles.certificates.k8s.io", "spec.signerName"},
};

bool of_metadata(std::string_view path) {
  return path == "metadata.name" || path == "metadata.namespace";
}

/// Returns where the stored object has a field; empty if it does not select.
std::string_view stored_path(const resource& of, std::string_view path) {
  const auto selects = [&](const served_version& served_version) {
    return std::ranges::find(served_version.selectable, path) != served_version.selectable.end();
  };
  if (of_metadata(path) || std::ranges::any_of(of.versions, selects)) return path;
  const auto name = resource_name(of.plural, of.group);
  const auto found = std::ranges::find_if(selectables, [&](const selectable& selectable) {
    return selectable.resource == name && selectable.path == path;
  });
  return found != selectables.end() ? found->stored : std::string_view();
}

problem unsupported_selector(const resource& of, const std::string& path) {
  const auto name = resource_name(of.plural, of.group);
  if (of.custom ||
      std::ranges::find(selectables, name, &selectable::resource) != selectables.end()) {
    return bad_request("field label not supported: " + path);
  }
  return bad_request("\"" + path +
                     "\" is not a known field selector: only \"metadata.name\", "
                     "\"metadata.namespace\"");
}

}  // namespace

outcome<selection> selection::parse(const object_key& key, const query& parameters,
                                    const resource& of) {
  selection result;
  result.ns_ = key.ns;
  result.name_ = key.name;
  auto labels = label_selector::parse(parameters.get("labelSelector"));
  if (labels.has_error()) return bad_request(labels.error().message);
  auto fields = field_selector::parse(parameters.get("fieldSelector"));
  if (fields.has_error()) return fields.error();
  for (auto& term : fields->terms()) {
    const auto stored = stored_path(of, term.path);
    if (stored.empty()) return unsupported_selector(of, term.path);
    if (!of_metadata(stored)) result.by_content_ = true;
    if (stored != term.path) term.path = stored;
  }
  result.labels_ = std::move(*labels);
  result.fields_ = std::move(*fields);
  return result;
}

std::string_view selection::name() const noexcept {
  if (!name_.empty()) return name_;
  for (const auto& term : fields_.terms()) {
    if (term.equal && term.path == "metadata.name") return term.value;
  }
  return {};
}

bool selection::matches(const record& record) const {
  if (!ns_.empty() && record.ns() != ns_) return false;
  if (!name_.empty() && record.name() != name_) return false;
  if (!labels_.empty() && !labels_.matches(record.labels())) return false;
  return fields_.empty() || matches_fields(record);
}

bool selection::matches_fields(const record& record) const {
  if (by_content_) return fields_.matches(record.parse());
  return std::all_of(
      fields_.terms().begin(), fields_.terms().end(), [&](const field_selector::term& term) {
        const auto value = term.path == "metadata.name" ? record.name() : record.ns();
        return (value == term.value) == term.equal;
      });
}

}  // namespace rw::k8s::devserver
