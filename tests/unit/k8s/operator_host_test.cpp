#include "rw/k8s/controller/operator_host.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/environment/environment.hpp"
#include "tests/unit/run.hpp"
#include <unistd.h>

namespace rw::k8s_operator {
BOOST_AUTO_TEST_SUITE(operator_host)

namespace asio = boost::asio;
namespace json = boost::json;
namespace k8s = rw::k8s;
using namespace std::chrono_literals;
using k8s::reconcile_result;

struct backup_spec {
  std::string database;
  int keep = 3;
};
BOOST_DESCRIBE_STRUCT(backup_spec, (), (database, keep))

struct backup_status {
  std::optional<std::string> phase;
};
BOOST_DESCRIBE_STRUCT(backup_status, (), (phase))

struct backup {
  k8s::object_meta metadata;
  backup_spec spec;
  std::optional<backup_status> status = {};
  static inline const k8s::resource_type type{{"example.com", "v1", "Backup"}, "backups"};
};
BOOST_DESCRIBE_STRUCT(backup, (), (metadata, spec, status))

struct config_map {
  k8s::object_meta metadata;
  std::map<std::string, std::string> data = {};
  static inline const k8s::resource_type type{{"", "v1", "ConfigMap"}, "configmaps"};
};
BOOST_DESCRIBE_STRUCT(config_map, (), (metadata, data))

/// A view of ConfigMaps that not all of them fit.
struct numbers {
  k8s::object_meta metadata;
  std::map<std::string, int> data;
  static inline const k8s::resource_type type = config_map::type;
};
BOOST_DESCRIBE_STRUCT(numbers, (), (metadata, data))

namespace {

constexpr const char* finalizer = "example.com/backup";

/// Objects of a namespace of its own, on an embedded API server or a real one, which has the
/// definition that the structs make.
struct bench : rw::test::environment {
  bench() {
    use_real("kcp");
    static int count = 0;
    ns = "operator-" + std::to_string(getpid()) + "-" + std::to_string(count++);
    rw::test::run(context, define_backups());
  }
  ~bench() override {
    for (auto& each : hosts) each->end.emit(asio::cancellation_type::terminal);
    try {
      rw::test::run(context, until_ended());
    } catch (const std::exception& e) {
      BOOST_ERROR(e.what());
    }
    shut_down();
  }

  asio::awaitable<void> define_backups() {
    co_await apply(k8s::definition_of<backup>(), rw::test::definitions);
    const bool served = co_await until(
        "kcp", rw::test::definitions, {"", "backups.example.com"}, [](const json::value& object) {
          const auto condition = k8s::find_condition(object, "Established");
          return condition && condition->status == "True";
        });
    rw::test::require(served, "the definition is established");
    co_await create("kcp",
                    {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", ns}}}},
                    {{"", "v1", "Namespace"}, "namespaces", false});
  }

  struct running_host {
    k8s::operator_host host;
    asio::cancellation_signal end = {};
    std::exception_ptr failure = {};
    bool ended = false;
  };

  k8s::operator_options options(const std::string& name) {
    k8s::operator_options out{.name = name, .ns = ns};
    out.api = k8s::parse_kubeconfig(kubeconfig("kcp"), "test", "/").value();
    out.pages = {asio::ip::address_v4::loopback(), 0};
    out.log = &log;
    out.on_listening = [this](const auto& at) { pages = at; };
    return out;
  }
  running_host& add_host(k8s::operator_options with) {
    hosts.push_back(std::make_unique<running_host>(k8s::operator_host(std::move(with))));
    return *hosts.back();
  }
  void start(running_host& each) {
    asio::co_spawn(
        context, each.host.serve(context.get_executor()),
        asio::bind_cancellation_slot(each.end.slot(), [&each](std::exception_ptr thrown) {
          each.failure = std::move(thrown);
          each.ended = true;
        }));
  }
  asio::awaitable<void> until_ended() {
    const bool good = co_await rw::test::eventually([this] {
      return std::ranges::all_of(hosts, [](const auto& each) { return each->ended; });
    });
    rw::test::require(good, "hosts end in time");
  }

  /// A host whose reconcile applies a ConfigMap and says so.
  running_host& add_backups(const std::string& name = "backup-operator") {
    auto& made = add_host(options(name));
    made.host.watch<backup>().select({.ns = ns}).owns(config_map::type).run([this](auto of) {
      return reconcile(this, std::move(of));
    });
    return made;
  }
  static asio::awaitable<reconcile_result> reconcile(bench* in, k8s::operator_request<backup> of) {
    ++in->reconciled[of.key().name];
    config_map map{.metadata = {.name = of.key().name + "-plan"},
                   .data = {{"database", of.object.spec.database},
                            {"keep", std::to_string(of.object.spec.keep)}}};
    const auto applied = co_await of.apply(std::move(map));
    if (!applied) co_return reconcile_result::error(applied.error());
    of.normal("Planned", "the plan of the backup is there");
    const auto written =
        co_await of.set_status(backup_status{.phase = of.object.spec.keep > 5 ? "Long" : "Ready"});
    if (!written) co_return reconcile_result::error(written.error());
    co_return reconcile_result::done();
  }

  asio::awaitable<void> create_backup(std::string name, std::string database) {
    backup object{.metadata = {.ns = ns, .name = name}, .spec = {.database = database}};
    co_await create("kcp", k8s::to_json(object), backup::type);
  }
  asio::awaitable<void> until_plan(std::string name, std::string field, std::string value) {
    const bool good = co_await until("kcp", config_map::type, {ns, name + "-plan"},
                                     [&](const json::value& object) {
                                       return k8s::find_string(object, {"data", field}) == value;
                                     });
    rw::test::require(good, "the plan has " + field + " " + value);
  }
  asio::awaitable<void> until_phase(std::string name, std::string phase) {
    const bool good =
        co_await until("kcp", backup::type, {ns, name}, [&](const json::value& object) {
          return k8s::find_string(object, {"status", "phase"}) == phase;
        });
    rw::test::require(good, "phase " + phase);
  }
  asio::awaitable<std::string> page(std::string path) {
    k8s::config at;
    at.server = "http://127.0.0.1:" + std::to_string(pages.port());
    k8s::client browser(context.get_executor(), at,
                        {.name = "page", .user_agent = "test", .field_manager = "test"},
                        client_environment());
    const auto got = co_await browser.raw("GET", path, "", "");
    co_await browser.close();
    co_return got ? *got : got.error().message;
  }

  std::string ns;
  asio::ip::tcp::endpoint pages;
  std::map<std::string, int> reconciled;
  std::vector<std::unique_ptr<running_host>> hosts;
};

}  // namespace

RW_COROUTINE_TEST(host_applies_what_an_object_owns_and_its_status, bench) {
  env->start(env->add_backups());
  co_await env->create_backup("orders", "orders-db");
  co_await env->until_plan("orders", "database", "orders-db");
  co_await env->until_plan("orders", "keep", "3");
  co_await env->until_phase("orders", "Ready");
  const auto plan =
      co_await env->must(env->api("kcp").get(config_map::type, {env->ns, "orders-plan"}));
  const auto object = co_await env->must(env->api("kcp").get(backup::type, {env->ns, "orders"}));
  const auto owners = k8s::owners_of(plan);
  BOOST_REQUIRE(owners.size() == 1U);
  BOOST_TEST(owners[0].uid == k8s::uid_of(object));
  BOOST_TEST(owners[0].controller);
}

RW_COROUTINE_TEST(host_repairs_what_is_changed_and_what_is_deleted, bench) {
  env->start(env->add_backups());
  co_await env->create_backup("orders", "orders-db");
  co_await env->until_plan("orders", "database", "orders-db");
  co_await env->merge(config_map::type, {env->ns, "orders-plan"}, {{"data", {{"database", "x"}}}});
  co_await env->until_plan("orders", "database", "orders-db");
  co_await env->remove("kcp", config_map::type, {env->ns, "orders-plan"});
  co_await env->until_plan("orders", "database", "orders-db");
  co_await env->merge(backup::type, {env->ns, "orders"}, {{"spec", {{"keep", 9}}}});
  co_await env->until_plan("orders", "keep", "9");
  co_await env->until_phase("orders", "Long");
}

RW_COROUTINE_TEST(host_ignores_changes_that_raise_no_generation, bench) {
  env->start(env->add_backups());
  co_await env->create_backup("orders", "orders-db");
  co_await env->until_phase("orders", "Ready");
  // A later object is reconciled after what came before it.
  co_await env->create_backup("second", "b");
  co_await env->until_phase("second", "Ready");
  const auto before = env->reconciled["orders"];
  co_await env->merge(backup::type, {env->ns, "orders"},
                      {{"metadata", {{"annotations", {{"note", "1"}}}}}});
  co_await env->create_backup("third", "c");
  co_await env->until_phase("third", "Ready");
  BOOST_TEST(env->reconciled["orders"] == before);
}

RW_COROUTINE_TEST(host_reconciles_every_change_where_it_is_asked_to, bench) {
  auto& made = env->add_host(env->options("backup-operator"));
  std::vector<std::string> notes;
  const auto note =
      [&notes](k8s::operator_request<backup> of) -> asio::awaitable<reconcile_result> {
    notes.push_back(of.object.metadata.annotations["note"]);
    co_return reconcile_result::done();
  };
  made.host.watch<backup>().select({.ns = env->ns}).on_every_change().run(note);
  env->start(made);
  co_await env->create_backup("orders", "orders-db");
  co_await env->merge(backup::type, {env->ns, "orders"},
                      {{"metadata", {{"annotations", {{"note", "1"}}}}}});
  const bool good =
      co_await rw::test::eventually([&] { return std::ranges::count(notes, "1") > 0; });
  BOOST_TEST(good);
}

RW_COROUTINE_TEST(deleted_object_stays_until_it_is_finalized, bench) {
  auto& made = env->add_host(env->options("backup-operator"));
  int finalized = 0;
  bool may_end = false;
  const auto finalize = [&](k8s::operator_request<backup> of) -> asio::awaitable<reconcile_result> {
    BOOST_TEST(of.object.metadata.being_deleted);
    ++finalized;
    co_return may_end ? reconcile_result::done() : reconcile_result::error("not yet");
  };
  made.host.watch<backup>()
      .select({.ns = env->ns})
      .finalizer(finalizer, finalize)
      .run([&](auto of) { return bench::reconcile(env, std::move(of)); });
  env->start(made);
  co_await env->create_backup("orders", "orders-db");
  co_await env->until_phase("orders", "Ready");
  const auto object = co_await env->must(env->api("kcp").get(backup::type, {env->ns, "orders"}));
  BOOST_TEST(k8s::has_finalizer(object, finalizer));
  co_await env->remove("kcp", backup::type, {env->ns, "orders"});
  bool good = co_await rw::test::eventually([&] { return finalized > 1; });
  BOOST_TEST(good, "it is tried again");
  may_end = true;
  good = co_await env->until("kcp", backup::type, {env->ns, "orders"}, rw::test::is_gone);
  BOOST_TEST(good);
}

RW_COROUTINE_TEST(second_replica_reconciles_once_the_first_has_released_its_lease, bench) {
  auto& first = env->add_backups();
  env->start(first);
  co_await env->create_backup("orders", "orders-db");
  co_await env->until_phase("orders", "Ready");
  auto& second = env->add_host(env->options("backup-operator"));
  std::vector<std::string> keys;
  second.host.watch<backup>()
      .select({.ns = env->ns})
      .run([&keys](k8s::operator_request<backup> of) -> asio::awaitable<reconcile_result> {
        keys.push_back(of.key().name);
        co_return reconcile_result::done();
      });
  env->start(second);
  co_await env->create_backup("second", "b");
  co_await env->until_phase("second", "Ready");
  BOOST_TEST(keys.empty());
  first.end.emit(asio::cancellation_type::terminal);
  const bool good = co_await rw::test::eventually([&] { return keys.size() == 2; });
  BOOST_TEST(good);
  BOOST_TEST(first.ended);
  BOOST_TEST(!first.failure);
}

RW_COROUTINE_TEST(pages_tell_metrics_and_readiness, bench) {
  env->start(env->add_backups());
  co_await env->create_backup("orders", "orders-db");
  co_await env->until_phase("orders", "Ready");
  const auto ready = co_await env->page("/readyz");
  BOOST_TEST(ready.starts_with("ok"));
  const auto metrics = co_await env->page("/metrics");
  BOOST_TEST(metrics.find("controller_runtime_reconcile_total{controller=\"backups\"") !=
             std::string::npos);
  const auto other = co_await env->page("/other");
  BOOST_TEST(other.find("404") != std::string::npos, other);
}

RW_COROUTINE_TEST(event_names_the_object, bench) {
  env->start(env->add_backups());
  co_await env->create_backup("orders", "orders-db");
  co_await env->until_phase("orders", "Ready");
  bool found = false;
  for (int i = 0; i < 2000 && !found; ++i) {
    auto events = co_await env->must(env->api("kcp").list(k8s::events_type(), {.ns = env->ns}));
    found = std::ranges::any_of(events.at("items").as_array(), [](const json::value& each) {
      return k8s::find_string(each, {"involvedObject", "name"}) == "orders" &&
             k8s::find_string(each, {"reason"}) == "Planned";
    });
  }
  BOOST_TEST(found);
}

RW_COROUTINE_TEST(object_that_does_not_fit_the_struct_holds_up_no_other, bench) {
  auto& made = env->add_host(env->options("strict-operator"));
  made.host.watch<numbers>()
      .select({.ns = env->ns, .labels = "strict"})
      .run([env](k8s::operator_request<numbers> of) -> asio::awaitable<reconcile_result> {
        ++env->reconciled[of.key().name];
        co_return reconcile_result::done();
      });
  config_map bad{.metadata = {.ns = env->ns, .name = "bad", .labels = {{"strict", "1"}}},
                 .data = {{"a", "text"}}};
  co_await env->create("kcp", k8s::to_json(bad), config_map::type);
  config_map fits{.metadata = {.ns = env->ns, .name = "fits", .labels = {{"strict", "1"}}}};
  co_await env->create("kcp", k8s::to_json(fits), config_map::type);
  env->start(made);
  const bool good = co_await rw::test::eventually([env] {
    return env->reconciled["fits"] == 1 &&
           env->lines("data.a: not an integer, or out of range") == 1;
  });
  BOOST_TEST(good);
  BOOST_TEST(env->reconciled["bad"] == 0);
}

BOOST_AUTO_TEST_CASE(host_needs_a_name_and_a_usable_configuration) {
  BOOST_CHECK_THROW(k8s::operator_host({}), std::invalid_argument);
  std::string logged;
  rw::core::logger log(rw::core::log_level::info,
                       [&logged](std::string_view line) { logged += line; });
  k8s::config nowhere;
  nowhere.server = "no url";
  nowhere.source = "the test's configuration";
  k8s::operator_host host({.name = "x", .api = nowhere, .log = &log});
  BOOST_TEST(host.run() == 2);
  BOOST_TEST(logged.find("the test's configuration") != std::string::npos, logged);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::k8s_operator
