#pragma once

#include "reactors/admission/review.hpp"

#include <span>
#include <string>
#include <string_view>

namespace rw::admission {

/// Appends the AdmissionReview that answers a review: of the same apiVersion, `uid` echoed,
/// `allowed: true`, `status: Success` with `text`, and the warnings, if any, which the API server
/// shows to the user. `text` and `warnings` are plain text; what is written is always valid JSON.
void append_answer(std::string& out, review_version version, std::string_view uid,
                   std::string_view text, std::span<const std::string_view> warnings = {});

/// The same with the decision's own message.
void append_answer(std::string& out, const decision& decided,
                   std::span<const std::string_view> warnings = {});

}  // namespace rw::admission
