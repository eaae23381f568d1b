#pragma once

#include "rw/core/lifetime.hpp"
#include "rw/k8s/objects/names.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Views of the few fields that machinery needs, over objects as the API writes them. Readers
/// accept any value: a missing field, or one of another type, reads as empty. Writers make missing
/// objects on the way, and replace values of another type. What a reader returns is a view into its
/// argument: Clang rejects a variable initialised with a view into a temporary (-Wdangling), but
/// checks no assignments.
namespace rw::k8s {

// --- times -----------------------------------------------------------------------------

/// Formats metav1.Time: "2026-11-21T09:00:00Z".
std::string format_time(std::chrono::system_clock::time_point time);
/// Formats metav1.MicroTime: "2026-11-21T09:00:00.123456Z".
std::string format_micro_time(std::chrono::system_clock::time_point time);
/// Parses a time of RFC 3339 (section 5.6), such as "2026-11-21T09:00:00Z",
/// "2026-11-21T10:00:00.25+01:00": metav1.Time and MicroTime. Truncates to microseconds. Returns
/// nothing for other text, and for years before 1970 or after 2200.
std::optional<std::chrono::system_clock::time_point> parse_rfc3339(std::string_view text);

// --- any object ------------------------------------------------------------------------

/// Returns the value at a path of member names; null if there is none.
const boost::json::value* find(const boost::json::value& in RW_LIFETIMEBOUND,
                               std::initializer_list<std::string_view> path) noexcept;
/// Returns the string at a path; empty if there is none.
std::string_view find_string(const boost::json::value& in RW_LIFETIMEBOUND,
                             std::initializer_list<std::string_view> path) noexcept;
/// Returns the integer at a path; 0 if there is none.
std::int64_t find_number(const boost::json::value& in,
                         std::initializer_list<std::string_view> path) noexcept;
/// Returns the array at a path; null if there is none.
const boost::json::array* find_array(const boost::json::value& in RW_LIFETIMEBOUND,
                                     std::initializer_list<std::string_view> path) noexcept;

object_key key_of(const boost::json::value& object);
std::string_view uid_of(const boost::json::value& object RW_LIFETIMEBOUND) noexcept;
std::string_view resource_version_of(const boost::json::value& object RW_LIFETIMEBOUND) noexcept;
/// Returns 0 if there is none.
std::int64_t generation_of(const boost::json::value& object) noexcept;
/// Returns its creationTimestamp; nothing if there is none.
std::optional<std::chrono::system_clock::time_point> created_at(const boost::json::value& object);
/// Returns its deletionTimestamp; nothing if it has none.
std::optional<std::chrono::system_clock::time_point> deleted_at(const boost::json::value& object);
/// Returns true if it has a deletionTimestamp: only finalizers keep it.
bool is_being_deleted(const boost::json::value& object) noexcept;

/// Returns the value; empty if there is none.
std::string_view label(const boost::json::value& object RW_LIFETIMEBOUND,
                       std::string_view name) noexcept;
std::string_view annotation(const boost::json::value& object RW_LIFETIMEBOUND,
                            std::string_view name) noexcept;
bool has_label(const boost::json::value& object, std::string_view name) noexcept;
bool has_annotation(const boost::json::value& object, std::string_view name) noexcept;
/// Returns false if it had that value already.
bool set_label(boost::json::value& object, std::string_view name, std::string_view to);
bool set_annotation(boost::json::value& object, std::string_view name, std::string_view to);

bool has_finalizer(const boost::json::value& object, std::string_view name);
/// Returns false if it was present already.
bool add_finalizer(boost::json::value& object, std::string_view name);
bool remove_finalizer(boost::json::value& object, std::string_view name);

/// metav1.OwnerReference.
struct owner_reference {
  std::string api_version = {};
  std::string kind = {};
  std::string name = {};
  std::string uid = {};
  bool controller = false;
  bool block_owner_deletion = false;

  friend bool operator==(const owner_reference&, const owner_reference&) = default;
};

std::vector<owner_reference> owners_of(const boost::json::value& object);
/// Adds an owner, or replaces the one with its uid. Returns false if nothing changed.
bool set_owner(boost::json::value& object, const owner_reference& owner);

/// core/v1 ObjectReference: for instance the object that an event is about.
struct object_reference {
  std::string api_version = {};
  std::string kind = {};
  std::string ns = {};
  std::string name = {};
  std::string uid = {};
  std::string resource_version = {};

  friend bool operator==(const object_reference&, const object_reference&) = default;
};

object_reference reference_to(const boost::json::value& object);

// --- conditions ------------------------------------------------------------------------

/// metav1.Condition, an element of `status.conditions`.
struct condition {
  std::string type = {};
  std::string status = {};  ///< "True", "False", "Unknown"
  std::string reason = {};  ///< a word in CamelCase; required by the API
  std::string message = {};
  std::int64_t observed_generation = 0;  ///< 0: not written
};

std::optional<condition> find_condition(const boost::json::value& object, std::string_view type);
/// Sets the condition of that type. Sets lastTransitionTime to `now` only if `status` changes.
/// Returns false if nothing changed.
bool set_condition(boost::json::value& object, const condition& to,
                   std::chrono::system_clock::time_point now);

// --- kinds -----------------------------------------------------------------------------

/// The spec of a coordination.k8s.io/v1 Lease.
struct lease {
  std::string holder = {};  ///< holderIdentity; empty: no holder
  std::chrono::seconds duration{0};
  std::optional<std::chrono::system_clock::time_point> acquired = {};
  std::optional<std::chrono::system_clock::time_point> renewed = {};
  std::int64_t transitions = 0;

  friend bool operator==(const lease&, const lease&) = default;
};

const resource_type& leases_type();
lease read_lease(const boost::json::value& object);
void write_lease(boost::json::value& object, const lease& spec);

const resource_type& events_type();  ///< of the core group

/// Returns one entry of a Secret's data, decoded; nothing if it is missing or not base64.
std::optional<std::string> secret_data(const boost::json::value& secret, std::string_view name);
void set_secret_data(boost::json::value& secret, std::string_view name, std::string_view bytes);

}  // namespace rw::k8s
