#pragma once

#include "rw/k8s/objects/object.hpp"
#include "rw/reactors/shared/bootstrapper_sources.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rw::config_sync {

/// The digest of one source's content: data and type of ConfigMaps and the Secret, spec of the
/// trust bundle, and absence (an empty object); not of metadata.
std::string digest_of(source kind, const k8s::object& now);

/// One content of the sources. Revisions are numbered in the order in which they were observed, so
/// that a content that returns is another revision: between the two a runtime may have got the
/// other.
struct numbered_revision {
  std::uint64_t number = 0;
  std::string digest = {};  ///< of the digests of all sources

  friend bool operator==(const numbered_revision&, const numbered_revision&) = default;
};

/// The revision that all runtimes are to have.
struct target {
  using time_point = std::chrono::system_clock::time_point;

  numbered_revision of = {};
  /// When it was observed first, in whole seconds. KIM configured Runtimes that are newer with it
  /// when they were created. None: it is the first revision, which all Runtimes are taken to have.
  std::optional<time_point> since = {};

  friend bool operator==(const target&, const target&) = default;
};

/// The ConfigMap, in `kcp_namespace`, that stores the target for the next leader. It is written
/// before the first Runtime is marked for it.
inline constexpr std::string_view record_name = "runtime-watcher-signalled-configuration";

/// None if the ConfigMap holds no target.
std::optional<target> read_record(const boost::json::value& config_map);
/// The ConfigMap for a target; at the resourceVersion of `before` if that has one.
boost::json::value write_record(const target& now, const boost::json::value& before);

/// What the next target is computed from.
struct target_input {
  std::optional<target> recorded = {};
  std::string digest = {};  ///< of the sources now
  bool changed = false;     ///< the digest changed since the record was written, or since the start
  bool all_once = false;    ///< sync_options::signal_all_once
  /// The newest revision of the signals on Runtimes; 0: Runtimes have the annotation, but no
  /// signal. None: no Runtime has the annotation.
  std::optional<std::uint64_t> last_signalled = {};
  target::time_point now = {};
};

/// The target for the sources as they are:
///   - The recorded one, if nothing changed; the next revision if something did.
///   - Without a record, and without a Runtime that has the annotation of signals, this is the
///     first start. The sources' content is taken for what all runtimes have, since KIM applied it:
///     to mark thousands of Runtimes without a change has no use. `all_once` marks them all the
///     same, also later as long as nothing else was signalled.
///   - With such a Runtime the record was lost, and whether the sources changed since is unknown.
///     The next revision begins now, so that all Runtimes are marked once, those without a signal
///     among them.
target next_target(const target_input& in);

}  // namespace rw::config_sync
