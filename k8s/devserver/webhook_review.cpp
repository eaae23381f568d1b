#include "rw/k8s/devserver/go_text.hpp"
#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/webhook.hpp"
#include "rw/k8s/objects/base64.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <utility>

// AdmissionReview (admission.k8s.io/v1 and v1beta1): requests and responses.

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

constexpr std::size_t most_shown = 1024;   // bytes of a response in a message
constexpr std::size_t most_warnings = 64;  // for one client
constexpr std::size_t longest_warning = 4096;

json::object group_version(const group_version_kind& gvk, std::string_view last,
                           std::string_view value) {
  return {{"group", gvk.group}, {"version", gvk.version}, {last, value}};
}

json::value options_of(const admission_attributes& write) {
  if (!write.options.is_null()) return write.options;
  const auto* const kind = write.operation == "CREATE"   ? "CreateOptions"
                           : write.operation == "DELETE" ? "DeleteOptions"
                                                         : "UpdateOptions";
  return {{"kind", kind}, {"apiVersion", "meta.k8s.io/v1"}};
}

void append(std::string& out, std::string_view name, const json::value& value) {
  out += ",\"";
  out += name;
  out += "\":";
  out += json::serialize(value);
}

/// Returns client-go's message for an HTTP status other than success.
std::string http_failure(unsigned status, std::string_view body) {
  if (status == 404) return "the server could not find the requested resource";
  if (status >= 500) {
    return "an error on the server (" + go_value(json::value(body.substr(0, most_shown))) +
           ") has prevented the request from succeeding";
  }
  return "the server responded with the status code " + std::to_string(status) +
         " but did not return more information";
}

/// Returns the error of a response's envelope; empty if it is valid.
std::string envelope_failure(const webhook& by, const json::object& answer) {
  const auto version = text_of(answer, "apiVersion");
  const auto kind = text_of(answer, "kind");
  // The older version did not require it.
  if (by.version == "v1beta1" && version.empty() && kind.empty()) return "";
  const auto wanted = "admission.k8s.io/" + by.version;
  if (version == wanted && kind == "AdmissionReview") return "";
  return "expected webhook response of " + wanted + ", Kind=AdmissionReview, got " +
         (version.empty() ? "/" : version) + ", Kind=" + kind;
}

problem denial(const webhook& by, const json::object& response) {
  problem made{.code = 400, .reason = "", .message = {}};
  made.message = "admission webhook \"" + by.name + "\" denied the request";
  const auto* const given = response.if_contains("status");
  const auto* const status = given != nullptr ? given->if_object() : nullptr;
  if (status == nullptr) {
    made.message += " without explanation";
    return made;
  }
  made.reason = text_of(*status, "reason");
  const auto message = text_of(*status, "message");
  const auto& reason = message.empty() ? made.reason : message;
  made.message += reason.empty() ? " without explanation" : ": " + reason;
  const auto* const code = status->if_contains("code");
  if (code != nullptr && code->is_int64() && code->get_int64() >= 400 && code->get_int64() < 600) {
    made.code = static_cast<unsigned>(code->get_int64());
  }
  const auto* const details = status->if_contains("details");
  if (details == nullptr || !details->is_object()) return made;
  const auto* const causes = details->get_object().if_contains("causes");
  if (causes == nullptr || !causes->is_array()) return made;
  for (const auto& cause : causes->get_array()) {
    if (!cause.is_object()) continue;
    const auto& fields = cause.get_object();
    made.causes.push_back(
        {text_of(fields, "field"), text_of(fields, "reason"), text_of(fields, "message")});
  }
  return made;
}

std::vector<std::string> warnings_of(const json::object& response) {
  std::vector<std::string> out;
  const auto* const given = response.if_contains("warnings");
  if (given == nullptr || !given->is_array()) return out;
  for (const auto& entry : given->get_array()) {
    if (out.size() == most_warnings) break;
    if (entry.is_string()) out.emplace_back(entry.get_string(), 0, longest_warning);
  }
  return out;
}

webhook_decision failure(std::string reason) {
  return {.failed = std::move(reason)};
}

/// Reads a JSON patch in base64. Returns its error; empty if it is valid, or if there is none.
std::string read_patch(const webhook& by, const json::object& response, json::value& into) {
  const auto encoded = text_of(response, "patch");
  const auto type = text_of(response, "patchType");
  if (encoded.empty()) {
    if (by.version != "v1" || type.empty()) return "";
    return "webhook returned response.patchType but not response.patch";
  }
  if (by.version == "v1" && type.empty()) {
    return "webhook returned response.patch but not response.patchType";
  }
  if (!type.empty() && type != "JSONPatch") {
    return "webhook returned invalid response.patchType of \"" + type + "\"";
  }
  const auto text = base64_decode(encoded);
  std::string reason = "it is not base64";
  auto patch = text ? parse_json(*text, reason) : std::nullopt;
  if (!patch) return "the response's patch can't be read: " + reason;
  into = std::move(*patch);
  return "";
}

webhook_decision judge_response(const webhook& by, std::string_view uid,
                                const json::object& response) {
  if (by.version == "v1") {
    const auto got = text_of(response, "uid");
    if (got != uid) {
      return failure("expected response.uid=\"" + std::string(uid) + "\", got " +
                     go_value(json::value(got)));
    }
    for (const auto* const field : {"patch", "patchType"}) {
      const auto* const patch = response.if_contains(field);
      if (!by.mutates && patch != nullptr && !patch->is_null()) {
        return failure("validating webhook may not return response." + std::string(field));
      }
    }
  }
  const auto* const allowed = response.if_contains("allowed");
  if (allowed != nullptr && !allowed->is_bool()) {
    return failure("response.allowed is neither true nor false");
  }
  webhook_decision made{.warnings = warnings_of(response)};
  if (allowed == nullptr || !allowed->get_bool()) {
    made.refusal = denial(by, response);
  } else if (by.mutates) {
    made.failed = read_patch(by, response, made.patch);
  }
  return made;
}

}  // namespace

review_text::review_text(const admission_attributes& write) {
  const auto& gvk = write.type.gvk;
  const auto& shown = write.shown_as.value_or(gvk);
  const auto kind = group_version(shown, "kind", shown.kind);
  const auto resource = group_version(gvk, "resource", write.type.plural);
  append(request_, "kind", kind);
  append(request_, "resource", resource);
  if (!write.subresource.empty()) append(request_, "subResource", json::value(write.subresource));
  append(request_, "requestKind", kind);
  append(request_, "requestResource", resource);
  if (!write.subresource.empty()) {
    append(request_, "requestSubResource", json::value(write.subresource));
  }
  if (!write.key.name.empty()) append(request_, "name", json::value(write.key.name));
  const bool is_namespace = gvk.group.empty() && write.type.plural == "namespaces";
  const auto& ns = is_namespace ? write.key.name : write.key.ns;
  if (!ns.empty()) append(request_, "namespace", json::value(ns));
  append(request_, "operation", json::value(write.operation));
  json::object user = {{"username", write.user}};
  if (!write.groups.empty()) {
    user["groups"] = json::array(write.groups.begin(), write.groups.end());
  }
  append(request_, "userInfo", user);
  append(request_, "object", write.object);
  append(request_, "oldObject", write.old_object);
  append(request_, "dryRun", write.dry_run);
  append(request_, "options", options_of(write));
}

std::string review_text::body(std::string_view version, std::string_view uid) const {
  std::string out = R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/)";
  out.reserve(out.size() + uid.size() + request_.size() + 64);
  out.append(version).append(R"(","request":{"uid":")").append(uid).append("\"");
  return out.append(request_).append("}}");
}

webhook_decision judge_answer(const webhook& by, std::string_view uid, unsigned status,
                              std::string_view body) {
  if (status < 200 || status > 299) return failure(http_failure(status, body));
  if (body.empty()) {
    return failure("0-length response with status code: " + std::to_string(status));
  }
  boost::system::error_code error;
  const auto answer = json::parse({body.data(), body.size()}, error);
  if (error || !answer.is_object()) {
    return failure("couldn't get version/kind; json parse error: " +
                   (error ? error.message() : std::string("the response is not an object")));
  }
  auto wrong = envelope_failure(by, answer.get_object());
  if (!wrong.empty()) return failure(std::move(wrong));
  const auto* const response = answer.get_object().if_contains("response");
  if (response == nullptr || !response->is_object()) {
    return failure("webhook response was absent");
  }
  return judge_response(by, uid, response->get_object());
}

problem webhook_failed(const webhook& webhook, const std::string& reason) {
  const auto message = "failed calling webhook \"" + webhook.name + "\": " + reason;
  return {.code = 500,
          .reason = "InternalError",
          .message = "Internal error occurred: " + message,
          .causes = {{"", "", message}}};
}

problem no_dry_run(const webhook& webhook) {
  return {.code = 400,
          .reason = "BadRequest",
          .message = "admission webhook \"" + webhook.name + "\" does not support dry run"};
}

}  // namespace rw::k8s::devserver
