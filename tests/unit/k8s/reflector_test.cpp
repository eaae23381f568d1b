#include "rw/k8s/cache/reflector.hpp"

#include "rw/k8s/objects/status.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/k8s/samples.hpp"
#include <cstdint>
#include <optional>
#include <string>

BOOST_AUTO_TEST_SUITE(reflector)

using namespace rw::k8s;
using namespace rw::k8s::test;
using namespace std::chrono_literals;
using action = rw::k8s::reflector::action;
using end = rw::k8s::reflector::watch_end;
using verdict = rw::k8s::reflector::verdict;

namespace {

/// What is to be done next, in words: "list 500", "list 500 more=token", "stream", "watch 7",
/// "wait". New listings have a "!" behind, complete ones a "." before.
std::string words(const action& next) {
  std::string text = next.whole ? ". " : "";
  switch (next.type) {
    case action::kind::probe:
      return text + "probe";
    case action::kind::list:
      text += "list " + std::to_string(next.page.limit);
      if (!next.page.continue_token.empty()) text += " more=" + next.page.continue_token;
      break;
    case action::kind::watch:
      text += next.watch.send_initial_events ? "stream" : "watch " + next.watch.resource_version;
      break;
    case action::kind::wait:
      return text + "wait";
  }
  return next.anew ? text + "!" : text;
}

failure because(errc code, unsigned status = 0, std::chrono::seconds retry_after = 0s) {
  return {.code = code, .status = status, .retry_after = retry_after};
}

const failure broken = because(errc::unreachable);
const failure gone = because(errc::gone, 410);

/// One whose random numbers are as large as can be: pauses are as long as they may be.
rw::k8s::reflector longest(reflector_options options = {}) {
  return {options, [] { return ~std::uint64_t{0} - 1; }};
}
/// And as small as can be.
rw::k8s::reflector shortest(reflector_options options = {}) {
  return {options, [] { return std::uint64_t{0}; }};
}

reflector_options in_pages() {
  return {.streaming_list = false};
}

/// Listed, and watching from version 10.
rw::k8s::reflector watching(rw::k8s::reflector made) {
  made.begin();
  made.listed("10", "", 1);
  return made;
}

decoded_event changed(std::string_view version) {
  return {.type = decoded_event::kind::modified, .resource_version = version};
}

}  // namespace

BOOST_AUTO_TEST_CASE(list_is_taken_page_by_page_and_then_watched) {
  auto made = shortest(in_pages());
  BOOST_TEST(words(made.begin()) == "list 500!");
  BOOST_TEST(words(made.listed("10", "b", 1)) == "list 500 more=b");
  BOOST_TEST(words(made.listed("10", "c", 1)) == "list 500 more=c");
  BOOST_TEST(made.resource_version().empty());
  BOOST_TEST(words(made.listed("10", "", 1)) == ". watch 10");
  BOOST_TEST(made.resource_version() == "10");
  BOOST_TEST((made.state() == rw::k8s::reflector::state::watching));
}

BOOST_AUTO_TEST_CASE(were_pages_of_several_versions_nothing_would_be_missed) {
  auto made = shortest(in_pages());
  made.begin();
  made.listed("10", "b", 1);
  BOOST_TEST(words(made.listed("12", "", 1)) == ". watch 10");
}

BOOST_AUTO_TEST_CASE(stream_is_asked_for_where_the_server_has_it) {
  auto made = shortest();
  BOOST_TEST(words(made.begin()) == "probe");
  auto old = made;
  auto devserver = made;
  BOOST_TEST(words(made.version(1, 32)) == "stream!");
  BOOST_TEST(words(old.version(1, 31)) == "list 500!");
  BOOST_TEST(words(devserver.version(2, 0)) == "stream!");
}

BOOST_AUTO_TEST_CASE(server_that_does_not_tell_its_version_is_listed_in_pages) {
  for (const auto code : {errc::forbidden, errc::not_found, errc::bad_response}) {
    auto made = shortest();
    made.begin();
    BOOST_TEST(words(made.failed(because(code))) == "list 500!");
  }
  auto made = shortest();
  made.begin();
  BOOST_TEST(words(made.failed(broken)) == "wait");
  BOOST_TEST(words(made.waited(1s)) == "probe");
}

BOOST_AUTO_TEST_CASE(stream_is_whole_at_its_bookmark_and_goes_on_as_a_watch) {
  auto made = shortest();
  made.begin();
  made.version(1, 32);
  BOOST_TEST((made.event({.type = decoded_event::kind::added, .resource_version = "3"}) ==
              verdict::apply));
  BOOST_TEST((made.event({.type = decoded_event::kind::bookmark, .resource_version = "8"}) ==
              verdict::nothing));
  BOOST_TEST(made.resource_version().empty());
  BOOST_TEST((made.event({.type = decoded_event::kind::bookmark,
                          .resource_version = "9",
                          .initial_events_end = true}) == verdict::whole));
  BOOST_TEST(made.resource_version() == "9");
  BOOST_TEST((made.event(changed("11")) == verdict::apply));
  made.watch_ended(end::broken, broken, 1s);
  BOOST_TEST(words(made.waited(1s)) == "watch 11");
}

BOOST_AUTO_TEST_CASE(stream_that_breaks_before_it_is_whole_is_listed_in_pages) {
  auto made = shortest();
  made.begin();
  made.version(1, 32);
  made.event(changed("3"));
  BOOST_TEST(words(made.watch_ended(end::broken, broken, 1s)) == "wait");
  BOOST_TEST(words(made.waited(1s)) == "list 500!");
}

BOOST_AUTO_TEST_CASE(reflector_lists_in_pages_once_a_stream_is_rejected) {
  for (const auto code :
       {errc::bad_request, errc::invalid, errc::unsupported, errc::method_not_allowed}) {
    auto made = shortest();
    made.begin();
    made.version(1, 32);
    BOOST_TEST(words(made.watch_ended(end::broken, because(code, 422), 0s)) == "list 500!");
    BOOST_TEST(words(made.listed("10", "", 1)) == ". watch 10");
    made.watch_ended(end::broken, gone, 0s);
    BOOST_TEST(words(made.waited(1s)) == "list 500!");
  }
}

BOOST_AUTO_TEST_CASE(incomplete_stream_that_ran_its_time_shows_a_server_without_streaming_lists) {
  auto made = shortest();
  made.begin();
  made.version(1, 32);
  made.event(changed("3"));
  BOOST_TEST(words(made.watch_ended(end::in_order, {}, 300s)) == "list 500!");
}

BOOST_AUTO_TEST_CASE(watch_that_ran_its_time_is_restarted_at_once_from_where_it_was) {
  auto made = watching(shortest(in_pages()));
  made.event(changed("11"));
  made.event({.type = decoded_event::kind::bookmark, .resource_version = "15"});
  BOOST_TEST(words(made.watch_ended(end::in_order, {}, 300s)) == "watch 15");
}

BOOST_AUTO_TEST_CASE(watches_last_between_once_and_twice_their_time) {
  auto least = shortest(in_pages());
  least.begin();
  BOOST_TEST(least.listed("1", "", 1).watch.timeout.count() == 300);
  rw::k8s::reflector most(in_pages(), [] { return std::uint64_t{300}; });
  most.begin();
  BOOST_TEST(most.listed("1", "", 1).watch.timeout.count() == 600);
}

BOOST_AUTO_TEST_CASE(watch_that_breaks_goes_on_from_the_last_event_after_a_pause) {
  auto made = watching(longest(in_pages()));
  made.event(changed("11"));
  const auto next = made.watch_ended(end::broken, broken, 1s);
  BOOST_TEST(words(next) == "wait");
  BOOST_TEST((next.delay > 0s && next.delay <= 800ms));
  BOOST_TEST(words(made.waited(1s)) == "watch 11");
}

BOOST_AUTO_TEST_CASE(version_that_is_too_old_leads_to_a_list) {
  auto made = watching(shortest(in_pages()));
  BOOST_TEST(words(made.watch_ended(end::broken, gone, 100ms)) == "list 500!");
  BOOST_TEST(words(made.listed("90", "", 1)) == ". watch 90");
  // Again, without anything good in between: not at once.
  BOOST_TEST(words(made.watch_ended(end::broken, gone, 100ms)) == "wait");
  BOOST_TEST(words(made.waited(1s)) == "list 500!");
}

BOOST_AUTO_TEST_CASE(error_event_counts_as_the_watchs_failure) {
  auto made = watching(shortest(in_pages()));
  BOOST_TEST((made.event({.type = decoded_event::kind::error, .status = gone}) == verdict::stop));
  BOOST_TEST(made.error_event().is(errc::gone));
  BOOST_TEST(words(made.watch_ended(end::in_order, {}, 1s)) == "list 500!");
  made.listed("90", "", 1);
  BOOST_TEST(!made.error_event().code);
  const auto busy = because(errc::too_many_requests, 429, 17s);
  made.event({.type = decoded_event::kind::error, .status = busy});
  const auto next = made.watch_ended(end::in_order, {}, 1s);
  BOOST_TEST(words(next) == "wait");
  BOOST_TEST((next.delay == 17s));
  BOOST_TEST(words(made.waited(1s)) == "watch 90");
}

BOOST_AUTO_TEST_CASE(server_may_ask_for_a_pause_but_not_indefinitely) {
  auto made = watching(shortest(in_pages()));
  rw::http::response busy;
  busy.status = 503;
  busy.headers.add("retry-after", "86400");
  const auto next = made.watch_ended(end::broken, failure_of(busy, "cannot watch", {}), 0s);
  BOOST_TEST((next.delay == 5min));
}

BOOST_AUTO_TEST_CASE(event_that_cannot_be_read_is_listed_in_pages_instead) {
  auto made = shortest();
  made.begin();
  made.version(1, 32);
  made.event(
      {.type = decoded_event::kind::bookmark, .resource_version = "9", .initial_events_end = true});
  BOOST_TEST(words(made.watch_ended(end::bad_event, because(errc::too_large), 1s)) == "list 500!");
  BOOST_TEST(words(made.listed("20", "", 1)) == ". watch 20");
  // Only this once.
  made.watch_ended(end::broken, gone, 1s);
  BOOST_TEST(words(made.waited(1s)) == "stream!");
}

BOOST_AUTO_TEST_CASE(watches_that_are_refused_again_and_again_lead_to_a_list) {
  auto made = watching(shortest(in_pages()));
  const auto too_new = because(errc::unavailable, 504);
  for (int i = 0; i < 4; ++i) {
    BOOST_TEST(words(made.watch_ended(end::broken, too_new, 3s)) == "wait");
    BOOST_TEST(words(made.waited(10s)) == "watch 10");
  }
  made.watch_ended(end::broken, too_new, 3s);
  BOOST_TEST(words(made.waited(10s)) == "list 500!");
}

BOOST_AUTO_TEST_CASE(attempts_without_an_answer_neither_count_nor_reset) {
  auto made = watching(shortest(in_pages()));
  const auto watches = [&](int count, const failure& error,
                           std::optional<rw::core::duration> lasted) {
    std::string last;
    for (int i = 0; i < count; ++i) {
      made.watch_ended(end::broken, error, lasted);
      last = words(made.waited(2s));
    }
    return last;
  };
  BOOST_TEST(watches(20, broken, std::nullopt) == "watch 10");
  BOOST_TEST(!made.is_suspect());
  BOOST_TEST(watches(4, broken, 1s) == "watch 10");
  BOOST_TEST(watches(20, broken, std::nullopt) == "watch 10");
  BOOST_TEST(made.is_suspect());
  BOOST_TEST(watches(1, broken, 1s) == "list 500!");
}

BOOST_AUTO_TEST_CASE(fruitless_watches_lead_to_a_list_however_they_end) {
  const struct {
    end ending;
    failure error;
    std::optional<rw::core::duration> lasted;
  } ends[] = {{end::in_order, {}, 0s},
              {end::in_order, {}, 10s},
              {end::broken, broken, 1s},
              {end::broken, because(errc::server_error, 302), std::nullopt}};
  for (const auto& each : ends) {
    auto made = watching(shortest(in_pages()));
    for (int i = 0; i < 5; ++i) {
      BOOST_TEST(words(made.watch_ended(each.ending, each.error, each.lasted)) == "wait");
      BOOST_TEST(made.is_suspect());
      BOOST_TEST(made.was_fruitless());
      BOOST_TEST(words(made.waited(10s)) == (i < 4 ? "watch 10" : "list 500!"));
    }
    // The list is not the proof.
    made.listed("12", "", 1);
    BOOST_TEST(made.is_suspect());
    made.event(changed("13"));
    BOOST_TEST(!made.is_suspect());
  }
}

BOOST_AUTO_TEST_CASE(watch_that_lasted_or_brought_something_is_not_fruitless) {
  auto made = watching(shortest(in_pages()));
  for (int i = 0; i < 20; ++i) {
    if (i % 2 == 0) made.event({.type = decoded_event::kind::bookmark, .resource_version = "11"});
    made.watch_ended(end::in_order, {}, i % 2 == 0 ? 0s : 30s);
    BOOST_TEST(!made.is_suspect());
    BOOST_TEST(words(made.waited(1s)) == "watch 11");
  }
}

BOOST_AUTO_TEST_CASE(bad_events_list_at_once_and_then_ever_more_rarely) {
  auto made = watching(shortest(in_pages()));
  int lists = 0;
  for (int minute = 0; minute < 120; ++minute) {
    auto next = made.watch_ended(end::bad_event, because(errc::bad_response), 1s);
    if (minute == 0) BOOST_TEST(words(next) == "list 500!");
    if (next.type == action::kind::wait) next = made.waited(59s);
    if (next.type != action::kind::list) continue;
    ++lists;
    made.listed("10", "", 1, 7);
  }
  BOOST_TEST(lists == 8);  // after 0, 1, 1, 2, 4, ... minutes more
}

BOOST_AUTO_TEST_CASE(bad_events_beside_changes_are_listed_every_half_minute) {
  auto made = watching(shortest(in_pages()));
  int lists = 0;
  for (int minute = 0; minute < 120; ++minute) {
    auto next = made.watch_ended(end::bad_event, because(errc::bad_response), 1s);
    if (next.type == action::kind::wait) next = made.waited(59s);
    if (next.type != action::kind::list) continue;
    made.listed("10", "", 1, static_cast<std::uint64_t>(++lists));
  }
  BOOST_TEST(lists >= 60);
}

BOOST_AUTO_TEST_CASE(list_on_suspicion_is_no_stream) {
  auto made = shortest();
  made.begin();
  made.version(1, 32);
  made.event(
      {.type = decoded_event::kind::bookmark, .resource_version = "9", .initial_events_end = true});
  for (int i = 0; i < 6; ++i) {
    made.watch_ended(end::in_order, {}, 1s);
    BOOST_TEST(words(made.waited(10s)) == (i < 5 ? "watch 9" : "list 500!"));
  }
}

BOOST_AUTO_TEST_CASE(pause_may_end_early_where_the_server_was_away) {
  auto made = watching(shortest(in_pages()));
  BOOST_TEST(made.watch_ended(end::broken, broken, std::nullopt).may_end_early);
  made.waited(1s);
  BOOST_TEST(made.watch_ended(end::broken, because(errc::timed_out), 40s).may_end_early);
  made.waited(1s);
  BOOST_TEST(
      !made.watch_ended(end::broken, because(errc::unavailable, 503), std::nullopt).may_end_early);
  made.waited(1s);
  BOOST_TEST(!made.watch_ended(end::in_order, {}, 1s).may_end_early);
  made.waited(1s);
  const auto next = made.watch_ended(end::broken, gone, 1s);
  BOOST_TEST(next.may_end_early);
}

BOOST_AUTO_TEST_CASE(stream_that_is_ended_early_is_listed_in_pages) {
  auto made = shortest();
  made.begin();
  made.version(1, 32);
  BOOST_TEST(words(made.watch_ended(end::in_order, {}, 1s)) == "wait");
  BOOST_TEST(words(made.waited(1s)) == "list 500!");
  made.listed("10", "", 1);
  made.watch_ended(end::broken, gone, 1s);
  BOOST_TEST(words(made.waited(1s)) == "stream!");
  // A redirect is an answer, too, though none that begins a watch.
  made.watch_ended(end::broken, because(errc::server_error, 302), std::nullopt);
  BOOST_TEST(words(made.waited(1s)) == "list 500!");
}

BOOST_AUTO_TEST_CASE(server_whose_stream_came_to_nothing_is_listed_in_pages_from_then_on) {
  auto made = shortest();
  made.begin();
  made.version(1, 32);
  BOOST_TEST(words(made.streams_ruled_out()) == "list 500!");
  made.listed("10", "", 1);
  made.watch_ended(end::broken, gone, 1s);
  BOOST_TEST(words(made.waited(1s)) == "list 500!");
}

BOOST_AUTO_TEST_CASE(pauses_grow_up_to_the_limit) {
  auto made = watching(longest(in_pages()));
  auto latest = 0ms;
  for (int i = 0; i < 10; ++i) {
    const auto next = made.watch_ended(end::broken, broken, 1s);
    BOOST_TEST((next.delay <= 30s));
    latest = std::chrono::duration_cast<std::chrono::milliseconds>(next.delay);
    made.waited(1s);
  }
  BOOST_TEST((latest > 1s));
}

namespace {

/// The pause after the last of these watches, each of which ends at once.
rw::core::duration pause_after(rw::k8s::reflector& made, int watches, bool progress) {
  rw::core::duration pause{0};
  for (int i = 0; i < watches; ++i) {
    if (progress) made.event(changed("11"));
    const auto next = made.watch_ended(end::in_order, {}, 10ms);
    pause = next.delay;
    if (next.type == action::kind::wait) made.waited(1s);
  }
  return pause;
}

/// A source of numbers for a seed (D. E. Knuth's MMIX generator).
rw::core::random_source numbers(std::uint64_t seed) {
  return [seed]() mutable {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    return seed >> 16;
  };
}

/// The mean of the pauses that follow after `watches` like that.
double mean_pause(int watches, bool progress) {
  constexpr int seeds = 200;
  std::chrono::duration<double> sum{0};
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    auto made = watching({in_pages(), numbers(seed)});
    sum += pause_after(made, watches, progress);
  }
  return sum.count() / seeds;
}

}  // namespace

BOOST_AUTO_TEST_CASE(
    server_that_closes_after_each_event_is_asked_again_within_seconds_indefinitely) {
  auto made = watching({in_pages(), numbers(1)});
  for (int i = 0; i < 100; ++i) BOOST_TEST((pause_after(made, 1, true) <= 3200ms));
  const auto mean = mean_pause(100, true);
  BOOST_TEST(mean > 1);
  BOOST_TEST(mean < 2.2);
}

BOOST_AUTO_TEST_CASE(server_that_closes_at_once_without_an_event_is_left_alone_ever_longer) {
  BOOST_TEST(mean_pause(1, false) < 0.8);
  // Uniform between 0 and 30 s.
  const auto mean = mean_pause(12, false);
  BOOST_TEST(mean > 12);
  BOOST_TEST(mean < 18);
}

BOOST_AUTO_TEST_CASE(watch_that_lasted_clears_all_suspicion) {
  auto made = watching(longest(in_pages()));
  pause_after(made, 10, false);
  const auto next = made.watch_ended(end::broken, broken, 31s);
  BOOST_TEST((next.delay <= 800ms));
}

BOOST_AUTO_TEST_CASE(list_follows_whatever_was_under_way_when_told_to_list_again) {
  auto in_a_watch = watching(longest(in_pages()));
  BOOST_TEST(words(in_a_watch.list_again()) == "list 500!");
  auto in_a_page = shortest(in_pages());
  in_a_page.begin();
  in_a_page.listed("10", "b", 1);
  BOOST_TEST(words(in_a_page.list_again()) == "list 500!");
  BOOST_TEST(words(in_a_page.listed("4", "", 1)) == ". watch 4");
  auto after_a_pause = watching(longest(in_pages()));
  after_a_pause.watch_ended(end::broken, broken, 1s);
  after_a_pause.waited(1s);
  BOOST_TEST(words(after_a_pause.list_again()) == "list 500!");
  auto in_a_stream = shortest();
  in_a_stream.begin();
  BOOST_TEST(words(in_a_stream.list_again()) == "probe");
  in_a_stream.version(1, 32);
  BOOST_TEST(words(in_a_stream.list_again()) == "stream!");
}

BOOST_AUTO_TEST_CASE(bookmark_or_object_before_the_watchs_version_leads_to_a_list) {
  for (const auto kind : {decoded_event::kind::added, decoded_event::kind::modified,
                          decoded_event::kind::deleted, decoded_event::kind::bookmark}) {
    auto made = watching(longest(in_pages()));
    made.event(changed("1004"));
    BOOST_TEST((made.event({.type = kind, .resource_version = "500"}) == verdict::stop));
    BOOST_TEST(made.resource_version() == "1004");
    BOOST_TEST(words(made.watch_ended(end::in_order, {}, 1s)) == "list 500!");
    BOOST_TEST(words(made.listed("501", "", 1)) == ". watch 501");
    BOOST_TEST((made.event(changed("502")) == verdict::apply));
  }
}

BOOST_AUTO_TEST_CASE(versions_that_went_backward_are_listed_within_seconds) {
  auto made = watching(longest(in_pages()));
  BOOST_TEST((made.event(changed("9")) == verdict::stop));
  BOOST_TEST(words(made.watch_ended(end::in_order, {}, 1s)) == "list 500!");
  made.listed("10", "", 1);
  pause_after(made, 10, false);
  BOOST_TEST((made.event(changed("9")) == verdict::stop));
  const auto next = made.watch_ended(end::in_order, {}, 1s);
  BOOST_TEST(words(next) == "wait");
  BOOST_TEST((next.delay <= 3200ms));
}

BOOST_AUTO_TEST_CASE(versions_that_are_equal_or_no_numbers_go_on) {
  auto made = watching(shortest(in_pages()));
  const auto bookmark = [](std::string_view version) {
    return decoded_event{.type = decoded_event::kind::bookmark, .resource_version = version};
  };
  BOOST_TEST((made.event(bookmark("10")) == verdict::nothing));
  BOOST_TEST((made.event(bookmark("9a")) == verdict::nothing));
  BOOST_TEST((made.event(bookmark("8")) == verdict::nothing));
  BOOST_TEST((made.event(bookmark("07")) == verdict::nothing));
}

BOOST_AUTO_TEST_CASE(objects_of_a_stream_come_in_any_order_of_versions) {
  auto made = shortest();
  made.begin();
  made.version(1, 32);
  made.event({.type = decoded_event::kind::bookmark,
              .resource_version = "90",
              .initial_events_end = true});
  BOOST_TEST(words(made.list_again()) == "stream!");
  for (const auto* version : {"50", "3", "7"}) {
    BOOST_TEST((made.event({.type = decoded_event::kind::added, .resource_version = version}) ==
                verdict::apply));
  }
  made.event({.type = decoded_event::kind::bookmark,
              .resource_version = "60",
              .initial_events_end = true});
  BOOST_TEST(made.resource_version() == "60");
  BOOST_TEST((made.event(changed("59")) == verdict::stop));
}

BOOST_AUTO_TEST_CASE(pages_that_are_too_large_are_halved) {
  auto made = shortest(in_pages());
  made.begin();
  const auto large = because(errc::too_large);
  BOOST_TEST(words(made.failed(large)) == "list 250!");
  made.listed("10", "b", 1);
  BOOST_TEST(words(made.failed(large)) == "list 125 more=b");
  BOOST_TEST(words(made.listed("10", "c", 1)) == "list 125 more=c");
  std::string last;
  for (int i = 0; i < 7; ++i) last = words(made.failed(large));
  // One object alone is too large.
  BOOST_TEST(last == "wait");
  BOOST_TEST(words(made.waited(1s)) == "list 1!");
}

BOOST_AUTO_TEST_CASE(list_that_is_too_large_is_taken_in_pages) {
  auto options = in_pages();
  options.page = 0;
  auto made = shortest(options);
  BOOST_TEST(words(made.begin()) == "list 0!");
  BOOST_TEST(words(made.failed(because(errc::too_large))) == "list 500!");
}

BOOST_AUTO_TEST_CASE(pages_that_cannot_be_had_any_more_are_replaced_by_a_whole_list) {
  auto made = shortest(in_pages());
  made.begin();
  made.listed("10", "b", 1);
  BOOST_TEST(words(made.failed(gone)) == "list 0!");
  BOOST_TEST(words(made.listed("30", "", 1)) == ". watch 30");
  made.watch_ended(end::broken, gone, 1s);
  BOOST_TEST(words(made.waited(1s)) == "list 500!");
}

BOOST_AUTO_TEST_CASE(whole_list_that_is_too_large_is_tried_in_pages_again) {
  auto made = shortest(in_pages());
  made.begin();
  made.listed("10", "b", 1);
  made.failed(gone);
  BOOST_TEST(words(made.failed(because(errc::too_large))) == "wait");
  BOOST_TEST(words(made.waited(1s)) == "list 500!");
}

BOOST_AUTO_TEST_CASE(list_whose_continue_token_repeats_fails_and_backs_off) {
  for (const std::size_t objects : {0u, 7u}) {
    auto made = longest(in_pages());
    made.begin();
    for (int listing = 0; listing < 3; ++listing) {
      BOOST_TEST(words(made.listed("10", "b", objects)) == "list 500 more=b");
      BOOST_TEST(words(made.listed("10", "c", objects)) == "list 500 more=c");
      const auto given_up = made.listed("10", "b", objects);
      BOOST_TEST(words(given_up) == "wait");
      BOOST_TEST((given_up.error.code == make_error_code(errc::bad_response)));
      BOOST_TEST(given_up.error.message.find("repeats") != std::string::npos);
      BOOST_TEST((given_up.delay > 0s));
      BOOST_TEST(words(made.waited(1s)) == "list 500!");
    }
    BOOST_TEST(words(made.listed("10", "", objects)) == ". watch 10");
  }
}

BOOST_AUTO_TEST_CASE(list_whose_pages_stay_empty_fails_and_one_with_some_does_not) {
  const auto pages = [](rw::k8s::reflector& made, int from, int count) {
    auto next = words({.type = action::kind::wait});
    for (int i = from; i < from + count; ++i) next = words(made.listed("10", std::to_string(i), 0));
    return next;
  };
  auto made = longest(in_pages());
  made.begin();
  BOOST_TEST(pages(made, 0, 999) == "list 500 more=998");
  BOOST_TEST(words(made.listed("10", "one", 1)) == "list 500 more=one");
  BOOST_TEST(pages(made, 1000, 999) == "list 500 more=1998");
  BOOST_TEST(pages(made, 2000, 1) == "wait");
  BOOST_TEST(words(made.waited(1s)) == "list 500!");
  BOOST_TEST(pages(made, 0, 999) == "list 500 more=998");
  BOOST_TEST(words(made.listed("10", "", 0)) == ". watch 10");
}

BOOST_AUTO_TEST_CASE(page_that_fails_for_now_is_asked_for_again) {
  auto made = shortest(in_pages());
  made.begin();
  made.listed("10", "b", 1);
  BOOST_TEST(words(made.failed(because(errc::timed_out))) == "wait");
  BOOST_TEST(words(made.waited(1s)) == "list 500 more=b");
  made.failed(because(errc::bad_response));
  BOOST_TEST(words(made.waited(1s)) == "list 500!");
}

BOOST_AUTO_TEST_SUITE_END()
