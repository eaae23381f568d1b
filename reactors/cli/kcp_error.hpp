#pragma once

#include "rw/k8s/objects/failure.hpp"
#include "rw/reactors/shared/access_right.hpp"

#include <string>

namespace rw::cli {

/// Why a command could not read KCP, and what its user has to do.
struct kcp_error {
  std::string message = {};  ///< one sentence
  std::string next = {};
};

/// Tells apart rejected credentials (401), a missing right (403), an object that does not exist
/// (404), a kind or a path that is not served (404 without a Status), and a server that does not
/// respond. `right`: what the request needs. `absent`: what to do if the object does not exist.
kcp_error describe(const k8s::failure& of, const access_right& right, std::string absent);

/// The message, and a line with what to do.
std::string text_of(const kcp_error& of);

}  // namespace rw::cli
