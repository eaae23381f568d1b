#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/client/object_api.hpp"
#include "rw/k8s/controller/event_recorder.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/bootstrapper/resource.hpp"
#include "rw/reactors/bootstrapper/state.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/serialize.hpp>

#include "tests/unit/bootstrapper/samples.hpp"
#include "tests/unit/manual_clock.hpp"
#include "tests/unit/runtime_config/land.hpp"
#include <algorithm>
#include <utility>

namespace rw::runtime_config_test {

using namespace std::chrono_literals;
using bootstrapper_test::bundle_name;
using bootstrapper_test::deployment_key;
using test::bundles;
using test::deployments;
using test::require;

namespace {

const std::string kcp{kcp_namespace};
const std::string skr{skr_namespace};

/// All histories begin then, so that one is the same whenever it is played.
const auto began = std::chrono::sys_days(std::chrono::January / 1 / 2030);

/// One source: where it is kept, where it goes to, and which field is copied.
struct source_kind {
  k8s::resource_type type;
  k8s::object_key from;
  k8s::object_key to;
  std::string field;
};

const source_kind& kind_of(int versions::* which) {
  static const source_kind config{
      config_maps_type(), {kcp, "rt-bootstrapper-config"}, {skr, "rt-bootstrapper-config"}, "data"};
  static const source_kind pull_secret{
      secrets_type(), {kcp, "registry-credentials"}, {skr, "registry-credentials"}, "data"};
  static const source_kind trust_bundle{bundles, {{}, bundle_name}, {{}, bundle_name}, "spec"};
  static const source_kind manifests{
      config_maps_type(), {kcp, "runtime-bootstrapper-manifests"}, {}, {}};
  if (which == &versions::config) return config;
  if (which == &versions::pull_secret) return pull_secret;
  return which == &versions::trust_bundle ? trust_bundle : manifests;
}

std::uint64_t next_source = 0;

core::random_source make_seeded_source() {
  return k8s::test::chance(next_source++).source();
}

/// What makes sources of randomness from now on.
core::random_source (*seeded(std::uint64_t seed))() {
  next_source = seed << 20;
  return make_seeded_source;
}

/// From 2000 to 2099, self-signed; fixed, so that digests are the same in each run.
constexpr const char* certificate = R"(-----BEGIN CERTIFICATE-----
MIIBPjCB5aADAgECAgEBMAoGCCqGSM49BAMCMA4xDDAKBgNVBAMMA2J0cDAgFw0w
MDAxMDEwMDAwMDBaGA8yMTAwMDEwMTAwMDAwMFowDjEMMAoGA1UEAwwDYnRwMFkw
EwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEk5wjiCXEL//Qi73L3/pmsKsO2dX+nHpw
OAdGdR8qD+oX/QTKEYTTSEMrAjMqevusByoWsgOmAdCbgCoerFmwEaMyMDAwDwYD
VR0TAQH/BAUwAwEB/zAdBgNVHQ4EFgQUZrW8IR6zda2IW7gw6wN5Rc5ZUzswCgYI
KoZIzj0EAwIDSAAwRQIgBWAAsqK8F/8CbT50jFAor2jovWrd98PeqnTPTR/2eu4C
IQCfd3M6s73Nwm6drP4woOv31HtKZRFvTNuWkSjmh+wGnQ==
-----END CERTIFICATE-----
)";

/// Text between certificates says nothing.
std::string pem_at(int version) {
  return "version " + std::to_string(version) + "\n" + certificate;
}

json::value object_at(int versions::* which, int version) {
  const auto text = std::to_string(version);
  if (which == &versions::config) {
    return bootstrapper_test::config_map(
        bootstrapper_test::good_configuration("registry-" + text + ".example.com"));
  }
  if (which == &versions::pull_secret) return bootstrapper_test::pull_secret("secret-" + text);
  if (which == &versions::trust_bundle) return bootstrapper_test::trust_bundle(pem_at(version));
  return bootstrapper_test::manifests_source(bootstrapper_test::manifests("1.0." + text));
}

const std::string part_prefix = "part-";
const std::string only_prefix = "only-";

/// ConfigMaps that carry the version, and one that no other version has.
std::string parts_at(int version, int count) {
  const auto text = std::to_string(version);
  std::string out;
  for (int i = 0; i <= count; ++i) {
    const auto name = i < count ? part_prefix + std::to_string(i) : only_prefix + text;
    out += "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name +
           ", namespace: kyma-system}\ndata: {version: \"" + text + "\"}\n";
  }
  return out;
}

}  // namespace

// --- the manager -----------------------------------------------------------------------

struct land::manager {
  explicit manager(land& in)
      : writing(in.connect("kcp", {.name = "manager", .retry_base = {}})),
        watching(in.connect("kcp", {.name = "informers", .retry_base = {}})),
        pool(in.context.get_executor(),
             {.client = {.name = "runtimes",
                         .user_agent = "test",
                         .field_manager = "test",
                         .retry_base = {}},
              .local = k8s::local_servers::allowed},
             {in.clock, in.services_.watchdog, in.services_.log, in.services_.metrics,
              in.make_random}),
        events(in.context.get_executor(), k8s::objects_of(*watching), {.component = "manager"},
               {in.clock, in.services_.log, in.services_.metrics, in.chance.source()}),
        kubeconfigs(*watching, secrets_type(),
                    {.objects = {.ns = kcp, .labels = std::string(kyma_name_label)}},
                    {in.clock, in.services_.log, in.services_.metrics, in.chance.source()}),
        rollouts(*watching, runtime_rollout::runtime_rollouts_type(), {.objects = {.ns = kcp}},
                 {in.clock, in.services_.log, in.services_.metrics, in.chance.source()}),
        config(in.services_, in.settings, {*writing, *watching, pool, rollouts}, kubeconfigs,
               events),
        tasks(in.context.get_executor()) {
    tasks.spawn(pool.run());
    tasks.spawn(events.run());
    tasks.spawn(kubeconfigs.run());
    tasks.spawn(rollouts.run());
    tasks.spawn(config.watch());
    tasks.spawn(config.lead());
  }

  std::unique_ptr<k8s::client> writing;
  std::unique_ptr<k8s::client> watching;
  k8s::client_pool pool;
  k8s::event_recorder events;
  k8s::informer kubeconfigs;
  k8s::informer rollouts;
  cli::runtime_config config;
  core::task_group tasks;
};

void land::begin(bootstrapper_mode by_default) {
  settings.mode = by_default;
  manager_ = std::make_unique<manager>(*this);
}

void land::end() {
  if (!manager_) return;
  manager_->tasks.cancel();
  finish(manager_->tasks.join());
  finish(manager_->pool.close());
  finish(manager_->writing->close());
  finish(manager_->watching->close());
  manager_.reset();
}

// --- the land --------------------------------------------------------------------------

land::land(std::uint64_t seed)
    : simulated({.tls = false, .history = 100000}, seeded(seed), began),
      chance(seed),
      services_(
          context.get_executor(), clock,
          [this](std::string_view line) { logged.emplace_back(line); }, 10s) {
  services_.make_random = make_random;
  settings.direct.defaults.trust_bundle = bundle_name;
  settings.direct.create_for_runtimes = true;
  // Nobody starts pods here: content goes to all runtimes at once.
  settings.rollout = {.canaries = "0",
                      .max_unavailable = {100, true},
                      .failure_budget = {100, true},
                      .soak = 100ms};
  tasks.spawn(services_.watchdog.run());
  server.faults("kcp").decide = [this](const std::string& verb, const std::string& path) {
    return on_request ? on_request("kcp", verb, path) : k8s::devserver::fault();
  };
  finish(define({"crds/operator.kyma-project.io_runtimebootstrappers.yaml",
                 "crds/operator.kyma-project.io_runtimerollouts.yaml",
                 "dev/infrastructuremanager.kyma-project.io_runtimes.yaml"},
                {kcp, settings.direct.state_namespace}));
  for (const auto which :
       {&versions::config, &versions::pull_secret, &versions::trust_bundle, &versions::manifests}) {
    put(which);
  }
  kim_api_ = connect("kcp", {.name = "kim", .retry_base = {}});
  kim_sources_ = std::make_unique<dev::source_watch>(
      *kim_api_, bootstrapper_sources{.trust_bundle = bundle_name},
      k8s::informer_environment{clock, log, numbers, chance.source()});
  kim = std::make_unique<dev::kim>(
      *kim_api_, *kim_sources_, [this](json::value of) { return configure(std::move(of)); },
      dev::kim_options{.workers = 3, .patch = 2s, .wait = 3min, .work = 40s},
      dev::kim_environment{context.get_executor(), clock, watchdog, log, numbers, chance.source()});
  kim->options().vary = [this](core::duration most) { return chance.up_to(most); };
  tasks.spawn(kim_sources_->run());
  tasks.spawn(kim->run());
}

land::~land() {
  end();
  finish(kim_api_->close());
  finish(close());
}

/// What KIM reads is what there is, and not what its cache had.
asio::awaitable<k8s::result<void>> land::configure(json::value of) {
  const std::array all{std::pair{source::config, &versions::config},
                       std::pair{source::manifests, &versions::manifests},
                       std::pair{source::pull_secret, &versions::pull_secret},
                       std::pair{source::trust_bundle, &versions::trust_bundle}};
  const auto timer = clock.make_timer(context.get_executor());
  for (std::size_t same = 0; same < all.size();) {
    const auto& kind = kind_of(all.at(same).second);
    const auto got = co_await api("kcp").get(kind.type, kind.from);
    if (!got && !got.error().is(k8s::errc::not_found)) co_return got.error();
    const auto known = kim_sources_->get(all.at(same).first);
    const bool is_same =
        got ? known && known.resource_version() == k8s::resource_version_of(*got) : !known;
    same = is_same && kim_sources_->ready() ? same + 1 : 0;
    if (same > 0) continue;
    timer->expires_at(clock.now() + 100ms);
    const bool due = co_await timer->wait();
    if (!due) co_return k8s::failure{.code = k8s::errc::shut_down, .message = "cancelled"};
  }
  const auto name = k8s::key_of(of).name;
  if (on_kim) on_kim(name, true);
  auto done = co_await dev::configure_as_kim(&api(name), kim_sources_.get());
  if (on_kim) on_kim(name, false);
  co_return done;
}

void land::add_runtime(const std::string& name) {
  finish(environment::add_runtime(name));
  modes[name];
}

void land::remove_runtime(const std::string& name) {
  finish(remove("kcp", runtimes_type(), {kcp, name}));
  modes.erase(name);
}

json::value land::object_now(int versions::* which) const {
  if (which != &versions::manifests || parts == 0) return object_at(which, now.*which);
  return bootstrapper_test::manifests_source(bootstrapper_test::manifests(
      "1.0." + std::to_string(now.manifests), parts_at(now.manifests, parts)));
}

void land::put(int versions::* which) {
  std::erase(spoilt_, which);
  auto object = object_now(which);
  if (which != &versions::manifests) {
    known_[json::serialize(object.at(kind_of(which).field))] = now.*which;
  }
  finish(apply(std::move(object), kind_of(which).type));
}

void land::withdraw(int versions::* which) {
  std::erase(spoilt_, which);
  const auto& kind = kind_of(which);
  finish(remove("kcp", kind.type, kind.from));
}

void land::spoil(int versions::* which) {
  spoilt_.push_back(which);
  auto object = object_now(which);
  const auto* const field = which == &versions::trust_bundle ? "spec" : "data";
  for (auto& each : object.as_object()[field].as_object()) {
    each.value() = which == &versions::pull_secret ? "e30=" : "nothing: [";
  }
  finish(apply(std::move(object), kind_of(which).type));
}

bool land::is_spoilt(int versions::* which) const {
  return std::ranges::find(spoilt_, which) != spoilt_.end();
}

bool land::stores_pull_secret(int version) {
  const auto content = rw::bootstrapper::content_of(object_at(&versions::pull_secret, version));
  return call(api("kcp").get(secrets_type(), {settings.direct.state_namespace,
                                              "bootstrapper-source-content-" + digest_of(content)}))
      .has_value();
}

bool land::names_newest(const std::string& runtime) {
  using rw::bootstrapper::unit;
  const auto state = rw::bootstrapper::read_state(bootstrapper(runtime));
  const auto& named = state.at(unit::bootstrapper).contents;
  const auto sources = {&versions::config, &versions::trust_bundle, &versions::manifests};
  return std::ranges::all_of(sources, [&](int versions::* which) {
    const auto content = rw::bootstrapper::content_of(object_now(which));
    return std::ranges::find(named, digest_of(content)) != named.end();
  });
}

bootstrapper_mode land::mode_of(const std::string& runtime) const {
  return modes.at(runtime).value_or(settings.mode);
}

void land::annotate(const std::string& runtime, std::string_view annotation, json::value value) {
  json::object annotations;
  annotations[annotation] = std::move(value);
  finish(merge(runtimes_type(), {kcp, runtime},
               {{"metadata", {{"annotations", std::move(annotations)}}}}));
}

void land::set_mode(const std::string& runtime, std::optional<bootstrapper_mode> to) {
  modes.at(runtime) = to;
  annotate(runtime, bootstrapper_mode_annotation,
           to ? json::value(to_string(*to)) : json::value(nullptr));
}

bool land::lose_record() {
  bool signalled = false;
  for (const auto& [name, mode] : modes) {
    signalled = signalled || k8s::has_annotation(runtime(name), signalled_annotation);
  }
  if (!signalled) return false;
  const auto gone =
      call(api("kcp").remove(config_maps_type(), {kcp, std::string(config_sync::record_name)}));
  return gone.has_value();
}

std::string land::not_ready() const {
  return manager_->config.not_ready();
}

json::value land::runtime(const std::string& name) {
  return ok(api("kcp").get(runtimes_type(), {kcp, name}));
}

json::value land::bootstrapper(const std::string& name) {
  auto got = call(api("kcp").get(rw::bootstrapper::runtime_bootstrappers_type(), {kcp, name}));
  return got ? std::move(*got) : json::value();
}

json::value land::deployment(const std::string& runtime) {
  auto got = call(api(runtime).get(deployments, deployment_key));
  return got ? std::move(*got) : json::value();
}

double land::count(const std::string& state) const {
  return test::metric_of(services_.metrics, "rw_config_sync_runtimes{state=\"" + state + "\"}")
      .value_or(0);
}

double land::waiting() const {
  return count("outdated") + count("marked") + count("in_progress") + count("failed");
}

double land::marks() const {
  double sum = 0;
  for (const std::string reason : {"change", "retry"}) {
    const auto series = "rw_config_sync_marks_total{reason=\"" + reason + "\"}";
    sum += test::metric_of(services_.metrics, series).value_or(0);
  }
  return sum;
}

// --- what the runtimes have ------------------------------------------------------------

std::string land::lacks(const std::string& runtime) {
  for (const auto which : {&versions::config, &versions::pull_secret, &versions::trust_bundle}) {
    const auto& kind = kind_of(which);
    const auto got = call(api(runtime).get(kind.type, kind.to));
    const auto* const field = got ? k8s::find(*got, {kind.field}) : nullptr;
    if (field == nullptr || *field != object_at(which, now.*which).at(kind.field)) {
      return runtime + " lacks the newest " + kind.to.name;
    }
  }
  const auto version = "1.0." + std::to_string(now.manifests);
  if (k8s::label(deployment(runtime), "app.kubernetes.io/version") != version) {
    return runtime + " lacks the newest Deployment";
  }
  // Where we write ourselves, KIM is not asked to try again.
  if (mode_of(runtime) == bootstrapper_mode::direct) return {};
  const auto object = this->runtime(runtime);
  if (carries_mark(object)) return runtime + " carries a mark";
  return k8s::find_string(object, {"status", "state"}) == "Ready" ? "" : runtime + " is not Ready";
}

runtime_content land::content_of(const std::string& runtime) {
  runtime_content out;
  for (const auto which : {&versions::config, &versions::pull_secret, &versions::trust_bundle}) {
    const auto& kind = kind_of(which);
    const auto got = call(api(runtime).get(kind.type, kind.to));
    const auto* const field = got ? k8s::find(*got, {kind.field}) : nullptr;
    const auto found = field == nullptr ? known_.end() : known_.find(json::serialize(*field));
    if (found != known_.end()) out.at.*which = found->second;
  }
  const auto installed = deployment(runtime);
  const auto version = k8s::label(installed, "app.kubernetes.io/version");
  if (version.starts_with("1.0.")) out.at.manifests = std::stoi(std::string(version.substr(4)));
  if (parts == 0) return out;
  int count = 0;
  const auto list = ok(api(runtime).list(config_maps_type(), {.ns = skr}));
  for (const auto& each : list.at("items").as_array()) {
    const auto& name = k8s::key_of(each).name;
    if (!name.starts_with(part_prefix) && !name.starts_with(only_prefix)) continue;
    // KIM leaves what a later version does not have.
    if (k8s::label(each, rw::bootstrapper::synced_by_label).empty()) continue;
    ++count;
    const auto carries = k8s::find_string(each, {"data", "version"});
    out.parts += " " + name + "=" + std::string(carries);
    if (carries != std::to_string(out.at.manifests)) out.whole = false;
  }
  if (count != (out.at.manifests == 0 ? 0 : parts + 1)) out.whole = false;
  return out;
}

void land::run_pods(const std::string& runtime) {
  const auto object = deployment(runtime);
  if (object.is_null()) return;
  auto& state = pods_[runtime];
  const auto version = k8s::label(object, "app.kubernetes.io/version");
  const bool crash = ill.contains(runtime) || std::ranges::any_of(bad, [&](int each) {
                       return version == "1.0." + std::to_string(each);
                     });
  const auto of = std::string(k8s::uid_of(object)) + std::to_string(k8s::generation_of(object));
  if (state.of == of && state.crash == crash) return;
  if (state.crash != crash) finish(set_crashing(runtime, deployment_key, "manager", crash));
  if (!crash) finish(set_ready(runtime, deployment_key));
  state = {of, crash};
}

void land::step_wall(std::chrono::seconds by) {
  static_cast<core::manual_clock&>(clock).step_wall(by);
}

std::string to_string(const versions& of) {
  return "config " + std::to_string(of.config) + ", pull secret " + std::to_string(of.pull_secret) +
         ", trust bundle " + std::to_string(of.trust_bundle) + ", manifests " +
         std::to_string(of.manifests);
}

void land::set_all_ready() {
  for (const auto& [name, mode] : modes) {
    const auto object = deployment(name);
    const auto* const seen = k8s::find(object, {"status", "observedGeneration"});
    if (object.is_null() || (seen && *seen == json::value(k8s::generation_of(object)))) continue;
    finish(set_ready(name, deployment_key));
  }
}

}  // namespace rw::runtime_config_test
