#include "rw/k8s/cache/reflector.hpp"

#include "rw/core/sip_hash.hpp"

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace rw::k8s {
namespace {

using action = reflector::action;
using action_kind = reflector::action::kind;
using watch_end = reflector::watch_end;

/// Failures that a connection which brings something counts for, at most: pauses of up to four
/// times the base.
constexpr unsigned failures_with_progress = 2;

/// What pages begin with if none was asked for and all at once is too large.
constexpr std::uint32_t first_page = 500;

/// Pages without an object in a row after which a list is given up: where a selector leaves little,
/// some are in order.
constexpr unsigned empty_pages_at_most = 1000;

bool is_any_of(const failure& error, std::initializer_list<errc> codes) {
  return std::ranges::any_of(codes, [&](errc each) { return error.is(each); });
}

/// The server does not know, or not allow, streaming lists.
bool is_unsupported(const failure& error) {
  return is_any_of(error, {errc::bad_request, errc::invalid, errc::unsupported, errc::forbidden,
                           errc::method_not_allowed});
}

/// The server would not begin a watch from where it was asked to, and did not say that it is too
/// old: it may call a resourceVersion "too large" because its storage was set back.
bool is_refusal(const failure& error) {
  return is_any_of(error,
                   {errc::bad_request, errc::invalid, errc::server_error, errc::unavailable});
}

}  // namespace

reflector::reflector(reflector_options options, core::random_source random)
    : options_(options),
      random_(std::move(random)),
      backoff_(options.backoff_base, options.backoff_limit, random_),
      page_(options.page) {}

action reflector::begin() {
  const bool ask = options_.streaming_list && streaming_ == support::unknown;
  return go_on(ask ? then::probe : then::list);
}

action reflector::version(unsigned major, unsigned minor) {
  // Earlier servers ignore the parameter, or refuse it (KEP-3157).
  const bool known = std::pair(major, minor) >= std::pair(1U, 32U);
  streaming_ = known ? support::yes : support::no;
  return go_on(then::list);
}

action reflector::waited(core::duration length) {
  health_.paused(length);
  return go_on(after_wait_);
}

action reflector::go_on(then next) {
  switch (next) {
    case then::probe:
      state_ = state::probing;
      return {.type = action_kind::probe};
    case then::next_page:
      return list_page(false);
    case then::watch:
      return watch(false);
    case then::list:
      break;
  }
  continue_token_.clear();
  listed_version_.clear();
  tokens_.clear();
  empty_pages_ = 0;
  listing_ = 0;
  return streaming_ == support::yes && !paged_once_ ? watch(true) : list_page(true);
}

action reflector::list_page(bool anew) {
  state_ = state::listing;
  action next{.type = action_kind::list, .anew = anew};
  next.page.limit = at_once_ ? 0 : page_;
  next.page.continue_token = continue_token_;
  return next;
}

action reflector::watch(bool anew) {
  state_ = anew ? state::streaming : state::watching;
  error_event_ = {};
  brought_ = progressed_ = false;
  const auto least =
      static_cast<std::uint64_t>(std::max<std::int64_t>(options_.watch_timeout.count(), 1));
  asked_ = std::chrono::seconds(static_cast<std::int64_t>(least + random_() % (least + 1)));
  action next{.type = action_kind::watch, .anew = anew};
  next.watch.timeout = asked_;
  next.watch.send_initial_events = anew;
  if (!anew) next.watch.resource_version = resource_version_;
  return next;
}

action reflector::pause(then next, const failure& error) {
  const core::duration asked_for = error.retry_after;
  state_ = state::waiting;
  after_wait_ = next;
  const core::duration own = backoff_.next();
  const bool is_away = is_any_of(error, {errc::unreachable, errc::timed_out, errc::gone});
  return {.type = action_kind::wait,
          .delay = std::max(own, asked_for),
          .may_end_early = is_away && asked_for == core::duration::zero()};
}

action reflector::at_once_or_pause(then next, const failure& error) {
  if (backoff_.failures() > 0) return pause(next, error);
  backoff_.skip(1);
  return go_on(next);
}

action reflector::listed(const std::string& resource_version, const std::string& continue_token,
                         std::size_t objects, std::uint64_t digest) {
  listing_ += digest;
  empty_pages_ = objects == 0 ? empty_pages_ + 1 : 0;
  const bool repeats =
      !continue_token.empty() && !tokens_.insert(core::foreign_text_hash()(continue_token)).second;
  if (repeats || (!continue_token.empty() && empty_pages_ == empty_pages_at_most)) {
    failure error{.code = errc::bad_response,
                  .message = repeats ? "the continue token repeats: the list has no end"
                                     : std::to_string(empty_pages_) + " pages in a row are empty"};
    auto next = pause(then::list, error);
    next.error = std::move(error);
    return next;
  }
  // All pages are of one version; were they not, nothing would be missed from the first one's on.
  if (listed_version_.empty()) listed_version_ = resource_version;
  continue_token_ = continue_token;
  if (!continue_token_.empty()) return list_page(false);
  resource_version_ = listed_version_;
  paged_once_ = false;
  at_once_ = false;
  complete();
  auto next = watch(false);
  next.whole = true;
  return next;
}

action reflector::failed(const failure& error) {
  if (state_ == state::listing) return page_failed(error);
  const bool will_not_tell =
      is_any_of(error, {errc::forbidden, errc::not_found, errc::bad_request, errc::bad_response});
  if (!will_not_tell) return pause(then::probe, error);
  streaming_ = support::no;
  return go_on(then::list);
}

action reflector::page_failed(const failure& error) {
  if (error.is(errc::too_large) && !at_once_ && page_ != 1) {
    page_ = page_ == 0 ? first_page : page_ / 2;
    return list_page(continue_token_.empty());
  }
  if (error.is(errc::gone) && !continue_token_.empty()) {
    // The pages that are left cannot be had any more (Kubernetes API concepts, "Retrieving large
    // results sets in chunks").
    at_once_ = true;
    return at_once_or_pause(then::list, error);
  }
  if (is_any_of(error, {errc::too_large, errc::bad_response, errc::gone, errc::bad_request})) {
    at_once_ = false;
    return pause(then::list, error);
  }
  return pause(then::next_page, error);
}

std::uint64_t reflector::digest_of(const object& of, std::string_view resource_version) {
  return core::foreign_hash(of.ns(), of.name(), resource_version);
}

/// All there is was listed.
void reflector::complete() {
  // Events that came are no news, but what could not be read may be.
  const bool changed = contents_ ? *contents_ != listing_ : unreadable_;
  contents_ = listing_;
  if (std::exchange(on_suspicion_, false)) health_.listed(changed);
}

bool reflector::judge(watch_end ending, const failure& error,
                      std::optional<core::duration> lasted) {
  const bool to_its_end =
      ending == watch_end::in_order && !error_event_.code && lasted && *lasted >= asked_ * 9 / 10;
  if (to_its_end || (lasted && *lasted >= options_.backoff_limit)) {
    backoff_.reset();
  } else if (progressed_ && backoff_.failures() > failures_with_progress) {
    backoff_.reset();
    backoff_.skip(failures_with_progress);
  }
  fruitless_ = false;
  if (error.status >= 400 && !progressed_) {
    is_refusal(error) ? health_.refused() : health_.excused();
  } else {
    const bool redirected = error.status / 100 == 3;
    if (redirected && !lasted) lasted = core::duration::zero();
    fruitless_ = health_.ended({.lasted = lasted, .progressed = brought_, .complete = to_its_end});
  }
  return to_its_end;
}

void reflector::note_event() {
  brought_ = true;
  health_.progressed();
}

/// In pages: a stream is a watch, too.
reflector::then reflector::list_on_suspicion(bool unreadable) {
  paged_once_ = true;
  unreadable_ = unreadable;
  health_.listing();
  on_suspicion_ = true;
  return then::list;
}

action reflector::watch_ended(watch_end ending, const failure& reason,
                              std::optional<core::duration> lasted) {
  const auto& error = error_event_.code ? error_event_ : reason;
  const bool to_its_end = judge(ending, error, lasted);
  if (state_ == state::streaming) {
    // One that ran its time and was not whole is of a server that does not know what was asked; one
    // that was ended early, or brought what can't be read, may be so again.
    const bool unsupported = to_its_end || is_unsupported(error);
    if (unsupported) streaming_ = support::no;
    paged_once_ = paged_once_ || lasted || fruitless_ || ending == watch_end::bad_event;
    return unsupported || ending == watch_end::bad_event ? at_once_or_pause(then::list, error)
                                                         : pause(then::list, error);
  }
  if (ending == watch_end::bad_event) {
    if (!health_.may_list()) return pause(then::watch, error);
    return at_once_or_pause(list_on_suspicion(true), error);
  }
  if (error.is(errc::gone)) return at_once_or_pause(then::list, error);
  if (to_its_end) return go_on(then::watch);
  return pause(health_.wants_list() ? list_on_suspicion(false) : then::watch, error);
}

action reflector::streams_ruled_out() {
  streaming_ = support::no;
  return go_on(then::list);
}

reflector::verdict reflector::event(const decoded_event& event) {
  if (event.type == decoded_event::kind::error) {
    error_event_ = event.status;
    return verdict::stop;
  }
  note_event();
  const bool bookmark = event.type == decoded_event::kind::bookmark;
  if (state_ == state::streaming) {
    // Until all came there is nothing to go on from.
    if (!bookmark) listing_ += digest_of(event.subject, event.resource_version);
    if (!bookmark) return verdict::apply;
    if (!event.initial_events_end) return verdict::nothing;
    state_ = state::watching;
    resource_version_ = event.resource_version;
    progressed_ = true;
    complete();
    return verdict::whole;
  }
  progressed_ = true;
  if (!bookmark) contents_.reset();
  if (is_older_version(event.resource_version, resource_version_)) {
    error_event_ = {.code = errc::gone,
                    .message = "the server's versions went backward, from " + resource_version_ +
                               " to " + std::string(event.resource_version)};
    return verdict::stop;
  }
  resource_version_ = event.resource_version;
  return bookmark ? verdict::nothing : verdict::apply;
}

}  // namespace rw::k8s
