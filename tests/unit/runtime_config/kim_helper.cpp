#include "k8s/manifests.hpp"
#include "k8s/types.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/run.hpp"
#include "tests/unit/runtime_config/kim.hpp"
#include <utility>

namespace rw::runtime_config_test {

using namespace std::chrono_literals;

namespace {

constexpr auto longest_part = 40ms;

/// The same object under the runtime's own namespace.
json::value on_runtime(json::value source) {
  auto& object = source.as_object();
  json::object metadata{{"name", k8s::key_of(source).name}};
  if (!k8s::key_of(source).ns.empty()) metadata["namespace"] = skr_namespace;
  object["metadata"] = std::move(metadata);
  return source;
}

}  // namespace

kim::kim(land& in)
    : in_(in),
      api_(in.connect("kcp", "kim")),
      runtimes_(*api_, runtimes_type(), {.what = {.ns = std::string(kcp_namespace)}},
                {in.all.clock, in.all.log, in.all.metrics, in.chance.source()}),
      core_(in.context.get_executor(), {.name = "kim", .concurrent = 3}, *this,
            {in.all.clock, in.all.watchdog, in.all.log, in.all.metrics, in.chance.source()}),
      tasks_(in.context.get_executor()) {
  core_.watch(runtimes_);
  tasks_.spawn(runtimes_.run());
  tasks_.spawn(core_.run());
}

kim::~kim() {
  test::run(in_.context, [](kim* self) -> asio::awaitable<void> {
    self->tasks_.cancel();
    co_await self->tasks_.join();
    co_await self->api_->close();
  }(this));
}

asio::awaitable<void> kim::take_time() {
  co_await in_.pause(in_.chance.likely(0.4) ? core::duration::zero()
                                            : in_.chance.up_to(longest_part));
}

asio::awaitable<k8s::reconcile_result> kim::reconcile(k8s::object_key key) {
  if (!runtimes_.objects().get(key)) co_return k8s::reconcile_result::done();
  const auto runtime = co_await in_.must(api_->get(runtimes_type(), key));
  if (!carries_mark(runtime)) co_return k8s::reconcile_result::done();
  if (held_) co_return k8s::reconcile_result::requeue_after(10ms);
  ++reconciles_;
  co_await in_.fence(key.name, "begin");
  co_await take_time();
  co_await configure(key.name);
  co_await in_.fence(key.name, "end");
  co_await take_time();
  json::object off{{force_reconciliation_mark, nullptr}};
  json::value change{{"metadata", {{"annotations", off}, {"labels", off}}}};
  co_await in_.must(api_->patch(runtimes_type(), key, k8s::patch_type::merge, std::move(change),
                                {.field_manager = "kim"}));
  co_return k8s::reconcile_result::done();
}

asio::awaitable<void> kim::configure(std::string runtime) {
  const std::string ns(kcp_namespace);
  const bootstrapper_sources names;
  const auto bundle = k8s::key_of(trust_bundle_at(in_.now));
  const auto trust = co_await in_.must(api_->get(bundles, bundle));
  const auto secret = co_await in_.must(api_->get(secrets_type(), {ns, names.pull_secret}));
  const auto config = co_await in_.must(api_->get(config_maps_type(), {ns, names.config}));
  const auto text = co_await in_.must(api_->get(config_maps_type(), {ns, names.manifests}));
  co_await take_time();
  const std::string manifests(k8s::find_string(text, {"data", "manifests.yaml"}));
  const auto all = k8s::parse_manifests(manifests);
  BOOST_REQUIRE(all.has_value());
  co_await write(runtime, bundles, on_runtime(trust));
  co_await write(runtime, secrets_type(), on_runtime(secret));
  co_await write(runtime, config_maps_type(), on_runtime(config));
  for (const auto& one : *all) {
    const auto type = k8s::well_known_type(k8s::find_string(one, {"apiVersion"}),
                                           k8s::find_string(one, {"kind"}));
    BOOST_REQUIRE(type.has_value());
    auto object = one;
    object.at("metadata").as_object().erase("creationTimestamp");
    co_await write(runtime, *type, std::move(object));
  }
}

asio::awaitable<void> kim::write(std::string runtime, k8s::resource_type type, json::value object) {
  k8s::set_annotation(object, kim_stamp, std::to_string(++writes_));
  k8s::apply_options by{.field_manager = "kim-bootstrapper", .force = true};
  auto& api = in_.api(runtime);
  co_await in_.must(api.apply(std::move(type), std::move(object), std::move(by)));
}

}  // namespace rw::runtime_config_test
