#include "rw/k8s/client/request_metrics.hpp"

#include <chrono>
#include <utility>

namespace rw::k8s {

request_metrics::request_metrics(core::metrics& registry, std::string client)
    : registry_(registry),
      client_(std::move(client)),
      retries_(core::make_counter(registry, "rw_kube_retries_total",
                                  "Requests to the API server that were tried again",
                                  {{"client", client_}})) {}

void request_metrics::count(verb verb, unsigned status, std::string_view otherwise) {
  for (const auto& series : requests_) {
    if (series.operation == verb && series.status == status && series.otherwise == otherwise) {
      series.counter->Increment();
      return;
    }
  }
  const auto code = status != 0 ? std::to_string(status) : std::string(otherwise);
  auto& counter = core::make_counter(
      registry_, "rw_kube_requests_total",
      "Attempts at requests to the API server, by what came of them",
      {{"client", client_}, {"verb", std::string(label_of(verb))}, {"code", code}});
  counter.Increment();
  requests_.push_back({verb, status, otherwise, &counter});
}

void request_metrics::took(verb verb, core::duration time) {
  auto*& histogram = durations_[static_cast<std::size_t>(verb)];
  if (histogram == nullptr) {
    histogram = &core::make_histogram(registry_, "rw_kube_request_duration_seconds",
                                      "From the request's first byte to the answer's last",
                                      {{"client", client_}, {"verb", std::string(label_of(verb))}},
                                      core::latency_bounds());
  }
  histogram->Observe(core::seconds(time));
}

void request_metrics::limited(core::duration wait) {
  if (limited_ == nullptr) {
    limited_ = &core::make_counter(registry_, "rw_kube_rate_limited_seconds_total",
                                   "Time that requests waited for the client's own rate limit",
                                   {{"client", client_}});
  }
  limited_->Increment(core::seconds(wait));
}

}  // namespace rw::k8s
