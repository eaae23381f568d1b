// What a runtime serves and has, and what it would say to the writes; nothing is written.

#include "core/task_group.hpp"
#include "k8s/manifests.hpp"
#include "k8s/types.hpp"
#include "reactors/bootstrapper/visit.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/json/object.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using k8s::find_string;
using done = k8s::result<void>;

using answer = k8s::result<json::value>;

/// What a runtime may have under the names of a set, in all, about as many bytes of text. No
/// runtime is believed, and thousands are looked at in one process.
constexpr std::size_t most_live = 16u << 20;

asio::awaitable<void> get_into(k8s::client* api, k8s::resource_type type, k8s::object_key key,
                               std::optional<answer>* into) {
  auto got = co_await api->get(std::move(type), std::move(key));
  into->emplace(std::move(got));
}

/// About as many as the text of it has bytes. Its depth was bounded when it was parsed.
std::size_t bytes_of(const json::value& value) {
  std::size_t out = 8;
  if (const auto* const text = value.if_string()) out += text->size();
  if (const auto* const all = value.if_array()) {
    for (const auto& one : *all) out += bytes_of(one);
  }
  if (const auto* const fields = value.if_object()) {
    for (const auto& [name, one] : *fields) out += name.size() + bytes_of(one);
  }
  return out;
}

/// A lasting failure, told as a value.
k8s::failure refusal(std::string text) {
  return {.code = k8s::errc::invalid, .message = std::move(text)};
}

/// The resource that a definition in the set will serve: it may not be there yet.
std::optional<k8s::resource_type> defined_in(const known_set& set, const json::value& object) {
  k8s::resource_type out;
  if (!k8s::parse_api_version(find_string(object, {"apiVersion"}), out.gvk)) return {};
  out.gvk.kind = find_string(object, {"kind"});
  for (const auto& one : set.items) {
    const auto& definition = one.object;
    if (find_string(definition, {"kind"}) != "CustomResourceDefinition" ||
        find_string(definition, {"spec", "group"}) != out.gvk.group ||
        find_string(definition, {"spec", "names", "kind"}) != out.gvk.kind) {
      continue;
    }
    out.plural = find_string(definition, {"spec", "names", "plural"});
    out.namespaced = find_string(definition, {"spec", "scope"}) == "Namespaced";
    return out;
  }
  return {};
}

}  // namespace

// --- what there is ---------------------------------------------------------------------

visit::work<std::optional<k8s::resource_type>> visit::trust_bundle_resource(
    const json::value& object) {
  k8s::group_version_kind gvk;
  k8s::parse_api_version(find_string(object, {"apiVersion"}), gvk);
  gvk.kind = find_string(object, {"kind"});
  auto versions = co_await writer_.api().versions(gvk.group);
  if (!versions) co_return versions.error();
  // The control plane's own first: what it says is known to fit that.
  const auto own = std::ranges::find(*versions, gvk.version);
  if (own != versions->end()) std::rotate(versions->begin(), own, own + 1);
  for (const auto& one : *versions) {
    gvk.version = one;
    const auto found = co_await writer_.api().find(gvk);
    if (found) co_return std::optional(*found);
    if (!found.error().is(k8s::errc::not_found)) co_return found.error();
  }
  co_return std::optional<k8s::resource_type>();
}

/// None: the runtime does not serve it.
visit::work<std::optional<k8s::resource_type>> visit::resource_of(const json::value& object) {
  const auto version = find_string(object, {"apiVersion"});
  const auto kind = find_string(object, {"kind"});
  if (auto known = k8s::well_known_type(version, kind)) co_return known;
  if (kind == "ClusterTrustBundle" && version.starts_with("certificates.k8s.io/")) {
    auto bundle = co_await trust_bundle_resource(object);
    co_return bundle;
  }
  k8s::group_version_kind gvk;
  if (!k8s::parse_api_version(version, gvk)) co_return std::optional<k8s::resource_type>();
  gvk.kind = kind;
  const auto found = co_await writer_.api().find(std::move(gvk));
  if (found) co_return std::optional(*found);
  if (found.error().is(k8s::errc::not_found)) co_return std::optional<k8s::resource_type>();
  co_return found.error();
}

visit::work<void> visit::resolve(known_set& set) {
  for (auto& one : set.items) {
    auto type = co_await resource_of(one.object);
    if (!type) co_return type.error();
    if (!*type) *type = defined_in(set, one.object);
    if (!*type) {
      co_return refusal("the runtime does not know the kind " +
                        std::string(find_string(one.object, {"kind"})) + " of " +
                        std::string(find_string(one.object, {"apiVersion"})) + " (" +
                        k8s::key_of(one.object).name + ")");
    }
    one.type = std::move(**type);
  }
  // Two states of one object would undo each other for ever.
  std::set<std::string> seen;
  for (const auto& one : set.items) {
    const auto key = one.key(what_.to.ns);
    const bool first =
        seen.insert(one.type.gvk.group + "/" + one.type.plural + "/" + to_string(key)).second;
    if (!first) co_return refusal(describe(one.type, key) + " is in the set twice");
  }
  co_return done();
}

visit::work<void> visit::read_live(const known_set& set) {
  const auto executor = co_await asio::this_coro::executor;
  const auto cancellation = co_await asio::this_coro::cancellation_state;
  const auto cancelled = [&] { return cancellation.cancelled() != asio::cancellation_type::none; };
  const auto count = set.items.size();
  std::vector<std::optional<answer>> answers(count);
  // The groups have to be joined, also where the cancellation came together with an answer.
  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);
  std::size_t bytes = 0;
  for (std::size_t begin = 0; begin < count && !cancelled() && bytes <= most_live;
       begin += how_.reads_at_once) {
    const auto end = std::min(count, begin + how_.reads_at_once);
    core::task_group tasks(executor);
    for (auto i = begin; i < end; ++i) {
      const auto& item = set.items[i];
      tasks.spawn(get_into(&writer_.api(), item.type, item.key(what_.to.ns), &answers[i]));
    }
    co_await tasks.join();
    for (auto i = begin; i < end; ++i) {
      if (answers[i] && answers[i]->has_value()) bytes += bytes_of(**answers[i]);
    }
  }
  co_await asio::this_coro::throw_if_cancelled(throws);
  if (cancelled()) throw boost::system::system_error(asio::error::operation_aborted);
  if (bytes > most_live) {
    co_return refusal("what the runtime has under the names of the set is more than " +
                      std::to_string(most_live) + " bytes");
  }
  live_.assign(count, nullptr);
  for (std::size_t i = 0; i < count; ++i) {
    auto& got = *answers[i];
    const bool missing = got.has_error() && got.error().is(k8s::errc::not_found);
    if (got.has_error() && !missing) co_return got.error();
    if (!missing) live_[i] = std::move(*got);
  }
  co_return done();
}

void visit::note(const known_set& set, const sync_plan& plan) {
  for (const auto& one : plan.writes) {
    const auto& item = set.items[one.item];
    const auto who = describe(item.type, item.key(what_.to.ns));
    if (one.missing) out_.differences.push_back(who + " is missing");
    if (!one.difference.empty()) out_.differences.push_back(who + ": " + one.difference);
  }
  for (const auto& one : plan.prune) {
    out_.differences.push_back(describe(one.type, one.key) + " is not wanted any more");
  }
}

// --- without a trace -------------------------------------------------------------------

/// Why the runtime would refuse the plan; empty if it would not, as far as it can tell. What comes
/// into a namespace that is not there yet is tried in one that is; what is of a kind that is not
/// there yet can't be tried.
visit::work<std::string> visit::try_dry(const known_set& set, const sync_plan& plan) {
  for (const auto& one : plan.writes) {
    const auto& item = set.items[one.item];
    auto object = item.written(what_.to.ns);
    const auto who = describe(item.type, item.key(what_.to.ns));
    bool moved = false;
    if (item.type.namespaced && one.missing) {
      const auto ns = item.key(what_.to.ns).ns;
      const auto there = co_await writer_.api().get(namespaces_type(), {{}, ns}, true);
      if (!there && !there.error().is(k8s::errc::not_found)) co_return there.error();
      moved = !there;
      if (moved) object.as_object()["metadata"].as_object()["namespace"] = "default";
    }
    const auto tried = co_await writer_.dry_run(item.type, std::move(object));
    if (tried) continue;
    const auto& why = tried.error();
    if (why.is(k8s::errc::not_found) && defined_in(set, item.object)) continue;
    if (is_lasting(why)) co_return "the runtime would not take " + who + ": " + why.message;
    co_return why;
  }
  co_return std::string();
}

}  // namespace rw::bootstrapper
