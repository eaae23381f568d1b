#include "rw/k8s/devserver/refusals.hpp"

namespace rw::k8s::devserver {
namespace {

problem about(unsigned code, std::string reason, std::string message, const subject& of) {
  problem result{code, std::move(reason), std::move(message)};
  result.name = of.name;
  result.group = of.group;
  result.kind = of.resource;
  return result;
}

std::string spaced_quoted(std::string_view text) {
  return " \"" + std::string(text) + "\"";
}

}  // namespace

std::string subject::qualified() const {
  std::string text(resource);
  if (!group.empty()) {
    text += '.';
    text += group;
  }
  return text;
}

problem not_found(const subject& of) {
  return about(404, "NotFound", of.qualified() + spaced_quoted(of.name) + " not found", of);
}

problem already_exists(const subject& of) {
  return about(409, "AlreadyExists", of.qualified() + spaced_quoted(of.name) + " already exists",
               of);
}

problem conflict(const subject& of, std::string_view reason) {
  return about(409, "Conflict",
               "Operation cannot be fulfilled on " + of.qualified() + spaced_quoted(of.name) +
                   ": " + std::string(reason),
               of);
}

problem modified_meanwhile(const subject& of) {
  return conflict(of,
                  "the object has been modified; please apply your changes to the latest version "
                  "and try again");
}

problem forbidden(const subject& of, std::string_view reason) {
  auto text = of.qualified();
  if (!of.name.empty()) text += spaced_quoted(of.name);
  return about(403, "Forbidden", text + " is forbidden: " + std::string(reason), of);
}

problem invalid(const subject& of, std::vector<cause> causes) {
  std::string all;
  for (const auto& cause : causes) {
    if (!all.empty()) all += ", ";
    all += cause.field + ": " + cause.message;
  }
  if (causes.size() > 1) all = "[" + all + "]";
  auto text = of.qualified();
  text += of.name.empty() ? " \"\"" : spaced_quoted(of.name);
  auto result = about(422, "Invalid", text + " is invalid: " + all, of);
  result.causes = std::move(causes);
  return result;
}

problem bad_request(std::string reason) {
  return {400, "BadRequest", std::move(reason)};
}

problem unauthorized() {
  return {401, "Unauthorized", "Unauthorized"};
}

problem internal_error(std::string_view reason) {
  return {500, "InternalError", "Internal error occurred: " + std::string(reason)};
}

problem unsupported(std::string_view media_type) {
  return {501, "NotImplemented", "not supported by this API server: " + std::string(media_type)};
}

problem unsupported_media_type(std::string_view accepted) {
  return {415, "UnsupportedMediaType",
          "the body of the request was in an unknown format - accepted media types include: " +
              std::string(accepted)};
}

problem not_acceptable(std::string_view accepted) {
  return {406, "NotAcceptable",
          "only the following media types are accepted: " + std::string(accepted)};
}

problem no_such_resource() {
  return {404, "NotFound", "the server could not find the requested resource"};
}

problem method_not_allowed(std::string_view method) {
  return {405, "MethodNotAllowed", std::string(method)};
}

problem too_large(std::string reason) {
  return {413, "RequestEntityTooLarge", std::move(reason)};
}

problem too_many_requests() {
  problem result{429, "TooManyRequests", "Too many requests, please try again later."};
  result.retry_after = 1;
  return result;
}

problem storage_initializing() {
  problem result{429, "TooManyRequests", "storage is (re)initializing"};
  result.retry_after = 1;
  return result;
}

problem timed_out() {
  return {504, "Timeout", "Timeout: request did not complete within requested timeout"};
}

problem expired(std::string reason) {
  return {410, "Expired", std::move(reason)};
}

problem too_large_version(std::uint64_t asked, std::uint64_t current) {
  problem result{504, "Timeout",
                 "Timeout: Too large resource version: " + std::to_string(asked) +
                     ", current: " + std::to_string(current)};
  result.causes.push_back({"", "ResourceVersionTooLarge", "Too large resource version"});
  result.retry_after = 1;
  return result;
}

std::string_view default_reason(unsigned status) noexcept {
  switch (status) {
    case 400:
      return "BadRequest";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "NotFound";
    case 409:
      return "Conflict";
    case 410:
      return "Expired";
    case 429:
      return "TooManyRequests";
    case 500:
      return "InternalError";
    case 503:
      return "ServiceUnavailable";
    case 504:
      return "Timeout";
    default:
      return {};
  }
}

}  // namespace rw::k8s::devserver
