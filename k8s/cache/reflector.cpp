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

/// Watches refused in a row after which a list is tried: a resourceVersion that the server calls
/// "too large", say, because its storage was set back.
constexpr unsigned refusals_until_list = 5;

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
/// old.
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

action reflector::waited() {
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
  progressed_ = false;
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
  return {.type = action_kind::wait, .delay = std::max(backoff_.next(), asked_for)};
}

action reflector::at_once_or_pause(then next, const failure& error) {
  if (backoff_.failures() > 0) return pause(next, error);
  backoff_.skip(1);
  return go_on(next);
}

action reflector::listed(const std::string& resource_version, const std::string& continue_token,
                         std::size_t objects) {
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

bool reflector::judge(watch_end ending, core::duration lasted) {
  const bool to_its_end =
      ending == watch_end::in_order && !error_event_.code && lasted >= asked_ * 9 / 10;
  if (to_its_end || lasted >= options_.backoff_limit) {
    backoff_.reset();
  } else if (progressed_ && backoff_.failures() > failures_with_progress) {
    backoff_.reset();
    backoff_.skip(failures_with_progress);
  }
  return to_its_end;
}

action reflector::watch_ended(watch_end ending, const failure& reason, core::duration lasted) {
  const bool to_its_end = judge(ending, lasted);
  const auto& error = error_event_.code ? error_event_ : reason;
  if (ending == watch_end::bad_event) {
    // In a stream it would come again.
    paged_once_ = true;
    return at_once_or_pause(then::list, error);
  }
  if (state_ == state::streaming) {
    // One that ran its time and was not whole is of a server that does not know what was asked.
    const bool unsupported = to_its_end || is_unsupported(error);
    if (unsupported) streaming_ = support::no;
    return unsupported ? at_once_or_pause(then::list, error) : pause(then::list, error);
  }
  if (error.is(errc::gone)) return at_once_or_pause(then::list, error);
  if (to_its_end) return go_on(then::watch);
  refused_ = !progressed_ && is_refusal(error) ? refused_ + 1 : 0;
  if (refused_ < refusals_until_list) return pause(then::watch, error);
  refused_ = 0;
  return pause(then::list, error);
}

reflector::verdict reflector::event(const decoded_event& event) {
  if (event.type == decoded_event::kind::error) {
    error_event_ = event.status;
    return verdict::stop;
  }
  const bool bookmark = event.type == decoded_event::kind::bookmark;
  if (state_ == state::streaming) {
    // Until all came there is nothing to go on from.
    if (!bookmark) return verdict::apply;
    if (!event.initial_events_end) return verdict::nothing;
    state_ = state::watching;
    resource_version_ = event.resource_version;
    progressed_ = true;
    return verdict::whole;
  }
  progressed_ = true;
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
