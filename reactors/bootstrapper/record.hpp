#pragma once

#include "k8s/names.hpp"
#include "reactors/bootstrapper/desired_set.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::bootstrapper {

/// An object of a set, with the resource that it is on the runtime.
struct set_item {
  part from = part::manifests;
  boost::json::value object = {};  ///< as the control plane has it
  k8s::resource_type type = {};

  /// As it is written to the runtime: of the served version, in its namespace.
  boost::json::value written(const std::string& ns) const;
  k8s::object_key key(const std::string& ns) const;
};

/// Everything that a runtime is to have, or has had.
struct known_set {
  std::string digest = {};
  std::string version = {};
  std::vector<set_item> items = {};

  const set_item* find(const k8s::resource_type& type, const k8s::object_key& key,
                       const std::string& ns) const;
};

/// The bytes that a set is kept as, and back. None if they are not what was written: the digest
/// tells.
std::string write_set(const known_set& from);
std::optional<known_set> read_set(const std::string& text, std::string_view digest);
std::string digest_of(const std::vector<set_item>& items);
std::vector<desired_object> objects_of(const known_set& set);

/// An object on the runtime that this reactor answers for.
struct inventory_item {
  k8s::resource_type type = {};
  k8s::object_key key = {};
  std::string digest = {};  ///< of what was written last; empty: it may or may not be written
  /// It was there before, as somebody else's, and no set that has it came into place yet: until
  /// then it is never removed.
  bool was_there = false;

  /// Another version of the resource is the same thing.
  bool same_object(const k8s::resource_type& other, const k8s::object_key& at) const noexcept {
    return key == at && type.gvk.group == other.gvk.group && type.gvk.kind == other.gvk.kind;
  }
  friend bool operator==(const inventory_item&, const inventory_item&) = default;
};

/// "Deployment kyma-system/name".
std::string describe(const k8s::resource_type& type, const k8s::object_key& key);

/// How far a runtime is, kept on the runtime itself, so that whoever comes after a crash goes on
/// from there. It says first what is going to happen: the inventory never lacks an object that may
/// have been written.
///
///   settled ----> applying ----> settled           the new set is in place
///                    |
///                    +--> rolling_back --> settled  the former one is
///                              |
///                              +----> applying      it can't be: the next set that is taken will
///
/// While it is not settled, objects of two sets may be mixed; both are kept, whole, in Secrets of
/// their own (runtime_store.hpp).
struct sync_record {
  enum class phase : std::uint8_t { settled, applying, rolling_back, removing };

  struct refusal {
    std::string digest = {};  ///< of the set that the runtime would not have
    std::string why = {};
    std::chrono::system_clock::time_point at = {};

    friend bool operator==(const refusal&, const refusal&) = default;
  };

  phase now = phase::settled;
  std::string good = {};       ///< digest of the set that was in place last; empty: there was none
  std::size_t good_parts = 0;  ///< Secrets that it is kept in
  std::string target = {};     ///< digest of the one that is being applied
  std::size_t target_parts = 0;
  std::chrono::system_clock::time_point since = {};  ///< when the phase began
  std::vector<inventory_item> inventory = {};
  std::optional<refusal> refused = {};
  bool leftovers = false;  ///< sets that are not needed any more are still there
  /// One is there that this reactor did not write as it is (record_seal.hpp); nothing of it counts,
  /// and all else here is empty.
  bool foreign = false;

  inventory_item* find(const k8s::resource_type& type, const k8s::object_key& key);
  friend bool operator==(const sync_record&, const sync_record&) = default;
};

std::string_view to_string(sync_record::phase of) noexcept;

boost::json::value write_record(const sync_record& from);
/// None if it is no such record.
std::optional<sync_record> read_record(const boost::json::value& from);

}  // namespace rw::bootstrapper
