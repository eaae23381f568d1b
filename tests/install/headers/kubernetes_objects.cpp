#include "use.hpp"
#include <rw/k8s/objects/delta.hpp>
#include <rw/k8s/objects/described.hpp>
#include <rw/k8s/objects/difference.hpp>
#include <rw/k8s/objects/failure.hpp>
#include <rw/k8s/objects/label_selector.hpp>
#include <rw/k8s/objects/manifests.hpp>
#include <rw/k8s/objects/names.hpp>
#include <rw/k8s/objects/object.hpp>
#include <rw/k8s/objects/projection.hpp>
#include <rw/k8s/objects/types.hpp>

namespace k8s = rw::k8s;

struct node_labels {
  std::string a;
  std::optional<int> b;
};
BOOST_DESCRIBE_STRUCT(node_labels, (), (a, b))

void use_kubernetes_objects() {
  const auto manifests = k8s::parse_manifests(
      "{apiVersion: v1, kind: Node, metadata: {name: node-1, labels: {a: b}}}");
  EXPECT(manifests.has_value() && manifests->size() == 1);
  const auto& node = manifests->front();
  EXPECT(k8s::key_of(node) == (k8s::object_key{"", "node-1"}));
  EXPECT(k8s::find_string(node, {"kind"}) == "Node");
  EXPECT(k8s::label_selector::parse("a=b")->matches(k8s::find(node, {"metadata", "labels"})));
  EXPECT(!k8s::find_difference(node, node));
  const auto labels = k8s::from_json<node_labels>(*k8s::find(node, {"metadata", "labels"}));
  EXPECT(labels && labels->a == "b" && !labels->b);
  EXPECT(k8s::schema_of<node_labels>().at("required").as_array().size() == 1);
  const k8s::resource_type nodes{{"", "v1", "Node"}, "nodes", false};
  EXPECT(k8s::object_path(nodes, k8s::key_of(node)) == "/api/v1/nodes/node-1");
  EXPECT(k8s::well_known_type("v1", "Secret").has_value());

  const auto stored = k8s::object::from_text(R"({"metadata":{"name":"n","resourceVersion":"7"}})");
  EXPECT(stored.name() == "n" && stored.resource_version() == "7");
  const k8s::delta change{k8s::delta::kind::deleted, stored, {}};
  EXPECT(change.latest().name() == "n");
  EXPECT(!k8s::projection::metadata().root().inside.empty());
  EXPECT(k8s::make_error_code(k8s::errc::not_found).category() == k8s::api_category());
}
