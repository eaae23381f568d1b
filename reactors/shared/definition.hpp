#pragma once

#include "rw/k8s/client/client.hpp"
#include "rw/k8s/objects/failure.hpp"
#include "rw/k8s/objects/names.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <chrono>
#include <cstdint>
#include <optional>

namespace rw {

const k8s::resource_type& definitions_type();  ///< CustomResourceDefinitions

/// What an object's deletion means: whoever deletes a CustomResourceDefinition deletes all objects
/// of its kind, and that says nothing about what each of them stands for.
enum class definition_state : std::uint8_t {
  in_force,   ///< the object was deleted by itself
  withdrawn,  ///< the definition is gone, or being deleted: the object went, or goes, with it
  renewed,    ///< the definition is younger than the object, which went with an earlier one
  unknown,    ///< the definition may not be read (403)
};

/// True if the object went with a definition: what it stood for stays.
constexpr bool is_by_definition(definition_state of) noexcept {
  return of == definition_state::withdrawn || of == definition_state::renewed;
}

/// When an object was created, and deleted; nothing: not known.
struct object_times {
  std::optional<std::chrono::system_clock::time_point> created = {};
  std::optional<std::chrono::system_clock::time_point> deleted = {};
};

/// Returns the times of an object by its metadata.
object_times times_of(const boost::json::value& object);

/// Returns when the definition of a kind was created; nothing: it is gone, or being deleted.
boost::asio::awaitable<k8s::result<std::optional<std::chrono::system_clock::time_point>>>
find_definition_time(k8s::client& kcp, k8s::resource_type type);

/// Returns the state of a definition that was created then (nothing: it is gone, or being deleted),
/// for an object that is deleted.
definition_state state_of(std::optional<std::chrono::system_clock::time_point> definition,
                          object_times of) noexcept;

/// Returns the state of the definition of an object that is deleted. An object that was deleted
/// when the definition existed already was deleted by itself, however old it is: definitions can be
/// replaced while objects stay.
///
/// The API server marks the definition before it deletes the first object (apiextensions-apiserver,
/// pkg/controller/finalizer): asked after the object was seen deleted, the answer is certain, but
/// for a definition that is created again within the second in which the object was created.
boost::asio::awaitable<k8s::result<definition_state>> find_definition_state(k8s::client& kcp,
                                                                            k8s::resource_type type,
                                                                            object_times of);

}  // namespace rw
