#include "rw/reactors/shared/event_json.hpp"

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

BOOST_AUTO_TEST_SUITE(event_json)

namespace {

using namespace rw;

const watch_event sample{"lifecycle-manager",
                         {"operator.kyma-project.io", "v1beta2", "Kyma"},
                         {"kyma-system", "default"}};

watch_event without_manager(watch_event event) {
  event.manager.clear();
  return event;
}

/// Nothing if the batch is rejected as a whole, with why.
boost::system::result<std::vector<wire_result>, wire_error> batch_of(std::string_view body,
                                                                     std::size_t max_events) {
  std::vector<wire_result> out(3);  // what it held is replaced
  const auto parsed = parse_wire_batch(body, max_events, out);
  if (parsed.has_error()) return parsed.error();
  return out;
}

void check_error(std::string_view body, wire_error expected) {
  const auto parsed = parse_wire_event(body);
  BOOST_REQUIRE_MESSAGE(parsed.has_error(), body);
  BOOST_TEST((parsed.error() == expected), body);
  BOOST_TEST(!reason(expected).empty());
}

}  // namespace

BOOST_AUTO_TEST_CASE(event_is_written_byte_for_byte_as_receivers_know_it) {
  std::string out;
  append_wire_json(out, sample);
  BOOST_TEST(
      out ==
      R"({"watched":{"Namespace":"kyma-system","Name":"default"},)"
      R"("watchedGvk":{"group":"operator.kyma-project.io","version":"v1beta2","kind":"Kyma"}})");
}

BOOST_AUTO_TEST_CASE(written_event_parses_back) {
  std::string out;
  append_wire_json(out, sample);
  BOOST_TEST((*parse_wire_event(out) == without_manager(sample)));
  std::string batch;
  append_wire_batch(batch, std::vector<watch_event>{sample, sample});
  BOOST_TEST(batch == '[' + out + ',' + out + ']');
  const auto parsed = batch_of(batch, 2);
  BOOST_REQUIRE(parsed.has_value());
  BOOST_TEST(parsed->size() == 2u);
  std::string empty;
  append_wire_batch(empty, {});
  BOOST_TEST(empty == "[]");
  BOOST_TEST(batch_of(empty, 0)->empty());
}

BOOST_AUTO_TEST_CASE(field_names_match_case_insensitively_and_unknown_names_are_ignored) {
  const auto parsed = parse_wire_event(
      R"({"more":[1],"WATCHED":{"name":"n","NAMESPACE":"s","x":1},"watchedgvk":{"GROUP":"g","Version":"v","kinD":"k"}})");
  BOOST_TEST((*parsed == watch_event{"", {"g", "v", "k"}, {"s", "n"}}));
}

BOOST_AUTO_TEST_CASE(owner_of_an_older_sender_is_ignored) {
  const auto parsed =
      parse_wire_event(R"({"owner":7,"watched":{"Name":"n"},"watchedGvk":{"kind":"k"}})");
  BOOST_TEST((*parsed == watch_event{"", {"", "", "k"}, {"", "n"}}));
}

BOOST_AUTO_TEST_CASE(of_duplicates_the_last_wins) {
  const auto parsed = parse_wire_event(
      R"({"watched":{"Name":"a"},"watched":{"Name":"b","Name":"c"},"watchedGvk":{"kind":"k"}})");
  BOOST_TEST(parsed->watched.name == "c");
}

BOOST_AUTO_TEST_CASE(bad_events_are_refused_each_with_its_reason) {
  using enum wire_error;
  for (const auto* bad : {"", "x", "{", "{}{}", "{\"a\":\xFF}", "[1,]"})
    check_error(bad, malformed_json);
  check_error(std::string(100'000, '['), malformed_json);
  check_error(std::string("{}\0", 3), malformed_json);
  for (const auto* other : {"[]", "1", "null", "\"x\""}) check_error(other, not_an_object);
  const std::string gvk = R"("watchedGvk":{"kind":"k"})";
  const std::string watched = R"("watched":{"Name":"n"})";
  for (const auto* value :
       {"1", "[]", "\"x\"", "true", R"({"Name":1})", R"({"Name":"n","Namespace":[]})"}) {
    check_error("{\"watched\":" + std::string(value) + "," + gvk + "}", wrong_type);
  }
  for (const auto* value :
       {"1", "[]", R"({"kind":1})", R"({"kind":"k","group":{}})", R"({"kind":"k","version":2})"}) {
    check_error("{\"watchedGvk\":" + std::string(value) + "," + watched + "}", wrong_type);
  }
  for (const auto* value : {"null", "{}", R"({"Name":""})", R"({"Name":null,"Namespace":"x"})"}) {
    check_error("{\"watched\":" + std::string(value) + "," + gvk + "}", no_name);
  }
  check_error("{" + watched + "}", no_kind);
  check_error("{" + watched + R"(,"watchedGvk":{"group":"g","version":"v"}})", no_kind);
}

BOOST_AUTO_TEST_CASE(batch_is_accepted_but_for_its_invalid_events) {
  const auto parsed = batch_of(
      R"([{"watched":{"Name":"a"},"watchedGvk":{"kind":"k"}},7,{"watched":{}},{"watched":{"Name":"b"},"watchedGvk":{"kind":"k"}}])",
      10);
  BOOST_REQUIRE(parsed.has_value());
  BOOST_REQUIRE(parsed->size() == 4u);
  BOOST_TEST((*parsed)[0]->watched.name == "a");
  BOOST_TEST(((*parsed)[1].error() == wire_error::not_an_object));
  BOOST_TEST(((*parsed)[2].error() == wire_error::no_name));
  BOOST_TEST((*parsed)[3]->watched.name == "b");
}

/// What is written as ours are is read without the parser. A space before it makes it the parser's.
BOOST_AUTO_TEST_CASE(events_are_read_as_the_parser_reads_them_whatever_is_changed_in_them) {
  {
    std::string written;
    append_wire_batch(written, std::vector(3, sample));
    const auto agree = [&](const std::string& body) {
      const auto one = parse_wire_event(body);
      BOOST_TEST((one == parse_wire_event(" " + body)), body);
      const auto batch = batch_of(body, 3);
      BOOST_TEST((batch == batch_of(" " + body, 3)), body);
      return batch.has_value() || one.has_value();
    };
    BOOST_TEST(agree(written));
    BOOST_TEST(agree(written.substr(1, written.find("},{"))));
    std::size_t accepted = 0;
    for (std::size_t i = 0; i < written.size(); ++i) {
      for (const std::string_view by : {"", "\"", "\\", "\n", ",", "[", "]", "{", "}", "\x7f",
                                        "\xc3", "\xc3\xa4", "null", " ", "x"}) {
        const auto before = written.substr(0, i) + std::string(by);
        accepted += agree(before + written.substr(i + 1));
        accepted += agree(before + written.substr(i));
      }
      agree(written.substr(0, i));
    }
    BOOST_TEST(accepted > written.size());
    const auto& [manager, gvk, watched] = sample;
    for (const auto& name : {watched.name, watched.ns, gvk.kind, gvk.group, gvk.version}) {
      const auto at = written.find("\"" + name + "\"");
      for (const auto& by : {std::string(), std::string(253, 'n'), std::string(254, 'n')}) {
        agree(std::string(written).replace(at + 1, name.size(), by));
      }
    }
    std::string longer;
    append_wire_batch(longer, std::vector(4, sample));
    BOOST_TEST(!agree(longer));
  }
}

BOOST_AUTO_TEST_CASE(batch_that_is_no_array_or_too_long_is_rejected_as_a_whole) {
  BOOST_TEST((batch_of("{}", 9).error() == wire_error::not_an_array));
  BOOST_TEST((batch_of("[", 9).error() == wire_error::malformed_json));
  BOOST_TEST((batch_of("", 9).error() == wire_error::malformed_json));
  BOOST_TEST((batch_of("[1,2,3]", 2).error() == wire_error::too_many_events));
}

BOOST_AUTO_TEST_CASE(line_for_the_terminal_is_one_json_object) {
  std::string out;
  append_event_line(out, "lifecycle-manager", "rt-\"1\"", sample);
  BOOST_TEST(out ==
             R"({"component":"lifecycle-manager","runtimeId":"rt-\"1\"",)"
             R"("watched":{"namespace":"kyma-system","name":"default"},)"
             R"("gvk":{"group":"operator.kyma-project.io","version":"v1beta2","kind":"Kyma"}})"
             "\n");
}

BOOST_AUTO_TEST_CASE(line_of_a_resync_names_its_reason_and_no_object) {
  std::string out;
  append_resync_line(out, "lifecycle-manager", "rt-\"1\"", resync_reason::watch_back);
  BOOST_TEST(out ==
             R"({"component":"lifecycle-manager","runtimeId":"rt-\"1\"","resync":"watch-back"})"
             "\n");
}

BOOST_AUTO_TEST_CASE(hash_covers_every_field_and_its_borders) {
  const watch_event_hash hash;
  std::unordered_set<std::size_t> seen;
  const auto add = [&](const watch_event& event) { BOOST_TEST(seen.insert(hash(event)).second); };
  add({});
  add(sample);
  for (int field = 0; field < 6; ++field) {
    auto event = sample;
    std::string* fields[] = {&event.manager,  &event.gvk.group,  &event.gvk.version,
                             &event.gvk.kind, &event.watched.ns, &event.watched.name};
    *fields[field] += 'x';
    add(event);
  }
  add({"", {}, {"ab", "c"}});
  add({"", {}, {"a", "bc"}});
  add({"", {}, {"", "abc"}});
  add({"", {}, {"", std::string("abc\0", 4)}});
  for (int i = 0; i < 20'000; ++i)
    add({"m", {"g", "v", "k"}, {"ns", "object-" + std::to_string(i)}});
  BOOST_TEST(hash(sample) == hash(watch_event(sample)));
}

BOOST_AUTO_TEST_CASE(event_is_refused_when_a_name_exceeds_253_bytes) {
  watch_event event = sample;
  for (auto* part : {&event.watched.name, &event.watched.ns, &event.gvk.group, &event.gvk.version,
                     &event.gvk.kind}) {
    for (const std::size_t size : {253, 254}) {
      event = sample;
      part->assign(size, 'n');
      std::string out;
      append_wire_json(out, event);
      if (size == 253) {
        BOOST_TEST(parse_wire_event(out).has_value());
      } else {
        check_error(out, wire_error::name_too_long);
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
