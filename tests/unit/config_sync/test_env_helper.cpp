#include "k8s/devserver/yaml.hpp"
#include "k8s/types.hpp"
#include "reactors/config_sync/target.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "tests/unit/config_sync/test_env.hpp"
#include <algorithm>
#include <exception>
#include <fstream>
#include <iterator>
#include <sched.h>

namespace rw::config_sync::test {
namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using json = boost::json::value;
using boost::json::object;

constexpr auto name_of_cluster = "kcp";

const k8s::resource_type definitions{
    {"apiextensions.k8s.io", "v1", "CustomResourceDefinition"}, "customresourcedefinitions", false};
const k8s::resource_type bundles{
    {"certificates.k8s.io", "v1beta1", "ClusterTrustBundle"}, "clustertrustbundles", false};

const k8s::object_key record_key{std::string(kcp_namespace), std::string(record_name)};

json read_definition() {
  std::ifstream in(std::string(RW_SOURCE_DIR) +
                   "/deploy/dev/infrastructuremanager.kyma-project.io_runtimes.yaml");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  std::string why;
  auto parsed = k8s::devserver::parse_yaml(text, why);
  BOOST_REQUIRE_MESSAGE(parsed, why);
  return std::move(*parsed);
}

const k8s::resource_type& type_of(source which) {
  if (which == source::trust_bundle) return bundles;
  return which == source::pull_secret ? secrets_type() : config_maps_type();
}

k8s::object_key key_of(source which) {
  const bootstrapper_sources names;
  const std::string ns(kcp_namespace);
  switch (which) {
    case source::config:
      return {ns, names.config};
    case source::manifests:
      return {ns, names.manifests};
    case source::pull_secret:
      return {ns, names.pull_secret};
    case source::trust_bundle:
      break;
  }
  return {{}, names.trust_bundle};
}

json object_of(source which, const std::string& content) {
  const auto key = key_of(which);
  object metadata{{"name", key.name}};
  if (!key.ns.empty()) metadata["namespace"] = key.ns;
  object out{{"apiVersion", type_of(which).gvk.api_version()},
             {"kind", type_of(which).gvk.kind},
             {"metadata", std::move(metadata)}};
  if (which == source::trust_bundle) {
    out["spec"] = object{{"trustBundle", content}};
  } else if (which == source::pull_secret) {
    out["type"] = "kubernetes.io/dockerconfigjson";
    out["stringData"] = object{{".dockerconfigjson", "{\"auths\":{\"" + content + "\":{}}}"}};
  } else {
    out["data"] = object{{"content", content}};
  }
  return out;
}

/// What KIM copies.
json content_of(const json& object) {
  const auto* const spec = k8s::find(object, {"spec"});
  return spec == nullptr ? object.at("data") : *spec;
}

}  // namespace

/// On a busy machine the kernel may put off the delivery of what was sent over loopback. It
/// delivers what one CPU sent in order, so when a byte that was sent last has come, all has.
loopback_fence::loopback_fence() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
  sched_setaffinity(0, sizeof one, &one);
  tcp::acceptor acceptor(context_, {asio::ip::address_v4::loopback(), 0});
  near_.connect(acceptor.local_endpoint());
  near_.set_option(tcp::no_delay(true));
  acceptor.accept(far_);
}

void loopback_fence::flush() {
  char byte = 0;
  asio::write(near_, asio::buffer(&byte, 1));
  asio::read(far_, asio::buffer(&byte, 1));
}

/// What a process that leads has around the reactor.
struct test_env::running {
  explicit running(test_env& in)
      : api(in.connect("reactor")),
        reading(in.connect("informers")),
        sources(*reading, {}, {in.clock, in.log, in.metrics, core::make_random_source()}),
        runtimes(*reading, runtimes_type(), runtimes_informer(),
                 {in.clock, in.log, in.metrics, core::make_random_source()}),
        events(in.executor(), k8s::objects_of(*reading), {.component = "test"},
               {in.clock, in.log, in.metrics, core::make_random_source()}),
        reactor(
            in.executor(), sources, runtimes, in.options_,
            {*api, events, in.clock, in.watchdog_, in.log, in.metrics, core::make_random_source()}),
        tasks(in.executor()) {
    tasks.spawn(sources.run());
    tasks.spawn(runtimes.run());
    tasks.spawn(events.run());
    tasks.spawn(reactor.run());
  }

  std::unique_ptr<k8s::client> api;
  std::unique_ptr<k8s::client> reading;
  source_watch sources;
  k8s::informer runtimes;
  k8s::event_recorder events;
  config_sync reactor;
  core::task_group tasks;
};

test_env::test_env(sync_options options) : options_(std::move(options)) {
  server_.add_cluster(name_of_cluster);
  tasks_.spawn(server_.run());
  tasks_.spawn(watchdog_.run());
  author_ = connect("author");
  ok(author_->create(definitions, read_definition()));
  ok(author_->create(namespaces_type(), object{{"apiVersion", "v1"},
                                               {"kind", "Namespace"},
                                               {"metadata", object{{"name", kcp_namespace}}}}));
}

test_env::~test_env() {
  stop_kim();
  stop();
  finish(author_->close());
  tasks_.cancel();
  finish(tasks_.join());
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
  running_kim(test_env& in, cli::dev::kim_options options)
      : api(in.connect("kim")),
        sources(*api, {}, {in.clock, in.log, in.metrics, core::make_random_source()}),
        kim(*api, sources,
            [&in](json runtime) -> asio::awaitable<k8s::result<void>> {
              return configure(&in, k8s::key_of(runtime).name);
            },
            std::move(options),
            {in.executor(), in.clock, in.watchdog_, in.log, in.metrics,
             core::make_random_source()}),
        tasks(in.executor()) {
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
  source_watch sources;
  cli::dev::kim kim;
  core::task_group tasks;
};

void test_env::start_kim(cli::dev::kim_options options) {
  kim_ = std::make_unique<running_kim>(*this, std::move(options));
}

void test_env::stop_kim() {
  if (!kim_) return;
  kim_->tasks.cancel();
  finish(kim_->tasks.join());
  finish(kim_->api->close());
  kim_.reset();
}

cli::dev::kim& test_env::kim() {
  return kim_->kim;
}

std::string test_env::content() {
  return ok(running_kim::read_sources(author_.get()));
}

std::string test_env::noted(const std::string& name) {
  return std::string(k8s::annotation(runtime(name), signalled_annotation).value_or("nothing"));
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
  ok(author_->patch(runtimes_type(), {std::string(kcp_namespace), name}, k8s::patch_type::merge,
                    {{"status", {{"state", state}}}}, {.subresource = "status"}));
}

std::unique_ptr<k8s::client> test_env::connect(const std::string& name) {
  auto how = k8s::parse_kubeconfig(server_.kubeconfig(name_of_cluster), name, "");
  BOOST_REQUIRE_MESSAGE(how.has_value(), how.error().message);
  return std::make_unique<k8s::client>(executor(), std::move(*how),
                                       k8s::client_options{.name = name, .retry_base = {}},
                                       k8s::client_environment{clock, watchdog_, log, metrics});
}

void test_env::faults(
    std::function<k8s::devserver::fault(const std::string&, const std::string&)> decide) {
  server_.faults(name_of_cluster).decide = std::move(decide);
}

void test_env::put(source which, const std::string& content) {
  auto wanted = object_of(which, content);
  const auto made = call(author_->create(type_of(which), wanted));
  if (made.has_value()) return;
  BOOST_REQUIRE_MESSAGE(made.error().is(k8s::errc::already_exists), made.error().message);
  ok(author_->update(type_of(which), std::move(wanted)));
}

void test_env::remove(source which) {
  const auto gone = call(author_->remove(type_of(which), key_of(which)));
  BOOST_REQUIRE(gone.has_value() || gone.error().is(k8s::errc::not_found));
}

std::string test_env::digest(source which) {
  const auto got = call(author_->get(type_of(which), key_of(which)));
  if (got.has_value()) {
    return digest_of(which, k8s::object::from_text(boost::json::serialize(*got)));
  }
  BOOST_REQUIRE(got.error().is(k8s::errc::not_found));
  return digest_of(which, {});
}

void test_env::touch(source which, const std::string& label) {
  ok(author_->patch(type_of(which), key_of(which), k8s::patch_type::merge,
                    {{"metadata", {{"labels", {{"touched", label}}}}}}));
}

void test_env::add_runtime(const std::string& name) {
  ok(author_->create(runtimes_type(), {{"apiVersion", runtimes_type().gvk.api_version()},
                                       {"kind", runtimes_type().gvk.kind},
                                       {"metadata", {{"name", name}, {"namespace", kcp_namespace}}},
                                       {"spec", {{"shoot", {{"name", name}}}}}}));
  if (!kim_) set_state(name, "Ready");
}

void test_env::remove_runtime(const std::string& name) {
  ok(author_->remove(runtimes_type(), {std::string(kcp_namespace), name}));
}

json test_env::runtime(const std::string& name) {
  return ok(author_->get(runtimes_type(), {std::string(kcp_namespace), name}));
}

void test_env::annotate(const std::string& name, const json& annotations) {
  change(name, {{"annotations", annotations}});
}

void test_env::change(const std::string& name, const json& metadata) {
  ok(author_->patch(runtimes_type(), {std::string(kcp_namespace), name}, k8s::patch_type::merge,
                    {{"metadata", metadata}}));
}

json test_env::record() {
  return ok(author_->get(config_maps_type(), record_key));
}

std::optional<json> test_env::find_record() {
  auto got = call(author_->get(config_maps_type(), record_key));
  if (got.has_value()) return std::move(*got);
  BOOST_REQUIRE(got.error().is(k8s::errc::not_found));
  return std::nullopt;
}

void test_env::remove_record() {
  const auto gone = call(author_->remove(config_maps_type(), record_key));
  BOOST_REQUIRE(gone.has_value() || gone.error().is(k8s::errc::not_found));
}

bool test_env::has_event(std::string_view about, std::string_view reason) {
  const auto all = ok(author_->list(k8s::events_type(), {.ns = std::string(kcp_namespace)}));
  return std::ranges::any_of(all.at("items").as_array(), [&](const json& one) {
    return k8s::find_string(one, {"involvedObject", "kind"}) == "Runtime" &&
           k8s::find_string(one, {"involvedObject", "name"}) == about &&
           k8s::find_string(one, {"reason"}) == reason;
  });
}

/// Lets everything happen that can without time passing. A connection takes the kernel three
/// deliveries of its own before anybody is told.
void test_env::settle() {
  context_.restart();
  for (int quiet = 0; quiet < 3;) {
    quiet = context_.poll() > 0 ? 0 : quiet + 1;
    if (quiet > 0) loopback_.flush();
  }
}

void test_env::pass(core::duration by) {
  const auto until = clock.now() + by;
  for (;;) {
    settle();
    const auto next = std::min(clock.next_alarm(), until);
    clock.advance(std::max(next - clock.now(), core::duration::zero()));
    if (next == until) break;
  }
  settle();
}

void test_env::finish(asio::awaitable<void> work) {
  bool done = false;
  std::exception_ptr failure;
  context_.restart();
  asio::co_spawn(context_, std::move(work), [&](std::exception_ptr thrown) {
    failure = std::move(thrown);
    done = true;
  });
  settle();
  const auto patience = clock.now() + std::chrono::minutes(10);
  while (!done && clock.now() < patience) pass(std::chrono::milliseconds(1));
  BOOST_REQUIRE_MESSAGE(done, "the test's own work did not end");
  if (failure) std::rethrow_exception(failure);
}

void test_env::eventually(const std::function<bool()>& condition, std::string_view what) {
  const auto patience = clock.now() + std::chrono::minutes(10);
  bool holds = condition();
  while (!holds && clock.now() < patience) {
    pass(std::chrono::milliseconds(100));
    holds = condition();
  }
  BOOST_REQUIRE_MESSAGE(holds, "not in time: " << what);
}

double test_env::metric(const std::string& series) const {
  const auto text = core::expose(metrics);
  const auto line = '\n' + series + ' ';
  const auto at = text.find(line);
  return at == std::string::npos ? -1 : std::stod(text.substr(at + line.size()));
}

}  // namespace rw::config_sync::test
