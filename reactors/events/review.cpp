#include "rw/reactors/events/review.hpp"

#include "rw/core/json_text.hpp"

namespace rw::admission {

std::string_view message(review_effect effect) noexcept {
  switch (effect) {
    case review_effect::event:
      return "change accepted for delivery";
    case review_effect::no_change:
      return "nothing that is watched has changed";
    case review_effect::invalid_subresource:
      return "changes of this subresource are not watched";
    case review_effect::connect_unsupported:
      return "operation CONNECT not supported";
    case review_effect::dry_run:
      return "dry run: no event";
    case review_effect::unknown_operation:
      return "operation not known";
    case review_effect::unidentified:
      return "the review names no object: no event";
    case review_effect::name_too_long:
      return "a name in the review is longer than 253 bytes: no event";
    case review_effect::unknown_manager:
      return "no Watcher names this manager: no event";
  }
  return "not known";
}

std::string_view reason(review_error error) noexcept {
  switch (error) {
    case review_error::empty_body:
      return "the body is empty, an AdmissionReview was expected";
    case review_error::malformed_json:
      return "the body is not valid JSON";
    case review_error::too_deep:
      return "the body nests more than 512 levels deep";
    case review_error::not_admission_review:
      return "the body is not an AdmissionReview of admission.k8s.io/v1 or v1beta1";
    case review_error::no_request:
      return "the AdmissionReview has no request";
    case review_error::no_uid:
      return "the request of the AdmissionReview has no uid of 1 to 253 bytes";
    case review_error::wrong_type:
      return "a field of the AdmissionReview has the wrong type";
  }
  return "the body was refused";
}

void append_response(std::string& out, const review_decision& decided,
                     std::span<const std::string_view> warnings) {
  constexpr std::string_view v1 =
      R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":)";
  constexpr std::string_view v1beta1 =
      R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","response":{"uid":)";
  const auto text = message(decided.effect);
  out.reserve(out.size() + v1beta1.size() + decided.uid.size() + text.size() + 96);
  out += decided.version == review_version::v1 ? v1 : v1beta1;
  core::append_json_string(out, decided.uid);
  out += R"(,"allowed":true,"status":{"metadata":{},"status":"Success","message":)";
  core::append_json_string(out, text);
  out += '}';
  if (!warnings.empty()) {
    char before = '[';
    out += R"(,"warnings":)";
    for (const auto warning : warnings) {
      out += before;
      core::append_json_string(out, warning);
      before = ',';
    }
    out += ']';
  }
  out += "}}";
}

}  // namespace rw::admission
