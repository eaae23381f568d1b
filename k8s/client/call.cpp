#include "rw/k8s/client/call.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/k8s/objects/url.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <array>

namespace rw::k8s {
namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, verbs> labels = {
    "get",      "list", "watch", "create", "update", "patch", "apply", "delete", "deletecollection",
    "discover", "raw"};

constexpr std::string_view accept_metadata =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json";
constexpr std::string_view accept_metadata_list =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json";

/// Appends parameters to a target.
class query {
 public:
  explicit query(std::string& target) : target_(target) {}

  query& add(std::string_view name, std::string_view value) {
    if (value.empty()) return *this;
    target_ += first_ ? '?' : '&';
    first_ = false;
    target_ += name;
    target_ += '=';
    append_percent_encoded(target_, value);
    return *this;
  }
  query& flag(std::string_view name, bool set) { return add(name, set ? "true" : ""); }

 private:
  std::string& target_;
  bool first_ = true;
};

call make(verb verb, const resource_type& type, object_key key) {
  call out;
  out.wire.method = "GET";
  out.operation = verb;
  out.plural = type.plural;
  out.key = std::move(key);
  return out;
}

/// An object lies in the context's namespace where it names none, as with kubectl.
object_key placed(const resource_type& type, object_key key, const std::string& ns) {
  if (!type.namespaced) {
    key.ns.clear();
  } else if (key.ns.empty()) {
    key.ns = ns;
  }
  return key;
}

void refuse(call& call, const std::string& reason) {
  call.wrong =
      failure{.code = errc::bad_request, .message = "cannot " + call.text() + ": " + reason};
}

/// A path has to end with the name, or the request would be for something else altogether.
void need_name(call& call) {
  if (call.key.name.empty()) refuse(call, "the object has no name");
  // They would climb in the path (RFC 3986, section 5.2.4); the API refuses such names, too.
  if (call.key.name == "." || call.key.name == ".." || call.key.ns == "." || call.key.ns == "..") {
    refuse(call, "this is no name of an object");
  }
}

void select(query& parameters, const selection& objects) {
  parameters.add("labelSelector", objects.labels).add("fieldSelector", objects.fields);
}

/// A DeleteOptions object; empty where nothing is asked for.
std::string body_of(const delete_options& options) {
  json::object body;
  json::object preconditions;
  if (!options.uid.empty()) preconditions["uid"] = options.uid;
  if (!options.resource_version.empty()) {
    preconditions["resourceVersion"] = options.resource_version;
  }
  if (!preconditions.empty()) body["preconditions"] = std::move(preconditions);
  if (!options.propagation.empty()) body["propagationPolicy"] = options.propagation;
  if (options.grace_period_seconds) body["gracePeriodSeconds"] = *options.grace_period_seconds;
  if (options.dry_run) body["dryRun"] = json::array{"All"};
  if (body.empty()) return {};
  body["kind"] = "DeleteOptions";
  body["apiVersion"] = "v1";
  return json::serialize(body);
}

void add_delete_options(call& call, const delete_options& options) {
  call.wire.method = "DELETE";
  call.writes = true;
  call.wire.body = body_of(options);
  if (!call.wire.body.empty()) call.content_type = "application/json";
}

}  // namespace

std::string_view label_of(verb verb) noexcept {
  return labels[static_cast<std::size_t>(verb)];
}

std::string call::text() const {
  auto out = operation == verb::raw        ? wire.method
             : operation == verb::discover ? std::string("discover")
                                           : std::string(label_of(operation));
  if (operation == verb::remove_all) out = "delete all";
  out += ' ';
  out += plural;
  const auto object = to_string(key);
  if (!object.empty()) out.append(" ").append(object);
  return out;
}

call get_call(const resource_type& type, object_key key, bool metadata_only,
              const std::string& ns) {
  auto out = make(verb::get, type, placed(type, std::move(key), ns));
  out.wire.target = object_path(type, out.key);
  if (metadata_only) {
    out.accept = accept_metadata;
  } else {
    out.kind = type.gvk.kind;
  }
  need_name(out);
  return out;
}

call get_subresource_call(const resource_type& type, object_key key, std::string_view subresource,
                          const std::string& ns) {
  auto out = make(verb::get, type, placed(type, std::move(key), ns));
  out.wire.target = object_path(type, out.key, subresource);
  need_name(out);
  return out;
}

call list_call(const resource_type& type, const selection& objects, const list_options& page) {
  auto out = make(verb::list, type, {objects.ns, {}});
  out.wire.target = collection_path(type, objects.ns);
  query parameters(out.wire.target);
  select(parameters, objects);
  if (page.limit > 0) parameters.add("limit", std::to_string(page.limit));
  parameters.add("continue", page.continue_token)
      .add("resourceVersion", page.resource_version)
      .add("resourceVersionMatch", page.resource_version_match);
  if (objects.metadata_only) out.accept = accept_metadata_list;
  return out;
}

call watch_call(const resource_type& type, const selection& objects, const watch_options& options,
                http::body_sink& into) {
  auto out = make(verb::watch, type, {objects.ns, {}});
  out.wire.target = collection_path(type, objects.ns);
  query parameters(out.wire.target);
  parameters.flag("watch", true).flag("allowWatchBookmarks", options.bookmarks);
  select(parameters, objects);
  parameters.add("resourceVersion", options.resource_version)
      .add("timeoutSeconds", std::to_string(options.timeout.count()));
  if (options.send_initial_events) {
    parameters.flag("sendInitialEvents", true).add("resourceVersionMatch", "NotOlderThan");
  }
  if (objects.metadata_only) out.accept = accept_metadata;
  out.sink = &into;
  out.limit = options.timeout + std::chrono::seconds(5);
  out.silence = options.silence;
  out.bounds.retry = false;
  return out;
}

call write_call(verb verb, std::string_view content_type, const resource_type& type, object_key key,
                const json::value& body, const write_options& options, const std::string& ns) {
  auto out = make(verb, type, placed(type, std::move(key), ns));
  out.writes = true;
  out.wire.method = verb == verb::create ? "POST" : verb == verb::update ? "PUT" : "PATCH";
  out.content_type = content_type;
  out.wire.body = json::serialize(body);
  const bool to_collection = verb == verb::create && options.subresource.empty();
  out.wire.target = to_collection ? collection_path(type, out.key.ns)
                                  : object_path(type, out.key, options.subresource);
  query(out.wire.target)
      .add("fieldManager", options.field_manager)
      .flag("force", options.force)
      .add("dryRun", options.dry_run ? "All" : "")
      .add("fieldValidation", options.field_validation);
  // Other subresources have kinds of their own, such as Scale.
  if (options.subresource.empty() || options.subresource == "status") out.kind = type.gvk.kind;
  const bool is_named_there =
      to_collection && !find_string(body, {"metadata", "generateName"}).empty();
  if (!is_named_there) need_name(out);
  return out;
}

call remove_call(const resource_type& type, object_key key, const delete_options& options,
                 const std::string& ns) {
  auto out = make(verb::remove, type, placed(type, std::move(key), ns));
  out.wire.target = object_path(type, out.key);
  add_delete_options(out, options);
  need_name(out);
  return out;
}

call remove_all_call(const resource_type& type, const selection& objects,
                     const delete_options& options) {
  auto out = make(verb::remove_all, type, {objects.ns, {}});
  out.wire.target = collection_path(type, objects.ns);
  query parameters(out.wire.target);
  select(parameters, objects);
  add_delete_options(out, options);
  return out;
}

call discover_call(std::string target) {
  call out;
  out.wire.method = "GET";
  out.operation = verb::discover;
  out.plural = target;
  out.wire.target = std::move(target);
  return out;
}

}  // namespace rw::k8s
