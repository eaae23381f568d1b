#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/config_sync/target.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/shared/trust_bundles_type.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "tests/unit/config_sync/test_env.hpp"
#include <cmath>

namespace rw::config_sync::test {
namespace {

namespace asio = boost::asio;
using json = boost::json::value;
using boost::json::object;
using rw::test::require;

const std::string kcp{kcp_namespace};
const k8s::object_key record_key{kcp, std::string(record_name)};

k8s::object_key key_of(source which) {
  return bootstrapper_sources().key_of(which);
}

json object_of(source which, const std::string& content) {
  const auto key = key_of(which);
  auto made = rw::test::object_of(type_of(which), key.ns, key.name);
  auto& out = made.as_object();
  if (which == source::trust_bundle) {
    out["spec"] = object{{"trustBundle", content}};
  } else if (which == source::pull_secret) {
    out["type"] = "kubernetes.io/dockerconfigjson";
    out["stringData"] = object{{".dockerconfigjson", "{\"auths\":{\"" + content + "\":{}}}"}};
  } else {
    out["data"] = object{{"content", content}};
  }
  return made;
}

/// What KIM copies.
json content_of(const json& object) {
  const auto* const spec = k8s::find(object, {"spec"});
  return spec == nullptr ? object.at("data") : *spec;
}

}  // namespace

/// What a process that leads has around the reactor.
struct test_env::running {
  explicit running(test_env& in)
      : api(in.connect("kcp", {.name = "reactor", .retry_base = {}})),
        reading(in.connect("kcp", {.name = "informers", .retry_base = {}})),
        config_maps(*reading, config_maps_type(), {.objects = {.ns = kcp}},
                    in.informer_environment()),
        secrets(*reading, secrets_type(), {.objects = {.ns = kcp}}, in.informer_environment()),
        trust_bundles(trust_bundle_informer(*reading, {}, in.informer_environment())),
        runtimes(*reading, runtimes_type(), runtimes_informer(), in.informer_environment()),
        events(in.context.get_executor(), k8s::objects_of(*reading), {.component = "test"},
               {in.clock, in.log, in.numbers, core::make_random_source()}),
        reactor(in.context.get_executor(), {config_maps, secrets, *trust_bundles}, runtimes,
                in.options_,
                {*api,
                 events,
                 {in.clock, in.watchdog, in.log, in.numbers, core::make_random_source()}}),
        tasks(in.context.get_executor()) {
    for (auto* const each : {&config_maps, &secrets, trust_bundles.get(), &runtimes}) {
      tasks.spawn(each->run());
    }
    tasks.spawn(events.run());
    tasks.spawn(reactor.run());
  }

  std::unique_ptr<k8s::client> api;
  std::unique_ptr<k8s::client> reading;
  k8s::informer config_maps;
  k8s::informer secrets;
  std::unique_ptr<k8s::informer> trust_bundles;
  k8s::informer runtimes;
  k8s::event_recorder events;
  config_sync reactor;
  core::task_group tasks;
};

test_env::test_env(sync_options options)
    : simulated({.storage_delay = std::chrono::seconds(1)}), options_(std::move(options)) {
  finish(define({"dev/infrastructuremanager.kyma-project.io_runtimes.yaml"}, {kcp}));
}

test_env::~test_env() {
  stop_kim();
  stop();
}

void test_env::start() {
  running_ = std::make_unique<running>(*this);
}

void test_env::stop() {
  if (!running_) return;
  running_->tasks.cancel();
  finish(running_->tasks.join());
  finish(running_->api->close());
  finish(running_->reading->close());
  running_.reset();
}

/// The simulated KIM, with connections of its own.
struct test_env::running_kim {
  running_kim(test_env& in, dev::kim_options options)
      : api(in.connect("kcp", {.name = "kim", .retry_base = {}})),
        sources(*api, {}, {in.clock, in.log, in.numbers, core::make_random_source()}),
        kim(*api, sources,
            [&in](json runtime) -> asio::awaitable<k8s::result<void>> {
              return configure(&in, k8s::key_of(runtime).name);
            },
            std::move(options),
            {in.context.get_executor(), in.clock, in.watchdog, in.log, in.numbers,
             core::make_random_source()}),
        tasks(in.context.get_executor()) {
    tasks.spawn(sources.run());
    tasks.spawn(kim.run());
  }

  static asio::awaitable<k8s::result<void>> configure(test_env* in, std::string runtime) {
    auto read = co_await read_sources(&*in->kim_->api);
    if (read.has_error()) co_return read.error();
    in->configured_[runtime] = *read;
    co_return k8s::result<void>();
  }

  static asio::awaitable<k8s::result<std::string>> read_sources(k8s::client* api) {
    std::string all;
    for (const auto which : all_sources) {
      const auto got = co_await api->get(type_of(which), key_of(which));
      if (got.has_error() && !got.error().is(k8s::errc::not_found)) co_return got.error();
      all += got.has_value() ? boost::json::serialize(content_of(*got)) + ";" : "absent;";
    }
    co_return all;
  }

  std::unique_ptr<k8s::client> api;
  dev::source_watch sources;
  dev::kim kim;
  core::task_group tasks;
};

void test_env::start_kim(dev::kim_options options) {
  kim_ = std::make_unique<running_kim>(*this, std::move(options));
}

void test_env::stop_kim() {
  if (!kim_) return;
  kim_->tasks.cancel();
  finish(kim_->tasks.join());
  finish(kim_->api->close());
  kim_.reset();
}

dev::kim& test_env::kim() {
  return kim_->kim;
}

std::string test_env::content() {
  return ok(running_kim::read_sources(&api("kcp")));
}

double test_env::age(const std::string& state) const {
  const auto since =
      metric("rw_config_sync_state_since_timestamp_seconds{state=\"" + state + "\"}");
  const std::chrono::duration<double> now = clock.wall().time_since_epoch();
  return std::round(now.count() - since);
}

std::string test_env::noted(const std::string& name) {
  const auto found = runtime(name);
  const bool noted = k8s::has_annotation(found, signalled_annotation);
  return noted ? std::string(k8s::annotation(found, signalled_annotation)) : "nothing";
}

std::string test_env::version(const std::string& name) {
  return std::string(k8s::resource_version_of(runtime(name)));
}

void test_env::take(const std::string& name) {
  object off;
  off[force_reconciliation_mark] = nullptr;
  annotate(name, std::move(off));
}

void test_env::set_state(const std::string& name, const std::string& state) {
  ok(api("kcp").patch(runtimes_type(), {kcp, name}, k8s::patch_type::merge,
                      {{"status", {{"state", state}}}}, {.subresource = "status"}));
}

void test_env::put(source which, const std::string& content) {
  auto wanted = object_of(which, content);
  const auto made = call(api("kcp").create(type_of(which), wanted));
  if (made.has_value()) return;
  require(made.error().is(k8s::errc::already_exists), made.error().message);
  ok(api("kcp").update(type_of(which), std::move(wanted)));
}

void test_env::remove(source which) {
  const auto gone = call(api("kcp").remove(type_of(which), key_of(which)));
  require(gone.has_value() || gone.error().is(k8s::errc::not_found), "it can't be removed");
}

void test_env::touch(source which, const std::string& label) {
  ok(api("kcp").patch(type_of(which), key_of(which), k8s::patch_type::merge,
                      {{"metadata", {{"labels", {{"touched", label}}}}}}));
}

void test_env::add_runtime(const std::string& name) {
  ok(api("kcp").create(runtimes_type(),
                       {{"apiVersion", runtimes_type().gvk.api_version()},
                        {"kind", runtimes_type().gvk.kind},
                        {"metadata", {{"name", name}, {"namespace", kcp_namespace}}},
                        {"spec", {{"shoot", {{"name", name}}}}}}));
  if (!kim_) set_state(name, "Ready");
}

void test_env::remove_runtime(const std::string& name) {
  ok(api("kcp").remove(runtimes_type(), {kcp, name}));
}

json test_env::runtime(const std::string& name) {
  return ok(api("kcp").get(runtimes_type(), {kcp, name}));
}

void test_env::annotate(const std::string& name, const json& annotations) {
  change(name, {{"annotations", annotations}});
}

void test_env::change(const std::string& name, const json& metadata) {
  ok(api("kcp").patch(runtimes_type(), {kcp, name}, k8s::patch_type::merge,
                      {{"metadata", metadata}}));
}

json test_env::record() {
  return ok(api("kcp").get(config_maps_type(), record_key));
}

void test_env::remove_record() {
  const auto gone = call(api("kcp").remove(config_maps_type(), record_key));
  require(gone.has_value() || gone.error().is(k8s::errc::not_found), "it can't be removed");
}

}  // namespace rw::config_sync::test
