#include "rw/k8s/client/client.hpp"

#include "rw/k8s/client/call.hpp"
#include "rw/k8s/client/discovery.hpp"
#include "rw/k8s/client/session.hpp"
#include "rw/k8s/objects/status.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <stdexcept>
#include <utility>

namespace rw::k8s {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

using session_ptr = std::shared_ptr<session>;

failure bad_answer(const call& asked, const http::response& answer, const std::string& why) {
  return {.code = errc::bad_answer,
          .status = answer.status,
          .message = "cannot " + asked.text() + ": " + why};
}

/// What is wrong with an object that was asked for; empty if nothing is.
std::string defect(const json::value& answer, const std::string& kind) {
  if (!answer.is_object()) return "the answer is JSON, but no object";
  const auto found = find_string(answer, {"kind"});
  if (kind.empty() || found == kind) return {};
  return "the answer is of the kind \"" + quoted_line(found) + "\", not " + kind;
}

/// The same of a list, whose items become an array where the server wrote null.
std::string list_defect(json::value& answer) {
  if (!find_string(answer, {"kind"}).ends_with("List")) return "the answer is no list";
  auto& items = answer.as_object()["items"];
  if (items.is_null()) items.emplace_array();
  return items.is_array() ? "" : "the answer's items are no array";
}

asio::awaitable<result<json::value>> ask(session_ptr api, call what, call_options bounds = {}) {
  what.bounds = bounds;
  auto answer = co_await api->perform(&what);
  if (!answer) co_return answer.error();
  std::string why;
  auto value = parse_json(answer->body, why);
  if (!value) co_return bad_answer(what, *answer, why);
  why = what.what == verb::list ? list_defect(*value) : defect(*value, what.kind);
  if (!why.empty()) co_return bad_answer(what, *answer, why);
  co_return std::move(*value);
}

/// The same as text, of which only the first byte is looked at.
asio::awaitable<result<std::string>> ask_text(session_ptr api, call what, call_options bounds) {
  what.bounds = bounds;
  auto answer = co_await api->perform(&what);
  if (!answer) co_return answer.error();
  if (what.what == verb::list && !answer->body.starts_with('{')) {
    co_return bad_answer(what, *answer, "the answer is not JSON: " + quoted_line(answer->body));
  }
  co_return std::move(answer->body);
}

asio::awaitable<result<opened_watch>> open(session_ptr api, call what) {
  opened_watch opened;
  what.opened = &opened;
  const auto answer = co_await api->perform(&what);
  if (!answer) co_return answer.error();
  co_return std::move(opened);
}

asio::awaitable<result<std::vector<discovered_resource>>> ask_resources(session_ptr api,
                                                                        group_version_kind of) {
  auto what = discover_call((of.group.empty() ? "/api/" : "/apis/") + of.api_version());
  auto answer = co_await ask(api, what);
  if (!answer) co_return answer.error();
  auto found = resources_of(*answer, of);
  if (!found) co_return bad_answer(what, {}, "the answer is no APIResourceList");
  co_return std::move(*found);
}

asio::awaitable<result<std::vector<std::string>>> ask_versions(session_ptr api, std::string group) {
  auto what = discover_call(group.empty() ? "/api" : "/apis");
  auto answer = co_await ask(api, what);
  if (!answer) co_return answer.error();
  auto found = versions_of(*answer, group);
  if (!found) co_return bad_answer(what, {}, "the answer is neither APIVersions nor APIGroupList");
  co_return std::move(*found);
}

asio::awaitable<result<std::pair<unsigned, unsigned>>> ask_server_version(session_ptr api,
                                                                          call_options bounds) {
  auto what = discover_call("/version");
  auto answer = co_await ask(api, what, bounds);
  if (!answer) co_return answer.error();
  const auto found = server_version_of(*answer);
  if (!found) co_return bad_answer(what, {}, "the answer has no major and minor version");
  co_return *found;
}

std::string_view content_type_of(patch_type how) {
  switch (how) {
    case patch_type::merge:
      return "application/merge-patch+json";
    case patch_type::json:
      return "application/json-patch+json";
    case patch_type::strategic_merge:
      return "application/strategic-merge-patch+json";
  }
  return {};
}

call raw_call(std::string method, std::string target, std::string content_type, std::string body) {
  call out;
  out.what = verb::raw;
  out.writes = method != "GET" && method != "HEAD" && method != "OPTIONS";
  out.plural = target;
  out.accept = "application/json, */*";
  out.content_type = std::move(content_type);
  out.wire.method = std::move(method);
  out.wire.target = std::move(target);
  out.wire.body = std::move(body);
  return out;
}

}  // namespace

class client::implementation {
 public:
  implementation(asio::any_io_executor executor, config how, client_options options,
                 client_environment environment)
      : api(std::make_shared<session>(std::move(executor), std::move(how), std::move(options),
                                      environment)) {}

  const std::string& ns() const { return api->configuration().ns; }

  asio::awaitable<result<json::value>> write(const client& by, verb what, const resource_type& type,
                                             object_key key, const json::value& body,
                                             write_options options, call_options bounds,
                                             std::string_view content_type = "application/json") {
    if (options.field_manager.empty()) options.field_manager = api->options().field_manager;
    options.dry_run = options.dry_run || by.is_dry();
    return ask(
        api, guarded(write_call(what, content_type, type, std::move(key), body, options, ns()), by),
        bounds);
  }

  /// The call, as that copy of the client may make it.
  static call guarded(call what, const client& by) {
    if (what.writes) what.permit = by.writes_;
    return what;
  }

  static asio::awaitable<result<resource_type>> find(std::shared_ptr<implementation> self,
                                                     group_version_kind gvk);

  const session_ptr api;
  discovery_cache found;
};

asio::awaitable<result<resource_type>> client::implementation::find(
    std::shared_ptr<implementation> self, group_version_kind gvk) {
  const auto& clock = self->api->environment().clock;
  auto known = self->found.find(gvk, clock.now());
  if (known) co_return std::move(*known);
  auto served = co_await ask_resources(self->api, gvk);
  if (!served) co_return served.error();
  self->found.keep(gvk.api_version(), *served, clock.now());
  known = self->found.find(gvk, clock.now());
  if (known) co_return std::move(*known);
  co_return failure{.code = errc::not_found,
                    .message = "cannot find the resource of " + gvk.kind + ": " +
                               gvk.api_version() + " is served without it"};
}

client::client(asio::any_io_executor executor, config how, client_options options,
               client_environment environment)
    : impl_(std::make_shared<implementation>(std::move(executor), std::move(how),
                                             std::move(options), environment)) {}
client::~client() = default;
client::client(const client&) = default;
client& client::operator=(const client&) = default;

client client::fenced(std::shared_ptr<const fence> writes) const {
  if (writes_) throw std::logic_error("the client is fenced already");
  auto out = *this;
  out.writes_ = std::move(writes);
  return out;
}

client client::dry(std::shared_ptr<const bool> is_dry) const {
  if (dry_) throw std::logic_error("the client is dry already");
  auto out = *this;
  out.dry_ = std::move(is_dry);
  return out;
}

asio::awaitable<result<json::value>> client::get(resource_type type, object_key key,
                                                 bool metadata_only, call_options bounds) {
  return ask(impl_->api, get_call(type, std::move(key), metadata_only, impl_->ns()), bounds);
}

asio::awaitable<result<json::value>> client::list(resource_type type, selection what,
                                                  list_options page, call_options bounds) {
  return ask(impl_->api, list_call(type, what, page), bounds);
}

asio::awaitable<result<std::string>> client::list_text(resource_type type, selection what,
                                                       list_options page, call_options bounds) {
  return ask_text(impl_->api, list_call(type, what, page), bounds);
}

asio::awaitable<result<opened_watch>> client::open_watch(resource_type type, selection what,
                                                         watch_options options, watch_sink& into) {
  return open(impl_->api, watch_call(type, what, options, into));
}

asio::awaitable<result<json::value>> client::create(resource_type type, value object,
                                                    write_options options, call_options bounds) {
  return impl_->write(*this, verb::create, type, key_of(object), object, std::move(options),
                      bounds);
}

asio::awaitable<result<json::value>> client::update(resource_type type, value object,
                                                    write_options options, call_options bounds) {
  return impl_->write(*this, verb::update, type, key_of(object), object, std::move(options),
                      bounds);
}

asio::awaitable<result<json::value>> client::patch(resource_type type, object_key key,
                                                   patch_type how, value change,
                                                   write_options options, call_options bounds) {
  return impl_->write(*this, verb::patch, type, std::move(key), change, std::move(options), bounds,
                      content_type_of(how));
}

asio::awaitable<result<json::value>> client::apply(resource_type type, value object,
                                                   apply_options options, call_options bounds) {
  // JSON is YAML.
  return impl_->write(*this, verb::apply, type, key_of(object), object, std::move(options), bounds,
                      "application/apply-patch+yaml");
}

asio::awaitable<result<json::value>> client::remove(resource_type type, object_key key,
                                                    delete_options options, call_options bounds) {
  options.dry_run = options.dry_run || is_dry();
  return ask(
      impl_->api,
      implementation::guarded(remove_call(type, std::move(key), options, impl_->ns()), *this),
      bounds);
}

asio::awaitable<result<json::value>> client::remove_all(resource_type type, selection what,
                                                        delete_options options,
                                                        call_options bounds) {
  options.dry_run = options.dry_run || is_dry();
  return ask(impl_->api, implementation::guarded(remove_all_call(type, what, options), *this),
             bounds);
}

asio::awaitable<result<std::vector<discovered_resource>>> client::resources(
    std::string api_version) {
  group_version_kind of;
  parse_api_version(api_version, of);
  return ask_resources(impl_->api, std::move(of));
}

asio::awaitable<result<std::vector<std::string>>> client::versions(std::string group) {
  return ask_versions(impl_->api, std::move(group));
}

asio::awaitable<result<resource_type>> client::find(group_version_kind gvk) {
  return implementation::find(impl_, std::move(gvk));
}

asio::awaitable<result<std::pair<unsigned, unsigned>>> client::server_version(call_options bounds) {
  return ask_server_version(impl_->api, bounds);
}

asio::awaitable<result<std::string>> client::raw(std::string method, std::string target,
                                                 std::string content_type, std::string body,
                                                 call_options bounds) {
  auto what =
      raw_call(std::move(method), std::move(target), std::move(content_type), std::move(body));
  if (what.writes && is_dry()) {
    what.wrong = failure{.code = errc::bad_request,
                         .message = "cannot " + what.text() + ": the client is dry"};
  }
  return ask_text(impl_->api, implementation::guarded(std::move(what), *this), bounds);
}

void client::retire() {
  impl_->api->retire();
}

asio::awaitable<void> client::close() {
  return impl_->api->close();
}

const config& client::configuration() const noexcept {
  return impl_->api->configuration();
}
core::clock& client::clock() const noexcept {
  return impl_->api->environment().clock;
}
const std::string& client::name() const noexcept {
  return impl_->api->options().name;
}
asio::any_io_executor client::get_executor() const noexcept {
  return impl_->api->executor();
}

}  // namespace rw::k8s
