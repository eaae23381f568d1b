#pragma once

#include "rw/k8s/client/client.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/test/unit_test.hpp>

#include "backend.hpp"
#include "json.hpp"
#include "resources.hpp"
#include <source_location>
#include <string>
#include <utility>

namespace rw::conformance {

/// How a request is to be refused. `says` must be in the message; empty: whatever it says.
struct refusal {
  unsigned status;
  std::string_view reason;
  std::string_view says = {};
};

/// What each test starts with: a namespace of its own on the backend, and words for requests that
/// must succeed or be refused. The namespace carries the label `conformance` with its name.
struct sandbox {
  using place = std::source_location;

  sandbox();
  ~sandbox();
  sandbox(const sandbox&) = delete;
  sandbox& operator=(const sandbox&) = delete;

  backend& server = backend::get();
  k8s::client& api = server.api();
  const std::string ns = server.unique("conformance");

  /// What the request brings, which must succeed.
  template <class T>
  T ok(boost::asio::awaitable<k8s::result<T>> request, place from = place::current()) {
    auto got = server.here.call(std::move(request));
    require(got.has_value(), got.has_value() ? std::string() : got.error().message, from);
    if constexpr (!std::is_void_v<T>) return std::move(*got);
  }

  /// Why the request failed, which it must.
  template <class T>
  k8s::failure failed(boost::asio::awaitable<k8s::result<T>> request,
                      place from = place::current()) {
    auto got = server.here.call(std::move(request));
    require(got.has_error(), "the request succeeded", from);
    return got.error();
  }

  /// The request must fail in this way.
  template <class T>
  void refuse(boost::asio::awaitable<k8s::result<T>> request, const refusal& as,
              place from = place::current()) {
    check(failed(std::move(request), from), as, from);
  }

  // For objects in the sandbox's namespace, and cluster-scoped ones.
  json create(const k8s::resource_type& type, json object, k8s::write_options options = {},
              place from = place::current());
  json get(const k8s::resource_type& type, std::string_view name, place from = place::current());
  json update(const k8s::resource_type& type, json object, k8s::write_options options = {},
              place from = place::current());
  json merge(const k8s::resource_type& type, std::string_view name, std::string_view change,
             k8s::write_options options = {}, place from = place::current());
  json apply(const k8s::resource_type& type, json object, k8s::apply_options options = {},
             place from = place::current());
  json remove(const k8s::resource_type& type, std::string_view name,
              k8s::delete_options options = {}, place from = place::current());
  json list(const k8s::resource_type& type, k8s::selection what = {}, k8s::list_options page = {},
            place from = place::current());
  bool there(const k8s::resource_type& type, std::string_view name);

  /// The object with the sandbox's namespace in it, for calls of `api`.
  json here(json object) const;
  k8s::object_key key(std::string_view name) const { return {ns, std::string(name)}; }
  /// A selection in the sandbox's namespace.
  k8s::selection all() const { return {.ns = ns}; }

  /// The path of an object or collection of the sandbox, for `server.http`.
  std::string path(const k8s::resource_type& type, std::string_view name = {},
                   std::string_view subresource = {}) const;

  /// Creates a CustomResourceDefinition, waits until its kind is served, and removes it with the
  /// sandbox.
  k8s::resource_type define(json crd, place from = place::current());

  /// Leaves what was defined so far when the sandbox goes.
  void keep_defined() { defined_.clear(); }

  /// Waits until `condition`, which asks the server, is true.
  template <class Condition>
  void eventually(Condition condition, place from = place::current()) {
    require(http::test::eventually(std::move(condition)), "it did not come true in time", from);
  }

 private:
  static void require(bool good, const std::string& otherwise, place from);
  static void check(const k8s::failure& why, const refusal& as, place from);
  /// The object that was written, once the server's watch cache has it. A write that begins with an
  /// older object from that cache is tried again, and webhooks are asked about each try (etcd3
  /// store, GuaranteedUpdate).
  json cached(const k8s::resource_type& type, json object);

  std::vector<std::string> defined_;
};

/// A custom resource that is there for the whole run, for tests that need any. Its schema is
/// `spec` {size, color (default red), tags (set), parts (map by name), plain (atomic), pair (atomic
/// map), free (additional properties)} and `status` (free-form, a subresource).
const k8s::resource_type& gadgets();
json gadget(std::string_view name, json spec = boost::json::object());

}  // namespace rw::conformance
