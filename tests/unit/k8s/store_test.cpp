#include "rw/k8s/cache/store.hpp"

#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/k8s/samples.hpp"
#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(store)

using namespace rw::k8s::test;
using rw::k8s::object;

namespace {

void by_value(const object& from, std::vector<std::string>& values) {
  values.emplace_back(from.parse().at("data").at("k").as_string());
}

object valued(const std::string& name, const std::string& version, const std::string& value) {
  return object::from_text(configmap(name, version, {}, value));
}

std::vector<std::string> names(const std::vector<object>& objects) {
  std::vector<std::string> all;
  for (const auto& each : objects) all.emplace_back(each.name());
  std::ranges::sort(all);
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(object_is_found_by_namespace_and_name) {
  rw::k8s::store store;
  BOOST_TEST(!store.get("default", "a"));
  store.put(configmap_object("a", "1"));
  BOOST_TEST(store.get("default", "a").resource_version() == "1");
  BOOST_TEST(store.get({"default", "a"}).resource_version() == "1");
  BOOST_TEST(!store.get("", "a"));
  BOOST_TEST(!store.get("defaul", "ta"));
  BOOST_TEST(store.size() == 1U);
}

BOOST_AUTO_TEST_CASE(put_returns_the_replaced_object_and_erase_the_removed_one) {
  rw::k8s::store store;
  BOOST_TEST(!store.put(configmap_object("a", "1")));
  BOOST_TEST(store.put(configmap_object("a", "2")).resource_version() == "1");
  BOOST_TEST(store.size() == 1U);
  BOOST_TEST(store.erase("default", "a").resource_version() == "2");
  BOOST_TEST(!store.erase("default", "a"));
  BOOST_TEST(store.size() == 0U);
}

BOOST_AUTO_TEST_CASE(many_objects_come_and_go) {
  rw::k8s::store store;
  constexpr int count = 3000;
  for (int i = 0; i < count; ++i) store.put(configmap_object("n" + std::to_string(i), "1"));
  for (int i = 0; i < count; i += 2) store.erase("default", "n" + std::to_string(i));
  BOOST_TEST(store.size() == count / 2);
  for (int i = 0; i < count; ++i) {
    const bool there = static_cast<bool>(store.get("default", "n" + std::to_string(i)));
    if (there != (i % 2 == 1)) BOOST_ERROR("wrong at " << i);
  }
  BOOST_TEST(store.list().size() == count / 2);
  std::size_t seen = 0;
  store.for_each([&](const object&) { ++seen; });
  BOOST_TEST(seen == count / 2);
}

BOOST_AUTO_TEST_CASE(index_follows_each_change) {
  rw::k8s::store store;
  store.put(valued("a", "1", "red"));
  store.add_index("value", by_value);
  store.put(valued("b", "1", "red"));
  store.put(valued("c", "1", "blue"));
  BOOST_TEST(names(store.by_index("value", "red")) == (std::vector<std::string>{"a", "b"}));
  store.put(valued("a", "2", "blue"));
  BOOST_TEST(names(store.by_index("value", "red")) == (std::vector<std::string>{"b"}));
  BOOST_TEST(names(store.by_index("value", "blue")) == (std::vector<std::string>{"a", "c"}));
  store.put(valued("a", "3", "blue"));
  for (const auto& each : store.by_index("value", "blue")) {
    if (each.name() == "a") BOOST_TEST(each.resource_version() == "3");
  }
  store.erase("default", "b");
  BOOST_TEST(store.by_index("value", "red").empty());
}

BOOST_AUTO_TEST_CASE(object_may_have_several_values_the_same_twice_or_none) {
  rw::k8s::store store;
  store.add_index("all", [](const object& from, std::vector<std::string>& values) {
    if (from.name() == "none") return;
    values.insert(values.end(), {"x", "x", std::string(from.name())});
  });
  store.put(configmap_object("a", "1"));
  store.put(configmap_object("none", "1"));
  BOOST_TEST(store.by_index("all", "x").size() == 1U);
  BOOST_TEST(store.by_index("all", "a").size() == 1U);
  store.erase("default", "a");
  store.erase("default", "none");
  BOOST_TEST(store.by_index("all", "x").empty());
}

BOOST_AUTO_TEST_CASE(index_that_is_there_twice_or_not_at_all_is_named) {
  rw::k8s::store store;
  store.add_index("value", by_value);
  const auto names_it = [](const std::invalid_argument& e) {
    return std::string(e.what()).find("'value'") != std::string::npos;
  };
  BOOST_CHECK_EXCEPTION(store.add_index("value", by_value), std::invalid_argument, names_it);
  BOOST_CHECK_THROW(store.by_index("other", "x"), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
