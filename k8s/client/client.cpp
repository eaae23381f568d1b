#include "rw/k8s/client/client.hpp"

#include "rw/k8s/client/call.hpp"
#include "rw/k8s/client/discovery.hpp"
#include "rw/k8s/client/session.hpp"
#include "rw/k8s/client/write_preview.hpp"
#include "rw/k8s/objects/read_json.hpp"
#include "rw/k8s/objects/status.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

namespace rw::k8s {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

using session_ptr = std::shared_ptr<session>;

failure bad_response(const call& asked, const http::response& response, const std::string& reason) {
  return {.code = errc::bad_response,
          .status = response.status,
          .message = "cannot " + asked.text() + ": " + reason};
}

/// What is wrong with an object that was asked for; empty if nothing is.
std::string defect(const json::value& response, const std::string& kind) {
  if (!response.is_object()) return "the answer is JSON, but no object";
  const auto found = find_string(response, {"kind"});
  if (kind.empty() || found == kind) return {};
  return "the answer is of the kind \"" + quoted_line(found) + "\", not " + kind;
}

/// The same of a list, whose items become an array where the server wrote null.
std::string list_defect(json::value& response) {
  if (!find_string(response, {"kind"}).ends_with("List")) return "the answer is no list";
  auto& items = response.as_object()["items"];
  if (items.is_null()) items.emplace_array();
  return items.is_array() ? "" : "the answer's items are no array";
}

asio::awaitable<result<json::value>> ask(session_ptr api, call request, call_options bounds = {}) {
  request.bounds = bounds;
  auto response = co_await api->perform(&request);
  if (!response) co_return response.error();
  auto value = read_json(response->body);
  if (!value) {
    co_return bad_response(
        request, *response,
        "the answer " + value.error().message + ": " + quoted_line(response->body));
  }
  const auto reason =
      request.operation == verb::list ? list_defect(*value) : defect(*value, request.kind);
  if (!reason.empty()) co_return bad_response(request, *response, reason);
  co_return std::move(*value);
}

/// Tries a write that sends `body`, null where it is a deletion, and collects it.
asio::awaitable<result<json::value>> preview(session_ptr api, std::shared_ptr<write_preview> into,
                                             tried_write write, call request, json::value body,
                                             call_options bounds) {
  auto read = get_call(write.type, write.key, false, api->configuration().ns);
  auto live = co_await ask(api, std::move(read), bounds);
  if (!live && !live.error().is(errc::not_found)) co_return live.error();
  auto tried = co_await ask(api, std::move(request), bounds);
  const bool creates = !live && !body.is_null();
  const bool has_no_place = !tried && tried.error().is(errc::not_found);
  if (creates && has_no_place && into->makes_room_for(write.type, write.key)) tried = body;
  if (!tried) co_return tried;
  if (live) write.live = std::move(*live);
  if (!body.is_null()) write.next = *tried;
  into->add(std::move(write));
  co_return tried;
}

/// The same as text, of which only the first byte is looked at.
asio::awaitable<result<std::string>> ask_text(session_ptr api, call request, call_options bounds) {
  request.bounds = bounds;
  auto response = co_await api->perform(&request);
  if (!response) co_return response.error();
  if (request.operation == verb::list && !response->body.starts_with('{')) {
    co_return bad_response(request, *response,
                           "the answer is not JSON: " + quoted_line(response->body));
  }
  co_return std::move(response->body);
}

/// Puts the pages of one list together, and notices one that has no end.
class page_collector {
 public:
  /// Returns the error of a page that does not bring the list nearer to its end.
  std::string_view add(json::value page) {
    token = find_string(page, {"metadata", "continue"});
    auto& items = page.at("items").as_array();
    empty_pages_ = items.empty() ? empty_pages_ + 1 : 0;
    if (list.is_null()) {
      list = std::move(page);
    } else {
      auto& all = list.at("items").as_array();
      for (auto& item : items) all.push_back(std::move(item));
    }
    if (token.empty()) return {};
    if (!tokens_.insert(token).second) return "the continue token repeats: the list has no end";
    if (empty_pages_ == empty_pages_at_most) return "the list's pages stay empty";
    return {};
  }

  json::value list;
  std::string token;

 private:
  static constexpr unsigned empty_pages_at_most = 1000;
  std::set<std::string> tokens_;
  unsigned empty_pages_ = 0;
};

asio::awaitable<result<json::value>> ask_all(session_ptr api, resource_type type, selection objects,
                                             call_options bounds) {
  constexpr std::uint32_t page_size = 500;
  std::optional<page_collector> pages(std::in_place);
  bool begun_again = false;
  for (;;) {
    auto request = list_call(type, objects, {.limit = page_size, .continue_token = pages->token});
    auto page = co_await ask(api, request, bounds);
    if (!page) {
      const bool forgotten = page.error().is(errc::gone) && !pages->token.empty();
      if (!forgotten || std::exchange(begun_again, true)) co_return page.error();
      pages.emplace();
      continue;
    }
    const auto wrong = pages->add(std::move(*page));
    if (!wrong.empty()) co_return bad_response(request, {}, std::string(wrong));
    if (!pages->token.empty()) continue;
    auto* const metadata = pages->list.get_object().if_contains("metadata");
    if (metadata != nullptr && metadata->is_object()) {
      metadata->get_object().erase("continue");
      metadata->get_object().erase("remainingItemCount");
    }
    co_return std::move(pages->list);
  }
}

asio::awaitable<result<opened_watch>> open(session_ptr api, call request) {
  opened_watch opened;
  request.opened = &opened;
  const auto response = co_await api->perform(&request);
  if (!response) co_return response.error();
  co_return std::move(opened);
}

asio::awaitable<result<std::vector<discovered_resource>>> ask_resources(session_ptr api,
                                                                        group_version_kind of) {
  auto request = discover_call((of.group.empty() ? "/api/" : "/apis/") + of.api_version());
  auto response = co_await ask(api, request);
  if (!response) co_return response.error();
  auto found = resources_of(*response, of);
  if (!found) co_return bad_response(request, {}, "the answer is no APIResourceList");
  co_return std::move(*found);
}

asio::awaitable<result<std::vector<std::string>>> ask_versions(session_ptr api, std::string group) {
  auto request = discover_call(group.empty() ? "/api" : "/apis");
  auto response = co_await ask(api, request);
  if (!response) co_return response.error();
  auto found = versions_of(*response, group);
  if (!found)
    co_return bad_response(request, {}, "the answer is neither APIVersions nor APIGroupList");
  co_return std::move(*found);
}

asio::awaitable<result<std::pair<unsigned, unsigned>>> ask_server_version(session_ptr api,
                                                                          call_options bounds) {
  auto request = discover_call("/version");
  auto response = co_await ask(api, request, bounds);
  if (!response) co_return response.error();
  const auto found = server_version_of(*response);
  if (!found) co_return bad_response(request, {}, "the answer has no major and minor version");
  co_return *found;
}

std::string_view content_type_of(patch_type format) {
  switch (format) {
    case patch_type::merge:
      return "application/merge-patch+json";
    case patch_type::json:
      return "application/json-patch+json";
    case patch_type::strategic_merge:
      return "application/strategic-merge-patch+json";
  }
  return {};
}

call raw_call(std::string method, std::string target, std::string content_type, std::string body,
              http::fields beside) {
  call out;
  out.operation = verb::raw;
  out.writes = method != "GET" && method != "HEAD" && method != "OPTIONS";
  out.plural = target;
  out.accept = "application/json, */*";
  out.content_type = std::move(content_type);
  out.wire.method = std::move(method);
  out.wire.target = std::move(target);
  out.wire.body = std::move(body);
  out.beside = std::move(beside);
  return out;
}

}  // namespace

class client::implementation {
 public:
  implementation(asio::any_io_executor executor, config configuration, client_options options,
                 client_environment environment)
      : api(std::make_shared<session>(std::move(executor), std::move(configuration),
                                      std::move(options), environment)) {}

  const std::string& ns() const { return api->configuration().ns; }

  asio::awaitable<result<json::value>> write(const client& by, verb verb, const resource_type& type,
                                             object_key key, const json::value& body,
                                             write_options options, call_options bounds,
                                             std::string_view content_type = "application/json") {
    if (options.field_manager.empty()) options.field_manager = api->options().field_manager;
    const bool collects = by.preview_ && !options.dry_run;
    options.dry_run = options.dry_run || by.is_dry();
    auto request = guarded(write_call(verb, content_type, type, key, body, options, ns()), by);
    if (!collects) return ask(api, std::move(request), bounds);
    return preview(api, by.preview_, {.type = type, .key = std::move(key)}, std::move(request),
                   body, bounds);
  }

  /// The call, as that copy of the client may make it.
  static call guarded(call request, const client& by) {
    if (request.writes) request.permit = by.writes_;
    return request;
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

client::client(asio::any_io_executor executor, config configuration, client_options options,
               client_environment environment)
    : impl_(std::make_shared<implementation>(std::move(executor), std::move(configuration),
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

client client::previewing(std::shared_ptr<write_preview> into) const {
  auto out = *this;
  out.preview_ = std::move(into);
  return out;
}

asio::awaitable<result<json::value>> client::get(resource_type type, object_key key,
                                                 bool metadata_only, call_options bounds) {
  return ask(impl_->api, get_call(type, std::move(key), metadata_only, impl_->ns()), bounds);
}

asio::awaitable<result<json::value>> client::get_subresource(resource_type type, object_key key,
                                                             std::string subresource,
                                                             call_options bounds) {
  return ask(impl_->api, get_subresource_call(type, std::move(key), subresource, impl_->ns()),
             bounds);
}

asio::awaitable<result<json::value>> client::list_all(resource_type type, selection objects,
                                                      call_options bounds) {
  return ask_all(impl_->api, std::move(type), std::move(objects), bounds);
}

asio::awaitable<result<json::value>> client::list(resource_type type, selection objects,
                                                  list_options page, call_options bounds) {
  return ask(impl_->api, list_call(type, objects, page), bounds);
}

asio::awaitable<result<std::string>> client::list_text(resource_type type, selection objects,
                                                       list_options page, call_options bounds) {
  return ask_text(impl_->api, list_call(type, objects, page), bounds);
}

asio::awaitable<result<opened_watch>> client::open_watch(resource_type type, selection objects,
                                                         watch_options options, watch_sink& into) {
  return open(impl_->api, watch_call(type, objects, options, into));
}

bool client::streams_lists() const noexcept {
  return impl_->api->streams_lists;
}

void client::rule_out_streaming_lists() noexcept {
  impl_->api->streams_lists = false;
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
                                                   patch_type format, value change,
                                                   write_options options, call_options bounds) {
  return impl_->write(*this, verb::patch, type, std::move(key), change, std::move(options), bounds,
                      content_type_of(format));
}

asio::awaitable<result<json::value>> client::apply(resource_type type, value object,
                                                   apply_options options, call_options bounds) {
  // JSON is YAML.
  return impl_->write(*this, verb::apply, type, key_of(object), object, std::move(options), bounds,
                      "application/apply-patch+yaml");
}

asio::awaitable<result<json::value>> client::remove(resource_type type, object_key key,
                                                    delete_options options, call_options bounds) {
  const bool collects = preview_ && !options.dry_run;
  options.dry_run = options.dry_run || is_dry();
  auto request = implementation::guarded(remove_call(type, key, options, impl_->ns()), *this);
  if (!collects) return ask(impl_->api, std::move(request), bounds);
  return preview(impl_->api, preview_, {.type = std::move(type), .key = std::move(key)},
                 std::move(request), nullptr, bounds);
}

asio::awaitable<result<json::value>> client::remove_all(resource_type type, selection objects,
                                                        delete_options options,
                                                        call_options bounds) {
  options.dry_run = options.dry_run || is_dry();
  return ask(impl_->api, implementation::guarded(remove_all_call(type, objects, options), *this),
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
                                                 call_options bounds, http::fields beside) {
  auto request = raw_call(std::move(method), std::move(target), std::move(content_type),
                          std::move(body), std::move(beside));
  if (request.writes && is_dry()) {
    request.wrong = failure{.code = errc::bad_request,
                            .message = "cannot " + request.text() + ": the client is dry"};
  }
  return ask_text(impl_->api, implementation::guarded(std::move(request), *this), bounds);
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
