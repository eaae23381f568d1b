#include "rw/reactors/shared/managers_file.hpp"

#include "rw/reactors/events/managers_reload.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/tls/scratch.hpp"
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace rw::watcher_installer_test {
BOOST_AUTO_TEST_SUITE(managers_file)

namespace {

managed_watch kymas_of(std::string manager, std::string field = "spec") {
  return {std::move(manager), {"operator.kyma-project.io", "*", "kymas"}, std::move(field), {}};
}

std::string entry_with(const std::string& fields) {
  return R"({"version":1,"watches":[{"manager":"klm","group":"","version":"v1",)"
         R"("resource":"pods","field":"spec"},{)" +
         fields + "}]}";
}

std::string error_of(const std::string& text) {
  const auto parsed = parse_managers(text);
  return parsed ? "none" : parsed.error().message;
}

/// A watch with one field replaced.
std::string with(const std::string& name, const std::string& value) {
  std::string out;
  for (const auto& [key, good] :
       std::vector<std::pair<std::string, std::string>>{{"manager", "\"klm\""},
                                                        {"group", "\"operator.kyma-project.io\""},
                                                        {"version", "\"*\""},
                                                        {"resource", "\"kymas\""},
                                                        {"field", "\"spec\""},
                                                        {"matchLabels", R"({"a.b/c":"d"})"}}) {
    const auto& shown = key == name ? value : good;
    if (!shown.empty()) out += (out.empty() ? "\"" : ",\"") + key + "\":" + shown;
  }
  return entry_with(out);
}

}  // namespace

BOOST_AUTO_TEST_CASE(parse_returns_what_render_wrote) {
  auto labelled = kymas_of("klm", "status");
  labelled.labels = {{"operator.kyma-project.io/watched-by", "kyma"}, {"empty", ""}};
  const known_managers all({kymas_of("other", "scale"), labelled, kymas_of("klm")});
  const auto text = render_managers(all);
  const auto parsed = parse_managers(text);
  BOOST_REQUIRE(parsed.has_value());
  BOOST_TEST((*parsed == all));
  BOOST_TEST(render_managers(*parsed) == text);
  BOOST_TEST(render_managers(known_managers()) == "{\"version\":1,\"watches\":[]}\n");
}

BOOST_AUTO_TEST_CASE(render_writes_the_documented_format) {
  auto watch = kymas_of("lifecycle-manager");
  watch.labels = {{"operator.kyma-project.io/watched-by", "kyma"}};
  BOOST_TEST(render_managers(known_managers({watch})) ==
             R"({"version":1,"watches":[{"manager":"lifecycle-manager",)"
             R"("group":"operator.kyma-project.io","version":"*","resource":"kymas",)"
             R"("field":"spec","matchLabels":{"operator.kyma-project.io/watched-by":"kyma"}}]})"
             "\n");
}

BOOST_AUTO_TEST_CASE(find_returns_subresources_other_than_status_of_a_known_manager) {
  const known_managers all({kymas_of("a"), kymas_of("b", "status"), kymas_of("b", "scale")});
  BOOST_REQUIRE(all.find("a") != nullptr);
  BOOST_TEST(all.find("a")->empty());
  BOOST_REQUIRE(all.find("b") != nullptr);
  BOOST_TEST(*all.find("b") == std::vector<std::string>{"scale"}, boost::test_tools::per_element());
  BOOST_TEST(all.find("c") == nullptr);
  BOOST_TEST(all.find("") == nullptr);
}

BOOST_AUTO_TEST_CASE(merge_keeps_every_watch_once) {
  const known_managers a({kymas_of("a"), kymas_of("both")});
  const known_managers b({kymas_of("b"), kymas_of("both")});
  BOOST_TEST(merge(a, b).watches().size() == 3U);
  BOOST_TEST((merge(a, b) == merge(b, a)));
}

BOOST_AUTO_TEST_CASE(parse_names_the_field_that_is_wrong) {
  BOOST_TEST(error_of("").starts_with("it is not JSON, from byte 1 on "));
  BOOST_TEST(error_of("[]") == "it must be a JSON object");
  BOOST_TEST(error_of("{}") == "version must be 1");
  BOOST_TEST(error_of(R"({"version":2,"watches":[]})") == "version must be 1");
  BOOST_TEST(error_of(R"({"version":"1","watches":[]})") == "version must be 1");
  BOOST_TEST(error_of(R"({"version":1})") == "watches must be an array of at most 4096 objects");
  BOOST_TEST(error_of(R"({"version":1,"watches":[1]})") == "watches[0] must be an object");
  BOOST_TEST(error_of(with("", "")) == "none");
  BOOST_TEST(error_of(with("matchLabels", "")) == "none");
  for (const std::string field : {"manager", "group", "version", "resource", "field"}) {
    for (const std::string value : {"", "1", "null", "\"-\"", "\"a/b\""}) {
      BOOST_TEST(error_of(with(field, value)).starts_with("watches[1]." + field + " must be "),
                 error_of(with(field, value)));
    }
  }
  for (const std::string value : {"[]", "null", R"({"a":1})", R"({"/":"b"})", R"({"a":"/"})"}) {
    BOOST_TEST(error_of(with("matchLabels", value)) ==
               "watches[1].matchLabels must be an object of labels");
  }
}

BOOST_AUTO_TEST_CASE(parse_rejects_what_is_beyond_the_limits) {
  const auto spaces = std::string(managers_file_bytes, ' ') + R"({"version":1,"watches":[]})";
  BOOST_TEST(error_of(spaces) == "it is larger than 524288 bytes");
  std::string many = R"({"version":1,"watches":[0)";
  for (std::size_t i = 0; i < managers_file_watches; ++i) many += ",0";
  BOOST_TEST(error_of(many + "]}") == "watches must be an array of at most 4096 objects");
  BOOST_TEST(error_of(std::string(100'000, '[')) == "it nests too deep");
  std::vector<managed_watch> watches;
  for (std::size_t i = 0; i <= managers_file_watches; ++i) {
    watches.push_back(kymas_of("m" + std::to_string(i)));
  }
  BOOST_TEST(!fits_managers_file(known_managers(watches)));
  watches.pop_back();
  BOOST_TEST(fits_managers_file(known_managers(watches)));
  for (auto& each : watches) each.labels = {{std::string(60, 'a'), ""}};
  BOOST_TEST(!fits_managers_file(known_managers(watches)));  // in bytes
}

BOOST_AUTO_TEST_CASE(parse_ignores_fields_of_later_writers) {
  BOOST_TEST(
      error_of(R"({"version":1,"more":{},"watches":[{"manager":"a","group":"","version":"v1",)"
               R"("resource":"pods","field":"spec","probe":[1]}]})") == "none");
}

namespace {

/// A reloader at work on an io_context that the test drives.
struct reloading {
  explicit reloading(const std::string& file)
      : it(context.get_executor(), file, in_use, log, numbers,
           {.quiet = std::chrono::milliseconds(10)}) {
    boost::asio::co_spawn(context, it.run(),
                          boost::asio::bind_cancellation_slot(
                              stop.slot(), [this](std::exception_ptr) { ended = true; }));
    context.poll();  // it watches now
  }
  ~reloading() {
    stop.emit(boost::asio::cancellation_type::total);
    BOOST_TEST(until([this] { return ended; }));
  }

  template <class Condition>
  bool until(Condition holds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!holds() && std::chrono::steady_clock::now() < end) context.run_one_until(end);
    return holds();
  }
  bool knows(std::string_view manager) const {
    const auto now = in_use.current();
    return now && now->find(manager) != nullptr;
  }

  boost::asio::io_context context{1};
  std::string logged;
  core::logger log{core::log_level::info, [this](std::string_view line) { logged += line; }};
  core::metrics numbers;
  managers_in_use in_use;
  managers_reloader it;
  boost::asio::cancellation_signal stop;
  bool ended = false;
};

/// A volume as kubelet keeps it: the file is a link into `..data`, which is a link that is swapped.
void publish(const tls::test::scratch& dir, const std::string& name, const std::string& contents) {
  dir.write(name + "/managers.json", contents);
  std::filesystem::create_symlink(name, dir.path() / "..data_tmp");
  std::filesystem::rename(dir.path() / "..data_tmp", dir.path() / "..data");
  const auto link = dir.path() / "managers.json";
  if (!std::filesystem::is_symlink(link)) {
    std::filesystem::create_symlink("..data/managers.json", link);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(file_of_another_growth_has_another_digest) {
  const known_managers all({kymas_of("first")});
  const auto one = render_managers(all, "2026-03-01T00:00:00.000000Z");
  const auto other = render_managers(all, "2026-03-01T00:01:00.000000Z");
  const auto read = parse_managers(one);
  BOOST_TEST((read && *read == all));
  BOOST_TEST(managers_digest(one) != managers_digest(other));
  managers_in_use used;
  used.replace(all, other);
  BOOST_TEST(used.digest() == managers_digest(other));
}

BOOST_AUTO_TEST_CASE(reloader_follows_kubelet_and_keeps_the_last_valid_file) {
  const tls::test::scratch dir;
  publish(dir, "..1", render_managers(known_managers({kymas_of("first")})));
  reloading r(dir.in("managers.json"));
  BOOST_TEST(r.knows("first"));
  publish(dir, "..2", render_managers(known_managers({kymas_of("second")})));
  BOOST_TEST(r.until([&] { return r.knows("second"); }));
  BOOST_TEST(!r.knows("first"));
  publish(dir, "..3", R"({"version":1,"watches":[{"manager":""}]})");
  BOOST_TEST(r.until([&] { return r.logged.find("watches[0].manager") != std::string::npos; }));
  BOOST_TEST(r.logged.find("the last valid one") != std::string::npos);
  BOOST_TEST(r.knows("second"));
  publish(dir, "..4", render_managers(known_managers({kymas_of("third")})));
  BOOST_TEST(r.until([&] { return r.knows("third"); }));
  const auto numbers = core::expose(r.numbers);
  BOOST_TEST(numbers.find("rw_managers_reloads_total{outcome=\"used\"} 3") != std::string::npos);
  BOOST_TEST(numbers.find("rw_managers_reloads_total{outcome=\"refused\"} 1") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(reloader_knows_every_manager_until_a_file_is_valid) {
  const tls::test::scratch dir;
  reloading r(dir.in("managers.json"));
  BOOST_TEST(!r.in_use.current());
  BOOST_TEST(r.logged.find("managers' file refused") != std::string::npos);
  dir.write("managers.json", "");
  BOOST_TEST(r.until([&] { return r.logged.find("file empty") != std::string::npos; }));
  BOOST_TEST(!r.in_use.current());
  dir.write("managers.json", render_managers(known_managers()));
  BOOST_TEST(r.until([&] { return r.in_use.current() != nullptr; }));
  BOOST_TEST(!r.knows("first"));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::watcher_installer_test
