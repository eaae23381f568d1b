// Reading an AdmissionReview of about 3.5 KiB: our reader against a Boost.JSON DOM of the same
// bytes. Prints one line of JSON for each figure.

#include "rw/reactors/events/review.hpp"

#include <boost/json/monotonic_resource.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "bench/figure.hpp"
#include "bench/rates.hpp"
#include <benchmark/benchmark.h>
#include <cstdio>
#include <string>

namespace {

using rw::admission::review_effect;

std::string object(const std::string& generation, const std::string& channel) {
  return R"({"apiVersion":"operator.kyma-project.io/v1beta2","kind":"Kyma","metadata":{"annotations":)"
         R"({"kubectl.kubernetes.io/last-applied-configuration":"{\"apiVersion\":\"operator.kyma-project.io/v1beta2\",)"
         R"(\"kind\":\"Kyma\",\"metadata\":{\"name\":\"default\",\"namespace\":\"kyma-system\"},\"spec\":{\"channel\":\"regular\"}}\n"},)"
         R"("creationTimestamp":"2024-05-01T09:00:00Z","finalizers":["operator.kyma-project.io/Kyma"],"generation":)" +
         generation +
         R"(,"labels":{"operator.kyma-project.io/watched-by":"kyma","operator.kyma-project.io/managed-by":"lifecycle-manager"},)"
         R"("managedFields":[{"apiVersion":"operator.kyma-project.io/v1beta2","fieldsType":"FieldsV1","fieldsV1":)"
         R"({"f:metadata":{"f:labels":{".":{},"f:operator.kyma-project.io/watched-by":{}}},"f:spec":{".":{},"f:channel":{},"f:modules":{}}},)"
         R"("manager":"kubectl","operation":"Update","time":"2024-05-01T09:00:00Z"}],"name":"default","namespace":"kyma-system",)"
         R"("resourceVersion":"812733","uid":"1f4a6c1e-53f7-4a0e-8e8c-2f8bb5c7a002"},"spec":{"channel":")" +
         channel +
         R"(","modules":[{"name":"btp-operator","customResourcePolicy":"CreateAndDelete","managed":true},)"
         R"({"name":"serverless","channel":"fast","managed":true},{"name":"istio","managed":true},{"name":"api-gateway","managed":true}]},)"
         R"("status":{"state":"Ready","conditions":[{"type":"Modules","status":"True","reason":"Ready","message":"all modules are in ready state",)"
         R"("lastTransitionTime":"2024-05-01T09:01:00Z","observedGeneration":3}]}})";
}

std::string review(const std::string& channel) {
  return R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"0df28fbd-5f5f-11e8-bc74-36e6bb280816",)"
         R"("kind":{"group":"operator.kyma-project.io","version":"v1beta2","kind":"Kyma"},)"
         R"("resource":{"group":"operator.kyma-project.io","version":"v1beta2","resource":"kymas"},)"
         R"("requestKind":{"group":"operator.kyma-project.io","version":"v1beta2","kind":"Kyma"},)"
         R"("requestResource":{"group":"operator.kyma-project.io","version":"v1beta2","resource":"kymas"},)"
         R"("name":"default","namespace":"kyma-system","operation":"UPDATE","userInfo":{"username":"kubernetes-admin",)"
         R"("groups":["system:masters","system:authenticated"]},"object":)" +
         object("4", channel) + R"(,"oldObject":)" + object("3", "regular") +
         R"(,"dryRun":false,"options":{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1","fieldManager":"kubectl-edit"}}})";
}

void read(benchmark::State& state, const std::string& body, review_effect expected) {
  rw::admission::reader reader;
  for (auto _ : state) {
    auto decided = reader.read(body);
    if (!decided || decided->effect != expected) {
      std::fprintf(stderr, "wrong decision\n");
      state.SkipWithError("wrong decision");
    }
    benchmark::DoNotOptimize(decided);
  }
  state.SetItemsProcessed(state.iterations());
}

void review_without_change(benchmark::State& state) {
  read(state, review("regular"), review_effect::no_change);
}
void review_with_change(benchmark::State& state) {
  read(state, review("fast"), review_effect::event);
}

void boost_json_dom(benchmark::State& state) {
  const auto body = review("regular");
  for (auto _ : state) {
    unsigned char memory[16384];
    boost::json::monotonic_resource resource(memory, sizeof memory);
    auto value = boost::json::parse(body, &resource);
    benchmark::DoNotOptimize(value);
  }
  state.SetItemsProcessed(state.iterations());
}

void answer(benchmark::State& state) {
  rw::admission::review_decision decided;
  decided.uid = "0df28fbd-5f5f-11e8-bc74-36e6bb280816";
  std::string out;
  for (auto _ : state) {
    out.clear();
    rw::admission::append_response(out, decided);
    benchmark::DoNotOptimize(out);
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK(review_without_change);
BENCHMARK(review_with_change);
BENCHMARK(boost_json_dom);
BENCHMARK(answer);

}  // namespace

int main(int argc, char** argv) {
  rw::bench::rates seen;
  if (!seen.run(argc, argv)) return 1;
  const double dom = seen.nanoseconds("boost_json_dom");
  for (const std::string name : {"review_without_change", "review_with_change"}) {
    if (seen.nanoseconds(name) == 0) continue;
    rw::bench::print({.name = "review/" + name,
                      .value = seen.nanoseconds(name),
                      .unit = "ns",
                      .peer = "Boost.JSON's DOM of the same bytes",
                      .peer_value = dom});
  }
  const double response = seen.nanoseconds("answer");
  if (response != 0) rw::bench::print({.name = "review/response", .value = response, .unit = "ns"});
}
