#pragma once

#include "k8s/client.hpp"

#include <boost/asio/awaitable.hpp>

#include <string>
#include <string_view>

namespace rw::bootstrapper {

/// Whoever may write Secrets on a runtime could write a record there, and we would act on it with
/// more rights than theirs. So a record counts only with a seal that nobody on a runtime can make:
/// an HMAC (RFC 2104) with SHA-256 over it and the name of the runtime that it is for. The sets are
/// sealed with it, as it holds their digests. An older record of the same runtime still passes: it
/// can bring back, for one look, what was vouched for before, and nothing else.

/// 256 bits of randomness. Throws if the system has none.
std::string make_record_key();

/// 64 hexadecimal digits.
std::string seal_of(std::string_view key, std::string_view subject, std::string_view record);
/// In constant time.
bool is_sealed(std::string_view seal, std::string_view key, std::string_view subject,
               std::string_view record);

/// Of the Secret in the control plane that keeps the key, so that all replicas, now and later, have
/// the same. Where it is lost, no record is vouched for any more, and every set is applied afresh.
inline constexpr std::string_view record_key_name = "runtime-watcher-bootstrapper-key";

/// The key, which is made if there is none yet.
boost::asio::awaitable<k8s::result<std::string>> find_record_key(k8s::client& kcp, std::string ns);

}  // namespace rw::bootstrapper
