#pragma once

#include "rw/k8s/client/client.hpp"
#include "rw/reactors/bootstrapper/state.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace rw::bootstrapper {

/// The same for every runtime.
struct apply_settings {
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
  bool written = false;
};

/// What a revision needs on one runtime.
struct unit_plan {
  /// In the order of application; none if the plan was rejected before all of them were read.
  std::vector<planned_object> objects = {};
  std::set<std::string> missing_namespaces = {};  ///< that objects of it need
  std::vector<std::string> differences = {};      ///< "ConfigMap kyma-system/a: data.b"
  std::vector<std::string> warnings = {};         ///< writes that could not be dry-run
  std::optional<rejection> rejected = {};         ///< then nothing must be written
};

/// Reads what the runtime has and tries each necessary write as a server-side dry run, which
/// decides: what it leaves unchanged is not written, so values are compared as the server does.
/// Writes nothing. `owned`: objects that may be overwritten whoever manages them; `adopt`: so may
/// all others.
boost::asio::awaitable<k8s::result<unit_plan>> make_plan(k8s::client* api,
                                                         const apply_settings* options,
                                                         target_names to, bool adopt,
                                                         revision_ptr desired, inventory owned);

/// The resource of a kind; none: the runtime does not serve it.
boost::asio::awaitable<k8s::result<std::optional<k8s::resource_type>>> find_type(
    k8s::client* api, k8s::group_version_kind gvk);

/// True if Kyma Infrastructure Manager has applied a newer revision, or a part of it, to a runtime
/// that is to have the one of the plan: a field that is of its managers, and not of ours, is as the
/// newer revision has it, and not as the plan has it. What we have written ourselves, before a pass
/// was cut short, is ours; the name of a manager alone proves nothing.
bool has_newer(const unit_plan& plan, const revision& newer, const apply_settings& options);
/// True if Kyma Infrastructure Manager has applied a valid pull Secret that is not the plan's: a
/// field that is of its managers, and not of ours, is not as the plan has it.
bool has_other_credentials(const unit_plan& plan, const apply_settings& options);
/// True if a Secret of the plan is missing, or its content is another one.
bool changes_credentials(const unit_plan& plan);

}  // namespace rw::bootstrapper
