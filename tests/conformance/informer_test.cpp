// Our informer, which must get along with both.

#include "rw/k8s/cache/informer.hpp"

#include "rw/core/task_group.hpp"

#include "sandbox.hpp"
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(informer)

using namespace rw;
using namespace rw::conformance;

namespace {

/// An informer that runs, with one subscriber.
class informing {
 public:
  informing(sandbox& in, const k8s::resource_type& type, k8s::informer_options options)
      : here_(in.server.here), tasks_(here_.executor()) {
    here_.on_thread([&] {
      informer_ = std::make_unique<k8s::informer>(
          in.api, type, std::move(options),
          k8s::informer_environment{here_.clock, here_.log, here_.metrics,
                                    core::make_random_source()});
      deltas_ = informer_->subscribe();
      tasks_.spawn(informer_->run());
    });
    BOOST_REQUIRE(here_.call(informer_->wait_synced()));
  }
  ~informing() {
    tasks_.cancel();
    here_.call(tasks_.join());
    here_.on_thread([this] { informer_.reset(); });
  }
  informing(const informing&) = delete;
  informing& operator=(const informing&) = delete;

  /// Names and versions of what is in the store.
  std::map<std::string, std::string> objects() {
    std::map<std::string, std::string> found;
    here_.on_thread([&] {
      informer_->objects().for_each(
          [&](const k8s::object& one) { found.emplace(one.name(), one.resource_version()); });
    });
    return found;
  }

  /// The next thing that the subscriber is told, such as "added a".
  std::string next() {
    auto got = here_.call(deltas_->receive());
    BOOST_REQUIRE(got.has_value());
    static constexpr std::array words{"added ", "updated ", "deleted "};
    return words.at(static_cast<std::size_t>(got->type)) + std::string(got->latest().name());
  }

  /// How many watches the server has ended in order, of all informers of ConfigMaps so far.
  double watches_ended() const {
    return here_.metric(R"(rw_informer_watches_total{end="ended",resource="configmaps"})");
  }

  json get(const std::string& ns, const std::string& name) {
    json found;
    here_.on_thread([&] { found = informer_->objects().get(ns, name).parse(); });
    return found;
  }

 private:
  host& here_;
  core::task_group tasks_;
  std::unique_ptr<k8s::informer> informer_;
  k8s::informer::subscription deltas_;
};

std::map<std::string, std::string> versions_of(const json& list) {
  std::map<std::string, std::string> found;
  for (const auto& item : list.at("items").as_array()) {
    found.emplace(text(item, "/metadata/name"), text(item, "/metadata/resourceVersion"));
  }
  return found;
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(informer_begins_with_present_objects, sandbox) {
  create(config_maps, config_map("a"));
  create(config_maps, config_map("b"));
  informing seen(*this, config_maps, {.objects = all()});
  BOOST_TEST((seen.objects() == versions_of(list(config_maps))));
  std::vector<std::string> told{seen.next(), seen.next()};
  std::ranges::sort(told);
  BOOST_TEST(told == (std::vector<std::string>{"added a", "added b"}),
             boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(informer_reads_page_by_page, sandbox) {
  for (int i = 0; i < 25; ++i) create(config_maps, config_map("a" + std::to_string(i)));
  informing seen(*this, config_maps, {.objects = all(), .page = 4, .streaming_list = false});
  BOOST_TEST(seen.objects().size() == 25u);
  BOOST_TEST((seen.objects() == versions_of(list(config_maps))));
}

BOOST_FIXTURE_TEST_CASE(informer_follows_changes, sandbox) {
  informing seen(*this, config_maps, {.objects = all()});
  create(config_maps, config_map("a", {{"k", "1"}}));
  BOOST_TEST(seen.next() == "added a");
  update(config_maps, config_map("a", {{"k", "2"}}));
  BOOST_TEST(seen.next() == "updated a");
  BOOST_TEST(text(seen.get(ns, "a"), "/data/k") == "2");
  remove(config_maps, "a");
  BOOST_TEST(seen.next() == "deleted a");
  BOOST_TEST(seen.objects().empty());
}

BOOST_FIXTURE_TEST_CASE(informer_tells_a_deletion_and_a_creation_apart, sandbox) {
  create(config_maps, config_map("a"));
  informing seen(*this, config_maps, {.objects = all()});
  BOOST_TEST(seen.next() == "added a");
  remove(config_maps, "a");
  create(config_maps, config_map("a"));
  BOOST_TEST(seen.next() == "deleted a");
  BOOST_TEST(seen.next() == "added a");
}

BOOST_FIXTURE_TEST_CASE(informer_of_a_selection_sees_objects_come_and_go, sandbox) {
  create(config_maps, config_map("a"));
  informing seen(*this, config_maps, {.objects = {.ns = ns, .labels = "l=m"}});
  merge(config_maps, "a", R"({"metadata": {"labels": {"l": "m"}}})");
  BOOST_TEST(seen.next() == "added a");
  merge(config_maps, "a", R"({"metadata": {"labels": {"l": null}}})");
  BOOST_TEST(seen.next() == "deleted a");
}

BOOST_FIXTURE_TEST_CASE(informer_of_metadata_keeps_only_that, sandbox) {
  create(config_maps, config_map("a", {{"k", "v"}}, {{"l", "m"}}));
  informing seen(*this, config_maps, {.objects = {.ns = ns, .metadata_only = true}});
  BOOST_TEST(seen.next() == "added a");
  const auto kept = seen.get(ns, "a");
  BOOST_TEST(text(kept, "/metadata/labels/l") == "m");
  BOOST_TEST(!has(kept, "/data"));
}

BOOST_FIXTURE_TEST_CASE(informer_of_custom_resources_follows_their_status, sandbox) {
  informing seen(*this, gadgets(), {.objects = all()});
  create(gadgets(), gadget("a"));
  BOOST_TEST(seen.next() == "added a");
  merge(gadgets(), "a", R"({"status": {"ready": true}})", {.subresource = "status"});
  BOOST_TEST(seen.next() == "updated a");
  BOOST_TEST(text(seen.get(ns, "a"), "/status/ready") == "true");
}

BOOST_FIXTURE_TEST_CASE(informer_goes_on_when_its_watch_has_timed_out, sandbox) {
  informing seen(*this, config_maps, {.objects = all(), .watch_timeout = std::chrono::seconds(1)});
  create(config_maps, config_map("a"));
  BOOST_TEST(seen.next() == "added a");
  const auto before = seen.watches_ended();
  eventually([&] { return seen.watches_ended() > before; });
  remove(config_maps, "a");
  BOOST_TEST(seen.next() == "deleted a");
}

BOOST_FIXTURE_TEST_CASE(informer_converges_with_many_writers, sandbox) {
  informing seen(*this, config_maps, {.objects = all()});
  for (int round = 0; round < 60; ++round) {
    const auto name = "a" + std::to_string(round % 7);
    if (round % 5 == 4) {
      static_cast<void>(server.here.call(api.remove(config_maps, key(name))));
    } else if (there(config_maps, name)) {
      update(config_maps, config_map(name, {{"k", std::to_string(round)}}));
    } else {
      create(config_maps, config_map(name, {{"k", std::to_string(round)}}));
    }
  }
  const auto expected = versions_of(list(config_maps));
  eventually([&] { return seen.objects() == expected; });
}

BOOST_AUTO_TEST_SUITE_END()
