#include "rw/reactors/intake/kyma_router.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/value.hpp>

#include <utility>

namespace rw::kyma_router {
namespace {

std::string runtime_id_of(const k8s::object& kyma) {
  const auto value = kyma.parse();
  return std::string(k8s::label(value, runtime_id_label));
}

core::counter& count(core::metrics& metrics, const char* result) {
  return core::make_counter(metrics, "rw_kyma_router_events_total",
                            "Number of events of runtimes, by outcome", {{"outcome", result}});
}

}  // namespace

void index_by_runtime(k8s::informer& kymas) {
  kymas.add_index(runtime_index, [](const k8s::object& from, std::vector<std::string>& values) {
    if (auto id = runtime_id_of(from); !id.empty()) values.push_back(std::move(id));
  });
}

std::vector<k8s::object> kymas_of(const k8s::informer& kymas, std::string_view runtime_id) {
  return kymas.objects().by_index(runtime_index, runtime_id);
}

router::router(const k8s::informer& kymas, destination to, router_options options,
               router_environment environment)
    : kymas_(kymas),
      destination_(std::move(to)),
      options_(options),
      clock_(environment.clock),
      log_(environment.log),
      routed_(count(environment.metrics, "routed")),
      held_(count(environment.metrics, "held")),
      unknown_(count(environment.metrics, "unknown")) {}

void router::on_event(std::string_view runtime_id) {
  const auto found = kymas_of(kymas_, runtime_id);
  if (found.empty()) {
    unknown_.Increment();
    log_.limited(log_limit_, core::log_level::warning, "event dropped: no Kyma has its runtime id",
                 {{"runtimeId", runtime_id}});
    return;
  }
  bool now = false;
  for (const auto& kyma : found) now = lead(kyma.key()) || now;
  (now ? routed_ : held_).Increment();
}

/// Enqueues the Kyma. Returns false if it is delayed.
bool router::lead(const k8s::object_key& kyma) {
  const auto now = clock_.now();
  auto& next = next_.use(kyma);
  const bool due = next <= now;
  destination_(kyma, due ? core::duration::zero() : next - now);
  if (due) next = now + options_.interval;
  return due;
}

}  // namespace rw::kyma_router
