#include "sandbox.hpp"
#include <array>
#include <string>

BOOST_AUTO_TEST_SUITE(recorded)

using namespace rw;
using namespace rw::conformance;

// Responses of kube-apiserver 1.32.13. The suite's real server, which is older, gives those that do
// not say `later`.

namespace {

enum class version : unsigned char { any, later };

bool is_known(version since) {
  return since == version::any || backend::embedded();
}

/// The path of a resource; NS stands for the sandbox's namespace.
std::string in_namespace(const sandbox& in, std::string path) {
  const auto at = path.find("NS");
  return at == path.npos ? path : path.replace(at, 2, in.ns);
}

const std::string dry = "?dryRun=All";

struct field {
  std::string_view path;
  std::string_view object;
  std::string_view pointer;
  std::string_view value;  ///< JSON
  version since = version::any;
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(fields_that_a_client_leaves_out_have_their_values, sandbox) {
  constexpr auto ingresses = "/apis/networking.k8s.io/v1/namespaces/NS/ingresses";
  constexpr auto slices = "/apis/discovery.k8s.io/v1/namespaces/NS/endpointslices";
  constexpr auto limits = "/api/v1/namespaces/NS/limitranges";
  constexpr auto claims = "/api/v1/namespaces/NS/persistentvolumeclaims";
  constexpr auto controllers = "/api/v1/namespaces/NS/replicationcontrollers";
  constexpr auto nodes = "/api/v1/nodes";
  constexpr auto drivers = "/apis/storage.k8s.io/v1/csidrivers";
  constexpr auto on_nodes = "/apis/storage.k8s.io/v1/csinodes";
  constexpr auto roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
  constexpr auto claim = R"({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests":
      {"storage": "1"}}, "dataSource": {"kind": "PersistentVolumeClaim", "name": "c"}}})";
  constexpr auto controller = R"({"spec": {"template": {"metadata": {"labels": {"a": "b"}},
      "spec": {"containers": [{"name": "c", "image": "i"}]}}}})";
  const field all[] = {
      {ingresses, R"({"spec": {"defaultBackend": {"resource": {"kind": "L", "name": "n"}}}})",
       "/spec/defaultBackend/resource/apiGroup", "null"},
      {slices, R"({"addressType": "IPv4"})", "/endpoints", "null", version::later},
      {slices, R"({"addressType": "IPv4"})", "/ports", "null", version::later},
      {limits, R"({"spec": {"limits": []}})", "/spec/limits", "null"},
      {limits, R"({"spec": {}})", "/spec/limits", "null"},
      {limits, "{}", "/spec/limits", "null"},
      {on_nodes, R"({"spec": {"drivers": []}})", "/spec/drivers", "null"},
      {roles, R"({"rules": []})", "/rules", "null"},
      {nodes, "{}", "/spec/taints",
       R"([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}])"},
      {drivers, "{}", "/spec/attachRequired", "true"},
      {drivers, "{}", "/spec/podInfoOnMount", "false"},
      {drivers, R"({"spec": {}})", "/spec/volumeLifecycleModes", R"(["Persistent"])"},
      {drivers, "{}", "/spec/fsGroupPolicy", R"("ReadWriteOnceWithFSType")"},
      {drivers, "{}", "/spec/requiresRepublish", "false", version::later},
      {drivers, "{}", "/spec/seLinuxMount", "false", version::later},
      {drivers, "{}", "/spec/storageCapacity", "false", version::later},
      {claims, claim, "/spec/dataSource/apiGroup", "null"},
      {claims, claim, "/spec/dataSourceRef",
       R"({"apiGroup": null, "kind": "PersistentVolumeClaim", "name": "c"})", version::later},
      {controllers, controller, "/metadata/labels", R"({"a": "b"})"},
      {controllers, controller, "/spec/selector", R"({"a": "b"})"},
  };
  for (const auto& [at, object, pointer, value, since] : all) {
    if (!is_known(since)) continue;
    const auto sent = with(parse(object), "/metadata/name", "x");
    const auto got =
        server.http("POST", in_namespace(*this, std::string(at) + dry), serialize(sent));
    BOOST_TEST(got.status == 201u, at << ": " << got.body);
    const auto made = parse(got.body);
    const auto* const there = find(made, pointer);
    BOOST_TEST((there != nullptr && *there == parse(value)), at << " " << pointer << got.body);
  }
}

namespace {

struct numbers : sandbox {
  numbers()
      : type(define(definition(server.unique("n") + ".example.com", "Number", "numbers",
                               parse(R"({"type": "object", "properties": {"spec": {"type": "object",
            "properties": {"n": {"type": "integer"}, "m": {"type": "number"},
                           "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                           "i": {"x-kubernetes-int-or-string": true}}}}})")))) {}

  backend::answer post(std::string_view spec, const std::string& query = "?fieldValidation=Warn") {
    const auto name = server.unique("x");
    return server.http("POST", path(type) + query,
                       R"({"apiVersion": ")" + type.gvk.api_version() +
                           R"(", "kind": "Number", "metadata": {"name": ")" + name +
                           R"("}, "spec": )" + std::string(spec) + "}");
  }

  k8s::resource_type type;
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(numbers_are_written_as_go_writes_them, numbers) {
  const std::pair<std::string_view, std::string_view> all[] = {
      {R"({"n":2.0})", R"({"n":2})"},
      {R"({"n":2e0})", R"({"n":2})"},
      {R"({"m":2.0})", R"({"m":2})"},
      {R"({"m":0.1e1})", R"({"m":1})"},
      {R"({"i":2.0})", R"({"i":2})"},
      {R"({"any":{"x":2.0,"y":1E2,"z":1.10}})", R"({"any":{"x":2,"y":100,"z":1.1}})"},
      {R"({"any":{"x":12345678901234567890}})", R"({"any":{"x":12345678901234567000}})"},
      {R"({"any":{"x":9223372036854775808}})", R"({"any":{"x":9223372036854776000}})"},
  };
  for (const auto& [sent, written] : all) {
    const auto got = post(sent);
    BOOST_TEST(got.status == 201u, sent << ": " << got.body);
    BOOST_TEST(parse(got.body).at("spec") == parse(written), sent << ": " << got.body);
  }
  const auto zero = post(R"({"any":{"x":-0.0}})");
  const auto name = text(parse(zero.body), "/metadata/name");
  BOOST_TEST(get(type, name).at_pointer("/spec/any/x") == json(0));
}

BOOST_FIXTURE_TEST_CASE(number_that_its_type_can_not_hold_is_refused, numbers) {
  for (const auto* query : {"?fieldValidation=Warn", "?fieldValidation=Strict"}) {
    BOOST_TEST(post(R"({"n":9223372036854775808})", query).status == 422u);
    BOOST_TEST(post(R"({"m":1e400})", query).status == 400u);
  }
  const auto made = parse(post(R"({"n":1})").body);
  const auto at = path(type, text(made, "/metadata/name"));
  const auto patched = server.http("PATCH", at, R"({"spec":{"any":{"x":1e400}}})",
                                   {{"content-type", "application/merge-patch+json"}});
  BOOST_TEST(patched.status >= 400u);
  BOOST_TEST(list(type).at("items").as_array().size() == 1u);
  ok(api.remove(type, key(text(made, "/metadata/name"))));
}

BOOST_FIXTURE_TEST_CASE(quantity_may_be_a_number, sandbox) {
  const std::pair<std::string_view, std::string_view> all[] = {
      {"0.5", "500m"}, {"1.0", "1"}, {"1000.0", "1k"}, {"2", "2"}};
  for (const auto& [sent, written] : all) {
    const auto limits = R"({"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container",
        "max": {"cpu": )" +
                        std::string(sent) + "}}]}}";
    const auto got = server.http("POST", "/api/v1/namespaces/" + ns + "/limitranges" + dry, limits);
    BOOST_TEST(text(parse(got.body), "/spec/limits/0/max/cpu") == written, got.body);
  }
}

BOOST_FIXTURE_TEST_CASE(field_that_json_has_twice_is_decoded_twice, sandbox) {
  const auto post = [&](const std::string& plural, const std::string& validation,
                        const std::string& body) {
    return server.http(
        "POST", "/api/v1/namespaces/" + ns + "/" + plural + dry + "&fieldValidation=" + validation,
        body);
  };
  for (const std::string validation : {"Warn", "Ignore"}) {
    auto got = post("configmaps", validation,
                    R"({"metadata": {"name": "t"}, "data": {"a": "1"}, "data": {"b": "2"}})");
    BOOST_TEST(parse(got.body).at("data") == parse(R"({"a": "1", "b": "2"})"));
    got = post("configmaps", validation,
               R"({"metadata": {"name": "t", "labels": {"a": "1"}, "labels": {"b": "2"}}})");
    BOOST_TEST(parse(got.body).at_pointer("/metadata/labels") == parse(R"({"a": "1", "b": "2"})"));
    got = post("configmaps", validation,
               R"({"metadata": {"name": "t"}, "metadata": {"labels": {"a": "b"}}})");
    BOOST_TEST(got.status == 201u, got.body);
    got = post("services", validation,
               R"({"metadata": {"name": "t"}, "spec": {"ports": [{"port": 80}]},
                   "spec": {"selector": {"a": "b"}}})");
    BOOST_TEST(got.status == 201u, got.body);
    got = post("services", validation,
               R"({"metadata": {"name": "t"}, "spec": {"ports": [{"name": "a", "port": 80}],
                   "ports": [{"port": 81}]}})");
    BOOST_TEST(text(parse(got.body), "/spec/ports/0/name") == "a", got.body);
    BOOST_TEST(text(parse(got.body), "/spec/ports/0/port") == "81", got.body);
  }
}

namespace {

struct status_kind {
  std::string_view path;
  std::string_view object;
  std::string_view kept;  ///< labels, annotations, finalizers, owners that the write has changed
  version since = version::any;
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(write_of_a_status_changes_the_metadata_that_the_kind_lets_it, sandbox) {
  constexpr auto pod = R"({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [
      {"name": "c", "image": "i"}], "restartPolicy": "Always"}})";
  const auto workload = std::string(R"({"spec": {"selector": {"matchLabels": {"a": "b"}},
      "serviceName": "s", "template": )") +
                        pod + "}}";
  auto replicas = workload;
  replicas.erase(replicas.find(R"("serviceName": "s",)"), 19);
  const auto job = std::string(R"({"spec": {"template": {"spec": {"containers": [
      {"name": "c", "image": "i"}], "restartPolicy": "Never"}}}})");
  const auto cron = R"({"spec": {"schedule": "* * * * *", "jobTemplate": )" + job + "}}";
  const auto controller = std::string(R"({"spec": {"template": )") + pod + "}}";
  constexpr auto volume = R"({"spec": {"capacity": {"storage": "1Gi"}, "accessModes":
      ["ReadWriteOnce"], "hostPath": {"path": "/x"}}})";
  constexpr auto claim = R"({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests":
      {"storage": "1"}}}})";
  constexpr auto attachment = R"({"spec": {"attacher": "a", "nodeName": "n", "source":
      {"persistentVolumeName": "v"}}})";
  constexpr auto scaler = R"({"spec": {"maxReplicas": 2, "scaleTargetRef": {"kind": "Deployment",
      "name": "d", "apiVersion": "apps/v1"}}})";
  constexpr auto all_parts = "labels annotations finalizers owners ";
  const status_kind all[] = {
      {"/apis/apps/v1/namespaces/NS/deployments", replicas, "annotations finalizers owners "},
      {"/apis/apps/v1/namespaces/NS/statefulsets", workload, all_parts},
      {"/apis/apps/v1/namespaces/NS/daemonsets", replicas, all_parts},
      {"/apis/apps/v1/namespaces/NS/replicasets", replicas, all_parts},
      {"/api/v1/namespaces/NS/pods", pod, "labels annotations finalizers "},
      {"/api/v1/nodes", "{}", all_parts},
      {"/api/v1/namespaces", "{}", all_parts},
      {"/api/v1/namespaces/NS/services", R"({"spec": {"ports": [{"port": 80}]}})", all_parts},
      {"/api/v1/persistentvolumes", volume, all_parts},
      {"/api/v1/namespaces/NS/persistentvolumeclaims", claim, all_parts},
      {"/api/v1/namespaces/NS/replicationcontrollers", controller, all_parts},
      {"/api/v1/namespaces/NS/resourcequotas", R"({"spec": {"hard": {"pods": "1"}}})", all_parts},
      {"/apis/batch/v1/namespaces/NS/jobs", job, all_parts},
      {"/apis/batch/v1/namespaces/NS/cronjobs", cron, all_parts, version::later},
      {"/apis/networking.k8s.io/v1/namespaces/NS/ingresses",
       R"({"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}})",
       all_parts},
      {"/apis/autoscaling/v2/namespaces/NS/horizontalpodautoscalers", scaler, all_parts,
       version::later},
      {"/apis/policy/v1/namespaces/NS/poddisruptionbudgets", R"({"spec": {"maxUnavailable": 1}})",
       all_parts, version::later},
      {"/apis/storage.k8s.io/v1/volumeattachments", attachment, "", version::later},
  };
  for (const auto& [kind, object, kept, since] : all) {
    if (!is_known(since)) continue;
    const auto at = in_namespace(*this, std::string(kind));
    const auto name = server.unique("s");
    const auto made =
        server.http("POST", at, serialize(with(parse(object), "/metadata/name", name)));
    BOOST_TEST(made.status == 201u, kind << ": " << made.body);
    const auto change = R"({"metadata": {"labels": {"x": "y"}, "annotations": {"x": "y"},
        "finalizers": ["example.com/x"], "ownerReferences": [{"apiVersion": "v1", "kind":
        "ConfigMap", "name": "x", "uid": "x"}]}})";
    const std::vector<std::pair<std::string, std::string>> merge{
        {"content-type", "application/merge-patch+json"}};
    const auto got = server.http("PATCH", at + "/" + name + "/status", change, merge);
    BOOST_TEST(got.status == 200u, kind << ": " << got.body);
    const auto now = parse(got.body);
    std::string changed;
    if (text(now, "/metadata/labels/x") == "y") changed += "labels ";
    if (text(now, "/metadata/annotations/x") == "y") changed += "annotations ";
    if (text(now, "/metadata/finalizers/0") == "example.com/x") changed += "finalizers ";
    if (text(now, "/metadata/ownerReferences/0/uid") == "x") changed += "owners ";
    BOOST_TEST(changed == kept, kind);
    BOOST_TEST(text(now, "/metadata/generation") == text(parse(made.body), "/metadata/generation"),
               kind);
    server.http("PATCH", at + "/" + name, R"({"metadata": {"finalizers": null}})", merge);
    server.http("DELETE", at + "/" + name + "?gracePeriodSeconds=0");
  }
}

BOOST_FIXTURE_TEST_CASE(watch_of_a_kind_without_protobuf_is_not_acceptable, sandbox) {
  if (!is_known(version::later)) return;  // kube-apiserver sends protobuf
  constexpr auto protobuf = "application/vnd.kubernetes.protobuf";
  for (const std::string at : {"/apis/certificates.k8s.io/v1beta1/clustertrustbundles",
                               "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"}) {
    const auto watch = at + "?watch=true&timeoutSeconds=1";
    BOOST_TEST(server.http("GET", watch, {}, {{"accept", protobuf}}).status == 406u, at);
    const auto json = std::string(protobuf) + ",application/json";
    const auto got = server.http("GET", watch, {}, {{"accept", json}});
    BOOST_TEST(got.status == 200u, at);
    BOOST_TEST(got.headers.get("content-type") == "application/json", at);
  }
}

// kubectl's `explain --recursive` ends at a field without a type.
BOOST_FIXTURE_TEST_CASE(field_of_the_openapi_document_has_a_type, sandbox) {
  if (!is_known(version::later)) return;
  for (const auto* at : {"/openapi/v3/api/v1", "/openapi/v3/apis/apiextensions.k8s.io/v1"}) {
    const auto document = parse(server.http("GET", at).body);
    for (const auto& type : document.at_pointer("/components/schemas").as_object()) {
      for (const auto& property : type.value().at("properties").as_object()) {
        BOOST_TEST(!property.value().as_object().empty(), type.key() << " " << property.key());
      }
    }
  }
}

namespace {

struct secret {
  std::string_view content;
  std::string_view field;  ///< of the first cause; empty: valid
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(secret_has_what_its_type_requires, sandbox) {
  const secret all[] = {
      {R"({"type": "kubernetes.io/tls", "data": {"tls.crt": ""}})", "data[tls.key]"},
      {R"({"type": "kubernetes.io/tls", "data": {"tls.crt": "", "tls.key": ""}})", ""},
      {R"({"type": "kubernetes.io/ssh-auth", "data": {"ssh-privatekey": ""}})",
       "data[%s][ssh-privatekey]"},
      {R"({"type": "kubernetes.io/basic-auth", "data": {"a": ""}})", "data[%s][username]"},
      {R"({"type": "kubernetes.io/basic-auth", "data": {"password": ""}})", ""},
      {R"({"type": "kubernetes.io/dockercfg"})", "data[.dockercfg]"},
      {R"({"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "eA=="}})",
       "data[.dockerconfigjson]"},
      {R"({"type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": "{}"}})",
       ""},
      {R"({"type": "kubernetes.io/service-account-token"})",
       "metadata.annotations[kubernetes.io/service-account.name]"},
      {R"({"data": {"..a": ""}})", "data[..a]"},
  };
  for (const auto& [content, at] : all) {
    const auto sent = with(parse(content), "/metadata/name", "s");
    const auto got = server.http("POST", path(secrets) + dry, serialize(sent));
    BOOST_TEST(got.status == (at.empty() ? 201u : 422u), content << ": " << got.body);
    BOOST_TEST(text(parse(got.body), "/details/causes/0/field") == at, content);
  }
}

BOOST_FIXTURE_TEST_CASE(bytes_are_written_in_one_form_of_base64, sandbox) {
  const auto post = [&](std::string_view value) {
    const auto sent = object(secrets, "s", {{"data", {{"a", value}}}});
    return server.http("POST", path(secrets) + dry, serialize(sent));
  };
  BOOST_TEST(text(parse(post("eH\nk=\n").body), "/data/a") == "eHk=");
  for (const auto* wrong : {"eHk", "eH k=", "e"}) BOOST_TEST(post(wrong).status == 400u, wrong);
}

BOOST_FIXTURE_TEST_CASE(containers_of_a_pod_stay_as_many, sandbox) {
  const k8s::resource_type pods{{"", "v1", "Pod"}, "pods", true};
  const auto made = create(
      pods,
      object(pods, "p",
             {{"spec", {{"containers", boost::json::array{{{"name", "c"}, {"image", "i"}}}}}}}));
  auto more = made;
  more.at_pointer("/spec/containers").as_array().push_back({{"name", "d"}, {"image", "i"}});
  refuse(api.update(pods, more), {422, "Invalid", "spec.containers: Forbidden"});
  const auto first =
      with(made, "/spec/initContainers", boost::json::array{{{"name", "d"}, {"image", "i"}}});
  refuse(api.update(pods, first), {422, "Invalid", "spec.initContainers: Forbidden"});
}

BOOST_FIXTURE_TEST_CASE(projected_token_needs_a_service_account, sandbox) {
  const k8s::resource_type pods{{"", "v1", "Pod"}, "pods", true};
  const auto pod = parse(R"({"spec": {"containers": [{"name": "c", "image": "i"}], "volumes": [
      {"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "p"}}]}}]}})");
  refuse(api.create(pods, here(object(pods, "p", pod))),
         {422, "Invalid", "spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden"});
}

BOOST_FIXTURE_TEST_CASE(selector_of_a_budget_is_replaced_by_a_strategic_patch, sandbox) {
  if (!is_known(version::later)) return;
  const k8s::resource_type budgets{
      {"policy", "v1", "PodDisruptionBudget"}, "poddisruptionbudgets", true};
  create(budgets, object(budgets, "b", parse(R"({"spec": {"maxUnavailable": 1, "selector":
      {"matchLabels": {"a": "b", "c": "d"}}}})")));
  const auto next =
      ok(api.patch(budgets, key("b"), k8s::patch_type::strategic_merge,
                   parse(R"({"spec": {"selector": {"matchLabels": {"a": null, "e": "f"}}}})")));
  BOOST_TEST(next.at_pointer("/spec/selector") == parse(R"({"matchLabels": {"a": "", "e": "f"}})"));
}

namespace {

constexpr auto client_apply = "kubectl-client-side-apply";
constexpr auto last_applied = "kubectl.kubernetes.io/last-applied-configuration";

/// A ConfigMap as `kubectl apply` creates it.
json client_applied(std::string_view value) {
  auto made = config_map("a", {{"k", value}, {"l", "1"}});
  const auto annotation = serialize(made) + "\n";
  made.as_object()["metadata"].as_object()["annotations"] = {{last_applied, annotation}};
  return made;
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(kubectl_takes_over_what_it_applied_as_a_client, sandbox) {
  create(config_maps, client_applied("1"), {.field_manager = client_apply});
  const auto wanted = config_map("a", {{"k", "2"}, {"l", "1"}});
  refuse(api.apply(config_maps, here(wanted), {.field_manager = "other"}),
         {409, "Conflict", "conflict with \"kubectl-client-side-apply\""});
  const auto next = apply(config_maps, wanted, {.field_manager = "kubectl"});
  BOOST_TEST(text(next, "/data/k") == "2");
  BOOST_TEST(managed_by(next, "kubectl", "Apply") != nullptr);
  BOOST_TEST(!has(*managed_by(next, client_apply, "Update"), "/fieldsV1/f:data/f:k"));
  const auto annotation =
      parse(text(next, "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration"));
  BOOST_TEST(annotation.at("data") == wanted.at("data"));
}

BOOST_FIXTURE_TEST_CASE(kubectl_is_in_conflict_where_another_client_wrote_meanwhile, sandbox) {
  create(config_maps, client_applied("1"), {.field_manager = client_apply});
  merge(config_maps, "a", R"({"data": {"l": "other"}})", {.field_manager = "other"});
  refuse(api.apply(config_maps, here(config_map("a", {{"k", "2"}, {"l", "2"}})),
                   {.field_manager = "kubectl"}),
         {409, "Conflict", "conflict with \"other\""});
}

BOOST_AUTO_TEST_SUITE_END()
