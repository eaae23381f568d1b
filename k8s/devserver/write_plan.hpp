#pragma once

#include "rw/core/backoff.hpp"
#include "rw/core/clock.hpp"
#include "rw/k8s/devserver/call.hpp"
#include "rw/k8s/devserver/managed_fields.hpp"

#include <boost/json/value.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rw::k8s::devserver {

/// How to treat fields that a schema does not know (Kubernetes API concepts, "Field validation").
enum class field_validation : std::uint8_t { ignore, warn, strict };

/// Options of a writing request (metav1 CreateOptions, UpdateOptions, PatchOptions).
struct write_options {
  bool dry_run = false;
  bool force = false;
  std::string manager;
  field_validation unknown_fields = field_validation::warn;
  std::vector<std::string> duplicate_fields = {};  ///< of the body

  static outcome<write_options> parse(const call& from);
};

enum class patch_kind : std::uint8_t { json, merge, strategic, apply };

/// metav1.DeleteOptions.
struct delete_options {
  bool dry_run = false;
  std::string uid;
  std::string resource_version;
  std::string propagation;
  bool default_propagation = true;                ///< the client left it to the kind
  std::optional<std::int64_t> grace_period = {};  ///< seconds
  boost::json::object given = {};                 ///< as webhooks receive them

  /// Parses the body, JSON or protobuf, or the query if there is none.
  static outcome<delete_options> parse(const call& from, std::string_view body, bool is_protobuf);
  static outcome<delete_options> parse(const boost::json::value& from);
};

/// The result of a write, computed from the object's current state, before admission. Nothing is
/// stored yet.
struct write_plan {
  enum class action : std::uint8_t { nothing, put, remove };

  action effect = action::nothing;
  record_ptr before;          ///< null: the object does not exist yet
  boost::json::value old;     ///< `before` in the request's version, or null
  boost::json::value object;  ///< the new state, in the request's version
  object_key key;
  const char* operation = "";  ///< for admission: CREATE, UPDATE, DELETE
};

/// Computes the results of writes, by the rules of kube-apiserver (apiserver, "registry/rest" and
/// "endpoints/handlers"). Does no admission and stores nothing.
class write_planner {
 public:
  write_planner(const core::clock& clock, core::random_source& random)
      : clock_(clock), random_(random) {}

  outcome<write_plan> create(const call& to, boost::json::value object,
                             const write_options& with) const;
  outcome<write_plan> update(const call& to, boost::json::value object,
                             const write_options& with) const;
  outcome<write_plan> patch(const call& to, patch_kind patch_kind, const boost::json::value& change,
                            const write_options& with) const;
  outcome<write_plan> remove(const call& to, const delete_options& with) const;
  /// Replaces a plan's object by what mutating webhooks made of it: with defaults, validated, its
  /// identity and the owners of its fields kept.
  outcome<void> adopt(const call& to, write_plan& plan, boost::json::value object) const;
  /// Plans a change by the server itself, to the object's current state.
  outcome<write_plan> edit(const call& to,
                           const std::function<void(boost::json::value&)>& change) const;

 private:
  outcome<write_plan> finish_create(const call& to, boost::json::value object,
                                    const write_options& with, bool applied) const;
  outcome<write_plan> finish_update(const call& to, record_ptr before, boost::json::value old,
                                    boost::json::value object, const write_options& with,
                                    bool applied) const;
  outcome<write_plan> update_scale(const call& to, const boost::json::value& scale,
                                   const write_options& with, bool applied) const;
  outcome<write_plan> patch_scale(const call& to, patch_kind patch_kind,
                                  const boost::json::value& change,
                                  const write_options& with) const;
  outcome<write_plan> apply(const call& to, boost::json::value change,
                            const write_options& with) const;
  std::string now() const;
  field_writer writer_of(const call& to, const write_options& with) const;

  const core::clock& clock_;
  core::random_source& random_;
};

}  // namespace rw::k8s::devserver
