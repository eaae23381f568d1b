// What mode `direct` writes to runtimes.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/bootstrapper/desired_set.hpp"
#include "rw/reactors/cli/doctor_pre_checks.hpp"

#include <boost/json/object.hpp>

#include <utility>

namespace rw::cli {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

/// Of the pull Secret only its name matters for rights.
json::value pull_secret_of(const bootstrapper::target_names& of) {
  json::object metadata{{"name", of.pull_secret}, {"namespace", of.ns}};
  return json::object{{"apiVersion", "v1"}, {"kind", "Secret"}, {"metadata", std::move(metadata)}};
}

}  // namespace

asio::awaitable<std::vector<json::value>> read_direct_objects(pre_context* with) {
  const auto& config = with->planned.settings.runtime_config;
  std::vector<json::value> out;
  if (config.mode != bootstrapper_mode::direct && config.mode != bootstrapper_mode::shadow) {
    co_return out;
  }
  bootstrapper::render_input input{.to = config.direct.to};
  std::string error;
  for (const auto kind : {source::config, source::manifests, source::trust_bundle}) {
    const auto& names = config.direct.defaults;
    input.at(kind).name = names.describe(kind);
    if (input.at(kind).name.empty()) continue;
    const auto got = co_await with->kcp.get(type_of(kind), names.key_of(kind));
    if (got) {
      input.at(kind).object = *got;
      continue;
    }
    expect_response(got.error());
    if (kind != source::trust_bundle) error = got.error().message;  // that one may be missing
  }
  const auto desired =
      bootstrapper::render(bootstrapper::unit::bootstrapper, input, with->shared.clock.wall());
  if (error.empty() && !desired.valid()) error = bootstrapper::describe(desired.found.errors);
  if (!error.empty()) {
    co_await with->journal.report(
        {finding_state::not_proven, "bootstrapper",
         "the rights to write the Runtime Bootstrapper to runtimes can't be checked: " + error,
         "check again when its sources are in KCP (deploy/configuration-of-runtimes.md)"});
    co_return out;
  }
  for (const auto& each : desired.objects) out.push_back(each.object);
  out.push_back(pull_secret_of(config.direct.to));
  co_return out;
}

}  // namespace rw::cli
