#include "sandbox.hpp"
#include <string>

BOOST_AUTO_TEST_SUITE(apply)

using namespace rw;
using namespace rw::conformance;

namespace {

/// What a manager owns by applying, as its fieldsV1; null if it does not apply.
json owned(const json& object, std::string_view manager, std::string_view operation = "Apply") {
  const auto* entry = managed_by(object, manager, operation);
  return entry == nullptr ? json(nullptr) : entry->at("fieldsV1");
}

/// Words for "this manager applies that".
struct managers : sandbox {
  json by(std::string_view manager, json object, place from = place::current()) {
    const auto& type = type_of(object);
    return apply(type, std::move(object), {.field_manager = std::string(manager)}, from);
  }
  json forced(std::string_view manager, json object, place from = place::current()) {
    const auto& type = type_of(object);
    return apply(type, std::move(object), {.field_manager = std::string(manager), .force = true},
                 from);
  }
  void refuse_by(std::string_view manager, json object, const refusal& as,
                 place from = place::current()) {
    const auto& type = type_of(object);
    refuse(api.apply(type, here(std::move(object)), {.field_manager = std::string(manager)}), as,
           from);
  }

 private:
  static const k8s::resource_type& type_of(const json& object) {
    const auto kind = text(object, "/kind");
    if (kind == "ConfigMap") return config_maps;
    return kind == "Deployment" ? deployments : gadgets();
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(apply_creates_an_absent_object, managers) {
  const auto made = by("one", config_map("a", {{"k", "v"}}, {{"l", "m"}}));
  BOOST_TEST(text(made, "/data/k") == "v");
  BOOST_TEST(get(config_maps, "a") == made);
}

BOOST_FIXTURE_TEST_CASE(apply_records_the_managers_of_fields, managers) {
  const auto made = by("one", config_map("a", {{"k", "v"}}, {{"l", "m"}}));
  const auto* entry = managed_by(made, "one", "Apply");
  BOOST_TEST_REQUIRE(entry != nullptr);
  BOOST_TEST(text(*entry, "/apiVersion") == "v1");
  BOOST_TEST(text(*entry, "/fieldsType") == "FieldsV1");
  BOOST_TEST(!text(*entry, "/time").empty());
  BOOST_TEST(entry->at("fieldsV1") ==
             parse(R"({"f:data": {"f:k": {}}, "f:metadata": {"f:labels": {"f:l": {}}}})"));
}

BOOST_FIXTURE_TEST_CASE(applying_the_same_again_changes_nothing, managers) {
  const auto made = by("one", config_map("a", {{"k", "v"}}));
  BOOST_TEST(by("one", config_map("a", {{"k", "v"}})) == made);
}

BOOST_FIXTURE_TEST_CASE(field_that_is_not_applied_any_more_is_removed, managers) {
  by("one", config_map("a", {{"k", "v"}, {"l", "w"}}, {{"x", "y"}}));
  const auto next = by("one", config_map("a", {{"l", "w"}}));
  BOOST_TEST(next.at("data") == parse(R"({"l": "w"})"));
  BOOST_TEST(!has(next, "/metadata/labels/x"));
}

BOOST_FIXTURE_TEST_CASE(field_of_another_manager_with_another_value_is_a_conflict, managers) {
  const auto made = by("one", config_map("a", {{"k", "1"}}));
  refuse_by("two", config_map("a", {{"k", "2"}}),
            {409, "Conflict", "Apply failed with 1 conflict: conflict with \"one\": .data.k"});
  BOOST_TEST(get(config_maps, "a") == made);
}

BOOST_FIXTURE_TEST_CASE(conflicts_are_all_reported_at_once, managers) {
  by("one", config_map("a", {{"k", "1"}, {"l", "1"}}));
  refuse_by("two", config_map("a", {{"k", "2"}, {"l", "2"}}),
            // The client has a space for each line's end, since a terminal may show the message.
            {409, "Conflict",
             "Apply failed with 2 conflicts: conflicts with \"one\": - .data.k - .data.l"});
}

BOOST_FIXTURE_TEST_CASE(conflict_is_a_cause, managers) {
  by("one", config_map("a", {{"k", "1"}}));
  const auto answer = server.http("PATCH", path(config_maps, "a") + "?fieldManager=two",
                                  serialize(config_map("a", {{"k", "2"}})),
                                  {{"content-type", "application/apply-patch+yaml"}});
  BOOST_TEST(answer.status == 409u);
  const auto why = parse(answer.body);
  BOOST_TEST(text(why, "/details/causes/0/reason") == "FieldManagerConflict");
  BOOST_TEST(text(why, "/details/causes/0/message") == "conflict with \"one\"");
  BOOST_TEST(text(why, "/details/causes/0/field") == ".data.k");
}

BOOST_FIXTURE_TEST_CASE(forced_field_changes_its_manager, managers) {
  by("one", config_map("a", {{"k", "1"}, {"l", "1"}}));
  const auto next = forced("two", config_map("a", {{"k", "2"}}));
  BOOST_TEST(next.at("data") == parse(R"({"k": "2", "l": "1"})"));
  BOOST_TEST(owned(next, "one") == parse(R"({"f:data": {"f:l": {}}})"));
  BOOST_TEST(owned(next, "two") == parse(R"({"f:data": {"f:k": {}}})"));
}

BOOST_FIXTURE_TEST_CASE(field_with_the_same_value_is_shared, managers) {
  by("one", config_map("a", {{"k", "1"}}));
  const auto both = by("two", config_map("a", {{"k", "1"}}));
  BOOST_TEST(owned(both, "one") == owned(both, "two"));
}

BOOST_FIXTURE_TEST_CASE(shared_field_stays_until_the_last_gives_it_up, managers) {
  by("one", config_map("a", {{"k", "1"}}));
  by("two", config_map("a", {{"k", "1"}}));
  BOOST_TEST(text(by("one", config_map("a")), "/data/k") == "1");
  BOOST_TEST(!has(by("two", config_map("a")), "/data/k"));
}

BOOST_FIXTURE_TEST_CASE(manager_that_applies_nothing_is_not_named, managers) {
  by("one", config_map("a", {{"k", "1"}}));
  by("two", config_map("a", {{"l", "1"}}));
  BOOST_TEST((managed_by(by("one", config_map("a")), "one", "Apply") == nullptr));
}

BOOST_FIXTURE_TEST_CASE(writer_manages_the_fields_that_it_changed, managers) {
  by("one", config_map("a", {{"k", "1"}, {"l", "1"}}));
  const auto next = update(config_maps, config_map("a", {{"k", "2"}, {"l", "1"}, {"n", "1"}}),
                           {.field_manager = "writer"});
  BOOST_TEST(owned(next, "writer", "Update") == parse(R"({"f:data": {"f:k": {}, "f:n": {}}})"));
  BOOST_TEST(owned(next, "one") == parse(R"({"f:data": {"f:l": {}}})"));
}

BOOST_FIXTURE_TEST_CASE(apply_of_a_writers_field_is_a_conflict, managers) {
  create(config_maps, config_map("a", {{"k", "1"}}), {.field_manager = "writer"});
  refuse_by("one", config_map("a", {{"k", "2"}}),
            {409, "Conflict", "conflict with \"writer\" using v1: .data.k"});
}

BOOST_FIXTURE_TEST_CASE(creator_manages_all_that_it_wrote, managers) {
  const auto made =
      create(config_maps, config_map("a", {{"k", "1"}}, {{"l", "m"}}), {.field_manager = "writer"});
  BOOST_TEST(
      owned(made, "writer", "Update") ==
      parse(
          R"({"f:data": {".": {}, "f:k": {}}, "f:metadata": {"f:labels": {".": {}, "f:l": {}}}})"));
}

BOOST_FIXTURE_TEST_CASE(patch_manages_the_fields_that_it_changed, managers) {
  by("one", config_map("a", {{"k", "1"}, {"l", "1"}}));
  const auto next =
      merge(config_maps, "a", R"({"data": {"k": "2"}})", {.field_manager = "patcher"});
  BOOST_TEST(owned(next, "patcher", "Update") == parse(R"({"f:data": {"f:k": {}}})"));
  BOOST_TEST(owned(next, "one") == parse(R"({"f:data": {"f:l": {}}})"));
}

BOOST_FIXTURE_TEST_CASE(field_that_a_writer_removed_is_managed_by_none, managers) {
  by("one", config_map("a", {{"k", "1"}, {"l", "1"}}));
  const auto next = merge(config_maps, "a", R"({"data": {"k": null}})");
  BOOST_TEST(owned(next, "one") == parse(R"({"f:data": {"f:l": {}}})"));
}

BOOST_FIXTURE_TEST_CASE(manager_without_a_name_is_named_by_its_agent, managers) {
  const auto answer =
      server.http("POST", path(config_maps), serialize(config_map("a", {{"k", "v"}})),
                  {{"user-agent", "agent-007/v1.2 (linux/amd64)"}});
  BOOST_TEST((managed_by(parse(answer.body), "agent-007", "Update") != nullptr));
}

BOOST_FIXTURE_TEST_CASE(applying_needs_a_manager, managers) {
  refuse(api.raw("PATCH", path(config_maps, "a"), "application/apply-patch+yaml",
                 serialize(config_map("a"))),
         {422, "Invalid", "fieldManager: Required value: is required for apply patch"});
}

BOOST_FIXTURE_TEST_CASE(name_of_a_manager_is_short, managers) {
  refuse_by(std::string(129, 'x'), config_map("a"),
            {422, "Invalid", "fieldManager: Too long: must have at most 128 bytes"});
}

BOOST_FIXTURE_TEST_CASE(applied_object_must_not_have_managed_fields, managers) {
  refuse_by("one", with(config_map("a"), "/metadata/managedFields", parse(R"([{"manager": "x"}])")),
            {400, "BadRequest", "metadata.managedFields must be nil"});
}

BOOST_FIXTURE_TEST_CASE(name_of_the_applied_object_must_be_that_of_the_request, managers) {
  create(config_maps, config_map("a"));
  refuse(api.raw("PATCH", path(config_maps, "a") + "?fieldManager=one",
                 "application/apply-patch+yaml", serialize(config_map("b"))),
         {400, "BadRequest", "the name of the object (b) does not match the name on the URL (a)"});
}

BOOST_FIXTURE_TEST_CASE(applying_at_an_old_version_is_a_conflict, managers) {
  const auto old = text(by("one", config_map("a", {{"k", "1"}})), "/metadata/resourceVersion");
  by("one", config_map("a", {{"k", "2"}}));
  refuse_by("one", with(config_map("a", {{"k", "3"}}), "/metadata/resourceVersion", old),
            {409, "Conflict", "the object has been modified"});
}

BOOST_FIXTURE_TEST_CASE(applying_to_a_certain_object_does_not_make_another, managers) {
  const auto made = by("one", config_map("a", {{"k", "1"}}));
  const auto mine =
      with(config_map("a", {{"k", "2"}}), "/metadata/uid", made.at("metadata").at("uid"));
  by("one", mine);
  remove(config_maps, "a");
  refuse_by("one", mine, {409, "Conflict", "no existing object was found"});
  by("one", config_map("a", {{"k", "1"}}));
  refuse_by("one", mine, {422, "Invalid", "metadata.uid"});
}

BOOST_FIXTURE_TEST_CASE(yaml_may_be_applied, managers) {
  const auto made = parse(ok(
      api.raw("PATCH", path(config_maps, "a") + "?fieldManager=one", "application/apply-patch+yaml",
              "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata: {k: v}\n")));
  BOOST_TEST(text(made, "/data/k") == "v");
}

BOOST_FIXTURE_TEST_CASE(apply_of_invalid_yaml_is_rejected, managers) {
  refuse(api.raw("PATCH", path(config_maps, "a") + "?fieldManager=one",
                 "application/apply-patch+yaml", "{bad"),
         {400, "BadRequest"});
}

BOOST_FIXTURE_TEST_CASE(dry_run_applies_nothing, managers) {
  const auto seen =
      apply(config_maps, config_map("a", {{"k", "v"}}), {.field_manager = "one", .dry_run = true});
  BOOST_TEST(text(seen, "/data/k") == "v");
  BOOST_TEST(!there(config_maps, "a"));
}

BOOST_FIXTURE_TEST_CASE(field_that_the_schema_does_not_know_is_not_applied, managers) {
  const auto why =
      failed(api.apply(gadgets(), here(gadget("a", {{"unknown", 1}})), {.field_manager = "one"}));
  BOOST_TEST(why.message.find(".spec.unknown: field not declared in schema") != std::string::npos);
  BOOST_TEST(!there(gadgets(), "a"));
}

BOOST_FIXTURE_TEST_CASE(managers_share_a_list_of_distinct_values, managers) {
  by("one", gadget("a", parse(R"({"tags": ["x"]})")));
  const auto both = by("two", gadget("a", parse(R"({"tags": ["y"]})")));
  BOOST_TEST(both.at_pointer("/spec/tags") == parse(R"(["x", "y"])"));
  BOOST_TEST(owned(both, "two") == parse(R"({"f:spec": {"f:tags": {"v:\"y\"": {}}}})"));
  const auto less = by("two", gadget("a", parse(R"({"tags": ["z"]})")));
  BOOST_TEST(less.at_pointer("/spec/tags") == parse(R"(["x", "z"])"));
}

BOOST_FIXTURE_TEST_CASE(managers_share_a_list_of_items_with_keys, managers) {
  by("one", gadget("a", parse(R"({"parts": [{"name": "x", "n": 1}]})")));
  const auto both = by("two", gadget("a", parse(R"({"parts": [{"name": "y", "n": 2}]})")));
  BOOST_TEST(both.at_pointer("/spec/parts").as_array().size() == 2u);
  BOOST_TEST(
      owned(both, "one") ==
      parse(
          R"({"f:spec": {"f:parts": {"k:{\"name\":\"x\"}": {".": {}, "f:n": {}, "f:name": {}}}}})"));
  refuse_by("two", gadget("a", parse(R"({"parts": [{"name": "x", "n": 5}]})")),
            {409, "Conflict", "conflict with \"one\": .spec.parts[name=\"x\"].n"});
}

BOOST_FIXTURE_TEST_CASE(managers_share_an_item_of_a_list, managers) {
  by("one", gadget("a", parse(R"({"parts": [{"name": "x", "n": 1}]})")));
  const auto both = by("two", gadget("a", parse(R"({"parts": [{"name": "x", "m": 2}]})")));
  BOOST_TEST(both.at_pointer("/spec/parts") == parse(R"([{"name": "x", "n": 1, "m": 2}])"));
}

BOOST_FIXTURE_TEST_CASE(item_that_is_not_applied_any_more_is_removed, managers) {
  by("one", gadget("a", parse(R"({"parts": [{"name": "x"}, {"name": "y"}]})")));
  const auto less = by("one", gadget("a", parse(R"({"parts": [{"name": "y"}]})")));
  BOOST_TEST(less.at_pointer("/spec/parts") == parse(R"([{"name": "y"}])"));
}

BOOST_FIXTURE_TEST_CASE(plain_list_has_one_manager, managers) {
  by("one", gadget("a", parse(R"({"plain": ["x"]})")));
  refuse_by("two", gadget("a", parse(R"({"plain": ["x", "y"]})")),
            {409, "Conflict", "conflict with \"one\": .spec.plain"});
}

BOOST_FIXTURE_TEST_CASE(atomic_map_has_one_manager, managers) {
  const auto made = by("one", gadget("a", parse(R"({"pair": {"x": "1"}})")));
  BOOST_TEST(owned(made, "one") == parse(R"({"f:spec": {"f:pair": {}}})"));
  refuse_by("two", gadget("a", parse(R"({"pair": {"x": "1", "y": "2"}})")),
            {409, "Conflict", "conflict with \"one\": .spec.pair"});
}

BOOST_FIXTURE_TEST_CASE(map_of_free_keys_is_shared, managers) {
  by("one", gadget("a", parse(R"({"free": {"x": "1"}})")));
  const auto both = by("two", gadget("a", parse(R"({"free": {"y": "2"}})")));
  BOOST_TEST(both.at_pointer("/spec/free") == parse(R"({"x": "1", "y": "2"})"));
}

BOOST_FIXTURE_TEST_CASE(containers_of_a_deployment_are_shared, managers) {
  by("one", deployment("a"));
  auto image = parse(R"({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
    "spec": {"template": {"spec": {"containers": [{"name": "two", "env": [{"name": "X", "value": "1"}]}]}}}})");
  const auto next = by("two", image);
  BOOST_TEST(next.at_pointer("/spec/template/spec/containers").as_array().size() == 2u);
  const auto* two = element(next, "/spec/template/spec/containers", "name", "two");
  BOOST_TEST(text(*two, "/image") == "two:1");
  BOOST_TEST(text(*two, "/env/0/value") == "1");
}

BOOST_FIXTURE_TEST_CASE(applying_counts_generations, managers) {
  by("one", gadget("a", {{"size", 1}}));
  BOOST_TEST(text(by("one", gadget("a", {{"size", 2}})), "/metadata/generation") == "2");
  BOOST_TEST(text(by("one", gadget("a", {{"size", 2}})), "/metadata/generation") == "2");
}

BOOST_FIXTURE_TEST_CASE(defaults_are_not_managed_by_the_applier, managers) {
  const auto made = by("one", gadget("a", {{"size", 1}}));
  BOOST_TEST(text(made, "/spec/color") == "red");
  BOOST_TEST(owned(made, "one") == parse(R"({"f:spec": {"f:size": {}}})"));
}

BOOST_FIXTURE_TEST_CASE(status_may_be_applied, managers) {
  by("one", gadget("a", {{"size", 1}}));
  auto wanted = with(object(gadgets(), "a"), "/status", {{"ready", true}});
  const auto next = apply(gadgets(), wanted, {.field_manager = "two", .subresource = "status"});
  BOOST_TEST(text(next, "/status/ready") == "true");
  BOOST_TEST(text(next, "/spec/size") == "1");
  BOOST_TEST((managed_by(next, "two", "Apply") != nullptr));
}

BOOST_FIXTURE_TEST_CASE(emptied_managed_fields_are_forgotten, managers) {
  by("one", config_map("a", {{"k", "1"}}));
  merge(config_maps, "a", R"({"metadata": {"managedFields": [{}]}})");
  BOOST_TEST((managed_by(get(config_maps, "a"), "one", "Apply") == nullptr));
  const auto next = by("two", config_map("a", {{"k", "1"}}));
  BOOST_TEST((managed_by(next, "two", "Apply") != nullptr));
}

BOOST_FIXTURE_TEST_CASE(applied_value_of_a_wrong_type_is_rejected, managers) {
  by("one", config_map("a", {{"k", "v"}}));
  for (const auto* const data : {R"({"k": [1]})", R"({"k": 1})", R"(["k"])"}) {
    const auto why = failed(api.apply(config_maps, here(config_map("a", parse(data))),
                                      {.field_manager = "one", .force = true}));
    BOOST_TEST(why.status == 500u);
    BOOST_TEST(why.message.find("expected ") != std::string::npos, why.message);
  }
}

BOOST_FIXTURE_TEST_CASE(manager_that_is_left_a_map_alone_shares_it_from_the_next_request_on,
                        managers) {
  create(config_maps, config_map("a", {{"k", "1"}}), {.field_manager = "one"});
  const auto taken = forced("two", config_map("a", {{"k", "2"}}));
  BOOST_TEST(owned(taken, "one", "Update") == parse(R"({"f:data": {}})"));
  const auto next = merge(config_maps, "a", R"({"data": {"l": "1"}})", {.field_manager = "three"});
  BOOST_TEST(owned(next, "one", "Update") == parse(R"({"f:data": {".": {}, "f:k": {}}})"));
  BOOST_TEST(owned(next, "two") == parse(R"({"f:data": {"f:k": {}}})"));
}

BOOST_FIXTURE_TEST_CASE(equal_quantity_of_another_text_is_in_conflict, managers) {
  const auto limited = [](std::string_view cpu) {
    auto object = deployment("a");
    object.at_pointer("/spec/template/spec/containers/0").as_object()["resources"] = {
        {"limits", {{"cpu", cpu}}}};
    return object;
  };
  const auto made = create(deployments, limited("1000m"), {.field_manager = "one"});
  BOOST_TEST(text(made, "/spec/template/spec/containers/0/resources/limits/cpu") == "1");
  refuse_by("two", limited("1000m"), {409, "Conflict", ".resources.limits.cpu"});
  by("two", limited("1"));
}

BOOST_FIXTURE_TEST_CASE(manager_that_applies_in_another_version_is_the_same, sandbox) {
  auto crd = definition(server.unique("v") + ".example.com", "Thing", "things",
                        parse(R"({"type": "object", "properties": {"spec": {"type": "object",
                                  "additionalProperties": {"type": "integer"}}}})"));
  auto& versions = crd.at_pointer("/spec/versions").as_array();
  versions.push_back(with(with(versions.front(), "/name", "v2"), "/storage", false));
  const auto old = define(crd);
  auto newer = old;
  newer.gvk.version = "v2";
  apply(old, object(old, "a", {{"spec", {{"x", 1}, {"y", 1}}}}), {.field_manager = "m"});
  const auto applied =
      apply(newer, object(newer, "a", {{"spec", {{"x", 2}}}}), {.field_manager = "m"});
  BOOST_TEST(applied.at("spec") == parse(R"({"x": 2})"));
  const auto& owners = applied.at_pointer("/metadata/managedFields").as_array();
  BOOST_TEST_REQUIRE(owners.size() == 1u);
  BOOST_TEST(text(owners[0], "/apiVersion") == newer.gvk.api_version());
}

BOOST_FIXTURE_TEST_CASE(item_that_leaves_out_the_number_that_identifies_it_has_zero, sandbox) {
  const auto ports = parse(R"([{"name": "web"}])");
  refuse(api.apply(deployments,
                   here(with(deployment("a"), "/spec/template/spec/containers/0/ports", ports))),
         {422, "Invalid", "containers[0].ports[0].containerPort: Required value"});
}

// Only what is decoded as a whole loses the nulls that its schema does not allow (apiextensions,
// customresource_handler.go, schemaCoercingDecoder).
BOOST_FIXTURE_TEST_CASE(null_that_is_applied_to_a_custom_resource_is_a_value, sandbox) {
  for (const std::string_view field : {"size", "tags", "parts", "pair"}) {
    const auto spec = R"({")" + std::string(field) + R"(": null})";
    create(gadgets(), gadget("sent-" + std::string(field), parse(spec)));
    refuse(api.apply(gadgets(), here(gadget("applied", parse(spec)))),
           {422, "Invalid", "spec." + std::string(field) + ": Invalid value: \"null\""});
  }
  const auto made = apply(gadgets(), gadget("applied", parse(R"({"color": null})")));
  BOOST_TEST(text(made, "/spec/color") == "red");
  refuse(api.apply(gadgets(), here(gadget("other", parse(R"({"parts": [{"name": null}]})")))),
         {422, "Invalid", "spec.parts"});
}

BOOST_AUTO_TEST_SUITE_END()
