#include "watching.hpp"
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(crd)

using namespace rw;
using namespace rw::conformance;

namespace {

/// A definition whose `spec` has one field `f` of the given schema.
json one_field(sandbox& in, std::string_view schema) {
  return definition(
      in.server.unique("f") + ".example.com", "Field", "fields",
      parse(R"({"type": "object", "properties": {"spec": {"type": "object", "properties": {"f": )" +
            std::string(schema) + "}}}}"));
}

/// A kind whose `spec` has one field for each sort of check. Made once.
const k8s::resource_type& checked() {
  static const auto type = [] {
    static constexpr auto schema = R"({
      "type": "object", "required": ["spec"],
      "properties": {"spec": {"type": "object", "required": ["must"], "properties": {
        "must": {"type": "string"},
        "whole": {"type": "integer", "minimum": 1, "maximum": 10},
        "over": {"type": "number", "minimum": 0, "exclusiveMinimum": true},
        "fives": {"type": "integer", "multipleOf": 5},
        "flag": {"type": "boolean"},
        "color": {"type": "string", "enum": ["red", "blue"]},
        "code": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 5},
        "when": {"type": "string", "format": "date-time"},
        "list": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string"}},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                  "items": {"type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string"}, "n": {"type": "integer", "default": 7}}}},
        "map": {"type": "object", "maxProperties": 2, "additionalProperties": {"type": "integer"}},
        "port": {"x-kubernetes-int-or-string": true},
        "maybe": {"type": "string", "nullable": true},
        "either": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                   "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}})";
    auto& server = backend::get();
    const auto crd =
        definition(server.unique("c") + ".example.com", "Checked", "checkeds", parse(schema));
    sandbox here;
    const auto made = here.define(crd);
    here.keep_defined();
    return made;
  }();
  return type;
}

/// A sandbox for objects of that kind.
struct checking : sandbox {
  json of(std::string_view fields) const {
    auto made = object(checked(), "a", {{"spec", parse(fields)}});
    auto& spec = made.at("spec").as_object();
    spec.emplace("must", "there");
    return here(std::move(made));
  }
  json good(std::string_view fields, place from = place::current()) {
    return ok(api.create(checked(), of(fields)), from).at("spec");
  }
  void bad(std::string_view fields, std::string_view says, place from = place::current()) {
    refuse(api.create(checked(), of(fields)), {422, "Invalid", says}, from);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(definition_is_accepted_and_established, sandbox) {
  const auto crd = one_field(*this, R"({"type": "string"})");
  define(crd);
  const auto now = ok(api.get(crds, {"", text(crd, "/metadata/name")}));
  for (const auto* type : {"NamesAccepted", "Established"}) {
    const auto* condition = element(now, "/status/conditions", "type", type);
    BOOST_TEST_REQUIRE(condition != nullptr);
    BOOST_TEST(text(*condition, "/status") == "True");
    BOOST_TEST(!text(*condition, "/lastTransitionTime").empty());
    BOOST_TEST(!text(*condition, "/reason").empty());
  }
  BOOST_TEST(text(now, "/status/acceptedNames/kind") == "Field");
  BOOST_TEST(now.at_pointer("/status/storedVersions") == parse(R"(["v1"])"));
}

BOOST_FIXTURE_TEST_CASE(names_of_a_kind_are_derived, sandbox) {
  const auto crd = one_field(*this, R"({"type": "string"})");
  define(crd);
  const auto now = ok(api.get(crds, {"", text(crd, "/metadata/name")}));
  BOOST_TEST(text(now, "/spec/names/singular") == "field");
  BOOST_TEST(text(now, "/spec/names/listKind") == "FieldList");
  BOOST_TEST(text(now, "/spec/conversion/strategy") == "None");
}

BOOST_FIXTURE_TEST_CASE(definition_is_named_by_plural_and_group, sandbox) {
  auto crd = one_field(*this, R"({"type": "string"})");
  crd = with(crd, "/metadata/name", "others." + text(crd, "/spec/group"));
  refuse(api.create(crds, crd), {422, "Invalid", "must be spec.names.plural+\".\"+spec.group"});
}

BOOST_FIXTURE_TEST_CASE(names_of_a_definition_are_labels, sandbox) {
  const auto rejects = [this](const char* field, const json& value, std::string_view says) {
    auto crd = with(one_field(*this, R"({"type": "string"})"), field, value);
    const auto name = text(crd, "/spec/names/plural") + "." + text(crd, "/spec/group");
    refuse(api.create(crds, with(std::move(crd), "/metadata/name", name)), {422, "Invalid", says});
  };
  const std::string names = "spec.names.";
  const std::string no_label = "Invalid value: \"1a\": a DNS-1035 label must consist of";
  rejects("/spec/names/plural", "1a", names + "plural: " + no_label);
  rejects("/spec/names/singular", "1a", names + "singular: " + no_label);
  rejects("/spec/names/shortNames", {"a", "1a"}, names + "shortNames[1]: " + no_label);
  rejects("/spec/names/categories", {"a", "1a"}, names + "categories[1]: " + no_label);
  rejects("/spec/versions/0/name", "1a", "spec.versions[0].name: " + no_label);
  for (const std::string field : {"kind", "listKind"}) {
    rejects(("/spec/names/" + field).c_str(), "A_b",
            names + field +
                ": Invalid value: \"A_b\": may have mixed case, but should otherwise match");
  }
  rejects("/spec/names/listKind", "Field",
          names + "listKind: Invalid value: \"Field\": kind and listKind may not be the same");
  rejects("/spec/group", "a",
          "spec.group: Invalid value: \"a\": should be a domain with at least one dot");
}

BOOST_FIXTURE_TEST_CASE(definition_stores_one_version, sandbox) {
  auto crd = one_field(*this, R"({"type": "string"})");
  crd = with(std::move(crd), "/spec/versions/0/storage", false);
  refuse(api.create(crds, crd),
         {422, "Invalid", "must have exactly one version marked as storage version"});
}

BOOST_FIXTURE_TEST_CASE(definition_has_a_schema, sandbox) {
  const auto crd = without(one_field(*this, R"({"type": "string"})"), "/spec/versions/0/schema");
  refuse(api.create(crds, crd),
         {422, "Invalid",
          "spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required"});
}

BOOST_FIXTURE_TEST_CASE(schema_is_structural, sandbox) {
  refuse(api.create(crds, one_field(*this, "{}")),
         {422, "Invalid", "type: Required value: must not be empty for specified object fields"});
}

BOOST_FIXTURE_TEST_CASE(schema_has_known_types, sandbox) {
  refuse(api.create(crds, one_field(*this, R"({"type": "text"})")), {422, "Invalid"});
}

BOOST_FIXTURE_TEST_CASE(default_fits_its_schema, sandbox) {
  refuse(api.create(crds, one_field(*this, R"({"type": "integer", "default": "x"})")),
         {422, "Invalid", "default"});
}

BOOST_FIXTURE_TEST_CASE(scope_is_one_of_two, sandbox) {
  auto crd = one_field(*this, R"({"type": "string"})");
  crd = with(std::move(crd), "/spec/scope", "Galaxy");
  refuse(api.create(crds, crd),
         {422, "Invalid",
          "spec.scope: Unsupported value: \"Galaxy\": supported values: \"Cluster\", "
          "\"Namespaced\""});
}

BOOST_FIXTURE_TEST_CASE(kind_that_is_taken_in_its_group_is_not_accepted, sandbox) {
  const auto first = one_field(*this, R"({"type": "string"})");
  define(first);
  auto second =
      definition(text(first, "/spec/group"), "Field", "others", parse(R"({"type": "object"})"));
  const auto name = text(second, "/metadata/name");
  ok(api.create(crds, second));
  eventually([&] {
    const auto now = ok(api.get(crds, {"", name}));
    const auto* accepted = element(now, "/status/conditions", "type", "NamesAccepted");
    return accepted != nullptr && text(*accepted, "/status") == "False";
  });
  ok(api.remove(crds, {"", name}));
}

BOOST_FIXTURE_TEST_CASE(cluster_scoped_kind_has_no_namespaces, sandbox) {
  auto crd = one_field(*this, R"({"type": "string"})");
  crd = with(std::move(crd), "/spec/scope", "Cluster");
  const auto fields = define(crd);
  create(fields, object(fields, "a", parse(R"({"spec": {"f": "x"}})")));
  BOOST_TEST(text(get(fields, "a"), "/spec/f") == "x");
  BOOST_TEST(!has(get(fields, "a"), "/metadata/namespace"));
  const auto inside = "/apis/" + fields.gvk.api_version() + "/namespaces/" + ns + "/fields";
  BOOST_TEST(server.http("GET", inside).status == 404u);
}

BOOST_FIXTURE_TEST_CASE(version_that_is_not_served_is_not_found, sandbox) {
  auto crd = one_field(*this, R"({"type": "string"})");
  auto& versions = crd.at_pointer("/spec/versions").as_array();
  versions.push_back(
      with(with(with(versions.front(), "/name", "v2"), "/served", false), "/storage", false));
  auto fields = define(crd);
  fields.gvk.version = "v2";
  const auto why = failed(api.list(fields, all()));
  BOOST_TEST(why.is(k8s::errc::not_found));
}

BOOST_FIXTURE_TEST_CASE(object_is_read_in_each_version, sandbox) {
  auto crd = one_field(*this, R"({"type": "string"})");
  auto& versions = crd.at_pointer("/spec/versions").as_array();
  versions.push_back(with(with(versions.front(), "/name", "v2"), "/storage", false));
  const auto first = define(crd);
  auto second = first;
  second.gvk.version = "v2";
  create(first, object(first, "a", parse(R"({"spec": {"f": "x"}})")));
  const auto seen = get(second, "a");
  BOOST_TEST(text(seen, "/apiVersion") == second.gvk.api_version());
  BOOST_TEST(text(seen, "/spec/f") == "x");
  const auto listed = list(second);
  BOOST_TEST(text(listed, "/items/0/apiVersion") == second.gvk.api_version());
}

namespace {

/// A definition of v1, which is stored, and v2, which alone has the field `size`, with a default.
json definition_of_two(const std::string& group) {
  auto crd = definition(group, "Thing", "things",
                        parse(R"({"type": "object", "properties": {"spec": {"type": "object"}}})"));
  auto& versions = crd.at_pointer("/spec/versions").as_array();
  auto second = with(with(versions.front(), "/name", "v2"), "/storage", false);
  versions.push_back(with(
      std::move(second), "/schema/openAPIV3Schema/properties/spec",
      parse(R"({"type": "object", "properties": {"size": {"type": "integer", "default": 3}}})")));
  return crd;
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(defaults_of_a_version_are_not_given_to_what_another_one_stores, sandbox) {
  const auto things = define(definition_of_two(server.unique("t") + ".example.com"));
  create(things, object(things, "a", {{"spec", boost::json::object()}}));
  auto second = things;
  second.gvk.version = "v2";
  BOOST_TEST(!has(get(second, "a"), "/spec/size"));
}

BOOST_FIXTURE_TEST_CASE(fields_that_the_stored_version_lacks_are_not_kept, sandbox) {
  const auto things = define(definition_of_two(server.unique("t") + ".example.com"));
  auto second = things;
  second.gvk.version = "v2";
  create(second, object(second, "a", {{"spec", {{"size", 7}}}}));
  BOOST_TEST(!has(get(things, "a"), "/spec/size"));
}

BOOST_FIXTURE_TEST_CASE(version_that_objects_may_be_stored_in_cannot_be_removed, sandbox) {
  const auto things = define(definition_of_two(server.unique("t") + ".example.com"));
  const auto name = things.plural + "." + things.gvk.group;
  auto crd = get(crds, name);
  auto& versions = crd.at_pointer("/spec/versions").as_array();
  versions.erase(versions.begin());
  versions.front().as_object()["storage"] = true;
  refuse(api.update(crds, crd), {422, "Invalid", "status.storedVersions[0]"});
}

BOOST_FIXTURE_TEST_CASE(version_that_is_added_is_served, sandbox) {
  auto crd = one_field(*this, R"({"type": "string"})");
  const auto first = define(crd);
  create(first, object(first, "a", parse(R"({"spec": {"f": "x"}})")));
  auto& versions = crd.at_pointer("/spec/versions").as_array();
  versions.push_back(with(with(versions.front(), "/name", "v2"), "/storage", false));
  ok(api.patch(crds, {"", text(crd, "/metadata/name")}, k8s::patch_type::merge,
               {{"spec", {{"versions", versions}}}}));
  auto second = first;
  second.gvk.version = "v2";
  eventually([&] { return server.here.call(api.get(second, key("a"))).has_value(); });
}

BOOST_FIXTURE_TEST_CASE(schema_that_is_changed_takes_effect, sandbox) {
  auto crd = one_field(*this, R"({"type": "string"})");
  const auto fields = define(crd);
  crd = with(std::move(crd),
             "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/f/maxLength", 3);
  ok(api.patch(crds, {"", text(crd, "/metadata/name")}, k8s::patch_type::merge,
               {{"spec", {{"versions", crd.at_pointer("/spec/versions")}}}}));
  eventually([&] {
    const auto got = server.here.call(api.create(
        fields, here(object(fields, "a", parse(R"({"spec": {"f": "long"}})"))), {.dry_run = true}));
    return got.has_error() && got.error().status == 422;
  });
}

BOOST_FIXTURE_TEST_CASE(definition_that_is_deleted_takes_its_objects_along, sandbox) {
  const auto crd = one_field(*this, R"({"type": "string"})");
  const auto fields = define(crd);
  create(fields, object(fields, "a"));
  watching seen(*this, fields, all(), list(fields));
  const auto name = text(crd, "/metadata/name");
  ok(api.remove(crds, {"", name}));
  seen.expect("DELETED", "a");
  eventually([&] { return !there(crds, name); });
  eventually([&] { return server.here.call(api.list(fields, all())).has_error(); });
  define(crd);
  BOOST_TEST(names(list(fields)).empty());
}

BOOST_FIXTURE_TEST_CASE(change_of_a_definition_is_a_new_generation, sandbox) {
  const auto crd = one_field(*this, R"({"type": "string"})");
  define(crd);
  const auto name = text(crd, "/metadata/name");
  BOOST_TEST(text(ok(api.get(crds, {"", name})), "/metadata/generation") == "1");
  const auto next = ok(api.patch(crds, {"", name}, k8s::patch_type::merge,
                                 parse(R"({"spec": {"names": {"categories": ["all"]}}})")));
  BOOST_TEST(text(next, "/metadata/generation") == "2");
}

BOOST_FIXTURE_TEST_CASE(missing_required_field_is_invalid, checking) {
  refuse(api.create(checked(), here(object(checked(), "a"))),
         {422, "Invalid", "\"a\" is invalid: spec: Required value"});
  refuse(api.create(checked(), here(object(checked(), "a", parse(R"({"spec": {}})")))),
         {422, "Invalid", "spec.must: Required value"});
}

BOOST_FIXTURE_TEST_CASE(object_that_is_invalid_names_kind_and_group, checking) {
  refuse(api.create(checked(), of(R"({"flag": 1})")),
         {422, "Invalid", "Checked." + checked().gvk.group + " \"a\" is invalid: spec.flag"});
}

BOOST_FIXTURE_TEST_CASE(types_are_checked, checking) {
  bad(R"({"whole": "x"})",
      R"(spec.whole: Invalid value: "string": spec.whole in body must be of type integer: "string")");
  bad(R"({"flag": "yes"})", "spec.flag in body must be of type boolean: \"string\"");
  bad(R"({"color": 5})", "spec.color in body must be of type string: \"integer\"");
  bad(R"({"list": {}})", "spec.list in body must be of type array: \"object\"");
  bad(R"({"map": []})", "spec.map in body must be of type object: \"array\"");
  bad(R"({"whole": 2.5})", "spec.whole in body must be of type integer: \"number\"");
}

BOOST_FIXTURE_TEST_CASE(numbers_have_bounds, checking) {
  bad(R"({"whole": 0})",
      "spec.whole: Invalid value: 0: spec.whole in body should be greater than or equal to 1");
  bad(R"({"whole": 11})", "spec.whole in body should be less than or equal to 10");
  bad(R"({"over": 0})", "spec.over in body should be greater than 0");
  bad(R"({"fives": 7})", "spec.fives in body should be a multiple of 5");
  good(R"({"whole": 10, "over": 0.001, "fives": 25})");
}

BOOST_FIXTURE_TEST_CASE(strings_have_bounds, checking) {
  bad(R"({"code": "a"})",
      "spec.code: Invalid value: \"a\": spec.code in body should be at least 2 chars long");
  bad(R"({"code": "abcdef"})", "spec.code in body should be at most 5 chars long");
  bad(R"({"code": "ABC"})", "spec.code in body should match '^[a-z]+$'");
  good(R"({"code": "abc"})");
}

BOOST_FIXTURE_TEST_CASE(values_are_of_an_enumeration, checking) {
  bad(R"({"color": "green"})",
      "spec.color: Unsupported value: \"green\": supported values: \"red\", \"blue\"");
}

BOOST_FIXTURE_TEST_CASE(times_have_a_format, checking) {
  bad(R"({"when": "yesterday"})", "spec.when in body must be of type date-time: \"yesterday\"");
  good(R"({"when": "2024-02-29T12:34:56Z"})");
}

BOOST_FIXTURE_TEST_CASE(lists_have_bounds, checking) {
  bad(R"({"list": []})", "spec.list in body should have at least 1 items");
  bad(R"({"list": ["a", "b", "c"]})", "spec.list in body should have at most 2 items");
}

BOOST_FIXTURE_TEST_CASE(items_are_checked_like_fields, checking) {
  refuse(api.create(checked(), of(R"({"list": [5]})")), {422, "Invalid", "must be of type string"});
  refuse(api.create(checked(), of(R"({"map": {"k": "x"}})")),
         {422, "Invalid", "spec.map.k in body must be of type integer: \"string\""});
}

BOOST_FIXTURE_TEST_CASE(values_of_a_set_are_distinct, checking) {
  bad(R"({"set": ["a", "b", "a"]})", "spec.set[2]: Duplicate value: \"a\"");
}

BOOST_FIXTURE_TEST_CASE(keys_of_a_list_are_distinct, checking) {
  bad(R"({"parts": [{"name": "a"}, {"name": "a"}]})", "spec.parts[1]: Duplicate value");
}

// That the second item was there before, at its place, does not make it right.
BOOST_FIXTURE_TEST_CASE(update_that_repeats_an_item_of_before_is_invalid, checking) {
  good(R"({"parts": [{"name": "b"}, {"name": "a"}], "set": ["b", "a"]})");
  const auto change = [this](std::string_view spec) {
    return api.patch(checked(), key("a"), k8s::patch_type::merge, {{"spec", parse(spec)}});
  };
  refuse(change(R"({"parts": [{"name": "a"}, {"name": "a"}]})"),
         {422, "Invalid", "spec.parts[1]: Duplicate value"});
  refuse(change(R"({"set": ["a", "a"]})"), {422, "Invalid", "spec.set[1]: Duplicate value"});
}

BOOST_FIXTURE_TEST_CASE(maps_have_bounds, checking) {
  bad(R"({"map": {"a": 1, "b": 2, "c": 3}})", "spec.map");
}

BOOST_FIXTURE_TEST_CASE(value_may_be_a_number_or_a_string, checking) {
  BOOST_TEST(good(R"({"port": 80})").at("port") == json(80));
  remove(checked(), "a");
  BOOST_TEST(good(R"({"port": "http"})").at("port") == json("http"));
  remove(checked(), "a");
  bad(R"({"port": true})", "spec.port in body must be of type integer,string: \"boolean\"");
}

BOOST_FIXTURE_TEST_CASE(value_is_null_where_it_may_be, checking) {
  BOOST_TEST(good(R"({"maybe": null})").at("maybe").is_null());
}

BOOST_FIXTURE_TEST_CASE(exactly_one_of_some_schemas_fits, checking) {
  good(R"({"either": {"a": "1"}})");
  remove(checked(), "a");
  bad(R"({"either": {"a": "1", "b": "2"}})",
      "\"spec.either\" must validate one and only one schema (oneOf). Found 2 valid alternatives");
  bad(R"({"either": {}})",
      "\"spec.either\" must validate one and only one schema (oneOf). Found none valid");
}

BOOST_FIXTURE_TEST_CASE(errors_of_an_object_are_all_reported_at_once, checking) {
  const auto why =
      failed(api.create(checked(), of(R"({"whole": 0, "color": "green", "code": "A"})")));
  for (const auto* field : {"spec.whole", "spec.color", "spec.code"}) {
    BOOST_TEST(why.message.find(field) != std::string::npos);
  }
}

BOOST_FIXTURE_TEST_CASE(update_is_checked_like_a_creation, checking) {
  good(R"({"whole": 5})");
  refuse(
      api.patch(checked(), key("a"), k8s::patch_type::merge, parse(R"({"spec": {"whole": 99}})")),
      {422, "Invalid", "spec.whole in body should be less than or equal to 10"});
}

BOOST_FIXTURE_TEST_CASE(fields_that_the_schema_does_not_know_are_pruned, checking) {
  const auto spec = good(R"({"unknown": 1, "parts": [{"name": "p", "unknown": 2}]})");
  BOOST_TEST(!has(spec, "/unknown"));
  BOOST_TEST(spec.at_pointer("/parts/0") == parse(R"({"name": "p", "n": 7})"));
}

BOOST_FIXTURE_TEST_CASE(fields_are_kept_where_the_schema_says_so, checking) {
  BOOST_TEST(good(R"({"any": {"of": [1, {"this": null}]}})").at("any") ==
             parse(R"({"of": [1, {"this": null}]})"));
}

BOOST_FIXTURE_TEST_CASE(defaults_are_filled_in, sandbox) {
  const auto fields = define(one_field(*this, R"({"type": "object", "default": {},
    "properties": {"a": {"type": "string", "default": "x"}, "b": {"type": "string"}}})"));
  const auto made = create(fields, object(fields, "a", parse(R"({"spec": {}})")));
  BOOST_TEST(made.at("spec") == parse(R"({"f": {"a": "x"}})"));
  const auto kept = create(fields, object(fields, "b", parse(R"({"spec": {"f": {"a": "y"}}})")));
  BOOST_TEST(kept.at("spec") == parse(R"({"f": {"a": "y"}})"));
  const auto left = merge(fields, "b", R"({"spec": {"f": {"a": null}}})");
  BOOST_TEST(left.at("spec") == parse(R"({"f": {"a": "x"}})"));
}

BOOST_FIXTURE_TEST_CASE(later_defaults_apply_to_stored_objects, sandbox) {
  auto crd = one_field(*this, R"({"type": "string"})");
  const auto fields = define(crd);
  create(fields, object(fields, "a", parse(R"({"spec": {}})")));
  crd = with(std::move(crd),
             "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/f/default", "x");
  ok(api.patch(crds, {"", text(crd, "/metadata/name")}, k8s::patch_type::merge,
               {{"spec", {{"versions", crd.at_pointer("/spec/versions")}}}}));
  eventually([&] { return text(get(fields, "a"), "/spec/f") == "x"; });
}

BOOST_FIXTURE_TEST_CASE(metadata_of_a_custom_resource_is_that_of_all_objects, checking) {
  auto wanted = of("{}");
  wanted = with(std::move(wanted), "/metadata/labels", {{"l", "not valid!"}});
  refuse(api.create(checked(), wanted), {422, "Invalid", "metadata.labels"});
  wanted = with(of("{}"), "/metadata/unknown", 1);
  BOOST_TEST(!has(ok(api.create(checked(), wanted)), "/metadata/unknown"));
}

BOOST_AUTO_TEST_SUITE_END()
