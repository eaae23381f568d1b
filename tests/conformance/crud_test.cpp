#include "sandbox.hpp"
#include <algorithm>
#include <vector>

BOOST_AUTO_TEST_SUITE(crud)

using namespace rw;
using namespace rw::conformance;

BOOST_FIXTURE_TEST_CASE(created_object_gets_uid_creation_time_and_resource_version, sandbox) {
  const auto made = create(config_maps, config_map("a", {{"k", "v"}}));
  BOOST_TEST(text(made, "/metadata/uid").size() == 36u);
  BOOST_TEST(text(made, "/metadata/creationTimestamp").size() ==
             sizeof("2001-01-01T00:00:00Z") - 1);
  BOOST_TEST(version(made) > 0u);
  BOOST_TEST(text(made, "/metadata/namespace") == ns);
  BOOST_TEST(text(made, "/data/k") == "v");
}

BOOST_FIXTURE_TEST_CASE(created_object_names_its_kind, sandbox) {
  const auto made = create(config_maps, config_map("a"));
  BOOST_TEST(text(made, "/kind") == "ConfigMap");
  BOOST_TEST(text(made, "/apiVersion") == "v1");
}

BOOST_FIXTURE_TEST_CASE(created_object_reads_back, sandbox) {
  const auto made = create(config_maps, config_map("a", {{"k", "v"}}, {{"l", "m"}}));
  BOOST_TEST(get(config_maps, "a") == made);
}

BOOST_FIXTURE_TEST_CASE(object_that_exists_is_not_created_again, sandbox) {
  create(config_maps, config_map("a", {{"k", "first"}}));
  refuse(api.create(config_maps, here(config_map("a", {{"k", "second"}}))),
         {409, "AlreadyExists", "configmaps \"a\" already exists"});
  BOOST_TEST(text(get(config_maps, "a"), "/data/k") == "first");
}

BOOST_FIXTURE_TEST_CASE(object_that_is_not_there_is_not_found, sandbox) {
  refuse(api.get(config_maps, key("none")), {404, "NotFound", "configmaps \"none\" not found"});
}

BOOST_FIXTURE_TEST_CASE(namespace_that_is_not_there_takes_no_objects, sandbox) {
  const auto name = server.unique("none");
  refuse(api.create(config_maps, with(config_map("a"), "/metadata/namespace", name)),
         {404, "NotFound", "namespaces \"" + name + "\" not found"});
}

BOOST_FIXTURE_TEST_CASE(same_name_in_two_namespaces_is_two_objects, sandbox) {
  sandbox other;
  const auto mine = create(config_maps, config_map("a"));
  const auto others = other.create(config_maps, config_map("a"));
  BOOST_TEST(text(mine, "/metadata/uid") != text(others, "/metadata/uid"));
}

BOOST_FIXTURE_TEST_CASE(generated_name_is_the_prefix_and_five_characters, sandbox) {
  auto unnamed = without(config_map("x"), "/metadata/name");
  unnamed = with(std::move(unnamed), "/metadata/generateName", "made-");
  const auto first = text(create(config_maps, unnamed), "/metadata/name");
  const auto second = text(create(config_maps, unnamed), "/metadata/name");
  BOOST_TEST(first.starts_with("made-"));
  BOOST_TEST(first.size() == sizeof("made-12345") - 1);
  BOOST_TEST(first != second);
}

BOOST_FIXTURE_TEST_CASE(name_wins_over_a_generated_name, sandbox) {
  const auto made = create(config_maps, with(config_map("a"), "/metadata/generateName", "made-"));
  BOOST_TEST(text(made, "/metadata/name") == "a");
  BOOST_TEST(text(made, "/metadata/generateName") == "made-");
}

BOOST_FIXTURE_TEST_CASE(object_needs_a_name, sandbox) {
  refuse(api.raw("POST", path(config_maps), "application/json", R"({"data": {"k": "v"}})"),
         {422, "Invalid", "metadata.name: Required value: name or generateName is required"});
}

BOOST_FIXTURE_TEST_CASE(name_is_a_dns_subdomain, sandbox) {
  for (const auto* name : {"Upper", "under_score", "-dash", "dot.", "a/b", "sp ace"}) {
    refuse(api.create(config_maps, here(config_map(name))), {422, "Invalid", "metadata.name"});
  }
  create(config_maps, config_map("a.b-c.0"));
}

BOOST_FIXTURE_TEST_CASE(name_of_a_namespace_is_a_dns_label, sandbox) {
  refuse(api.create(namespaces, object(namespaces, "with.dot")), {422, "Invalid", "metadata.name"});
  refuse(api.create(namespaces, object(namespaces, std::string(64, 'a'))),
         {422, "Invalid", "metadata.name"});
}

BOOST_FIXTURE_TEST_CASE(namespace_of_the_object_is_that_of_the_request, sandbox) {
  const auto elsewhere = with(config_map("a"), "/metadata/namespace", "default");
  refuse(api.raw("POST", path(config_maps), "application/json", serialize(elsewhere)),
         {400, "BadRequest",
          "the namespace of the provided object does not match the namespace sent on the request"});
}

BOOST_FIXTURE_TEST_CASE(namespace_of_a_cluster_scoped_object_is_cleared, sandbox) {
  const k8s::resource_type classes{
      {"scheduling.k8s.io", "v1", "PriorityClass"}, "priorityclasses", false};
  auto definition_of_globes =
      definition(server.unique("g") + ".example.com", "Globe", "globes",
                 parse(R"({"type": "object", "x-kubernetes-preserve-unknown-fields": true})"));
  definition_of_globes.at_pointer("/spec").as_object()["scope"] = "Cluster";
  const auto globes = define(definition_of_globes);
  const auto space = parse(R"({"metadata": {"namespace": "other"}})");
  const auto step = parse(
      R"([{"op": "add", "path": "/metadata/namespace", "value": "other"},
          {"op": "add", "path": "/metadata/labels", "value": {"l": "1"}}])");
  std::vector<k8s::resource_type> types{classes, globes};
  // 1.20 takes the name of a Namespace for that of its own.
  if (backend::embedded()) types.push_back(namespaces);
  for (const auto& type : types) {
    const auto name = server.unique("nsc");
    const auto placed = [&](const std::string& of) {
      auto made = with(object(type, of), "/metadata/namespace", "other");
      return type.plural == "priorityclasses" ? with(std::move(made), "/value", 7) : made;
    };
    const auto send = [&](const char* method, const std::string& path, const char* media,
                          const json& body) {
      const auto made = parse(ok(api.raw(method, path, media, serialize(body))));
      BOOST_TEST(!has(made, "/metadata/namespace"));
      return made;
    };
    const auto all = path(type);
    const auto self = path(type, name);
    const auto made = send("POST", all, "application/json", placed(name));
    send("PUT", self, "application/json",
         with(placed(name), "/metadata/resourceVersion", text(made, "/metadata/resourceVersion")));
    send("PATCH", self, "application/merge-patch+json", space);
    if (type.plural != "globes") {
      send("PATCH", self, "application/strategic-merge-patch+json", space);
    }
    send("PATCH", self, "application/json-patch+json", step);
    send("PATCH", self + "?fieldManager=m&force=true", "application/apply-patch+yaml",
         placed(name));
    send("PATCH", path(type, name + "x") + "?fieldManager=m", "application/apply-patch+yaml",
         placed(name + "x"));
    for (const auto& each : {name, name + "x"}) ok(api.remove(type, {"", each}));
  }
}

BOOST_FIXTURE_TEST_CASE(namespace_may_be_left_to_the_request, sandbox) {
  const auto made =
      parse(ok(api.raw("POST", path(config_maps), "application/json", serialize(config_map("a")))));
  BOOST_TEST(text(made, "/metadata/namespace") == ns);
}

BOOST_FIXTURE_TEST_CASE(kind_and_version_may_be_left_to_the_request, sandbox) {
  const auto bare = R"({"metadata": {"name": "a"}, "data": {"k": "v"}})";
  const auto made = parse(ok(api.raw("POST", path(config_maps), "application/json", bare)));
  BOOST_TEST(text(made, "/kind") == "ConfigMap");
  BOOST_TEST(text(made, "/apiVersion") == "v1");
}

BOOST_FIXTURE_TEST_CASE(kind_of_the_object_is_that_of_the_request, sandbox) {
  const auto wrong = with(config_map("a"), "/kind", "Secret");
  refuse(api.create(config_maps, here(wrong)),
         {400, "BadRequest", "Secret in version \"v1\" cannot be handled as a ConfigMap"});
}

BOOST_FIXTURE_TEST_CASE(version_of_the_object_is_that_of_the_request, sandbox) {
  const auto wrong = with(config_map("a"), "/apiVersion", "v2");
  refuse(api.create(config_maps, here(wrong)),
         {400, "BadRequest", "ConfigMap in version \"v2\" cannot be handled as a ConfigMap"});
}

BOOST_FIXTURE_TEST_CASE(uid_and_times_are_the_servers_to_give, sandbox) {
  auto wanted = config_map("a");
  wanted = with(std::move(wanted), "/metadata/uid", "mine");
  wanted = with(std::move(wanted), "/metadata/creationTimestamp", "2001-01-01T00:00:00Z");
  wanted = with(std::move(wanted), "/metadata/deletionTimestamp", "2001-01-01T00:00:00Z");
  const auto made = create(config_maps, wanted);
  BOOST_TEST(text(made, "/metadata/uid") != "mine");
  BOOST_TEST(!text(made, "/metadata/creationTimestamp").starts_with("2001"));
  BOOST_TEST(!has(made, "/metadata/deletionTimestamp"));
}

BOOST_FIXTURE_TEST_CASE(object_that_has_a_version_is_not_created, sandbox) {
  const auto why = failed(
      api.create(config_maps, here(with(config_map("a"), "/metadata/resourceVersion", "1"))));
  BOOST_TEST(why.message.find("resourceVersion should not be set on objects to be created") !=
             std::string::npos);
  BOOST_TEST(!there(config_maps, "a"));
}

BOOST_FIXTURE_TEST_CASE(version_of_a_new_object_matters_only_when_it_is_stored, sandbox) {
  const auto versioned = [&](std::string_view name, std::string_view version) {
    return here(with(config_map(name), "/metadata/resourceVersion", version));
  };
  ok(api.create(config_maps, versioned("a", "1"), {.dry_run = true}));
  refuse(api.create(config_maps, versioned("Upper", "1")), {422, "Invalid"});
  create(config_maps, config_map("a"));
  refuse(api.create(config_maps, versioned("a", "1")), {500, ""});
  refuse(api.create(config_maps, versioned("a", "1"), {.dry_run = true}), {409, "AlreadyExists"});
  ok(api.create(config_maps, versioned("b", "0")));
  ok(api.create(config_maps, versioned("c", "newest")));
}

BOOST_FIXTURE_TEST_CASE(fields_that_no_one_knows_are_dropped, sandbox) {
  const auto made = create(config_maps, with(config_map("a"), "/unknown", "x"));
  BOOST_TEST(!has(made, "/unknown"));
}

BOOST_FIXTURE_TEST_CASE(field_of_the_wrong_type_is_rejected, sandbox) {
  refuse(api.create(config_maps, here(config_map("a", {{"k", 5}}))), {400, "BadRequest"});
  refuse(api.create(config_maps, here(with(config_map("a"), "/data", 5))), {400, "BadRequest"});
}

BOOST_FIXTURE_TEST_CASE(labels_have_a_syntax, sandbox) {
  refuse(api.create(config_maps, here(config_map("a", nullptr, {{"l", "not valid!"}}))),
         {422, "Invalid", "metadata.labels: Invalid value: \"not valid!\""});
  refuse(api.create(config_maps, here(config_map("a", nullptr, {{"not valid", "v"}}))),
         {422, "Invalid", "metadata.labels: Invalid value: \"not valid\""});
  create(config_maps, config_map("a", nullptr, {{"example.com/Some_Name.0", "Some_Value.0"}}));
}

BOOST_FIXTURE_TEST_CASE(annotations_have_a_size_in_all, sandbox) {
  const std::string large(257 << 10, 'x');
  refuse(
      api.create(config_maps, here(with(config_map("a"), "/metadata/annotations", {{"a", large}}))),
      {422, "Invalid", "metadata.annotations: Too long: must have at most 262144 bytes"});
}

BOOST_FIXTURE_TEST_CASE(update_with_an_empty_uid_keeps_that_of_the_object, sandbox) {
  const auto made = create(config_maps, config_map("a"));
  const auto next = update(config_maps, with(config_map("a", {{"k", "v"}}), "/metadata/uid", ""));
  BOOST_TEST(text(next, "/metadata/uid") == text(made, "/metadata/uid"));
}

BOOST_FIXTURE_TEST_CASE(update_replaces_the_object, sandbox) {
  create(config_maps, config_map("a", {{"k", "1"}, {"l", "1"}}));
  const auto next = update(config_maps, config_map("a", {{"k", "2"}}));
  BOOST_TEST(next.at("data") == parse(R"({"k": "2"})"));
  BOOST_TEST(get(config_maps, "a") == next);
}

BOOST_FIXTURE_TEST_CASE(update_keeps_uid_and_creation_time, sandbox) {
  const auto made = create(config_maps, config_map("a"));
  auto wanted = config_map("a", {{"k", "v"}});
  wanted = with(std::move(wanted), "/metadata/creationTimestamp", "2001-01-01T00:00:00Z");
  const auto next = update(config_maps, wanted);
  BOOST_TEST(text(next, "/metadata/uid") == text(made, "/metadata/uid"));
  BOOST_TEST(text(next, "/metadata/creationTimestamp") ==
             text(made, "/metadata/creationTimestamp"));
}

BOOST_FIXTURE_TEST_CASE(update_at_the_current_version_is_done, sandbox) {
  const auto made = create(config_maps, config_map("a"));
  const auto next = update(config_maps, with(made, "/data/k", "v"));
  BOOST_TEST(version(next) > version(made));
}

BOOST_FIXTURE_TEST_CASE(update_at_an_old_version_is_a_conflict, sandbox) {
  const auto old = create(config_maps, config_map("a"));
  update(config_maps, config_map("a", {{"k", "newer"}}));
  refuse(api.update(config_maps, with(old, "/data/k", "mine")),
         {409, "Conflict",
          "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please "
          "apply your changes to the latest version and try again"});
  BOOST_TEST(text(get(config_maps, "a"), "/data/k") == "newer");
}

BOOST_FIXTURE_TEST_CASE(update_of_another_uid_is_a_conflict, sandbox) {
  create(config_maps, config_map("a"));
  refuse(api.update(config_maps, here(with(config_map("a"), "/metadata/uid", "another"))),
         {409, "Conflict", "Precondition failed: UID in precondition: another"});
}

BOOST_FIXTURE_TEST_CASE(update_that_changes_nothing_leaves_the_version, sandbox) {
  const auto made = create(config_maps, config_map("a", {{"k", "v"}}));
  const auto same = update(config_maps, made);
  BOOST_TEST(same == made);
  BOOST_TEST(get(config_maps, "a") == made);
}

BOOST_FIXTURE_TEST_CASE(update_of_an_absent_object_is_not_found, sandbox) {
  refuse(api.update(config_maps, here(config_map("none"))),
         {404, "NotFound", "configmaps \"none\" not found"});
}

BOOST_FIXTURE_TEST_CASE(name_of_an_update_is_that_of_the_request, sandbox) {
  create(config_maps, config_map("a"));
  refuse(api.raw("PUT", path(config_maps, "a"), "application/json", serialize(config_map("b"))),
         {400, "BadRequest", "the name of the object (b) does not match the name on the URL (a)"});
}

BOOST_FIXTURE_TEST_CASE(custom_resource_is_updated_only_at_a_version, sandbox) {
  create(gadgets(), gadget("a"));
  refuse(api.update(gadgets(), here(gadget("a"))),
         {422, "Invalid",
          "metadata.resourceVersion: Invalid value: 0x0: must be specified for an update"});
}

BOOST_FIXTURE_TEST_CASE(of_many_updates_at_one_version_one_is_done, sandbox) {
  const auto made = create(config_maps, config_map("a"));
  std::vector<std::future<k8s::result<json>>> attempts;
  for (int i = 0; i < 16; ++i) {
    attempts.push_back(boost::asio::co_spawn(
        server.here.context, api.update(config_maps, with(made, "/data/writer", std::to_string(i))),
        boost::asio::use_future));
  }
  int done = 0;
  for (auto& one : attempts) {
    const auto got = one.get();
    if (got.has_value()) {
      ++done;
    } else {
      BOOST_TEST(got.error().is(k8s::errc::conflict));
    }
  }
  BOOST_TEST(done == 1);
}

BOOST_FIXTURE_TEST_CASE(versions_grow_with_each_change_of_any_object, sandbox) {
  const auto first = create(config_maps, config_map("a"));
  const auto second = create(secrets, object(secrets, "b"));
  const auto third = update(config_maps, config_map("a", {{"k", "v"}}));
  const auto fourth = create(gadgets(), gadget("c"));
  BOOST_TEST(version(first) < version(second));
  BOOST_TEST(version(second) < version(third));
  BOOST_TEST(version(third) < version(fourth));
}

BOOST_FIXTURE_TEST_CASE(change_of_the_spec_is_a_new_generation, sandbox) {
  const auto made = create(deployments, deployment("a"));
  BOOST_TEST(text(made, "/metadata/generation") == "1");
  const auto scaled = merge(deployments, "a", R"({"spec": {"replicas": 3}})");
  BOOST_TEST(text(scaled, "/metadata/generation") == "2");
}

BOOST_FIXTURE_TEST_CASE(change_of_the_metadata_is_no_new_generation, sandbox) {
  create(deployments, deployment("a"));
  const auto labelled = merge(deployments, "a", R"({"metadata": {"labels": {"l": "m"}}})");
  BOOST_TEST(text(labelled, "/metadata/generation") == "1");
}

BOOST_FIXTURE_TEST_CASE(generation_is_the_servers_to_count, sandbox) {
  create(deployments, deployment("a"));
  const auto next =
      merge(deployments, "a", R"({"metadata": {"generation": 7, "labels": {"l": "m"}}})");
  BOOST_TEST(text(next, "/metadata/generation") == "1");
  const auto made = create(gadgets(), with(gadget("b"), "/metadata/generation", 7));
  BOOST_TEST(text(made, "/metadata/generation") == "1");
}

BOOST_FIXTURE_TEST_CASE(config_map_has_no_generation, sandbox) {
  create(config_maps, config_map("a"));
  const auto next = update(config_maps, config_map("a", {{"k", "v"}}));
  BOOST_TEST(!has(next, "/metadata/generation"));
}

BOOST_FIXTURE_TEST_CASE(new_namespace_is_active, sandbox) {
  BOOST_TEST(text(get(namespaces, ns), "/status/phase") == "Active");
}

BOOST_FIXTURE_TEST_CASE(text_of_a_secret_becomes_base64, sandbox) {
  const auto made = create(secrets, object(secrets, "a", {{"stringData", {{"k", "value"}}}}));
  BOOST_TEST(text(made, "/data/k") == "dmFsdWU=");
  BOOST_TEST(!has(made, "/stringData"));
  BOOST_TEST(text(made, "/type") == "Opaque");
}

BOOST_FIXTURE_TEST_CASE(data_of_a_secret_is_base64, sandbox) {
  refuse(api.create(secrets, here(object(secrets, "a", {{"data", {{"k", "no base64!"}}}}))),
         {400, "BadRequest"});
}

BOOST_FIXTURE_TEST_CASE(immutable_field_is_not_changed, sandbox) {
  create(config_maps, with(config_map("a", {{"k", "v"}}), "/immutable", true));
  refuse(api.patch(config_maps, key("a"), k8s::patch_type::merge, parse(R"({"data": {"k": "w"}})")),
         {422, "Invalid", "data: Forbidden: field is immutable when `immutable` is set"});
}

BOOST_FIXTURE_TEST_CASE(microseconds_of_a_lease_are_kept, sandbox) {
  const auto made = create(leases, object(leases, "a", parse(R"({"spec": {
    "holderIdentity": "me", "leaseDurationSeconds": 15,
    "renewTime": "2024-02-29T12:34:56.123456Z", "leaseTransitions": 3}})")));
  BOOST_TEST(text(made, "/spec/renewTime") == "2024-02-29T12:34:56.123456Z");
  BOOST_TEST(text(made, "/spec/leaseTransitions") == "3");
}

BOOST_FIXTURE_TEST_CASE(dry_run_creates_nothing, sandbox) {
  const auto made = create(config_maps, config_map("a", {{"k", "v"}}), {.dry_run = true});
  BOOST_TEST(text(made, "/data/k") == "v");
  BOOST_TEST(!text(made, "/metadata/uid").empty());
  BOOST_TEST(!there(config_maps, "a"));
}

BOOST_FIXTURE_TEST_CASE(dry_run_reports_errors, sandbox) {
  refuse(api.create(config_maps, here(config_map("Upper")), {.dry_run = true}), {422, "Invalid"});
  create(config_maps, config_map("a"));
  refuse(api.create(config_maps, here(config_map("a")), {.dry_run = true}), {409, "AlreadyExists"});
}

BOOST_FIXTURE_TEST_CASE(dry_run_updates_nothing, sandbox) {
  const auto made = create(config_maps, config_map("a", {{"k", "1"}}));
  const auto seen = update(config_maps, config_map("a", {{"k", "2"}}), {.dry_run = true});
  BOOST_TEST(text(seen, "/data/k") == "2");
  BOOST_TEST(version(seen) == version(made));
  BOOST_TEST(get(config_maps, "a") == made);
}

BOOST_FIXTURE_TEST_CASE(dry_run_is_of_all_or_refused, sandbox) {
  refuse(
      api.raw("POST", path(config_maps) + "?dryRun=Some", "application/json",
              serialize(config_map("a"))),
      {422, "Invalid", "dryRun: Unsupported value: []string{\"Some\"}: supported values: \"All\""});
}

BOOST_FIXTURE_TEST_CASE(creating_answers_201_and_updating_200, sandbox) {
  const auto text_of = serialize(config_map("a"));
  BOOST_TEST(server.http("POST", path(config_maps), text_of).status == 201u);
  BOOST_TEST(server.http("PUT", path(config_maps, "a"), text_of).status == 200u);
  BOOST_TEST(server.http("GET", path(config_maps, "a")).status == 200u);
}

BOOST_FIXTURE_TEST_CASE(objects_may_come_as_yaml, sandbox) {
  const auto made = parse(ok(api.raw("POST", path(config_maps), "application/yaml",
                                     "metadata:\n  name: a\ndata:\n  k: |\n    two\n    lines\n")));
  BOOST_TEST(text(made, "/data/k") == "two\nlines\n");
}

BOOST_FIXTURE_TEST_CASE(update_of_an_absent_lease_creates_it, sandbox) {
  const std::string_view lease =
      R"({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"}})";
  ok(api.raw("PUT", path(leases, "a"), "application/json", std::string(lease)));
  BOOST_TEST(there(leases, "a"));
}

BOOST_FIXTURE_TEST_CASE(update_of_an_absent_object_with_a_uid_is_in_conflict, sandbox) {
  refuse(api.raw("PUT", path(config_maps, "a"), "application/json",
                 R"({"metadata": {"name": "a", "uid": "another"}})"),
         {409, "Conflict", "UID in precondition: another"});
  refuse(
      api.raw("PUT", path(config_maps, "a"), "application/json", R"({"metadata": {"name": "a"}})"),
      {404, "NotFound"});
}

BOOST_FIXTURE_TEST_CASE(service_has_no_port_twice, sandbox) {
  const auto with_ports = [](std::string_view ports) {
    return object(services, "a", {{"spec", {{"ports", parse(ports)}}}});
  };
  for (const auto* const ports :
       {R"([{"name": "a", "port": 80}, {"name": "a", "port": 81}])",
        R"([{"name": "a", "port": 80}, {"name": "b", "port": 80}])",
        R"([{"name": "UPPER", "port": 80}])", R"([{"port": 80, "targetPort": "80"}])"}) {
    refuse(api.create(services, here(with_ports(ports))), {422, "Invalid", "spec.ports["});
  }
  create(services, with_ports(R"([{"name": "a", "port": 80},
                                  {"name": "b", "port": 80, "protocol": "UDP"}])"));
}

BOOST_FIXTURE_TEST_CASE(deployment_that_recreates_has_no_rolling_update, sandbox) {
  create(deployments, deployment("a"));
  refuse(api.patch(deployments, key("a"), k8s::patch_type::merge,
                   parse(R"({"spec": {"strategy": {"type": "Recreate"}}})")),
         {422, "Invalid", "may not be specified when strategy `type` is 'Recreate'"});
}

BOOST_AUTO_TEST_SUITE_END()
