#pragma once

#include "reactors/admission/review.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace rw::admission {

/// What the rules say before the objects are looked at.
struct first_look {
  enum class part { nothing, spec, status };

  std::optional<verdict> settled = std::nullopt;  ///< the verdict, if the objects have no say in it
  part compare = part::nothing;     ///< else: what to compare; `nothing`: an event in any case
  bool prefers_old_object = false;  ///< the object is `oldObject` rather than `object`
};

/// `watched`: subresources other than status whose updates are events.
first_look look(bool dry_run, std::string_view operation, std::string_view subresource,
                std::span<const std::string> watched) noexcept;

/// The review version that an apiVersion stands for, none if it is not one of ours.
std::optional<review_version> parse_review_version(std::string_view api_version) noexcept;

/// Splits an apiVersion such as "apps/v1", or "v1" of the core group.
void split_api_version(std::string_view api_version, rw::group_version_kind& into);

/// Splits "<namespace>/<name>". False, and `owner` untouched, if either is empty or there is
/// another '/'.
bool parse_owner(std::string_view annotation, rw::object_key& owner);

inline constexpr std::string_view owner_annotation = "operator.kyma-project.io/owned-by";

}  // namespace rw::admission
