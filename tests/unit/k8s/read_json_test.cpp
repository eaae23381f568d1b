#include "rw/k8s/objects/read_json.hpp"

#include <boost/container/pmr/memory_resource.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <malloc.h>
#include <new>
#include <sstream>
#include <string>

BOOST_AUTO_TEST_SUITE(read_json)

namespace {

namespace json = boost::json;
using namespace rw::k8s;

/// Memory as glibc gives it, with the most at once.
class counting final : public boost::container::pmr::memory_resource {
 public:
  std::size_t peak() const noexcept { return peak_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t) override {
    void* const made = std::malloc(bytes);
    if (made == nullptr) throw std::bad_alloc();
    now_ += malloc_usable_size(made) + 8;
    peak_ = std::max(peak_, now_);
    return made;
  }
  void do_deallocate(void* memory, std::size_t, std::size_t) override {
    now_ -= malloc_usable_size(memory) + 8;
    std::free(memory);
  }
  bool do_is_equal(const boost::container::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  std::size_t now_ = 0;
  std::size_t peak_ = 0;
};

std::string repeated(const std::string& element, std::size_t times) {
  std::string out = "[";
  for (std::size_t i = 0; i < times; ++i) out += element + ",";
  return out + "0]";
}

std::string object_of(std::size_t members) {
  std::string out = "{";
  for (std::size_t i = 0; i < members; ++i)
    out += (i > 0 ? ",\"k" : "\"k") + std::to_string(i) + "\":\"a value of some length\"";
  return out + "}";
}

std::string error_of(const std::string& text) {
  const auto read = rw::k8s::read_json(text);
  return read ? "" : read.error().message;
}

}  // namespace

BOOST_AUTO_TEST_CASE(cost_is_at_least_what_boost_json_takes) {
  const std::string shapes[] = {repeated("0", 10'000),
                                repeated("[0]", 10'000),
                                repeated("[]", 10'000),
                                repeated("{}", 10'000),
                                repeated(R"({"":0})", 10'000),
                                repeated(R"("a longer string, on the heap")", 10'000),
                                repeated(R"({"a":{"b":[1,"2",true,null]}})", 5'000),
                                object_of(3'000),
                                std::string(200, '[') + std::string(200, ']')};
  for (const auto& text : shapes) {
    counting memory;
    {
      // As json::parse does, but for the parser's first buffer, which is on the stack.
      json::parse_options options;
      options.max_depth = 256;
      json::value value = json::parse(text, &memory, options);
      static_cast<void>(value);
    }
    const auto counted = json_cost_of(text, 256).memory;
    BOOST_TEST(counted >= memory.peak(), text.substr(0, 40)
                                             << ": " << counted << " of " << memory.peak());
  }
}

BOOST_AUTO_TEST_CASE(text_that_is_mostly_values_is_refused_before_anything_is_built) {
  BOOST_TEST(error_of(repeated("[0]", 100'000)) == "has more values than its length is good for");
  BOOST_TEST(error_of(repeated("0", 200'000)) == "has more values than its length is good for");
  BOOST_TEST(error_of(repeated(R"({"":0})", 100'000)) ==
             "has more values than its length is good for");
  BOOST_TEST(error_of(repeated("0", 10'000)) == "");
  BOOST_TEST(error_of(repeated("[0]", 5'000)) == "");
}

BOOST_AUTO_TEST_CASE(objects_of_too_many_members_are_refused) {
  BOOST_TEST(error_of(object_of(8'192)) == "");
  BOOST_TEST(error_of(object_of(8'193)) == "has objects of too many members");
  std::string many = "[";
  for (int i = 0; i < 5; ++i) many += object_of(4'000) + ",";
  BOOST_TEST(error_of(many + "0]") == "has objects of too many members");
}

BOOST_AUTO_TEST_CASE(depth_is_bounded) {
  BOOST_TEST(error_of(std::string(256, '[') + std::string(256, ']')) == "");
  BOOST_TEST(error_of(std::string(257, '[') + std::string(257, ']')) == "nests too deep");
}

BOOST_AUTO_TEST_CASE(text_that_is_no_json_says_where) {
  BOOST_TEST(error_of("{\"a\": 1} x").starts_with("is not JSON, from byte 10 on"));
  BOOST_TEST(error_of("[1,,2]").starts_with("is not JSON, from byte 4 on (syntax error"));
  BOOST_TEST(error_of("").starts_with("is not JSON, from byte 1 on (incomplete JSON"));
  for (const std::string odd : {"\"\\", "\"", "{\"a", "}}}]", ":::", "\"a\"\"b\"", "[\"a\\"}) {
    BOOST_TEST(error_of(odd).starts_with("is not JSON"), odd);
  }
}

BOOST_AUTO_TEST_CASE(recorded_answers_of_a_real_api_server_are_within_the_budget) {
  const char* const folder = std::getenv("RW_TEST_KUBE");
  if (folder == nullptr) {
    BOOST_TEST_MESSAGE("skipped: RW_TEST_KUBE names no folder");
    return;
  }
  std::size_t files = 0;
  for (const auto& each : std::filesystem::recursive_directory_iterator(folder)) {
    if (each.path().extension() != ".json") continue;
    std::ifstream file(each.path());
    std::stringstream text;
    text << file.rdbuf();
    BOOST_TEST(over_budget(text.str()) == "", each.path());
    ++files;
  }
  std::ifstream cases(std::filesystem::path(folder) / "cases.jsonl");
  for (std::string line; std::getline(cases, line); ++files)
    BOOST_TEST(over_budget(line) == "", line.substr(0, 100));
  BOOST_TEST(files > 0u);
}

BOOST_AUTO_TEST_SUITE_END()
