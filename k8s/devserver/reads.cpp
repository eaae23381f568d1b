#include "rw/k8s/devserver/reads.hpp"

#include "rw/k8s/devserver/page.hpp"
#include "rw/k8s/devserver/protobuf.hpp"

#include <algorithm>
#include <charconv>

namespace rw::k8s::devserver {
namespace {

/// Duration of a watch without a timeout; kube-apiserver picks one of 30 minutes or more.
constexpr auto watch_time = std::chrono::minutes(30);

outcome<std::chrono::milliseconds> timeout_of(const query& parameters) {
  const auto text = parameters.get("timeoutSeconds");
  if (text.empty()) return watch_time;
  std::int64_t seconds = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) {
    return bad_request("strconv.ParseInt: parsing \"" + std::string(text) + "\": invalid syntax");
  }
  if (seconds <= 0) return watch_time;
  return std::chrono::seconds(std::min<std::int64_t>(seconds, 24 * 3600));
}

/// The rules of metav1.ListOptions for a watch that begins with all objects.
outcome<void> check_initial_events(const query& parameters) {
  const auto refused = [](std::string_view field, std::string message) -> outcome<void> {
    return invalid({"meta.k8s.io", "ListOptions", ""},
                   {{std::string(field), "FieldValueForbidden", std::move(message)}});
  };
  const auto match = parameters.get("resourceVersionMatch");
  if (!parameters.has("sendInitialEvents")) {
    if (match.empty()) return {};
    return refused("resourceVersionMatch",
                   "Forbidden: resourceVersionMatch is forbidden for watch unless "
                   "sendInitialEvents is provided");
  }
  if (match != "NotOlderThan") {
    return refused("resourceVersionMatch",
                   "Forbidden: sendInitialEvents requires setting resourceVersionMatch to "
                   "NotOlderThan");
  }
  return {};
}

}  // namespace

outcome<void> reads::get(const call& from, http::response& into) const {
  const auto version = parse_version(from.parameters.get("resourceVersion"));
  if (version.has_error()) return version.error();
  if (*version > from.in->objects.version()) {
    return too_large_version(*version, from.in->objects.version());
  }
  const auto found = from.objects()->find(from.path());
  if (!found) return not_found(from.target());
  answer(into, 200, from, *found);
  return {};
}

outcome<void> reads::list(const call& from, http::response& into) const {
  const auto selected = selection::parse(from.key, from.parameters, *from.view.of);
  if (selected.has_error()) return selected.error();
  auto found = list_page(from.in->objects, *from.objects(), *selected, from.parameters);
  if (found.has_error()) return found.error();
  into.status = 200;
  into.headers.add("content-type", "application/json");
  append_list(into.body, found->items, from.view, from.show,
              {found->version, std::move(found->continue_token), found->remaining});
  return {};
}

outcome<void> reads::begin_watch(const call& from, const fault& wrong, http::response& into) const {
  auto selected = selection::parse(from.key, from.parameters, *from.view.of);
  if (selected.has_error()) return selected.error();
  const auto good = check_initial_events(from.parameters);
  if (good.has_error()) return good.error();
  const auto version = parse_version(from.parameters.get("resourceVersion"));
  if (version.has_error()) return version.error();
  const auto timeout = timeout_of(from.parameters);
  if (timeout.has_error()) return timeout.error();

  watch_request wanted{from.in, from.objects(), std::move(*selected), from.view, from.show};
  const bool asks_for_state = from.parameters.has("sendInitialEvents");
  const bool initial = from.parameters.flag("sendInitialEvents");
  wanted.version = *version;
  wanted.from_state = asks_for_state ? initial : *version == 0;
  if (asks_for_state && !initial && *version == 0) wanted.version = from.in->objects.version();
  wanted.bookmarks = from.parameters.flag("allowWatchBookmarks");
  wanted.initial_bookmark = initial && wanted.bookmarks;
  wanted.timeout = *timeout;
  wanted.bookmark_interval = bookmark_interval_;
  wanted.silent = wrong.silent;
  wanted.break_after = wrong.events;
  wanted.torn = wrong.torn;
  wanted.ends = wrong.ends;

  into.status = 200;
  into.headers.add("content-type", from.show.protobuf
                                       ? std::string(protobuf_media_type) + ";stream=watch"
                                       : "application/json");
  into.source = std::make_unique<watch>(std::move(wanted), schedule_, counters_);
  return {};
}

}  // namespace rw::k8s::devserver
