#include "rw/k8s/devserver/builtin_table.hpp"
#include "rw/k8s/devserver/protobuf.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/json.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

BOOST_AUTO_TEST_SUITE(golden)

namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using namespace rw::k8s;

std::string contents(const fs::path& file) {
  std::ifstream from(file, std::ios::binary);
  BOOST_REQUIRE_MESSAGE(from, file << " can't be read");
  return {std::istreambuf_iterator<char>(from), {}};
}

std::string escaped(const std::string& bytes, std::ptrdiff_t at) {
  std::string made;
  const auto from = static_cast<std::size_t>(std::max<std::ptrdiff_t>(at - 40, 0));
  for (const char c : std::string_view(bytes).substr(from, 80)) made += c < ' ' ? '?' : c;
  return made;
}

/// The first path at which two values differ; empty if they do not.
std::string difference(const json::value& a, const json::value& b, const std::string& at) {
  if (a.is_object() && b.is_object()) {
    for (const auto& [name, value] : a.get_object()) {
      const auto path = at + "." + std::string(name);
      const auto* const other = b.get_object().if_contains(name);
      if (other == nullptr) return path + " is missing";
      if (auto found = difference(value, *other, path); !found.empty()) return found;
    }
    for (const auto& [name, value] : b.get_object()) {
      if (!a.get_object().contains(name)) return at + "." + std::string(name) + " is too much";
    }
    return {};
  }
  if (a.is_array() && b.is_array() && a.get_array().size() == b.get_array().size()) {
    for (std::size_t i = 0; i < a.get_array().size(); ++i) {
      const auto path = at + "[" + std::to_string(i) + "]";
      auto found = difference(a.get_array()[i], b.get_array()[i], path);
      if (!found.empty()) return found;
    }
    return {};
  }
  return a == b ? "" : at + ": " + serialize(b) + " instead of " + serialize(a);
}

}  // namespace

/// The objects that Kubernetes' own tests hold its encodings to (k8s.io/api, testdata/HEAD): each
/// field of each kind has a value.
BOOST_AUTO_TEST_CASE(published_objects_are_the_same_in_json_and_protobuf) {
  const auto* const folder = std::getenv("RW_TEST_TYPES");
  if (folder == nullptr) {
    std::cout << "golden: skipped, RW_TEST_TYPES names no folder of Kubernetes' Go packages\n";
    return;
  }
  const auto all = fs::path(folder) / "usr/share/gocode/src/k8s.io/api/testdata/HEAD";
  unsigned converted = 0;
  unsigned unknown = 0;
  for (const auto& entry : fs::directory_iterator(all)) {
    if (entry.path().extension() != ".pb") continue;
    const auto name = entry.path().stem().string();
    const auto object = json::parse(contents(fs::path(entry.path()).replace_extension(".json")));
    const auto bytes = contents(entry.path());
    const auto read = devserver::decode_protobuf(bytes);
    if (devserver::find_builtin_type(find_string(object, {"apiVersion"}),
                                     find_string(object, {"kind"})) == nullptr) {
      BOOST_TEST((read.has_error() && read.error().code == 415), name);
      ++unknown;
      continue;
    }
    BOOST_REQUIRE_MESSAGE(read.has_value(), name << ": " << read.error().message);
    BOOST_TEST(difference(object, *read, "") == "", name);
    std::string written;
    BOOST_TEST(devserver::append_protobuf(written, object), name);
    const auto at = std::ranges::mismatch(written, bytes).in1 - written.begin();
    BOOST_TEST((written == bytes), name << " has other bytes from " << at << ": "
                                        << escaped(written, at) << " instead of "
                                        << escaped(bytes, at));
    ++converted;
  }
  std::cout << "golden: " << converted << " objects converted, " << unknown
            << " of versions that are not served rejected\n";
  BOOST_TEST(converted == 74);
}

BOOST_AUTO_TEST_SUITE_END()
