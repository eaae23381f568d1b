#include "rw/k8s/devserver/access_review.hpp"

#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/refusals.hpp"
#include "rw/k8s/devserver/roles.hpp"

namespace rw::k8s::devserver {

namespace json = boost::json;

namespace {

constexpr std::string_view protobuf_magic("k8s\0", 4);

wanted_access wanted_in(const json::value& review) {
  const auto text = [&](std::string_view field) {
    return std::string(find_string(review, {"spec", "resourceAttributes", field}));
  };
  return {text("verb"),        text("group"),     text("resource"),
          text("subresource"), text("namespace"), text("name")};
}

}  // namespace

bool is_access_review(std::string_view method, const std::vector<std::string>& path) {
  static const std::vector<std::string> own{"apis", "authorization.k8s.io", "v1",
                                            "selfsubjectaccessreviews"};
  return method == "POST" && path == own;
}

outcome<json::value> review_access(const cluster& in, const identity& who, bool authorization,
                                   std::string_view body) {
  // kubectl sends protobuf, and reads JSON. Without roles the review's content makes no difference.
  if (!authorization && body.starts_with(protobuf_magic)) {
    body = R"({"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{}})";
  }
  std::string why;
  auto review = parse_json(body, why);
  if (!review || !review->is_object() ||
      find_string(*review, {"kind"}) != "SelfSubjectAccessReview") {
    return bad_request(
        "the object provided is unrecognized (must be of type "
        "SelfSubjectAccessReview): " +
        why);
  }
  auto& fields = review->get_object();
  object_in(fields, "metadata");
  const bool allowed = !authorization || is_allowed(in, who, wanted_in(*review));
  fields["status"] = json::object{{"allowed", allowed}};
  return std::move(*review);
}

}  // namespace rw::k8s::devserver
