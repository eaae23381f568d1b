#include "rw/k8s/devserver/builtin_content.hpp"
#include "rw/k8s/devserver/json_access.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <array>
#include <string_view>

// Webhook configurations (Kubernetes, "pkg/apis/admissionregistration/validation").

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

/// One webhook of a configuration, and its path in it.
class webhook_check {
 public:
  webhook_check(const json::value& of, std::string at, std::vector<cause>& found)
      : object_(of), path_(std::move(at)), found_(found) {}

  void check_all() const {
    check_name();
    check_client_config();
    check_policies();
    check_versions();
    check_rules();
  }

 private:
  void add(std::string_view field, std::string_view reason, std::string message) const {
    found_.push_back({path_ + "." + std::string(field), std::string(reason), std::move(message)});
  }
  void require(std::string_view field, std::string_view reason) const {
    add(field, "FieldValueRequired", "Required value: " + std::string(reason));
  }

  void check_name() const {
    const auto name = find_string(object_, {"name"});
    if (std::ranges::count(name, '.') >= 2) return;
    add("name", "FieldValueInvalid",
        "Invalid value: \"" + std::string(name) +
            "\": should be a domain with at least three segments separated by dots");
  }

  void check_client_config() const {
    const auto url = find_string(object_, {"clientConfig", "url"});
    const auto* service = find(object_, {"clientConfig", "service"});
    const bool has_service = service != nullptr && !service->is_null();
    if (url.empty() != has_service) {
      require("clientConfig", "exactly one of url or service is required");
    } else if (has_service) {
      const auto path = find_string(*service, {"path"});
      if (find_string(*service, {"name"}).empty()) {
        require("clientConfig.service.name", "service name is required");
      }
      if (find_string(*service, {"namespace"}).empty()) {
        require("clientConfig.service.namespace", "service namespace is required");
      }
      if (!path.empty() && !path.starts_with('/')) {
        add("clientConfig.service.path", "FieldValueInvalid",
            "Invalid value: \"" + std::string(path) + "\": must start with a '/'");
      }
    } else if (!url.starts_with("https://")) {
      add("clientConfig.url", "FieldValueInvalid",
          "Invalid value: \"" + std::string(url.substr(0, url.find("://"))) +
              "\": 'https' is the only allowed URL scheme; desired format: "
              "https://host[/path]");
    }
  }

  void check_one_of(std::string_view field, std::string_view text, std::string_view a,
                    std::string_view b) const {
    if (text == a || text == b) return;
    add(field, "FieldValueNotSupported",
        "Unsupported value: \"" + std::string(text) + "\": supported values: \"" + std::string(a) +
            "\", \"" + std::string(b) + "\"");
  }

  void check_policies() const {
    const auto* effects = find(object_, {"sideEffects"});
    if (effects == nullptr || effects->is_null()) {
      require("sideEffects", "must specify one of None, NoneOnDryRun");
    } else {
      check_one_of("sideEffects", find_string(object_, {"sideEffects"}), "None", "NoneOnDryRun");
    }
    check_one_of("failurePolicy", find_string(object_, {"failurePolicy"}), "Fail", "Ignore");
    check_one_of("matchPolicy", find_string(object_, {"matchPolicy"}), "Equivalent", "Exact");
    const auto seconds = integer_at(object_, {"timeoutSeconds"}).value_or(0);
    if (seconds >= 1 && seconds <= 30) return;
    add("timeoutSeconds", "FieldValueInvalid",
        "Invalid value: " + std::to_string(seconds) +
            ": the timeout value must be between 1 and 30 seconds");
  }

  void check_versions() const {
    const auto* versions = find(object_, {"admissionReviewVersions"});
    if (versions == nullptr || !versions->is_array() || versions->get_array().empty()) {
      require("admissionReviewVersions", "must specify one of v1, v1beta1");
      return;
    }
    const auto known = [](const json::value& version) {
      return version.is_string() &&
             (version.get_string() == "v1" || version.get_string() == "v1beta1");
    };
    if (std::ranges::any_of(versions->get_array(), known)) return;
    add("admissionReviewVersions", "FieldValueInvalid",
        "Invalid value: must include at least one of v1, v1beta1");
  }

  void check_rules() const {
    std::size_t index = 0;
    for (const auto& rule : array_at(object_, {"rules"})) {
      const auto at = "rules[" + std::to_string(index++) + "].";
      for (const auto* field : {"operations", "apiGroups", "apiVersions", "resources"}) {
        if (!array_at(rule, {field}).empty()) continue;
        add(at + field, "FieldValueRequired", "Required value");
      }
    }
  }

  const json::value& object_;
  const std::string path_;
  std::vector<cause>& found_;
};

}  // namespace

void check_webhooks(const json::value&, const json::value& object, std::vector<cause>& found) {
  std::size_t index = 0;
  for (const auto& hook : array_at(object, {"webhooks"})) {
    webhook_check(hook, "webhooks[" + std::to_string(index++) + "]", found).check_all();
  }
}

}  // namespace rw::k8s::devserver
