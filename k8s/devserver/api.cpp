#include "rw/k8s/devserver/api.hpp"

#include "rw/k8s/devserver/discovery.hpp"
#include "rw/k8s/devserver/openapi.hpp"
#include "rw/k8s/devserver/openapi_protobuf.hpp"
#include "rw/k8s/devserver/protobuf.hpp"
#include "rw/k8s/devserver/roles.hpp"
#include "rw/k8s/devserver/scale.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/json/monotonic_resource.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <utility>

namespace rw::k8s::devserver {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

/// Returns the verb as Kubernetes' audit log names it.
std::string verb_of(const http::request& from, const target& to) {
  const auto path = parse_resource_path(to.parts);
  const bool has_name = path && !path->key.name.empty();
  if (from.method == "GET" || from.method == "HEAD") {
    if (path && to.parameters.flag("watch")) return "watch";
    return has_name || !path ? "get" : "list";
  }
  if (from.method == "POST") return "create";
  if (from.method == "PUT") return "update";
  if (from.method == "PATCH") return "patch";
  if (from.method == "DELETE") return has_name ? "delete" : "deletecollection";
  return {};
}

/// Returns true for paths that reveal nothing about users.
bool is_health(const target& to) {
  return !to.parts.empty() &&
         (to.parts[0] == "healthz" || to.parts[0] == "livez" || to.parts[0] == "readyz");
}

problem on_demand(const fault& wrong) {
  problem result{wrong.status, std::string(default_reason(wrong.status)), "a fault on demand"};
  result.retry_after = wrong.retry_after;
  return result;
}

/// Converts the body, if it is an object that has a protobuf.
void to_protobuf(http::response& into) {
  if (into.headers.get("content-type") != "application/json") return;
  boost::system::error_code error;
  json::monotonic_resource memory;
  const auto object = json::parse(into.body, error, &memory);
  std::string body;
  if (error || !append_protobuf(body, object)) return;
  into.body = std::move(body);
  http::fields headers;
  headers.add("content-type", protobuf_media_type);
  for (std::size_t i = 0; i < into.headers.size(); ++i) {
    const auto header = into.headers[i];
    if (header.name != "content-type") headers.add(header.name, header.value);
  }
  into.headers = std::move(headers);
}

/// Returns true if any resource is served in that version of the group.
bool is_served(const cluster& in, std::string_view group, std::string_view version) {
  bool found = false;
  in.kinds.for_each([&](const std::shared_ptr<const resource>& kind) {
    found = found || (kind->group == group && kind->find(version) != nullptr);
  });
  return found;
}

void answer_openapi_v2(const cluster& in, const http::request& from, http::response& into) {
  const auto document = describe_openapi_v2(in);
  const auto accept = from.headers.get("accept");
  const bool binary = accept.find(openapi_protobuf_accepted) != std::string_view::npos ||
                      accept.find(openapi_protobuf_type) != std::string_view::npos;
  into.status = 200;
  into.headers.add("content-type", binary ? openapi_protobuf_type : "application/json");
  into.body = binary ? openapi_to_protobuf(document) : json::serialize(document);
}

constexpr std::string_view proxy_subresource = "proxy";

/// Returns true for the proxy of a Pod, and the paths below it.
bool is_pod_proxy(const resource_path& path) {
  const auto& part = path.subresource;
  return path.group.empty() && path.plural == "pods" && part.starts_with(proxy_subresource) &&
         (part.size() == proxy_subresource.size() || part[proxy_subresource.size()] == '/');
}

void no_such_page(http::response& into) {
  into.text(404, "404 page not found");
}

}  // namespace

asio::awaitable<void> api::handle(http::request& from, http::response& into) {
  auto rest = handle_json(from, into);
  if (!prefers_protobuf(from.headers.get("accept"))) return rest;
  if (rest.valid()) return then_convert(std::move(rest), &into);
  to_protobuf(into);
  return rest;
}

asio::awaitable<void> api::then_convert(asio::awaitable<void> rest, http::response* into) {
  co_await std::move(rest);
  to_protobuf(*into);
}

asio::awaitable<void> api::handle_json(http::request& from, http::response& into) {
  if (from.body.size() > parts_.body_bytes) {
    answer(into,
           too_large("Request entity too large: limit is " + std::to_string(parts_.body_bytes)));
    return {};
  }
  auto to = target::parse(from.target);
  if (!to) {
    answer(into, bad_request("the URL can't be understood"));
    return {};
  }
  if (is_health(*to)) {
    into.status = 200;
    into.headers.add("content-type", "text/plain; charset=utf-8");
    into.body = "ok";
    return {};
  }
  if (to->parts.size() == 1 && to->parts[0] == "version") {
    answer(into, 200, version_info(parts_.version));
    return {};
  }
  if (to->cluster.empty()) to->cluster = parts_.root_cluster;
  const auto in = parts_.clusters.find(to->cluster);
  if (in == parts_.clusters.end()) {
    no_such_page(into);
    return {};
  }
  if (parts_.control != nullptr && test_control::is_for(*to)) {
    const auto by = parts_.users.identify(from, to->cluster, parts_.clock.wall());
    if (by.has_error()) {
      answer(into, by.error());
    } else {
      parts_.control->handle(in->second, *by, *to, from, into);
    }
    return {};
  }
  visit of{in->second, std::move(*to), {}, {}};
  of.verb = verb_of(from, of.to);
  if (of.in->faults.decide) of.wrong = of.in->faults.decide(of.verb, of.to.path);
  into.last = of.wrong.last;
  const auto latency = of.wrong.latency;
  if (latency.count() > 0) return after(latency, std::move(of), from, into);
  return proceed(std::move(of), from, into);
}

asio::awaitable<void> api::after(std::chrono::milliseconds latency, visit of, http::request& from,
                                 http::response& into) {
  const auto timer = parts_.clock.make_timer(parts_.executor);
  timer->expires_at(parts_.clock.now() + latency);
  co_await timer->wait();
  auto rest = proceed(std::move(of), from, into);
  if (rest.valid()) co_await std::move(rest);
}

asio::awaitable<void> api::proceed(visit of, http::request& from, http::response& into) {
  if (of.wrong.drop) {
    into.status = 0;
    return {};
  }
  if (of.wrong.status != 0) {
    answer(into, on_demand(of.wrong));
    return {};
  }
  auto by = parts_.users.identify(from, of.to.cluster, parts_.clock.wall());
  if (by.has_error()) {
    answer(into, by.error());
    return {};
  }
  if (!account_exists(*of.in, *by)) {
    answer(into, unauthorized());
    return {};
  }
  if (of.to.path.find("//", 1) != std::string::npos) {
    answer(into, no_such_resource());
    return {};
  }
  auto path = parse_resource_path(of.to.parts);
  if (path) return resource_request(std::move(of), std::move(*path), std::move(*by), from, into);
  if (of.to.parts.size() == 1 && of.to.parts[0] == "metrics") {
    show_metrics(*of.in, *by, into);
    return {};
  }
  if (wants_aggregated_discovery(from.headers.get("accept"))) {
    if (const auto all = discover_all(*of.in, of.to.parts)) {
      into.status = 200;
      into.headers.add("content-type", aggregated_discovery_type);
      into.body = json::serialize(*all);
      return {};
    }
  }
  if (of.to.parts == std::vector<std::string>{"openapi", "v2"}) {
    answer_openapi_v2(*of.in, from, into);
    return {};
  }
  auto found = discover(*of.in, of.to.parts);
  if (!found) found = describe_openapi(*of.in, of.to.parts);
  if (found) {
    answer(into, 200, *found);
  } else {
    no_such_page(into);
  }
  return {};
}

void api::show_metrics(const cluster& in, const identity& by, http::response& into) const {
  if (parts_.authorization && !may_visit(in, by, "get", "/metrics")) {
    return answer(into,
                  forbidden({"", "", ""}, "User \"" + by.user + "\" cannot get path \"/metrics\""));
  }
  into.status = 200;
  into.headers.add("content-type",
                   "text/plain; version=0.0.4; charset=utf-8; escaping=underscores");
  into.body = core::expose(parts_.metrics);
}

bool api::is_initializing(const cluster& in, const resource& of) const {
  if (parts_.storage_delay.count() == 0 || !of.custom) return false;
  const auto definitions = in.objects.find("customresourcedefinitions.apiextensions.k8s.io");
  const auto served = definitions ? definitions->find(resource_name(of.plural, of.group)) : nullptr;
  if (!served) return false;
  const auto definition = served->parse();
  const auto created = parse_rfc3339(find_string(definition, {"metadata", "creationTimestamp"}));
  // Whole seconds.
  const auto least = std::chrono::seconds(1) + parts_.storage_delay;
  const auto now = parts_.clock.wall();
  return created && now >= *created && now < *created + least;  // a calendar may jump
}

asio::awaitable<void> api::resource_request(visit of, resource_path path, identity by,
                                            http::request& from, http::response& into) {
  const bool is_proxy = parts_.pods && is_pod_proxy(path);
  const wanted_access wanted{
      of.verb,     path.group,
      path.plural, is_proxy ? std::string(proxy_subresource) : path.subresource,
      path.key.ns, path.key.name};
  const bool open = of.verb == "create" && is_own_review(path.group, path.plural);
  if (parts_.authorization && !open && !is_allowed(*of.in, by, wanted)) {
    answer(into, access_denied(by, wanted));
    return {};
  }
  if (is_proxy) return proxy_to_pod(*of.in, path, from, into);
  auto view = of.in->kinds.find(path.group, path.version, path.plural);
  if (!view) {
    if (is_unserved(path.group, path.version, path.plural)) {
      answer(into, unsupported(resource_name(path.plural, path.group)));
    } else if (is_served(*of.in, path.group, path.version)) {
      answer(into, no_such_resource());
    } else {
      no_such_page(into);
    }
    return {};
  }
  const auto* const own =
      view.of->custom ? nullptr : find_subresource(view.of->storage_key, path.subresource);
  const bool known =
      path.subresource.empty() || (path.subresource == "status" && view.version->status) ||
      (path.subresource == scale_subresource && view.version->scale) || own != nullptr;
  const bool placed = view.of->namespaced || path.key.ns.empty();
  const bool named = path.key.name.empty() || !view.of->namespaced || !path.key.ns.empty();
  if (!known || !placed || !named) {
    answer(into, no_such_resource());
    return {};
  }
  if (is_initializing(*of.in, *view.of)) {
    answer(into, storage_initializing());
    return {};
  }
  if (!view.version->warning.empty()) warn(into, view.version->warning);
  const auto format = negotiate(from.headers.get("accept"), of.to.parameters.get("includeObject"),
                                has_protobuf(view.api_version(), view.of->kind), parts_.clock);
  if (format.has_error()) {
    answer(into, format.error());
    return {};
  }
  call call{
      of.in,   std::move(view), std::move(path.key), std::move(path.subresource), of.to.parameters,
      *format, std::move(by)};
  call.user_agent = from.headers.get("user-agent");
  call.authorization = parts_.authorization;
  call.refuse_unsupported = parts_.refuse_unsupported;
  const auto warnings = call.warnings;
  auto rest = perform(of, std::move(call), from, into);
  if (rest.valid()) return then_warn(std::move(rest), warnings, &into);
  for (const auto& warning : *warnings) warn(into, warning);
  return rest;
}

asio::awaitable<void> api::then_warn(asio::awaitable<void> rest, warning_list warnings,
                                     http::response* into) {
  co_await std::move(rest);
  for (const auto& warning : *warnings) warn(*into, warning);
}

asio::awaitable<void> api::proxy_to_pod(const cluster& in, const resource_path& path,
                                        http::request& from, http::response& into) {
  auto* const pod = parts_.pods(in.name, path.key.ns + "/" + path.key.name);
  if (pod == nullptr) {
    answer(into, not_found({"", "pods", path.key.name}));
    return {};
  }
  const auto page = path.subresource.substr(proxy_subresource.size());
  const auto query = from.target.substr(std::min(from.target.find('?'), from.target.size()));
  from.target = (page.empty() ? "/" : page) + query;
  from.peer = {};
  return pod->handle(from, into);
}

asio::awaitable<void> api::perform(const visit& of, call call, http::request& from,
                                   http::response& into) {
  const bool has_name = !call.key.name.empty();
  outcome<void> done;
  if (from.method == "HEAD") {
    done = method_not_allowed("the server does not allow this method on the requested resource");
  } else if (call.subresource == "binding" || call.subresource == "eviction") {
    if (of.verb == "create" && has_name) {
      return call.subresource == "binding" ? parts_.writes.bind(std::move(call), from, into)
                                           : parts_.writes.evict(std::move(call), from, into);
    }
    done = method_not_allowed("the server does not allow this method on the requested resource");
  } else if (call.view.of->review || call.subresource == token_subresource) {
    if (of.verb == "create" && has_name == !call.view.of->review) {
      auto then = [&reviews = parts_.reviews, call, &into](json::value object) {
        reviews.respond(call, std::move(object), into);
        return asio::awaitable<void>();
      };
      auto object = parts_.reviews.parse(call, from);
      return parts_.writes.create_unstored(std::move(call), std::move(object), std::move(then),
                                           into);
    } else {
      done = method_not_allowed("the server does not allow this method on the requested resource");
    }
  } else if (call.view.of->read_only && from.method != "GET") {
    done = unsupported("changes of " + resource_name(call.view.of->plural, call.view.of->group));
  } else if (call.subresource == "finalize" && of.verb != "update") {
    done = method_not_allowed("the server does not allow this method on the requested resource");
  } else if (of.verb == "get") {
    done = parts_.reads.get(call, into);
  } else if (of.verb == "list") {
    done = parts_.reads.list(call, into);
  } else if (of.verb == "watch") {
    done = parts_.reads.begin_watch(call, of.wrong, into);
  } else if (of.verb == "create" && !has_name &&
             (call.view.of->namespaced == !call.key.ns.empty())) {
    return parts_.writes.create(std::move(call), from, into);
  } else if (of.verb == "update" && has_name) {
    return parts_.writes.update(std::move(call), from, into);
  } else if (of.verb == "patch" && has_name) {
    return parts_.writes.patch(std::move(call), from, into);
  } else if (of.verb == "delete" && call.subresource.empty()) {
    return parts_.writes.remove(std::move(call), from, into);
  } else if (of.verb == "deletecollection" && call.view.of->deletes_collections) {
    return parts_.writes.remove_all(std::move(call), from, into);
  } else {
    done = method_not_allowed("the server does not allow this method on the requested resource");
  }
  if (done.has_error()) answer(into, done.error());
  return {};
}

}  // namespace rw::k8s::devserver
