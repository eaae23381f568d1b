#include "rw/k8s/devserver/default_objects.hpp"

#include "rw/k8s/devserver/cluster.hpp"
#include "rw/k8s/devserver/roles.hpp"
#include "rw/k8s/devserver/write_plan.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>

#include <array>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

// Facts of Kubernetes 1.32: "plugin/pkg/auth/authorizer/rbac/bootstrappolicy",
// "pkg/apis/scheduling" and "apiserver, pkg/apis/flowcontrol/bootstrap".

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

constexpr std::string_view reading = "get list watch";
constexpr std::string_view writing = "create delete deletecollection patch update";
constexpr std::string_view any_verb = "create delete deletecollection get list patch update watch";

/// What a user-facing role may do in addition to the roles before it: group, resources, verbs.
constexpr std::array<std::string_view, 4> grants[] = {
    {"view", "",
     "bindings configmaps endpoints events limitranges namespaces namespaces/status "
     "persistentvolumeclaims persistentvolumeclaims/status pods pods/log pods/status "
     "replicationcontrollers replicationcontrollers/scale replicationcontrollers/status "
     "resourcequotas resourcequotas/status serviceaccounts services services/status",
     reading},
    {"view", "apps",
     "controllerrevisions daemonsets daemonsets/status deployments deployments/scale "
     "deployments/status replicasets replicasets/scale replicasets/status statefulsets "
     "statefulsets/scale statefulsets/status",
     reading},
    {"view", "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status", reading},
    {"view", "batch", "cronjobs cronjobs/status jobs jobs/status", reading},
    {"view", "discovery.k8s.io", "endpointslices", reading},
    {"view", "networking.k8s.io", "ingresses ingresses/status networkpolicies", reading},
    {"view", "policy", "poddisruptionbudgets poddisruptionbudgets/status", reading},
    {"edit", "", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy",
     reading},
    {"edit", "", "serviceaccounts", "impersonate"},
    {"edit", "", "pods pods/attach pods/exec pods/portforward pods/proxy", writing},
    {"edit", "", "pods/eviction serviceaccounts/token", "create"},
    {"edit", "",
     "configmaps events persistentvolumeclaims replicationcontrollers "
     "replicationcontrollers/scale secrets serviceaccounts services services/proxy",
     writing},
    {"edit", "apps",
     "daemonsets deployments deployments/rollback deployments/scale replicasets "
     "replicasets/scale statefulsets statefulsets/scale",
     writing},
    {"edit", "autoscaling", "horizontalpodautoscalers", writing},
    {"edit", "batch", "cronjobs jobs", writing},
    {"edit", "coordination.k8s.io", "leases", any_verb},
    {"edit", "networking.k8s.io", "ingresses networkpolicies", writing},
    {"edit", "policy", "poddisruptionbudgets", writing},
    {"admin", "authorization.k8s.io", "localsubjectaccessreviews", "create"},
    {"admin", "rbac.authorization.k8s.io", "rolebindings roles", any_verb},
};

/// Flows with their precedence and priority level.
constexpr std::tuple<std::string_view, int, std::string_view> flows[] = {
    {"exempt", 1, "exempt"},
    {"probes", 2, "exempt"},
    {"system-leader-election", 100, "leader-election"},
    {"endpoint-controller", 150, "workload-high"},
    {"workload-leader-election", 200, "leader-election"},
    {"system-node-high", 400, "node-high"},
    {"system-nodes", 500, "system"},
    {"kube-controller-manager", 800, "workload-high"},
    {"kube-scheduler", 800, "workload-high"},
    {"kube-system-service-accounts", 900, "workload-high"},
    {"service-accounts", 9000, "workload-low"},
    {"global-default", 9900, "global-default"},
    {"catch-all", 10000, "catch-all"},
};

/// Priority levels and their shares. The last one rejects what is beyond its share, the others
/// queue it.
constexpr std::pair<std::string_view, int> levels[] = {
    {"global-default", 20}, {"leader-election", 10}, {"node-high", 40}, {"system", 30},
    {"workload-high", 40},  {"workload-low", 100},   {"catch-all", 5},
};

json::array words_in(std::string_view text) {
  const auto found = words(text);
  return json::array(found.begin(), found.end());
}

/// Makes the objects in a cluster of its own.
class maker {
 public:
  maker(const core::clock& clock, const boost::asio::ip::tcp::endpoint& at)
      : planner_(clock, numbers_),
        address_(at.address().is_unspecified() ? "127.0.0.1" : at.address().to_string()),
        port_(at.port()) {
    add("v1", "Namespace", "default", {});
    add_service();
    add_priorities();
    add_roles();
    add_flow_control();
    add_api_services();
    // Each cluster has its own.
    cluster_->objects.drop("namespaces");
  }

  std::shared_ptr<const storage> made() const { return {cluster_, &cluster_->objects}; }

 private:
  void add(std::string_view api_version, std::string_view kind, std::string_view name,
           json::object content, json::object labels = {}) {
    const auto slash = api_version.find('/');
    const auto group = slash == api_version.npos ? "" : api_version.substr(0, slash);
    call to{cluster_, cluster_->kinds.find_kind(group, api_version.substr(slash + 1), kind)};
    if (to.view.of->namespaced) to.key.ns = "default";
    content["metadata"] = {{"name", name}};
    if (!labels.empty()) content.at("metadata").as_object()["labels"] = std::move(labels);
    if (content.contains("rules")) {
      content.at("metadata").as_object()["annotations"] = {
          {"rbac.authorization.kubernetes.io/autoupdate", "true"}};
    }
    const auto status = content.contains("status") ? content.at("status") : json::value();
    auto plan = planner_.create(to, json::value(std::move(content)), {});
    if (plan.has_error()) throw std::logic_error(std::string(name) + ": " + plan.error().message);
    if (!status.is_null()) plan->object.as_object()["status"] = status;
    const auto collection = to.objects();
    cluster_->objects.put(*collection, cluster_->objects.next(plan->key, std::move(plan->object)));
  }

  void add_service() {
    const json::value port{{"name", "https"}, {"port", port_}, {"protocol", "TCP"}};
    const json::value served{
        {"name", "https"}, {"port", 443}, {"protocol", "TCP"}, {"targetPort", port_}};
    add("v1", "Service", "kubernetes",
        {{"spec", {{"clusterIP", "10.0.0.1"}, {"ports", json::array{served}}}}},
        {{"component", "apiserver"}, {"provider", "kubernetes"}});
    add("v1", "Endpoints", "kubernetes",
        {{"subsets", json::array{{{"addresses", json::array{{{"ip", address_}}}},
                                  {"ports", json::array{port}}}}}},
        {{"endpointslice.kubernetes.io/skip-mirror", "true"}});
    add("discovery.k8s.io/v1", "EndpointSlice", "kubernetes",
        {{"addressType", address_.find(':') == std::string::npos ? "IPv4" : "IPv6"},
         {"endpoints",
          json::array{{{"addresses", json::array{address_}}, {"conditions", {{"ready", true}}}}}},
         {"ports", json::array{port}}},
        {{"kubernetes.io/service-name", "kubernetes"}});
  }

  void add_priorities() {
    add("scheduling.k8s.io/v1", "PriorityClass", "system-cluster-critical",
        {{"value", 2'000'000'000},
         {"description",
          "Used for system critical pods that must run in the cluster, but can be moved to another "
          "node if necessary."}});
    add("scheduling.k8s.io/v1", "PriorityClass", "system-node-critical",
        {{"value", 2'000'001'000},
         {"description",
          "Used for system critical pods that must not be moved from their current node."}});
  }

  void add_role(std::string_view name, json::array rules, std::string_view part_of) {
    static constexpr std::string_view prefix = "rbac.authorization.k8s.io/aggregate-to-";
    json::object content{{"rules", std::move(rules)}};
    json::object labels{{"kubernetes.io/bootstrapping", "rbac-defaults"}};
    if (!part_of.empty()) labels[std::string(prefix) + std::string(part_of)] = "true";
    if (name != "cluster-admin") {
      json::object selected{{std::string(prefix) + std::string(name), "true"}};
      content["aggregationRule"] = {
          {"clusterRoleSelectors", json::array{{{"matchLabels", std::move(selected)}}}}};
    }
    add("rbac.authorization.k8s.io/v1", "ClusterRole", name, std::move(content), std::move(labels));
  }

  void add_roles() {
    add_role("cluster-admin", every_right(), "");
    json::array rules;
    for (const auto& [role, next] : {std::pair{"view", "edit"}, {"edit", "admin"}, {"admin", ""}}) {
      for (const auto& [to, group, resources, verbs] : grants) {
        if (to != role) continue;
        rules.push_back({{"apiGroups", json::array{group}},
                         {"resources", words_in(resources)},
                         {"verbs", words_in(verbs)}});
      }
      add_role(role, rules, next);
    }
  }

  void add_flow_control() {
    static constexpr std::string_view version = "flowcontrol.apiserver.k8s.io/v1";
    for (const auto& [name, precedence, level] : flows) {
      add(version, "FlowSchema", name,
          {{"spec",
            {{"matchingPrecedence", precedence},
             {"priorityLevelConfiguration", {{"name", level}}}}}});
    }
    add(version, "PriorityLevelConfiguration", "exempt", {{"spec", {{"type", "Exempt"}}}});
    for (const auto& [name, shares] : levels) {
      add(version, "PriorityLevelConfiguration", name,
          {{"spec",
            {{"type", "Limited"},
             {"limited",
              {{"nominalConcurrencyShares", shares},
               {"limitResponse", {{"type", name == "catch-all" ? "Reject" : "Queue"}}}}}}}});
    }
  }

  void add_api_services() {
    const json::value status = json::parse(R"({"conditions": [{"type": "Available",
      "status": "True", "reason": "Local", "message": "Local APIServices are always available"}]})");
    std::set<std::string> known;
    for (const auto& kind : builtin_resources()) {
      const auto& version = kind->versions.front().name;
      const auto name = version + "." + kind->group;
      if (!known.insert(name).second) continue;
      add("apiregistration.k8s.io/v1", "APIService", name,
          {{"spec",
            {{"group", kind->group},
             {"version", version},
             {"groupPriorityMinimum", kind->group.empty() ? 18'000 : 17'000},
             {"versionPriority", 1}}},
           {"status", status}},
          {{"kube-aggregator.kubernetes.io/automanaged", "onstart"}});
    }
  }

  /// The same in each process, so that uids are.
  core::random_source numbers_ = [i = std::uint64_t{0}]() mutable {
    return ++i * 0x9E37'79B9'7F4A'7C15;
  };
  const write_planner planner_;
  const std::shared_ptr<cluster> cluster_ = std::make_shared<cluster>("", 0);
  const std::string address_;
  const std::int64_t port_;
};

}  // namespace

std::shared_ptr<const storage> make_default_objects(const core::clock& clock,
                                                    const boost::asio::ip::tcp::endpoint& at) {
  return maker(clock, at).made();
}

}  // namespace rw::k8s::devserver
