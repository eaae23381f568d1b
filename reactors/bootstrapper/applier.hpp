#pragma once

#include "k8s/client/client.hpp"
#include "reactors/bootstrapper/state.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rw::bootstrapper {

/// The same for every runtime.
struct apply_options {
  std::string field_manager = "runtime-watcher-bootstrapper";
  /// Field managers of Kyma Infrastructure Manager: it applies as the first two, and its plain
  /// creates carry the name of its binary.
  std::vector<std::string> kim_managers = {"kim-bootstrapper", "infrastructure-manager", "manager"};
  std::size_t reads_at_once = 8;
};

/// One object of a revision and its state on the runtime.
struct planned_object {
  k8s::resource_type type = {};
  k8s::object_key key = {};
  boost::json::value desired = {};
  boost::json::value live = {};            ///< null: it does not exist
  std::pair<int, std::size_t> order = {};  ///< of application: rank, and position in the text
  bool write = false;
};

/// What a revision needs on one runtime.
struct unit_plan {
  std::vector<planned_object> objects = {};   ///< in the order of application
  std::vector<std::string> differences = {};  ///< "ConfigMap kyma-system/a: data.b"
  std::vector<std::string> warnings = {};     ///< writes that could not be dry-run
  std::optional<rejection> rejected = {};     ///< then nothing must be written

  bool has_writes() const noexcept;
  /// As they are to be recorded before the writes.
  inventory entries(unit of) const;
};

/// Writes to one runtime during one pass. Each write first asks `may_write`, since mode or
/// leadership may change at any moment; a write that must not be fails with `errc::fenced`.
class applier {
 public:
  template <class T>
  using work = boost::asio::awaitable<k8s::result<T>>;

  /// `options` must outlive it. `adopt`: objects of other field managers are taken over.
  applier(std::shared_ptr<k8s::client> api, const apply_options& options, target_names to,
          bool adopt, std::function<bool()> may_write)
      : api_(std::move(api)),
        options_(options),
        to_(std::move(to)),
        adopt_(adopt),
        may_write_(std::move(may_write)) {}

  /// Reads what the runtime has and tries each necessary write as a server-side dry run. A dry run
  /// decides: what it leaves unchanged is not written, so values are compared as the server does.
  /// `owned`: objects that may be overwritten whoever manages them.
  work<unit_plan> plan(revision_ptr desired, inventory owned);

  /// Sends the plan's writes by server-side apply, in order. After a failure some may have been
  /// sent.
  work<void> write(unit_plan* plan);

  /// Deletes objects that this field manager still manages, dependents first. Namespaces stay.
  work<void> remove(inventory objects);

  /// The bootstrapper's Deployment; null: it does not exist.
  work<boost::json::value> deployment();

  std::size_t writes() const noexcept { return writes_; }

 private:
  work<std::optional<k8s::resource_type>> find_type(k8s::group_version_kind gvk);
  work<void> resolve(const revision& desired, unit_plan& plan);
  work<void> read_live(unit_plan& plan);
  work<bool> has_namespace(std::string name);
  work<void> dry_run(unit_plan& plan, planned_object& object);
  void order(const revision& desired, unit_plan& plan) const;
  bool may_take_over(const boost::json::value& live, std::string& manager) const;
  k8s::result<void> begin_write();
  work<boost::json::value> apply(k8s::resource_type type, boost::json::value object, bool dry);
  work<void> release_fields(planned_object* object);
  work<void> remove_one(k8s::resource_type type, k8s::object_key key);

  const std::shared_ptr<k8s::client> api_;
  const apply_options& options_;
  const target_names to_;
  const bool adopt_;
  const std::function<bool()> may_write_;
  std::set<std::string> namespaces_;  ///< that exist
  std::size_t writes_ = 0;
};

/// metadata.managedFields of an object.
const boost::json::array& managed_fields(const boost::json::value& object);
/// The fields that a manager has applied to the main resource; null: none.
boost::json::value applied_fields(const boost::json::value& object, std::string_view manager);

/// True if the API server understood the request and will refuse it again.
bool is_permanent(const k8s::failure& error) noexcept;

/// Removes from `fields` (FieldsV1) what `owned` has; the rest. Null: nothing is left.
boost::json::value subtract_fields(const boost::json::value& fields,
                                   const boost::json::value& owned);

}  // namespace rw::bootstrapper
