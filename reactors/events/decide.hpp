#pragma once

#include "rw/reactors/events/review.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace rw::admission {

/// The part of the decision that does not depend on the objects.
struct first_look {
  enum class part { nothing, spec, status };

  std::optional<review_effect> settled = std::nullopt;  ///< if the objects do not matter
  part compare = part::nothing;     ///< else: the part to compare; `nothing`: an event in any case
  bool prefers_old_object = false;  ///< the object is `oldObject` rather than `object`
};

/// `watched`: subresources other than status whose updates are events.
first_look look(bool dry_run, std::string_view operation, std::string_view subresource,
                std::span<const std::string> watched) noexcept;

/// Returns the version of a review, v1 if it has no apiVersion; nothing if apiVersion or kind name
/// something else.
std::optional<review_version> parse_review_version(std::string_view api_version,
                                                   std::string_view kind) noexcept;

/// The parts of an event in a review; views into the review.
struct event_parts {
  std::string_view name, ns;              ///< of the request
  std::string_view group, version, kind;  ///< of the request's kind
  std::string_view object_name, object_ns, object_api_version, object_kind;
};

/// Makes an event from its parts by the rules of `read_review_reference`. Returns `event`; or else
/// `unidentified` or `name_too_long`, with `event` untouched.
review_effect make_event(const event_parts& parts, rw::watch_event& event);

}  // namespace rw::admission
