#include "rw/core/watchdog.hpp"
#include "rw/k8s/client/client.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/k8s/restartable_server.hpp"
#include "tests/unit/k8s/samples.hpp"
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <utility>

BOOST_AUTO_TEST_SUITE(restart)

// What a server that begins with another one's memory knows of it.

namespace {

namespace asio = boost::asio;
namespace core = rw::core;
namespace json = boost::json;
using namespace rw::k8s;
using namespace rw::k8s::test;
using namespace std::chrono_literals;

json::value config_map(const std::string& name) {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", {{"name", name}, {"namespace", "default"}}}};
}

class fixture {
 public:
  fixture() {
    server.begin({"h2"});
    server->add_cluster("one");
    how_ = parse_kubeconfig(server->kubeconfig("one"), "test", "").value();
    dog_tasks_.spawn(dog_.run());
  }
  ~fixture() {
    if (api_) wait(api_->close());
    wait(server.end(false));
    dog_tasks_.cancel();
    wait(dog_tasks_.join());
  }
  fixture(const fixture&) = delete;
  fixture& operator=(const fixture&) = delete;

  /// Runs no further than to the end of `work`.
  void wait(asio::awaitable<void> work) {
    bool done = false;
    std::exception_ptr failure;
    context.restart();
    asio::co_spawn(context, std::move(work), [&](std::exception_ptr thrown) {
      failure = std::move(thrown);
      done = true;
    });
    const auto patience = std::chrono::steady_clock::now() + 60s;
    while (!done && std::chrono::steady_clock::now() < patience) context.run_one_for(1s);
    BOOST_REQUIRE(done);
    if (failure) std::rethrow_exception(failure);
  }

  void ask(asio::awaitable<void> (*what)(client*)) {
    if (!api_) {
      api_ = std::make_unique<client>(context.get_executor(), how_,
                                      client_options{.user_agent = "test", .field_manager = "test"},
                                      client_environment{clock_, dog_, log_, metrics_});
    }
    wait(what(api_.get()));
  }

  asio::io_context context{1};

 private:
  core::real_clock clock_;
  core::metrics metrics_;
  core::logger log_{core::log_level::error, [](std::string_view) {}};
  core::watchdog dog_{clock_, context.get_executor(), 10ms};
  core::task_group dog_tasks_{context.get_executor()};
  config how_;
  std::unique_ptr<client> api_;

 public:
  restartable_server server{context.get_executor(), {}, {clock_, dog_, log_, metrics_}};
};

asio::awaitable<std::size_t> count(client* api) {
  const auto all = co_await api->list(configmaps(), {.ns = "default"});
  BOOST_REQUIRE_MESSAGE(all.has_value(), all.error().message);
  co_return all->at("items").as_array().size();
}

asio::awaitable<void> create_one(client* api) {
  const auto made = co_await api->create(configmaps(), config_map("a"));
  BOOST_TEST(made.has_value());
}

asio::awaitable<void> delete_one(client* api) {
  const auto gone = co_await api->remove(configmaps(), {"default", "a"});
  BOOST_TEST(gone.has_value());
}

asio::awaitable<void> expect_one(client* api) {
  const auto found = co_await count(api);
  BOOST_TEST(found == 1U);
}

asio::awaitable<void> create_family(client* api) {
  const auto owner = co_await api->create(configmaps(), config_map("a"));
  BOOST_REQUIRE(owner.has_value());
  for (int i = 0; i < 200; ++i) {
    auto child = config_map("child" + std::to_string(i));
    child.at("metadata").as_object()["ownerReferences"] =
        json::array{{{"apiVersion", "v1"},
                     {"kind", "ConfigMap"},
                     {"name", "a"},
                     {"uid", owner->at("metadata").at("uid")}}};
    const auto made = co_await api->create(configmaps(), child);
    BOOST_REQUIRE(made.has_value());
  }
}

asio::awaitable<void> wait_until_none(client* api) {
  const auto patience = std::chrono::steady_clock::now() + 50s;
  for (;;) {
    const auto left = co_await count(api);
    if (left == 0) co_return;
    BOOST_REQUIRE(std::chrono::steady_clock::now() < patience);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(address_certificates_tokens_and_objects_stay) {
  fixture f;
  f.ask(create_one);
  const auto address = f.server->address();
  for (const bool gently : {true, false}) {
    f.wait(f.server.end(gently));
    f.server.begin({"h2"});
    BOOST_TEST(f.server->address() == address);
    f.ask(expect_one);
  }
}

BOOST_AUTO_TEST_CASE(restarted_server_finishes_open_gc_tasks) {
  fixture f;
  f.ask(create_family);
  // The server goes as soon as it has answered, with most of the family still there.
  f.ask(delete_one);
  f.wait(f.server.end(false));
  f.server.begin({"h2"});
  f.ask(wait_until_none);
}

BOOST_AUTO_TEST_CASE(restore_brings_back_objects_deleted_since_the_backup) {
  fixture f;
  f.ask(create_one);
  const auto backup = f.server->back_up("one");
  f.ask(delete_one);
  f.server->restore("one", *backup);
  f.ask(expect_one);
}

BOOST_AUTO_TEST_SUITE_END()
