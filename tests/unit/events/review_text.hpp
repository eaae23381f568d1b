#pragma once

#include <optional>
#include <string>

/// Writes an AdmissionReview as an API server would; every part can be replaced by other JSON text,
/// or left out.
struct review_text {
  using json = std::optional<std::string>;

  json api_version = R"("admission.k8s.io/v1")";
  json review_kind = R"("AdmissionReview")";
  json uid = R"("0df28fbd-5f5f-11e8-bc74-36e6bb280816")";
  json gvk = R"({"group":"operator.kyma-project.io","version":"v1beta2","kind":"Kyma"})";
  json name = R"("default")";
  json ns = R"("kyma-system")";
  json operation = R"("UPDATE")";
  json subresource;
  json dry_run = "false";
  json object = watched(R"({"channel":"fast","size":1})", R"({"state":"Ready"})");
  json old_object = watched(R"({"channel":"regular","size":1})", R"({"state":"Ready"})");

  static std::string metadata(const std::string& more = "") {
    return R"({"labels":{"a":"b"},"name":"default","namespace":"kyma-system","generation":3)" +
           more + "}";
  }

  static std::string watched(const json& spec, const json& status, const json& meta = metadata()) {
    std::string out = R"({"apiVersion":"operator.kyma-project.io/v1beta2","kind":"Kyma")";
    add(out, "metadata", meta);
    add(out, "spec", spec);
    add(out, "status", status);
    return out + "}";
  }

  std::string request() const {
    std::string out =
        R"({"options":{"kind":"UpdateOptions","x":[1,2.5,-3e2,true,null,"\u00e9\n"]})";
    add(out, "uid", uid);
    add(out, "kind", gvk);
    add(out, "name", name);
    add(out, "namespace", ns);
    add(out, "operation", operation);
    add(out, "subResource", subresource);
    add(out, "object", object);
    add(out, "oldObject", old_object);
    add(out, "dryRun", dry_run);
    return out + "}";
  }

  std::string text() const { return around(request()); }

  std::string around(const json& request_text) const {
    std::string out = R"({"extra":[])";
    add(out, "kind", review_kind);
    add(out, "apiVersion", api_version);
    add(out, "request", request_text);
    return out + "}";
  }

 private:
  static void add(std::string& out, const char* key, const json& value) {
    if (value) out += std::string(",\"") + key + "\":" + *value;
  }
};
