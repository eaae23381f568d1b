#include "watching.hpp"
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(watch)

using namespace rw;
using namespace rw::conformance;

namespace {

k8s::watch_options since(const json& object) {
  return {.resource_version = text(object, "/metadata/resourceVersion"), .bookmarks = false};
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(watch_delivers_creations_changes_and_deletions, sandbox) {
  watching seen(*this, config_maps, all(), list(config_maps));
  create(config_maps, config_map("a", {{"k", "1"}}));
  BOOST_TEST(text(seen.expect("ADDED", "a"), "/data/k") == "1");
  update(config_maps, config_map("a", {{"k", "2"}}));
  BOOST_TEST(text(seen.expect("MODIFIED", "a"), "/data/k") == "2");
  remove(config_maps, "a");
  BOOST_TEST(text(seen.expect("DELETED", "a"), "/data/k") == "2");
}

BOOST_FIXTURE_TEST_CASE(events_carry_the_object_as_the_writer_got_it, sandbox) {
  watching seen(*this, config_maps, all(), list(config_maps));
  const auto made = create(config_maps, config_map("a", {{"k", "1"}}));
  BOOST_TEST(seen.expect("ADDED", "a") == made);
  const auto next = update(config_maps, config_map("a", {{"k", "2"}}));
  BOOST_TEST(seen.expect("MODIFIED", "a") == next);
}

BOOST_FIXTURE_TEST_CASE(deleted_object_is_reported_at_a_version_of_its_own, sandbox) {
  const auto made = create(config_maps, config_map("a"));
  watching seen(*this, config_maps, all(), made);
  remove(config_maps, "a");
  const auto gone = seen.expect("DELETED", "a");
  BOOST_TEST(version(gone) > version(made));
  BOOST_TEST(text(gone, "/metadata/uid") == text(made, "/metadata/uid"));
}

BOOST_FIXTURE_TEST_CASE(watch_goes_on_behind_the_version_it_names, sandbox) {
  const auto first = create(config_maps, config_map("a"));
  create(config_maps, config_map("b"));
  remove(config_maps, "a");
  watching seen(*this, config_maps, all(), first);
  seen.expect("ADDED", "b");
  seen.expect("DELETED", "a");
}

BOOST_FIXTURE_TEST_CASE(watch_without_a_version_begins_with_present_objects, sandbox) {
  create(config_maps, config_map("a"));
  create(config_maps, config_map("b"));
  watching seen(*this, config_maps, all(), k8s::watch_options{.bookmarks = false});
  std::vector<std::string> found{text(seen.next().object, "/metadata/name"),
                                 text(seen.next().object, "/metadata/name")};
  std::ranges::sort(found);
  BOOST_TEST(found == (std::vector<std::string>{"a", "b"}), boost::test_tools::per_element());
  create(config_maps, config_map("c"));
  seen.expect("ADDED", "c");
}

BOOST_FIXTURE_TEST_CASE(watch_from_version_zero_begins_with_present_objects, sandbox) {
  const auto made = create(config_maps, config_map("a"));
  eventually([&] { return names(list(config_maps, {}, {.resource_version = "0"})).size() == 1; });
  watching seen(*this, config_maps, all(), {.resource_version = "0", .bookmarks = false});
  BOOST_TEST(seen.expect("ADDED", "a") == made);
}

BOOST_FIXTURE_TEST_CASE(watch_sees_its_namespace_only, sandbox) {
  sandbox other;
  watching seen(*this, config_maps, all(), list(config_maps));
  other.create(config_maps, config_map("elsewhere"));
  create(config_maps, config_map("a"));
  seen.expect("ADDED", "a");
}

BOOST_FIXTURE_TEST_CASE(watch_of_all_namespaces_sees_each, sandbox) {
  sandbox other;
  watching seen(*this, config_maps, {.labels = "run=" + ns}, list(config_maps));
  create(config_maps, config_map("a", nullptr, {{"run", ns}}));
  other.create(config_maps, config_map("b", nullptr, {{"run", ns}}));
  BOOST_TEST(text(seen.expect("ADDED", "a"), "/metadata/namespace") == ns);
  BOOST_TEST(text(seen.expect("ADDED", "b"), "/metadata/namespace") == other.ns);
}

BOOST_FIXTURE_TEST_CASE(watch_sees_its_kind_only, sandbox) {
  watching seen(*this, config_maps, all(), list(config_maps));
  create(secrets, object(secrets, "s"));
  create(gadgets(), gadget("g"));
  create(config_maps, config_map("a"));
  seen.expect("ADDED", "a");
}

BOOST_FIXTURE_TEST_CASE(object_that_comes_into_the_selection_is_added, sandbox) {
  const auto made = create(config_maps, config_map("a"));
  watching seen(*this, config_maps, {.ns = ns, .labels = "l=m"}, made);
  merge(config_maps, "a", R"({"metadata": {"labels": {"l": "m"}}})");
  seen.expect("ADDED", "a");
}

BOOST_FIXTURE_TEST_CASE(object_that_leaves_the_selection_is_deleted, sandbox) {
  const auto made = create(config_maps, config_map("a", {{"k", "1"}}, {{"l", "m"}}));
  watching seen(*this, config_maps, {.ns = ns, .labels = "l=m"}, made);
  merge(config_maps, "a", R"({"metadata": {"labels": {"l": "m"}}, "data": {"k": "2"}})");
  seen.expect("MODIFIED", "a");
  const auto left =
      merge(config_maps, "a", R"({"metadata": {"labels": {"l": "n"}}, "data": {"k": "3"}})");
  const auto told = seen.expect("DELETED", "a");
  BOOST_TEST(version(told) == version(left));
  BOOST_TEST(text(told, "/data/k") == "2");
  BOOST_TEST(text(told, "/metadata/labels/l") == "m");
}

BOOST_FIXTURE_TEST_CASE(object_outside_the_selection_is_not_reported, sandbox) {
  const auto made = create(config_maps, config_map("a"));
  watching seen(*this, config_maps, {.ns = ns, .labels = "l=m"}, made);
  update(config_maps, config_map("a", {{"k", "v"}}));
  remove(config_maps, "a");
  create(config_maps, config_map("b", nullptr, {{"l", "m"}}));
  seen.expect("ADDED", "b");
}

BOOST_FIXTURE_TEST_CASE(object_may_be_watched_by_its_name, sandbox) {
  const auto before = list(config_maps);
  watching seen(*this, config_maps, {.ns = ns, .fields = "metadata.name=b"}, before);
  create(config_maps, config_map("a"));
  create(config_maps, config_map("b"));
  seen.expect("ADDED", "b");
}

BOOST_FIXTURE_TEST_CASE(watch_ends_in_order_at_its_timeout, sandbox) {
  watching seen(*this, config_maps, all(),
                {.resource_version = text(list(config_maps), "/metadata/resourceVersion"),
                 .timeout = std::chrono::seconds(1),
                 .bookmarks = false});
  const auto ended = seen.end();
  BOOST_TEST(ended.has_value());
  BOOST_TEST(!seen.poll());
}

BOOST_FIXTURE_TEST_CASE(watch_gets_bookmarks_where_it_asks_for_them, sandbox) {
  // The real server sends them 2 s before the timeout, if the watch has seen anything before.
  watching seen(*this, config_maps, all(),
                {.resource_version = text(list(config_maps), "/metadata/resourceVersion"),
                 .timeout = std::chrono::seconds(4),
                 .bookmarks = true});
  const auto made = create(config_maps, config_map("a"));
  auto told = seen.next();
  while (told.type != "BOOKMARK" || version(told.object) < version(made)) told = seen.next();
  BOOST_TEST(text(told.object, "/kind") == "ConfigMap");
  BOOST_TEST(text(told.object, "/apiVersion") == "v1");
  BOOST_TEST(!has(told.object, "/metadata/uid"));
}

BOOST_FIXTURE_TEST_CASE(watch_of_a_version_too_old_gets_an_expired_error, sandbox) {
  // Events are not kept in the real server's watch cache, so that compaction reaches a watch.
  const auto event = [&](const char* name) {
    return object(events, name,
                  {{"involvedObject", {{"kind", "ConfigMap"}, {"namespace", ns}, {"name", "a"}}},
                   {"reason", "Test"}});
  };
  const auto old = create(events, event("one"));
  create(events, event("two"));
  create(events, event("three"));
  server.compact();
  watching seen(*this, events, all(), since(old));
  const auto told = seen.next();
  BOOST_TEST(told.type == "ERROR");
  BOOST_TEST(text(told.object, "/kind") == "Status");
  BOOST_TEST(text(told.object, "/code") == "410");
  BOOST_TEST(text(told.object, "/reason") == "Expired");
}

BOOST_FIXTURE_TEST_CASE(watch_of_metadata_has_only_that, sandbox) {
  watching seen(*this, config_maps, {.ns = ns, .metadata_only = true}, list(config_maps));
  create(config_maps, config_map("a", {{"k", "v"}}, {{"l", "m"}}));
  const auto told = seen.expect("ADDED", "a");
  BOOST_TEST(text(told, "/kind") == "PartialObjectMetadata");
  BOOST_TEST(text(told, "/apiVersion") == "meta.k8s.io/v1");
  BOOST_TEST(text(told, "/metadata/labels/l") == "m");
  BOOST_TEST(!has(told, "/data"));
}

BOOST_FIXTURE_TEST_CASE(change_of_nothing_is_no_event, sandbox) {
  const auto made = create(config_maps, config_map("a", {{"k", "v"}}));
  watching seen(*this, config_maps, all(), made);
  update(config_maps, made);
  merge(config_maps, "a", R"({"data": {"k": "v"}})");
  create(config_maps, config_map("b"));
  seen.expect("ADDED", "b");
}

BOOST_FIXTURE_TEST_CASE(dry_run_is_no_event, sandbox) {
  watching seen(*this, config_maps, all(), list(config_maps));
  create(config_maps, config_map("a"), {.dry_run = true});
  create(config_maps, config_map("b"));
  seen.expect("ADDED", "b");
}

BOOST_FIXTURE_TEST_CASE(versions_of_events_grow, sandbox) {
  watching seen(*this, config_maps, all(), list(config_maps));
  for (int i = 0; i < 20; ++i) create(config_maps, config_map("a" + std::to_string(i)));
  auto last = 0ull;
  for (int i = 0; i < 20; ++i) {
    const auto now = version(seen.expect("ADDED", "a" + std::to_string(i)));
    BOOST_TEST(now > last);
    last = now;
  }
}

BOOST_FIXTURE_TEST_CASE(watches_all_see_every_event, sandbox) {
  const auto before = list(config_maps);
  watching first(*this, config_maps, all(), before);
  watching second(*this, config_maps, all(), before);
  watching third(*this, config_maps, all(), before);
  create(config_maps, config_map("a"));
  remove(config_maps, "a");
  for (auto* one : {&first, &second, &third}) {
    one->expect("ADDED", "a");
    one->expect("DELETED", "a");
  }
}

BOOST_FIXTURE_TEST_CASE(object_with_a_finalizer_is_modified_and_later_deleted, sandbox) {
  const auto made = create(config_maps, with(config_map("a"), "/metadata/finalizers",
                                             boost::json::array{"example.com/wait"}));
  watching seen(*this, config_maps, all(), made);
  remove(config_maps, "a");
  BOOST_TEST(has(seen.expect("MODIFIED", "a"), "/metadata/deletionTimestamp"));
  merge(config_maps, "a", R"({"metadata": {"finalizers": null}})");
  seen.expect("DELETED", "a");
}

BOOST_FIXTURE_TEST_CASE(custom_resources_are_watched_like_others, sandbox) {
  watching seen(*this, gadgets(), all(), list(gadgets()));
  create(gadgets(), gadget("a", {{"size", 1}}));
  BOOST_TEST(text(seen.expect("ADDED", "a"), "/spec/size") == "1");
  merge(gadgets(), "a", R"({"status": {"ready": true}})", {.subresource = "status"});
  BOOST_TEST(text(seen.expect("MODIFIED", "a"), "/status/ready") == "true");
}

BOOST_FIXTURE_TEST_CASE(objects_that_are_deleted_together_are_told_one_by_one, sandbox) {
  create(config_maps, config_map("a"));
  create(config_maps, config_map("b"));
  watching seen(*this, config_maps, all(), list(config_maps));
  ok(api.remove_all(config_maps, all()));
  std::vector<std::string> told;
  for (int i = 0; i < 2; ++i) {
    const auto one = seen.next();
    told.push_back(one.type + " " + text(one.object, "/metadata/name"));
  }
  std::ranges::sort(told);
  BOOST_TEST(told == (std::vector<std::string>{"DELETED a", "DELETED b"}),
             boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(watch_of_a_kind_that_is_not_served_is_not_found, sandbox) {
  const k8s::resource_type none{{server.unique("none") + ".example.com", "v1", "None"}, "nones"};
  watching seen(*this, none, all(), k8s::watch_options{});
  const auto ended = seen.end();
  BOOST_TEST_REQUIRE(ended.has_error());
  BOOST_TEST(ended.error().is(k8s::errc::not_found));
}

BOOST_FIXTURE_TEST_CASE(many_watches_share_a_connection, sandbox) {
  const auto before = list(config_maps);
  std::vector<std::unique_ptr<watching>> all_of_them;
  for (int i = 0; i < 50; ++i) {
    all_of_them.push_back(std::make_unique<watching>(*this, config_maps, all(), before));
  }
  create(config_maps, config_map("a"));
  for (const auto& one : all_of_them) one->expect("ADDED", "a");
}

BOOST_AUTO_TEST_SUITE_END()
