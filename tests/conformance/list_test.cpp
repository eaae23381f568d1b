#include "sandbox.hpp"
#include <algorithm>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(list)

using namespace rw;
using namespace rw::conformance;

namespace {

using name_list = std::vector<std::string>;

/// A sandbox with the ConfigMaps a to e.
struct five : sandbox {
  five() {
    for (const auto* name : {"c", "a", "e", "b", "d"}) {
      create(config_maps, config_map(name, {{"k", name}},
                                     {{"vowel", name[0] == 'a' || name[0] == 'e' ? "yes" : "no"}}));
    }
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(list_names_its_kind_and_version, five) {
  const auto all_five = list(config_maps);
  BOOST_TEST(text(all_five, "/kind") == "ConfigMapList");
  BOOST_TEST(text(all_five, "/apiVersion") == "v1");
  BOOST_TEST(version(all_five) >= version(get(config_maps, "d")));
}

BOOST_FIXTURE_TEST_CASE(list_of_nothing_has_no_items_and_a_version, sandbox) {
  const auto none = list(config_maps);
  BOOST_TEST(none.at("items") == json(boost::json::array()));
  BOOST_TEST(version(none) > 0u);
}

BOOST_FIXTURE_TEST_CASE(objects_are_listed_in_the_order_of_their_names, five) {
  BOOST_TEST(names(list(config_maps)) == (name_list{"a", "b", "c", "d", "e"}),
             boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(list_has_the_objects_of_its_namespace_only, five) {
  sandbox other;
  other.create(config_maps, config_map("f"));
  BOOST_TEST(names(other.list(config_maps)) == name_list{"f"}, boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(list_of_all_namespaces_has_them_in_order, five) {
  sandbox other;
  other.create(config_maps, config_map("a", nullptr, {{"run", ns}}));
  ok(api.patch(config_maps, key("e"), k8s::patch_type::merge,
               parse(R"({"metadata": {"labels": {"run": ")" + ns + R"("}}})")));
  const auto both = ok(api.list(config_maps, {.labels = "run=" + ns}));
  name_list found;
  for (const auto& item : both.at("items").as_array()) {
    found.push_back(text(item, "/metadata/namespace") + "/" + text(item, "/metadata/name"));
  }
  name_list expected{ns + "/e", other.ns + "/a"};
  std::ranges::sort(expected);
  BOOST_TEST(found == expected, boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(items_of_a_built_in_kind_do_not_repeat_it, five) {
  BOOST_TEST(!has(list(config_maps), "/items/0/kind"));
}

BOOST_FIXTURE_TEST_CASE(items_of_a_custom_kind_repeat_it, sandbox) {
  create(gadgets(), gadget("a"));
  const auto one = list(gadgets());
  BOOST_TEST(text(one, "/kind") == "GadgetList");
  BOOST_TEST(text(one, "/items/0/kind") == "Gadget");
  BOOST_TEST(text(one, "/items/0/apiVersion") == gadgets().gvk.api_version());
}

BOOST_FIXTURE_TEST_CASE(pages_have_as_many_objects_as_asked_for, five) {
  const auto first = list(config_maps, {}, {.limit = 2});
  BOOST_TEST(names(first) == (name_list{"a", "b"}), boost::test_tools::per_element());
  BOOST_TEST(text(first, "/metadata/remainingItemCount") == "3");
  const auto second =
      list(config_maps, {}, {.limit = 2, .continue_token = text(first, "/metadata/continue")});
  BOOST_TEST(names(second) == (name_list{"c", "d"}), boost::test_tools::per_element());
  const auto third =
      list(config_maps, {}, {.limit = 2, .continue_token = text(second, "/metadata/continue")});
  BOOST_TEST(names(third) == name_list{"e"}, boost::test_tools::per_element());
  BOOST_TEST(text(third, "/metadata/continue").empty());
}

BOOST_FIXTURE_TEST_CASE(pages_show_the_objects_as_they_were_at_the_first, five) {
  const auto first = list(config_maps, {}, {.limit = 2});
  remove(config_maps, "c");
  create(config_maps, config_map("bb"));
  merge(config_maps, "d", R"({"data": {"k": "changed"}})");
  const auto rest = list(config_maps, {}, {.continue_token = text(first, "/metadata/continue")});
  BOOST_TEST(names(rest) == (name_list{"c", "d", "e"}), boost::test_tools::per_element());
  BOOST_TEST(text(rest, "/items/1/data/k") == "d");
  BOOST_TEST(version(rest) == version(first));
}

BOOST_FIXTURE_TEST_CASE(page_that_has_all_does_not_go_on, five) {
  for (const unsigned limit : {5u, 6u}) {
    const auto whole = list(config_maps, {}, {.limit = limit});
    BOOST_TEST(names(whole).size() == 5u);
    BOOST_TEST(text(whole, "/metadata/continue").empty());
    BOOST_TEST(!has(whole, "/metadata/remainingItemCount"));
  }
}

BOOST_FIXTURE_TEST_CASE(pages_of_a_selection_do_not_say_how_many_remain, five) {
  const auto first = list(config_maps, {.labels = "vowel=no"}, {.limit = 2});
  BOOST_TEST(names(first) == (name_list{"b", "c"}), boost::test_tools::per_element());
  BOOST_TEST(!has(first, "/metadata/remainingItemCount"));
  const auto second = list(config_maps, {.labels = "vowel=no"},
                           {.limit = 2, .continue_token = text(first, "/metadata/continue")});
  BOOST_TEST(names(second) == name_list{"d"}, boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(continue_token_that_is_none_is_rejected, five) {
  refuse(api.list(config_maps, all(), {.limit = 2, .continue_token = "nonsense"}),
         {400, "BadRequest", "continue key is not valid"});
}

BOOST_FIXTURE_TEST_CASE(page_that_goes_on_takes_no_version, five) {
  const auto first = list(config_maps, {}, {.limit = 2});
  refuse(api.list(config_maps, all(),
                  {.limit = 2,
                   .continue_token = text(first, "/metadata/continue"),
                   .resource_version = text(first, "/metadata/resourceVersion")}),
         {400, "BadRequest", "specifying resource version is not allowed when using continue"});
}

BOOST_FIXTURE_TEST_CASE(after_compaction_pages_do_not_go_on, five) {
  const auto first = list(config_maps, {}, {.limit = 2});
  create(config_maps, config_map("f"));
  server.compact();
  const auto why = failed(api.list(
      config_maps, all(), {.limit = 2, .continue_token = text(first, "/metadata/continue")}));
  BOOST_TEST(why.status == 410u);
  BOOST_TEST(why.reason == "Expired");
  BOOST_TEST(why.is(k8s::errc::gone));
}

BOOST_FIXTURE_TEST_CASE(list_at_version_zero_may_be_of_any_time, five) {
  eventually(
      [&] { return sorted_names(list(config_maps, {}, {.resource_version = "0"})).size() == 5; });
}

BOOST_FIXTURE_TEST_CASE(list_may_be_asked_to_be_no_older_than_a_version, five) {
  const auto newest = create(config_maps, config_map("f"));
  const auto fresh = list(config_maps, {},
                          {.resource_version = text(newest, "/metadata/resourceVersion"),
                           .resource_version_match = "NotOlderThan"});
  BOOST_TEST(sorted_names(fresh).size() == 6u);
  BOOST_TEST(version(fresh) >= version(newest));
}

BOOST_FIXTURE_TEST_CASE(list_may_be_asked_to_be_of_a_version, five) {
  const auto then = list(config_maps);
  remove(config_maps, "a");
  const auto again = list(config_maps, {},
                          {.resource_version = text(then, "/metadata/resourceVersion"),
                           .resource_version_match = "Exact"});
  BOOST_TEST(names(again) == names(then), boost::test_tools::per_element());
  BOOST_TEST(version(again) == version(then));
}

BOOST_FIXTURE_TEST_CASE(resource_version_match_needs_a_version, sandbox) {
  refuse(api.list(config_maps, all(), {.resource_version_match = "Exact"}),
         {422, "Invalid", "resourceVersionMatch is forbidden unless resourceVersion is provided"});
  refuse(api.list(config_maps, all(), {.resource_version = "1", .resource_version_match = "Near"}),
         {422, "Invalid", "resourceVersionMatch: Unsupported value: \"Near\""});
}

BOOST_FIXTURE_TEST_CASE(limit_is_a_number, sandbox) {
  refuse(api.raw("GET", path(config_maps) + "?limit=many", "", ""), {400, "BadRequest"});
}

BOOST_FIXTURE_TEST_CASE(list_of_metadata_has_only_that, five) {
  const auto partial = list(config_maps, {.metadata_only = true});
  BOOST_TEST(text(partial, "/kind") == "PartialObjectMetadataList");
  BOOST_TEST(text(partial, "/apiVersion") == "meta.k8s.io/v1");
  const auto& item = partial.at("items").as_array().front();
  BOOST_TEST(text(item, "/kind") == "PartialObjectMetadata");
  BOOST_TEST(text(item, "/metadata/labels/vowel") == "yes");
  BOOST_TEST(!has(item, "/data"));
}

BOOST_FIXTURE_TEST_CASE(object_may_be_read_as_metadata, five) {
  const auto partial = ok(api.get(config_maps, key("a"), true));
  BOOST_TEST(text(partial, "/kind") == "PartialObjectMetadata");
  BOOST_TEST(text(partial, "/metadata/name") == "a");
  BOOST_TEST(!has(partial, "/data"));
}

BOOST_FIXTURE_TEST_CASE(list_may_be_read_as_a_table, five) {
  const auto answer =
      server.http("GET", path(config_maps), {},
                  {{"accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}});
  BOOST_TEST_REQUIRE(answer.status == 200u);
  const auto table = parse(answer.body);
  BOOST_TEST(text(table, "/kind") == "Table");
  BOOST_TEST(text(table, "/columnDefinitions/0/name") == "Name");
  BOOST_TEST(table.at("rows").as_array().size() == 5u);
  BOOST_TEST(text(table, "/rows/0/cells/0") == "a");
  BOOST_TEST(text(table, "/rows/0/object/kind") == "PartialObjectMetadata");
}

BOOST_FIXTURE_TEST_CASE(columns_of_a_custom_resources_table_are_its_definitions, sandbox) {
  auto crd =
      definition(server.unique("t") + ".example.com", "Thing", "things",
                 parse(R"({"type": "object", "x-kubernetes-preserve-unknown-fields": true})"));
  crd = with(std::move(crd), "/spec/versions/0/additionalPrinterColumns",
             parse(R"([{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}])"));
  const auto things = define(crd);
  create(things, object(things, "a", {{"spec", {{"size", 7}}}}));
  const auto answer = server.http("GET", path(things), {},
                                  {{"accept", "application/json;as=Table;v=v1;g=meta.k8s.io"}});
  const auto table = parse(answer.body);
  BOOST_TEST(text(table, "/columnDefinitions/1/name") == "Size");
  BOOST_TEST(text(table, "/rows/0/cells/1") == "7");
}

BOOST_FIXTURE_TEST_CASE(list_at_a_version_that_is_no_number_fails, sandbox) {
  const auto why = failed(api.raw("GET", path(config_maps) + "?resourceVersion=x", "", ""));
  BOOST_TEST(why.status == 500u);
  BOOST_TEST(why.message.find("resourceVersion: Invalid value: \"x\"") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
