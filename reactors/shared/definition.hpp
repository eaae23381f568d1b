#pragma once

#include "rw/k8s/client/client.hpp"
#include "rw/k8s/objects/failure.hpp"
#include "rw/k8s/objects/names.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstdint>

namespace rw {

const k8s::resource_type& definitions_type();  ///< CustomResourceDefinitions

/// What an object's deletion means: whoever deletes a CustomResourceDefinition deletes all objects
/// of its kind, and that says nothing about what each of them stands for.
enum class definition_state : std::uint8_t {
  in_force,   ///< the object was deleted by itself
  withdrawn,  ///< the definition is gone, or being deleted: the object went, or goes, with it
  renewed,    ///< the definition is younger than the object, which went with an earlier one
};

/// Returns the state of the definition of an object that is deleted, which was created at that
/// time (the epoch: not known). `in_force` if the definition may not be read (403).
///
/// The API server marks the definition before it deletes the first object (apiextensions-apiserver,
/// pkg/controller/finalizer): asked after the object was seen deleted, the answer is certain.
boost::asio::awaitable<k8s::result<definition_state>> find_definition_state(
    k8s::client& kcp, k8s::resource_type type, std::chrono::system_clock::time_point created);

}  // namespace rw
