#include "rw/k8s/objects/base64.hpp"

#include <boost/json.hpp>

#include "answer_paths.hpp"
#include "backend.hpp"
#include "tests/unit/http/host.hpp"
#include "tests/unit/source_dir.hpp"
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(replay)

// Answers of kube-apiserver 1.34, recorded request by request: the folder that RW_TEST_KUBE names
// has them, and says in its README.md how they are to be replayed. What the embedded server answers
// otherwise is listed in replay_differences.txt, exactly.

namespace {

using namespace rw;
using namespace rw::conformance;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

/// Time for a condition to become true that a controller of the server's makes true.
constexpr auto patience = 2s;

const json& nothing() {
  static const json value;
  return value;
}

const json& field(const json& of, std::string_view name) {
  const auto* const found = of.as_object().if_contains(name);
  return found != nullptr ? *found : nothing();
}

std::string as_text(const json& value) {
  return value.is_string() ? std::string(value.get_string()) : serialize(value);
}

class player {
 public:
  /// Returns how the answer differs from the recorded one; empty if it does not.
  std::vector<std::string> play(const json& one) {
    std::vector<std::string> found;
    try {
      for (const auto& step : field(one, "setup").as_array()) prepare(step, found);
      compare(field(one, "answer"), send(field(one, "request")), found);
    } catch (const std::runtime_error& no_answer) {
      found.emplace_back(no_answer.what());
    }
    return found;
  }

 private:
  std::string filled(std::string text) const {
    for (const auto& [name, value] : captured_) {
      const auto mark = "${" + name + "}";
      for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) {
        text.replace(at, mark.size(), value);
      }
    }
    return text;
  }

  backend::answer send(const json& request) const {
    http::request what;
    what.method = as_text(field(request, "method"));
    what.target = filled(as_text(field(request, "path")));
    if (const auto& headers = field(request, "headers"); headers.is_object()) {
      for (const auto& [name, value] : headers.as_object()) {
        const auto values = value.is_array() ? value.as_array() : boost::json::array{value};
        for (const auto& each : values) what.headers.add(name, filled(as_text(each)));
      }
    }
    if (const auto& bytes = field(request, "body_base64"); bytes.is_string()) {
      what.body = k8s::base64_decode(bytes.get_string()).value();
    } else if (const auto& text = field(request, "body_text"); text.is_string()) {
      what.body = filled(as_text(text));
    } else if (const auto& body = field(request, "body"); !body.is_null()) {
      what.body = filled(serialize(body));
    }
    return backend::get().http_on("replay", std::move(what));
  }

  /// What is not as expected of one answer.
  std::vector<std::string> tried(const json& step) {
    std::vector<std::string> wrong;
    const auto got = send(step);
    const auto expected = field(step, "expect").to_number<unsigned>();
    if (got.status != expected) {
      wrong.push_back("setup " + as_text(field(step, "method")) + " " +
                      as_text(field(step, "path")) + ": status " + std::to_string(got.status) +
                      " instead of " + std::to_string(expected) + ": " + got.body);
    }
    compare_fields(field(step, "fields"), got, wrong);
    if (const auto& names = field(step, "capture"); names.is_object()) {
      for (const auto& [name, path] : names.as_object()) {
        const auto value = part(got, as_text(path));
        captured_[name] = value ? as_text(*value) : std::string();
      }
    }
    return wrong;
  }

  void prepare(const json& step, std::vector<std::string>& found) {
    const bool repeats = field(step, "until") == json(true);
    std::vector<std::string> wrong;
    const auto done = [&] {
      wrong = tried(step);
      return wrong.empty() || !repeats;
    };
    http::test::eventually(done, patience);
    found.insert(found.end(), wrong.begin(), wrong.end());
  }

  static std::optional<json> part(const backend::answer& of, const std::string& path) {
    if (path == "body_length") return json(of.body.size());
    if (!path.starts_with('$')) return protobuf_at(of.body, path);
    boost::system::error_code error;
    auto whole = boost::json::parse(of.body, error);
    if (path.starts_with("$.frames")) {
      boost::json::array frames;
      for (std::string_view rest = of.body; !rest.empty();) {
        const auto end = std::min(rest.find('\n'), rest.size() - 1);
        frames.push_back(boost::json::parse(rest.substr(0, end + 1), error));
        rest.remove_prefix(end + 1);
      }
      error = {};
      whole = {{"frames", std::move(frames)}};
    }
    if (error) return std::nullopt;
    return value_at(whole, path);
  }

  void compare_fields(const json& fields, const backend::answer& got,
                      std::vector<std::string>& found) const {
    if (!fields.is_object()) return;
    for (const auto& [path, value] : fields.as_object()) {
      const auto is = part(got, path);
      const bool by_text =
          value.is_string() && std::string_view(value.get_string()).starts_with("${");
      const auto whole = boost::json::parse(filled(serialize(value)));
      if (is && (by_text ? as_text(*is) == filled(as_text(value)) : *is == whole)) continue;
      found.push_back(std::string(path) + ": " + (is ? serialize(*is) : "nothing") +
                      " instead of " + filled(serialize(value)));
    }
  }

  void compare(const json& recorded, const backend::answer& got,
               std::vector<std::string>& found) const {
    const auto check = [&](const std::string& what, const json& is, const json& expected) {
      if (is == expected) return;
      found.push_back(what + ": " + serialize(is) + " instead of " + serialize(expected));
    };
    check("status", got.status, field(recorded, "status"));
    check("content type", boost::json::string(got.headers.get("content-type")),
          field(recorded, "content_type"));
    boost::system::error_code error;
    const auto body = boost::json::parse(got.body, error);
    const bool failed = !error && got.status >= 400 && body.is_object();
    boost::json::array causes;
    if (const auto* all = failed ? find(body, "/details/causes") : nullptr; all != nullptr) {
      for (const auto& one : all->as_array()) {
        causes.push_back({{"reason", text(one, "/reason")}, {"field", text(one, "/field")}});
      }
    }
    const auto* const reason = failed ? find(body, "/reason") : nullptr;
    auto told = reason != nullptr ? *reason : nothing();
    const bool in_protobuf =
        http::iequals(got.headers.get("content-type"), "application/vnd.kubernetes.protobuf");
    if (in_protobuf && got.status >= 400) {
      told = protobuf_at(got.body, "pb:2.4").value_or(json());
      // Of the details' causes the recorded answers have one at most.
      const auto why = protobuf_at(got.body, "pb:2.5.4.1");
      if (why) {
        causes.push_back(
            {{"reason", *why}, {"field", protobuf_at(got.body, "pb:2.5.4.3").value_or(json(""))}});
      }
    }
    check("reason", told, field(recorded, "reason"));
    check("causes", causes, recorded_causes(recorded));
    std::uint64_t warnings = 0;
    for (std::size_t i = 0; i < got.headers.size(); ++i) {
      if (http::iequals(got.headers[i].name, "warning")) ++warnings;
    }
    const auto& expected = field(recorded, "warnings");
    check("warnings", warnings, expected.is_null() ? json(0) : expected);
    compare_fields(field(recorded, "fields"), got, found);
    if (const auto& absent = field(recorded, "absent"); absent.is_array()) {
      for (const auto& path : absent.as_array()) {
        if (part(got, as_text(path))) found.push_back(as_text(path) + " is there");
      }
    }
    if (const auto& match = field(recorded, "match"); match.is_object()) {
      for (const auto& [path, pattern] : match.as_object()) {
        const auto is = part(got, path);
        if (is && std::regex_search(as_text(*is), std::regex(as_text(pattern)))) continue;
        found.push_back(std::string(path) + ": " + (is ? serialize(*is) : "nothing") +
                        " does not match " + as_text(pattern));
      }
    }
    if (!found.empty()) found.push_back("answer: " + got.body.substr(0, 1500));
  }

  static json recorded_causes(const json& recorded) {
    boost::json::array made;
    for (const auto& one : field(recorded, "causes").as_array()) {
      made.push_back({{"reason", text(one, "/reason")}, {"field", text(one, "/field")}});
    }
    return made;
  }

  std::map<std::string, std::string> captured_;
};

std::set<std::string> known_differences() {
  std::ifstream file(rw::test::source_file("tests/conformance/replay_differences.txt"));
  BOOST_REQUIRE(file);
  std::set<std::string> all;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && !line.starts_with('#')) all.insert(line.substr(0, line.find(' ')));
  }
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(server_answers_as_recorded_except_for_listed_cases) {
  const auto* const folder = std::getenv("RW_TEST_KUBE");
  if (folder == nullptr) {
    std::cout << "replay: skipped, RW_TEST_KUBE names no folder of recorded answers\n";
    return;
  }
  std::ifstream file(fs::path(folder) / "cases.jsonl");
  BOOST_REQUIRE_MESSAGE(file, folder << " has no cases.jsonl");
  auto known = known_differences();
  player server;
  std::map<std::string, std::pair<unsigned, unsigned>> passed;
  for (std::string line; std::getline(file, line);) {
    const auto one = parse(line);
    const auto id = text(one, "/id");
    const auto found = server.play(one);
    auto& [good, all] = passed[text(one, "/group")];
    ++all;
    if (found.empty()) ++good;
    const bool listed = known.erase(id) > 0;
    BOOST_TEST(!(listed && found.empty()), id << " passes: take it off replay_differences.txt");
    for (const auto& what : found) {
      if (listed) {
        BOOST_TEST_MESSAGE(id << ": " << what);
      } else {
        BOOST_ERROR(id << ": " << what);
      }
    }
  }
  for (const auto& id : known) BOOST_ERROR(id << " is listed, and no case");
  std::cout << "replay:";
  for (const auto& [group, count] : passed) {
    std::cout << ' ' << group << ' ' << count.first << '/' << count.second;
  }
  std::cout << '\n';
}

BOOST_AUTO_TEST_SUITE_END()
