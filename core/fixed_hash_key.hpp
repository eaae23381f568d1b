#pragma once

#include "rw/core/sip_hash.hpp"

namespace rw::core {

/// Makes `key` the key of the process in place of a random one: the order of unordered containers
/// is then the same in each run, which a simulation that is to be repeated needs. To be called
/// before anything is hashed; throws std::logic_error after that.
void fix_hash_key(const sip_key& key);

}  // namespace rw::core
