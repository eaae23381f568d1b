#pragma once

#include "k8s/client.hpp"
#include "reactors/bootstrapper/desired_set.hpp"
#include "reactors/bootstrapper/record.hpp"
#include "reactors/bootstrapper/record_seal.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rw::bootstrapper {

/// How it is done, for every runtime alike.
struct sync_method {
  std::string field_manager = "runtime-watcher-bootstrapper";
  /// Who wrote to the runtimes before. When an object is taken over, what these own of it becomes
  /// ours alone, so that a field which a later set does not have any more goes. Kyma Infrastructure
  /// Manager applies the configuration as `kim-bootstrapper`, and updates what the manifests hold
  /// under the name of its binary.
  std::vector<std::string> former_managers = {"kim-bootstrapper", "infrastructure-manager",
                                              "manager"};
  /// How long a set that a runtime would not have is not tried there again, unless it changes.
  std::chrono::seconds retry_refused = std::chrono::minutes(10);
  /// How long a set may be half in place because its objects are not taken for a passing reason;
  /// then the former one comes back.
  std::chrono::seconds apply_limit = std::chrono::minutes(10);
  /// Where the record is kept, whatever a resource calls its targets, so that it is found again
  /// when that changes.
  std::string record_namespace = "kyma-system";
  std::size_t reads_at_once = 8;
  /// How many objects of a new set may have to be written again when it is cut short.
  std::size_t writes_between_records = 8;
  /// Of the records' seals (record_seal.hpp). Of this process alone, unless one is given that
  /// outlasts it: without, no record is vouched for after a restart.
  std::string record_key = make_record_key();
};

/// What is asked for on one runtime.
struct sync_request {
  /// What the record is sealed for: the runtime's name, always the same and no other's.
  std::string subject = {};
  target_names to = {};
  /// None: the control plane has nothing valid now, and `invalid` says why; what the runtime has is
  /// kept in place.
  std::optional<desired_set> wanted = {};
  std::string invalid = {};
  bool write = true;  ///< false: only tell what would be written
  /// Asked before each write; empty: always.
  std::function<bool()> may_write = {};
  std::chrono::system_clock::time_point now = {};
  /// What `read_record` has just told; none: it is read.
  std::optional<std::optional<sync_record>> record = {};
};

/// The record of a runtime, the first thing that `sync` reads; none: nothing was ever applied.
boost::asio::awaitable<k8s::result<std::optional<sync_record>>> read_record(
    std::shared_ptr<k8s::client> api, const sync_method* how, std::string subject);

/// How a runtime is after one look and what was written then.
struct sync_report {
  std::string digest = {};   ///< of the set that is in place; empty: there is none
  std::string version = {};  ///< that this set brings
  std::string wanted =
      {};  ///< digest of the one that is wanted; empty: there is none that is valid
  /// Why what is wanted is not what is in place; empty: it is.
  std::string refused = {};
  /// The record on the runtime is not as this reactor wrote it, so nothing of it counted, and what
  /// is wanted was applied afresh. What else was applied before stays; nobody knows of it.
  bool distrusted = false;
  bool rolled_back = false;                ///< this look put the former set back in place
  bool repaired = false;                   ///< what was in place had drifted
  bool half_way = false;                   ///< objects of two sets may be mixed
  std::size_t writes = 0;                  ///< that were sent, those to the record included
  std::size_t objects = 0;                 ///< that were applied or removed
  std::vector<std::string> versions = {};  ///< resourceVersions that own writes of objects made
  /// What was not as it is to be: "ConfigMap kyma-system/a: data.b".
  std::vector<std::string> differences = {};
  boost::json::value deployment = {};  ///< the bootstrapper's; null: it is not there
};

/// Brings a set to a runtime as a whole, or not at all:
///
///   1. The set is completed with what is kept and checked as a whole; each kind's resource and
///      scope is discovered, and what the runtime has is read.
///   2. Every write is tried as a server-side dry run. What the runtime would refuse ends it here,
///      with nothing written.
///   3. The set, and what the runtime has of others in its place, is kept on the runtime;
///      then the record says that it is being applied.
///   4. The objects that differ are written in a safe order, and those that the set does not have
///      any more removed.
///   5. The record says that it is in place. Written last.
///
/// When it is cut short between any two writes, the next call goes on where it was: to the end of
/// the set that is wanted now, or, if none is valid, of the one that was begun. If the runtime
/// refuses in the midst of it what it took in the dry run, the former set is put back, and the
/// refused one left alone for a while. Where nothing differs, nothing is written; drift from the
/// set in place is repaired.
///
/// An object that was there before is taken over: its fields become this manager's, and only fields
/// that differ change.
///
/// A record on the runtime that was changed there, or is another's, is taken for none.
///
/// Failures are of requests, and passing: call it again. What must be told to people, because it
/// does not pass, stands in the report.
boost::asio::awaitable<k8s::result<sync_report>> sync(std::shared_ptr<k8s::client> api,
                                                      const sync_method* how, sync_request what);

/// Removes everything that was applied and is still ours, in the reverse order, then the record.
/// Namespaces stay. What is not there is no failure; the number of writes. A record that is not as
/// this reactor wrote it is a failure, and nothing is removed.
boost::asio::awaitable<k8s::result<std::size_t>> undeploy(
    std::shared_ptr<k8s::client> api, const sync_method* how, std::string subject,
    std::function<bool()> may_write, std::chrono::system_clock::time_point now);

/// True if the same request will fail again: the API server has understood and refuses it.
bool is_lasting(const k8s::failure& why) noexcept;

}  // namespace rw::bootstrapper
