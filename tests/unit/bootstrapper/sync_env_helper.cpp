#include "rw/k8s/objects/difference.hpp"
#include "rw/k8s/objects/manifests.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/object.hpp>

#include "tests/unit/bootstrapper/sync_env.hpp"
#include <algorithm>
#include <utility>

namespace rw::bootstrapper_test {

using bootstrapper::render_input;
using bootstrapper::unit;

namespace {

k8s::devserver::fault next_fault(write_faults& state, const std::string& verb,
                                 const std::string& path) {
  k8s::devserver::fault out;
  const bool stopped = state.stop_after >= 0 && state.seen >= state.stop_after;
  out.drop = stopped;
  if (test::reads(verb) || stopped || path.find(state.only_path) == path.npos) return out;
  ++state.seen;
  state.paths.push_back(verb + " " + path);
  if (state.refuse == state.seen) out.status = 422;
  return out;
}

/// Without what an apply can't be seen in.
bool holds(const json::value& desired, const json::value& live) {
  if (k8s::find_difference(desired, live)) return false;
  for (const auto* field : {"data", "type"}) {
    const auto* const expected = k8s::find(desired, {field});
    const auto* const there = k8s::find(live, {field});
    if (expected != nullptr && (there == nullptr || *expected != *there)) return false;
  }
  return true;
}

}  // namespace

sync_env::sync_env() : environment({.client = {.name = "test", .retries = 0}}) {
  on_request = [this](const std::string& runtime, const std::string& verb,
                      const std::string& path) { return next_fault(faults[runtime], verb, path); };
}

asio::awaitable<void> sync_env::add(std::string name, bool bare) {
  add_cluster(name);
  states[name] = {};
  if (bare) co_return;
  co_await create(name, test::object_of(namespaces_type(), {}, "kyma-system"), namespaces_type());
  faults[name] = {};
}

asio::awaitable<void> sync_env::add_synced(std::string name, render_input from) {
  co_await add(name);
  co_await must_sync(std::move(name), {std::move(from)});
}

asio::awaitable<void> sync_env::add_any(std::vector<render_input> leftovers) {
  if (!use_real("skr")) {
    co_await remove_cluster("skr");
    co_await add("skr", true);
    co_return;
  }
  bootstrapper::inventory all;
  for (const auto& from : leftovers) {
    for (const auto& each : objects_of(from)) {
      all.push_back({unit::bootstrapper, each.type.gvk, k8s::key_of(each.object)});
    }
  }
  const auto cleaned = co_await bootstrapper::undeploy(api("skr"), &options, std::move(all), {});
  test::required(cleaned);
  states["skr"] = {};
}

asio::awaitable<k8s::result<bootstrapper::sync_state>> sync_env::sync(
    std::string runtime, std::vector<render_input> from) {
  auto& known = states[runtime];
  auto state = known;
  for (auto& each : state.units) each.applied = each.in_place;
  if (withheld) {
    for (const auto of : bootstrapper::all_units) {
      state.at(of).withheld = std::make_shared<bootstrapper::revision>(rendered(of, *withheld));
    }
  }
  for (const auto& each : from) {
    for (const auto of : bootstrapper::all_units) {
      auto made = std::make_shared<bootstrapper::revision>(rendered(of, each));
      if (made->valid()) state.at(of).revisions.push_back(std::move(made));
    }
  }
  auto request = like;
  request.record = [this, &known](
                       unit of, bootstrapper::revision_ptr to,
                       bootstrapper::inventory objects) -> asio::awaitable<k8s::result<void>> {
    ++recorded;
    known.objects = std::move(objects);
    known.at(of).applying = to->digest;
    known.at(of).in_place.clear();
    co_return k8s::result<void>();
  };
  const auto done = co_await bootstrapper::sync(api(runtime), &options, std::move(request), &state);
  if (!done) co_return done.error();
  if (!like.write) co_return state;
  known.objects = state.objects;
  for (const auto of : bootstrapper::all_units) {
    known.at(of).in_place = state.at(of).applied;
    known.at(of).applying.clear();
  }
  co_return state;
}

asio::awaitable<bootstrapper::sync_state> sync_env::must_sync(std::string runtime,
                                                              std::vector<render_input> from) {
  auto report = co_await sync(runtime, std::move(from));
  co_return test::required(std::move(report));
}

asio::awaitable<bool> sync_env::has(std::string runtime, unit of, render_input these,
                                    render_input other) {
  const auto expected = objects_of(of, these);
  for (const auto& each : expected) {
    const auto got = co_await api(runtime)->get(each.type, k8s::key_of(each.object));
    if (!got || !holds(each.object, *got)) co_return false;
  }
  for (const auto& each : objects_of(of, other)) {
    const auto same = [&](const typed_object& one) {
      return one.type == each.type && k8s::key_of(one.object) == k8s::key_of(each.object);
    };
    if (std::ranges::any_of(expected, same)) continue;
    const auto got = co_await api(runtime)->get(each.type, k8s::key_of(each.object));
    if (got || !got.error().is(k8s::errc::not_found)) co_return false;
  }
  co_return true;
}

asio::awaitable<bool> sync_env::has_all(std::string runtime, render_input these,
                                        render_input other) {
  for (const auto of : bootstrapper::all_units) {
    const bool good = co_await has(runtime, of, these, other);
    if (!good) co_return false;
  }
  co_return true;
}

asio::awaitable<json::value> sync_env::get(std::string runtime, std::string kind,
                                           std::string name) {
  auto type = bundles;
  for (const auto* version : {"v1", "apps/v1", "admissionregistration.k8s.io/v1"}) {
    type = k8s::well_known_type(version, kind).value_or(type);
  }
  const k8s::object_key key{type.namespaced ? "kyma-system" : "", name};
  auto got = co_await api(runtime)->get(type, key);
  co_return got ? std::move(*got) : json::value();
}

asio::awaitable<void> sync_env::install_as_kim(std::string runtime, render_input from) {
  for (const auto of : bootstrapper::all_units) {
    for (const auto& each : rendered(of, from).objects) {
      auto object = each.object;
      auto& labels = object.at("metadata").at("labels").as_object();
      labels.erase(bootstrapper::digest_label);
      labels.erase(bootstrapper::synced_by_label);
      const auto type = test::type_of(object);
      if (each.from == source_kind::manifests) {
        co_await must(api(runtime)->create(type, object, {.field_manager = "manager"}));
      } else {
        co_await must(api(runtime)->apply(type, object,
                                          {.field_manager = "kim-bootstrapper", .force = true}));
      }
    }
  }
}

bootstrapper::revision rendered(unit of, const render_input& from) {
  return bootstrapper::render(of, from, std::chrono::system_clock::now());
}

std::vector<typed_object> objects_of(unit of, const render_input& from) {
  const auto made = rendered(of, from);
  test::require(made.valid(), bootstrapper::describe(made.found.errors));
  std::vector<typed_object> out;
  for (const auto& each : made.objects) {
    out.push_back({test::type_of(each.object), each.object});
  }
  return out;
}

std::vector<typed_object> objects_of(const render_input& from) {
  auto out = objects_of(unit::credentials, from);
  for (auto& each : objects_of(unit::bootstrapper, from)) out.push_back(std::move(each));
  return out;
}

}  // namespace rw::bootstrapper_test
