#include "reactors/admission/answer.hpp"

#include "core/json_text.hpp"

namespace rw::admission {

void append_answer(std::string& out, review_version version, std::string_view uid,
                   std::string_view text, std::span<const std::string_view> warnings) {
  constexpr std::string_view v1 =
      R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":)";
  constexpr std::string_view v1beta1 =
      R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","response":{"uid":)";
  out.reserve(out.size() + v1beta1.size() + uid.size() + text.size() + 96);
  out += version == review_version::v1 ? v1 : v1beta1;
  core::append_json_string(out, uid);
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

void append_answer(std::string& out, const decision& decided,
                   std::span<const std::string_view> warnings) {
  append_answer(out, decided.version, decided.uid, message(decided.what), warnings);
}

}  // namespace rw::admission
