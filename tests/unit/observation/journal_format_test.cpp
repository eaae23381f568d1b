#include "rw/reactors/observation/journal_format.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/source_dir.hpp"
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace rw::journal_format_test {
BOOST_AUTO_TEST_SUITE(journal_format)

using namespace rw::observation;

namespace {

const managed_watch specs{"klm", {"op", "*", "kymas"}, "spec", {{"l", "1"}, {"m", ""}}};
const managed_watch others{"other", {"", "v1", "configmaps"}, "spec", {}};
const k8s::resource_type kymas{{"op", "v1", "Kyma"}, "kymas", false};

/// A journal of every kind of record, and where its records end.
struct sample {
  sample() {
    const record_writer to(bytes);
    ends.push_back(to.header("boot", "series"));
    ends.push_back(to.watch(7, specs, kymas));
    ends.push_back(to.left(7, "ns/a"));
    ends.push_back(to.told(7, "ns/a", 10));
    ends.push_back(to.told(7, "ns/b", 20));
    ends.push_back(to.watch(8, others, {}));
    ends.push_back(to.told(8, "ns/c", 30));
    ends.push_back(to.unwatch(8));
    ends.push_back(to.gap("klm", {3, 2}));
    ends.push_back(to.left(7, "ns/b"));
    ends.push_back(to.told(7, "ns/a", absent_state));
  }
  std::string bytes;
  std::vector<std::size_t> ends;
};

/// The content in words.
std::string text_of(const journal_content& content) {
  std::string out = content.series;
  for (const auto& [watch, objects] : content.watches) {
    out += " " + watch.manager + " " + objects.type.gvk.kind;
    const std::map<std::string, state_hash> sorted(objects.states.begin(), objects.states.end());
    for (const auto& [key, state] : sorted) out += " " + key + "=" + std::to_string(state);
  }
  for (const auto& [manager, counts] : content.gaps) {
    out +=
        " gap " + manager + " " + std::to_string(counts.raised) + "/" + std::to_string(counts.told);
  }
  return out;
}

std::string reason_of(std::string_view bytes) {
  return decode_journal(bytes, "boot").reason;
}

}  // namespace

BOOST_AUTO_TEST_CASE(latest_record_of_each_fact_is_read) {
  const auto content = decode_journal(sample().bytes, "boot");
  BOOST_TEST(content.complete);
  BOOST_TEST(text_of(content) == "series klm Kyma ns/b=0 gap klm 3/2");
  BOOST_TEST((content.watches.begin()->first == specs));
  BOOST_TEST((content.watches.at(specs).type == kymas));
  BOOST_TEST(content.watches.at(specs).number == 7U);
}

BOOST_AUTO_TEST_CASE(journal_torn_at_any_byte_has_the_records_before) {
  const sample whole;
  std::size_t records = 0;
  std::string expected;
  for (std::size_t size = 0; size <= whole.bytes.size(); ++size) {
    const auto content = decode_journal(std::string_view(whole.bytes).substr(0, size), "boot");
    BOOST_TEST(content.complete == (size >= whole.ends.front()));
    if (size == whole.ends.at(records)) {
      expected = text_of(content);
      ++records;
    }
    BOOST_TEST(text_of(content) == expected);
  }
  BOOST_TEST(records == whole.ends.size());
  BOOST_TEST(reason_of("") == "it has no header");
}

BOOST_AUTO_TEST_CASE(flipped_bit_is_noticed) {
  const sample whole;
  for (std::size_t i = 0; i < whole.bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      auto bytes = whole.bytes;
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      const auto content = decode_journal(bytes, "boot");
      BOOST_TEST(!content.complete);
      BOOST_TEST(content.reason != "");
    }
  }
}

BOOST_AUTO_TEST_CASE(records_before_a_damaged_one_are_read) {
  sample whole;
  whole.bytes[whole.ends.at(5) + 10] ^= 1;
  const auto content = decode_journal(whole.bytes, "boot");
  BOOST_TEST(content.reason == "the content of a record is damaged");
  BOOST_TEST(text_of(content) == "series klm Kyma ns/a=10 ns/b=20 other ");
}

BOOST_AUTO_TEST_CASE(journal_of_another_boot_is_a_hint) {
  const auto bytes = sample().bytes;
  for (const auto* boot : {"other", ""}) {
    const auto content = decode_journal(bytes, boot);
    BOOST_TEST(!content.complete);
    BOOST_TEST(content.reason == "the node was restarted since");
    BOOST_TEST(text_of(content) == "series klm Kyma ns/b=0 gap klm 3/2");
  }
  std::string without;
  record_writer(without).header("", "series");
  BOOST_TEST(!decode_journal(without, "").complete, "without a boot id it cannot be known");
}

BOOST_AUTO_TEST_CASE(watch_defined_again_keeps_the_objects_of_the_same_watcher_alone) {
  std::string bytes;
  const record_writer to(bytes);
  to.header("boot", "s");
  to.watch(1, specs, {});
  to.told(1, "a", 5);
  to.watch(1, specs, kymas);
  BOOST_TEST(text_of(decode_journal(bytes, "boot")) == "s klm Kyma a=5");
  to.watch(1, others, {});
  BOOST_TEST(text_of(decode_journal(bytes, "boot")) == "s other ");
}

/// A Watcher that was removed and comes back has another number.
BOOST_AUTO_TEST_CASE(watcher_keeps_its_objects_with_another_number) {
  std::string bytes;
  const record_writer to(bytes);
  to.header("boot", "s");
  to.watch(9, specs, kymas);
  to.told(9, "ns/a", 10);
  to.told(9, "ns/b", 20);
  to.watch(3, specs, kymas);
  to.told(3, "ns/b", 21);
  const auto content = decode_journal(bytes, "boot");
  BOOST_TEST(text_of(content) == "s klm Kyma ns/a=10 ns/b=21");
  BOOST_TEST(content.watches.at(specs).number == 3U);
}

BOOST_AUTO_TEST_CASE(record_of_an_undefined_number_has_no_effect) {
  std::string bytes;
  const record_writer to(bytes);
  to.header("boot", "s");
  to.left(1, "a");
  to.told(1, "a", 5);
  to.unwatch(1);
  const auto content = decode_journal(bytes, "boot");
  BOOST_TEST(content.complete);
  BOOST_TEST(text_of(content) == "s");
}

BOOST_AUTO_TEST_CASE(header_comes_once_and_first) {
  std::string bytes;
  const record_writer to(bytes);
  to.left(1, "a");
  to.header("boot", "s");
  BOOST_TEST(reason_of(bytes) == "its header is not the first record");
  bytes.clear();
  to.header("boot", "s");
  to.header("boot", "t");
  BOOST_TEST(reason_of(bytes) == "its header is not the first record");
}

BOOST_AUTO_TEST_CASE(encoded_content_is_read_as_it_was) {
  auto content = decode_journal(sample().bytes, "boot");
  const auto expected = text_of(content);
  const auto again = decode_journal(encode_journal(content, "boot"), "boot");
  BOOST_TEST(again.complete);
  BOOST_TEST(text_of(again) == expected);
  BOOST_TEST(again.watches.at(specs).number == 7U);
}

BOOST_AUTO_TEST_CASE(inherited_objects_are_unknown_up_to_then) {
  std::string bytes;
  const record_writer to(bytes);
  to.header("boot", "s");
  to.watch(1, specs, kymas);
  to.told(1, "ns/a", 10);
  to.watch(specs, {.number = 9, .type = kymas, .outdated = true, .inherited = true});
  to.told(9, "ns/b", 20);
  const auto content = decode_journal(bytes, "boot");
  BOOST_TEST(text_of(content) == "s klm Kyma ns/a=0 ns/b=20");
  BOOST_TEST(content.watches.at(specs).inherited);
  const auto again = decode_journal(encode_journal(content, "boot"), "boot");
  BOOST_TEST(text_of(again) == text_of(content));
  BOOST_TEST(again.watches.at(specs).inherited);
}

BOOST_AUTO_TEST_CASE(text_longer_than_its_length_can_say_is_cut) {
  std::string bytes;
  const record_writer to(bytes);
  to.header("boot", "s");
  to.gap(std::string(70'000, 'x'), {1, 1});
  const auto content = decode_journal(bytes, "boot");
  BOOST_TEST(content.complete);
  BOOST_TEST(content.gaps.begin()->first.size() == 0xFFFFU);
}

BOOST_AUTO_TEST_CASE(old_ledger_is_a_hint) {
  std::ifstream in(rw::test::source_file("tests/fuzz/corpus/journal/old-ledger"), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const auto content = decode_journal(bytes, "boot");
  BOOST_TEST(content.old_format);
  BOOST_TEST(!content.complete);
  BOOST_TEST(text_of(content) == " klm  ns/a=10 ns/b=0");
  for (std::size_t size = 25; size < bytes.size(); ++size) {
    const auto torn = decode_journal(std::string_view(bytes).substr(0, size), "boot");
    BOOST_TEST(torn.reason == "it is a damaged ledger");
    BOOST_TEST(torn.watches.empty());
  }
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::journal_format_test
