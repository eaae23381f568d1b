#include "sandbox.hpp"
#include <string>

BOOST_AUTO_TEST_SUITE(deletion)

using namespace rw;
using namespace rw::conformance;

namespace {

json held(json object) {
  return with(std::move(object), "/metadata/finalizers", boost::json::array{"example.com/hold"});
}

/// A sandbox whose ConfigMaps lose their finalizers at the end.
struct holding : sandbox {
  ~holding() {
    for (const auto* name : {"a", "b"}) {
      static_cast<void>(
          server.here.call(api.patch(config_maps, key(name), k8s::patch_type::merge,
                                     parse(R"({"metadata": {"finalizers": null}})"))));
    }
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(deleted_object_is_not_found, sandbox) {
  create(config_maps, config_map("a"));
  remove(config_maps, "a");
  BOOST_TEST(!there(config_maps, "a"));
}

BOOST_FIXTURE_TEST_CASE(deletion_returns_the_deleted_object, sandbox) {
  const auto made = create(config_maps, config_map("a"));
  const auto told = remove(config_maps, "a");
  BOOST_TEST(text(told, "/kind") == "Status");
  BOOST_TEST(text(told, "/status") == "Success");
  BOOST_TEST(text(told, "/details/name") == "a");
  BOOST_TEST(text(told, "/details/kind") == "configmaps");
  BOOST_TEST(text(told, "/details/uid") == text(made, "/metadata/uid"));
}

BOOST_FIXTURE_TEST_CASE(deletion_of_an_absent_object_is_not_found, sandbox) {
  refuse(api.remove(config_maps, key("none")), {404, "NotFound", "configmaps \"none\" not found"});
}

BOOST_FIXTURE_TEST_CASE(name_that_is_free_again_makes_another_object, sandbox) {
  const auto first = create(config_maps, config_map("a"));
  remove(config_maps, "a");
  const auto second = create(config_maps, config_map("a"));
  BOOST_TEST(text(first, "/metadata/uid") != text(second, "/metadata/uid"));
  BOOST_TEST(version(second) > version(first));
}

BOOST_FIXTURE_TEST_CASE(deletion_may_name_the_uid, sandbox) {
  const auto made = create(config_maps, config_map("a"));
  refuse(
      api.remove(config_maps, key("a"), {.uid = "another"}),
      {409, "Conflict", "the UID in the precondition (another) does not match the UID in record"});
  BOOST_TEST(there(config_maps, "a"));
  remove(config_maps, "a", {.uid = text(made, "/metadata/uid")});
  BOOST_TEST(!there(config_maps, "a"));
}

BOOST_FIXTURE_TEST_CASE(deletion_may_name_the_version, sandbox) {
  const auto made = create(config_maps, config_map("a"));
  update(config_maps, config_map("a", {{"k", "v"}}));
  const auto old = text(made, "/metadata/resourceVersion");
  refuse(api.remove(config_maps, key("a"), {.resource_version = old}),
         {409, "Conflict", "the ResourceVersion in the precondition (" + old + ") does not match"});
  BOOST_TEST(there(config_maps, "a"));
}

BOOST_FIXTURE_TEST_CASE(dry_run_deletes_nothing, sandbox) {
  create(config_maps, config_map("a"));
  remove(config_maps, "a", {.dry_run = true});
  BOOST_TEST(there(config_maps, "a"));
}

BOOST_FIXTURE_TEST_CASE(finalizer_keeps_a_deleted_object, holding) {
  create(config_maps, held(config_map("a")));
  const auto told = remove(config_maps, "a");
  BOOST_TEST(text(told, "/kind") == "ConfigMap");
  BOOST_TEST(!text(told, "/metadata/deletionTimestamp").empty());
  BOOST_TEST(text(told, "/metadata/deletionGracePeriodSeconds") == "0");
  BOOST_TEST(text(get(config_maps, "a"), "/metadata/deletionTimestamp") ==
             text(told, "/metadata/deletionTimestamp"));
}

BOOST_FIXTURE_TEST_CASE(last_finalizer_lets_go, holding) {
  create(config_maps, held(config_map("a")));
  remove(config_maps, "a");
  const auto last = merge(config_maps, "a", R"({"metadata": {"finalizers": null}})");
  BOOST_TEST(!text(last, "/metadata/deletionTimestamp").empty());
  BOOST_TEST(!there(config_maps, "a"));
}

BOOST_FIXTURE_TEST_CASE(second_finalizer_still_holds, holding) {
  create(config_maps,
         with(config_map("a"), "/metadata/finalizers", {"example.com/one", "example.com/two"}));
  remove(config_maps, "a");
  merge(config_maps, "a", R"({"metadata": {"finalizers": ["example.com/two"]}})");
  BOOST_TEST(there(config_maps, "a"));
}

BOOST_FIXTURE_TEST_CASE(finalizer_without_a_deletion_is_just_a_field, holding) {
  create(config_maps, held(config_map("a")));
  merge(config_maps, "a", R"({"metadata": {"finalizers": null}})");
  BOOST_TEST(there(config_maps, "a"));
}

BOOST_FIXTURE_TEST_CASE(deleting_again_changes_nothing, holding) {
  create(config_maps, held(config_map("a")));
  const auto first = remove(config_maps, "a");
  const auto second = remove(config_maps, "a");
  BOOST_TEST(second == first);
}

BOOST_FIXTURE_TEST_CASE(terminating_object_accepts_no_new_finalizers, holding) {
  create(config_maps, held(config_map("a")));
  remove(config_maps, "a");
  refuse(
      api.patch(config_maps, key("a"), k8s::patch_type::merge,
                parse(R"({"metadata": {"finalizers": ["example.com/hold", "example.com/new"]}})")),
      {422, "Invalid",
       "no new finalizers can be added if the object is being deleted, found new finalizers "
       "[]string{\"example.com/new\"}"});
}

BOOST_FIXTURE_TEST_CASE(terminating_object_may_be_changed, holding) {
  create(config_maps, held(config_map("a")));
  remove(config_maps, "a");
  const auto next = merge(config_maps, "a", R"({"data": {"k": "v"}})");
  BOOST_TEST(text(next, "/data/k") == "v");
}

BOOST_FIXTURE_TEST_CASE(deletion_is_not_taken_back, holding) {
  create(config_maps, held(config_map("a")));
  const auto told = remove(config_maps, "a");
  const auto next =
      merge(config_maps, "a", R"({"metadata": {"deletionTimestamp": null, "labels": {"l": "m"}}})");
  BOOST_TEST(text(next, "/metadata/deletionTimestamp") ==
             text(told, "/metadata/deletionTimestamp"));
}

BOOST_FIXTURE_TEST_CASE(name_of_a_terminating_object_is_taken, holding) {
  create(config_maps, held(config_map("a")));
  remove(config_maps, "a");
  refuse(api.create(config_maps, here(config_map("a"))),
         {409, "AlreadyExists", "object is being deleted: configmaps \"a\" already exists"});
}

BOOST_FIXTURE_TEST_CASE(deletion_that_is_held_is_a_new_generation, sandbox) {
  create(gadgets(), held(gadget("a")));
  const auto told = remove(gadgets(), "a");
  BOOST_TEST(text(told, "/metadata/generation") == "2");
  merge(gadgets(), "a", R"({"metadata": {"finalizers": null}})");
  BOOST_TEST(!there(gadgets(), "a"));
}

BOOST_FIXTURE_TEST_CASE(finalizer_has_a_qualified_name, sandbox) {
  refuse(api.create(config_maps, here(with(config_map("a"), "/metadata/finalizers",
                                           boost::json::array{"plain"}))),
         {422, "Invalid", "name is neither a standard finalizer name nor is it fully qualified"});
}

BOOST_FIXTURE_TEST_CASE(deletion_in_the_foreground_is_held_for_the_dependents, holding) {
  const auto owner = create(config_maps, config_map("a"));
  // The dependent is held itself, so that a garbage collector, where there is one, has to wait.
  create(config_maps, held(with(config_map("b"), "/metadata/ownerReferences",
                                boost::json::array{{{"apiVersion", "v1"},
                                                    {"kind", "ConfigMap"},
                                                    {"name", "a"},
                                                    {"uid", text(owner, "/metadata/uid")},
                                                    {"blockOwnerDeletion", true}}})));
  const auto told = remove(config_maps, "a", {.propagation = "Foreground"});
  BOOST_TEST(!text(told, "/metadata/deletionTimestamp").empty());
  BOOST_TEST(told.at_pointer("/metadata/finalizers") == parse(R"(["foregroundDeletion"])"));
  BOOST_TEST(there(config_maps, "a"));
}

BOOST_FIXTURE_TEST_CASE(propagation_policy_is_one_of_three, sandbox) {
  create(config_maps, config_map("a"));
  refuse(api.remove(config_maps, key("a"), {.propagation = "Sideways"}),
         {422, "Invalid", "propagationPolicy: Unsupported value: \"Sideways\""});
}

BOOST_FIXTURE_TEST_CASE(owner_is_named_with_its_uid, sandbox) {
  refuse(api.create(config_maps, here(with(config_map("a"), "/metadata/ownerReferences",
                                           boost::json::array{{{"apiVersion", "v1"},
                                                               {"kind", "ConfigMap"},
                                                               {"name", "owner"},
                                                               {"uid", ""}}}))),
         {422, "Invalid", "uid must not be empty"});
}

BOOST_FIXTURE_TEST_CASE(owner_that_controls_is_at_most_one, sandbox) {
  const auto owner = [](const char* name) {
    return json{{"apiVersion", "v1"},
                {"kind", "ConfigMap"},
                {"name", name},
                {"uid", name},
                {"controller", true}};
  };
  refuse(api.create(config_maps, here(with(config_map("a"), "/metadata/ownerReferences",
                                           json(boost::json::array{owner("x"), owner("y")})))),
         {422, "Invalid", "Only one reference can have Controller set to true"});
}

BOOST_FIXTURE_TEST_CASE(collection_is_deleted_at_once, sandbox) {
  create(config_maps, config_map("a"));
  create(config_maps, config_map("b"));
  const auto told = ok(api.remove_all(config_maps, all()));
  BOOST_TEST(names(told).size() == 2u);
  BOOST_TEST(names(list(config_maps)).empty());
}

BOOST_FIXTURE_TEST_CASE(selection_of_a_collection_is_deleted, sandbox) {
  create(config_maps, config_map("a", nullptr, {{"l", "m"}}));
  create(config_maps, config_map("b"));
  ok(api.remove_all(config_maps, {.ns = ns, .labels = "l=m"}));
  BOOST_TEST(!there(config_maps, "a"));
  BOOST_TEST(there(config_maps, "b"));
}

BOOST_FIXTURE_TEST_CASE(deletion_in_a_collection_is_held_too, holding) {
  create(config_maps, held(config_map("a")));
  create(config_maps, config_map("b"));
  ok(api.remove_all(config_maps, all()));
  BOOST_TEST(there(config_maps, "a"));
  BOOST_TEST(!there(config_maps, "b"));
}

BOOST_FIXTURE_TEST_CASE(namespace_is_terminating_or_gone_when_deleted, sandbox) {
  const auto name = server.unique("conformance");
  create(namespaces, object(namespaces, name));
  remove(namespaces, name);
  if (!there(namespaces, name)) return;
  const auto left = get(namespaces, name);
  BOOST_TEST(text(left, "/status/phase") == "Terminating");
  BOOST_TEST(!text(left, "/metadata/deletionTimestamp").empty());
}

BOOST_FIXTURE_TEST_CASE(namespace_that_is_deleted_takes_no_objects, sandbox) {
  const auto name = server.unique("conformance");
  create(namespaces, object(namespaces, name));
  remove(namespaces, name);
  const auto why =
      failed(api.create(config_maps, with(config_map("a"), "/metadata/namespace", name)));
  BOOST_TEST((why.is(k8s::errc::forbidden) || why.is(k8s::errc::not_found)));
}

BOOST_FIXTURE_TEST_CASE(default_namespace_is_not_deleted, sandbox) {
  refuse(api.remove(namespaces, {"", "default"}),
         {403, "Forbidden", "this namespace may not be deleted"});
}

BOOST_AUTO_TEST_SUITE_END()
