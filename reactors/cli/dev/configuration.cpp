#include "reactors/cli/dev/configuration.hpp"

#include "reactors/cli/dev/manifests.hpp"
#include "tls/issuer.hpp"

#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <utility>

namespace rw::cli::dev {
namespace {

namespace asio = boost::asio;

bool all_embedded(const clusters& all) {
  return all.kcp().embedded &&
         std::ranges::all_of(all.runtimes(), [](const cluster& one) { return one.embedded; });
}

}  // namespace

configuration::configuration(services& with, const dev_settings& settings, const clusters& all,
                             k8s::client& kcp, kim::runtime_client find,
                             std::function<void(const arrival&)> tell)
    : services_(with),
      trust_bundles_(all_embedded(all)),
      view_(with.clock, all.runtimes().size(), std::move(tell)),
      sources_(kcp, {}, {with.clock, with.log, with.metrics, core::make_random_source()}),
      subscription_(sources_.subscribe([this] { look_at_sources(); })),
      kim_(with, kcp, sources_, std::move(find),
           {.mode = settings.bootstrapper,
            .workers = settings.kim_workers,
            .duration = settings.kim_duration}),
      stop_(with.executor),
      tasks_(with.executor, [this](std::exception_ptr thrown) {
        if (!failure_) failure_ = thrown;
        stop_.set();
      }) {}

std::string configuration::sources() const {
  auto out = sample_bootstrapper_sources();
  if (!trust_bundles_) return out;
  const auto ca = need(tls::issuer::create({.common_name = "rt-bootstrapper"}), "trust bundle");
  return out + "---\n" + trust_bundle_manifest(ca.certificate_pem());
}

void configuration::look_at_sources() {
  if (!sources_.ready()) return;
  for (const auto which : {source::config, source::pull_secret, source::trust_bundle}) {
    const auto now = sources_.get(which);
    view_.wanted(which, now ? digest_of(which, now) : std::string());
  }
}

void configuration::add(node& runtime) {
  auto tell = [this, name = runtime.runtime()](source which, const std::string& digest) {
    view_.has(name, which, digest);
  };
  runtimes_.push_back(std::make_unique<bootstrapped>(services_, runtime.log(), runtime.api(),
                                                     trust_bundles_, std::move(tell)));
  tasks_.spawn(runtimes_.back()->run());
}

asio::awaitable<void> configuration::run() {
  co_await asio::this_coro::throw_if_cancelled(false);
  tasks_.spawn(sources_.run());
  tasks_.spawn(kim_.run());
  co_await stop_.wait();
  tasks_.cancel();
  co_await tasks_.join();
  if (failure_) std::rethrow_exception(failure_);
}

std::string what_to_try(const std::string& kcp, bootstrapper_mode mode,
                        const std::string& first_runtime) {
  std::string out = "Rotate what runtimes pull images with, and see it arrive here:\n" + kcp +
                    " -n kcp-system patch secret registry-credentials --type merge -p \\\n"
                    "    '{\"stringData\":{\".dockerconfigjson\":\"{\\\"auths\\\":"
                    "{\\\"registry.example.com\\\":{\\\"username\\\":\\\"kyma\\\","
                    "\\\"password\\\":\\\"second\\\"}}}\"}}'\n";
  if (mode == bootstrapper_mode::signal) {
    out += "Which runtimes Kyma Infrastructure Manager, simulated here, has been told to do:\n" +
           kcp + " -n kcp-system get runtimes -o yaml\n";
  } else {
    out += "What is there, and what a broken configuration leads to: nothing but a condition:\n" +
           kcp + " -n kcp-system get runtimebootstrappers\n" + kcp +
           " -n kcp-system patch configmap rt-bootstrapper-config --type merge -p \\\n"
           "    '{\"data\":{\"rt-bootstrapper-config.json\":\"{\"}}'\n";
  }
  return out + "One runtime apart, in another mode (off, signal, shadow, direct):\n" + kcp +
         " -n kcp-system annotate --overwrite runtime " + first_runtime + " " +
         std::string(bootstrapper_mode_annotation) + "=" +
         (mode == bootstrapper_mode::direct ? "signal" : "direct") + "\n";
}

}  // namespace rw::cli::dev
