#include "rw/k8s/objects/described.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

namespace rw::k8s_described {
BOOST_AUTO_TEST_SUITE(described)

namespace json = boost::json;
namespace k8s = rw::k8s;

enum class policy { keep, delete_ };
BOOST_DESCRIBE_ENUM(policy, keep, delete_)

struct target {
  std::string namespace_;
  std::optional<std::string> template_;
};
BOOST_DESCRIBE_STRUCT(target, (), (namespace_, template_))

struct options {
  bool compress = true;
};
BOOST_DESCRIBE_STRUCT(options, (), (compress))

struct sample_spec {
  std::string database;
  int keep = 3;
  double ratio = 0.5;
  std::optional<std::uint8_t> level;
  policy end = policy::delete_;
  options with;
  std::vector<target> targets;
  std::map<std::string, std::string> settings;
  std::optional<std::chrono::system_clock::time_point> since;
  json::value extra;
};
BOOST_DESCRIBE_STRUCT(sample_spec, (),
                      (database, keep, ratio, level, end, with, targets, settings, since, extra))

struct sample_status {
  std::optional<std::string> phase;
};
BOOST_DESCRIBE_STRUCT(sample_status, (), (phase))

struct sample {
  k8s::object_meta metadata;
  sample_spec spec;
  sample_status status;

  static inline const k8s::resource_type type{{"example.com", "v1", "Sample"}, "samples"};
};
BOOST_DESCRIBE_STRUCT(sample, (), (metadata, spec, status))

namespace {

k8s::result<sample> read(const char* spec) {
  return k8s::from_json<sample>(
      {{"metadata", {{"name", "a"}, {"namespace", "n"}}}, {"spec", json::parse(spec)}});
}

std::string error_of(const char* spec) {
  const auto got = read(spec);
  return got ? "" : got.error().message;
}

}  // namespace

BOOST_AUTO_TEST_CASE(value_reads_as_it_was_written) {
  sample from;
  from.metadata = {.ns = "n",
                   .name = "a",
                   .labels = {{"l", "1"}},
                   .annotations = {{"x", "y"}},
                   .finalizers = {"example.com/f"},
                   .owners = {{"v1", "ConfigMap", "o", "uid-1", true}}};
  from.spec = {.database = "orders",
               .keep = 7,
               .ratio = 0.25,
               .level = std::uint8_t{9},
               .end = policy::keep,
               .with = {.compress = false},
               .targets = {{"one", {}}, {"two", "t"}},
               .settings = {{"k", "v"}},
               .since = k8s::parse_rfc3339("2026-11-26T00:00:00Z"),
               .extra = {{"any", {1, "thing"}}}};
  from.status.phase = "Ready";
  const auto written = k8s::to_json(from);
  BOOST_TEST(written.at("apiVersion") == "example.com/v1");
  BOOST_TEST(written.at("kind") == "Sample");
  BOOST_TEST(json::serialize(written.at("spec").at("targets")) ==
             R"([{"namespace":"one"},{"namespace":"two","template":"t"}])");
  BOOST_TEST(written.at("spec").at("end") == "keep");
  const auto back = k8s::from_json<sample>(written);
  BOOST_REQUIRE_MESSAGE(back, (back ? "" : back.error().message));
  BOOST_TEST(json::serialize(k8s::to_json(*back)) == json::serialize(written));
  BOOST_TEST(back->spec.targets.at(1).template_.value() == "t");
  BOOST_TEST(back->metadata.owners.at(0).name == "o");
}

BOOST_AUTO_TEST_CASE(reader_ignores_unknown_fields_and_fills_in_defaults) {
  const auto got = read(R"({"database":"d","invented":{"x":1},"targets":null})");
  BOOST_REQUIRE_MESSAGE(got, (got ? "" : got.error().message));
  BOOST_TEST(got->spec.keep == 3);
  BOOST_TEST(!got->spec.level.has_value());
  BOOST_TEST((got->spec.end == policy::delete_));
  BOOST_TEST(got->spec.with.compress);
  BOOST_TEST(got->spec.targets.empty());
  BOOST_TEST(got->spec.extra.is_null());
}

BOOST_AUTO_TEST_CASE(reader_names_the_path_of_an_invalid_field) {
  BOOST_TEST(error_of("{}") == "spec.database: missing");
  BOOST_TEST(error_of(R"({"database":1})") == "spec.database: not a text");
  BOOST_TEST(error_of(R"({"database":"d","keep":1.5})") ==
             "spec.keep: not an integer, or out of range");
  BOOST_TEST(error_of(R"({"database":"d","level":256})") ==
             "spec.level: not an integer, or out of range");
  BOOST_TEST(error_of(R"({"database":"d","ratio":"x"})") == "spec.ratio: not a number");
  BOOST_TEST(error_of(R"({"database":"d","end":"delete_"})") ==
             "spec.end: not a value of this field");
  BOOST_TEST(error_of(R"({"database":"d","targets":[{"namespace":"n"},{}]})") ==
             "spec.targets[1].namespace: missing");
  BOOST_TEST(error_of(R"({"database":"d","settings":{"k":[]}})") == "spec.settings.k: not a text");
  BOOST_TEST(error_of(R"({"database":"d","since":"today"})") ==
             "spec.since: not a time of RFC 3339");
  BOOST_TEST(k8s::from_json<sample>(1).error().message == "not an object");
}

BOOST_AUTO_TEST_CASE(writer_omits_what_is_empty) {
  sample from;
  from.metadata.name = "a";
  BOOST_TEST(json::serialize(k8s::to_json(from)) ==
             R"({"metadata":{"name":"a"},"spec":{"database":"","keep":3,"ratio":5E-1,)"
             R"("end":"delete","with":{"compress":true},"extra":null},"status":{},)"
             R"("apiVersion":"example.com/v1","kind":"Sample"})");
}

BOOST_AUTO_TEST_CASE(schema_has_types_defaults_and_required_fields) {
  const json::value made = k8s::schema_of<sample>();
  BOOST_TEST(json::serialize(made.at("required")) == R"(["spec"])");
  BOOST_TEST(!made.at("properties").as_object().contains("metadata"));
  const auto& spec = made.at("properties").at("spec");
  BOOST_TEST(json::serialize(spec.at("required")) == R"(["database"])");
  const auto property = [&](std::string_view name) {
    return json::serialize(spec.at("properties").at(name));
  };
  BOOST_TEST(property("keep") == R"({"type":"integer","format":"int32","default":3})");
  BOOST_TEST(property("level") == R"({"type":"integer","format":"int32","minimum":0})");
  BOOST_TEST(property("end") == R"({"type":"string","enum":["keep","delete"],"default":"delete"})");
  BOOST_TEST(property("since") == R"({"type":"string","format":"date-time"})");
  BOOST_TEST(property("extra") == R"({"x-kubernetes-preserve-unknown-fields":true})");
  BOOST_TEST(property("settings") ==
             R"({"type":"object","additionalProperties":{"type":"string"}})");
  BOOST_TEST(json::serialize(spec.at("properties").at("targets").at("items").at("required")) ==
             R"(["namespace"])");
}

BOOST_AUTO_TEST_CASE(definition_names_the_resource_and_its_status) {
  const auto made = k8s::definition_of<sample>();
  BOOST_TEST(k8s::find_string(made, {"metadata", "name"}) == "samples.example.com");
  BOOST_TEST(k8s::find_string(made, {"spec", "scope"}) == "Namespaced");
  const auto& version = made.at("spec").at("versions").at(0);
  BOOST_TEST(version.at("name") == "v1");
  BOOST_TEST(version.at("subresources").as_object().contains("status"));
  BOOST_TEST(made.at("spec").at("names").at("singular") == "sample");
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::k8s_described
