#include "rw/k8s/devserver/network_checks.hpp"

#include "rw/k8s/devserver/builtin_content.hpp"
#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/objects/qualified_name.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

void add_wrong(std::vector<cause>& found, const std::string& at, const json::value& value,
               std::string_view reason) {
  found.push_back({at, "FieldValueInvalid",
                   "Invalid value: " + json::serialize(value) + ": " + std::string(reason)});
}

/// The items of a list with their paths.
template <class Check>
void each_item(const json::value& of, std::string_view field, const std::string& at, Check check) {
  const auto& list = array_at(of, {field});
  for (std::size_t i = 0; i < list.size(); ++i) {
    check(list[i], at + "." + std::string(field) + "[" + std::to_string(i) + "]");
  }
}

bool has_items(const json::value& of, std::string_view field) {
  return !array_at(of, {field}).empty();
}

bool is_there(const json::value& of, std::string_view field) {
  const auto* const value = find(of, {field});
  return value != nullptr && !value->is_null();
}

void check_backend(const json::value& backend, const std::string& at, std::vector<cause>& found) {
  const bool to_resource = is_there(backend, "resource");
  const bool to_service = is_there(backend, "service");
  if (to_resource && to_service) {
    add_wrong(found, at, "", "cannot set both resource and service backends");
  } else if (to_resource) {
    for (const std::string field : {"apiGroup", "kind", "name"}) {
      const auto text = find_string(backend, {"resource", field});
      const auto where = at + ".resource." + field;
      const bool group = field == "apiGroup";
      if (text.empty()) {
        if (!group) require(found, where);
        continue;
      }
      for (const auto& error : group ? dns_subdomain_errors(text) : path_segment_errors(text)) {
        add_wrong(found, where, json::value(text), error);
      }
    }
  } else if (to_service) {
    const auto name = find_string(backend, {"service", "name"});
    if (name.empty()) {
      require(found, at + ".service.name");
    } else {
      for (const auto& error : dns_1035_label_errors(name)) {
        add_wrong(found, at + ".service.name", json::value(name), error);
      }
    }
    const auto port_name = find_string(backend, {"service", "port", "name"});
    const auto number = integer_at(backend, {"service", "port", "number"}).value_or(0);
    if (!port_name.empty() && number != 0) {
      add_wrong(found, at, "", "cannot set both port name & port number");
    } else if (!port_name.empty()) {
      check_port_value(json::value(port_name), at + ".service.port.name", found);
    } else if (number != 0) {
      check_port_value(number, at + ".service.port.number", found);
    } else {
      found.push_back(
          {at, "FieldValueRequired", "Required value: port name or number is required"});
    }
  } else {
    add_wrong(found, at, "", "resource or service backend is required");
  }
}

void check_path(const json::value& path, const std::string& at, std::vector<cause>& found) {
  const auto type = find_string(path, {"pathType"});
  const std::string text(find_string(path, {"path"}));
  const auto absolute = [&] {
    if (!text.starts_with('/')) {
      add_wrong(found, at + ".path", json::string(text), "must be an absolute path");
    }
  };
  if (!is_there(path, "pathType")) {
    found.push_back(
        {at + ".pathType", "FieldValueRequired", "Required value: pathType must be specified"});
  } else if (type == "Exact" || type == "Prefix") {
    absolute();
    for (const std::string_view part : {"//", "/./", "/../", "%2f", "%2F"}) {
      if (text.find(part) == std::string::npos) continue;
      add_wrong(found, at + ".path", json::string(text),
                "must not contain '" + std::string(part) + "'");
    }
    for (const std::string_view end : {"/..", "/."}) {
      if (!text.ends_with(end)) continue;
      add_wrong(found, at + ".path", json::string(text),
                "cannot end with '" + std::string(end) + "'");
    }
  } else if (type == "ImplementationSpecific") {
    if (!text.empty()) absolute();
  } else {
    found.push_back({at + ".pathType", "FieldValueNotSupported",
                     "Unsupported value: " + json::serialize(json::value(type)) +
                         ": supported values: \"Exact\", \"ImplementationSpecific\", "
                         "\"Prefix\""});
  }
  const auto* const backend = find(path, {"backend"});
  check_backend(backend == nullptr ? json::value() : *backend, at + ".backend", found);
}

void check_host(const std::string& host, const std::string& at, std::vector<cause>& found) {
  if (host.empty()) return;
  const auto name = host.starts_with("*.") ? std::string_view(host).substr(2) : host;
  for (const auto& error : dns_subdomain_errors(name)) {
    add_wrong(found, at, json::string(host), error);
  }
}

}  // namespace

void check_port_value(const json::value& port, const std::string& at, std::vector<cause>& found) {
  if (port.is_string()) {
    for (const auto& error : port_name_errors(view(port.get_string()))) {
      add_wrong(found, at, port, error);
    }
  } else if (port.is_int64() && (port.get_int64() < 1 || port.get_int64() > 65'535)) {
    add_wrong(found, at, port, "must be between 1 and 65535, inclusive");
  }
}

void check_ingress(const json::value&, const json::value& object, std::vector<cause>& found) {
  const auto* const spec = find(object, {"spec"});
  static const json::value none(json::object_kind);
  const auto& of = spec == nullptr ? none : *spec;
  if (!has_items(of, "rules") && !is_there(of, "defaultBackend")) {
    add_wrong(found, "spec", json::array(), "either `defaultBackend` or `rules` must be specified");
  }
  if (is_there(of, "defaultBackend")) {
    check_backend(*find(of, {"defaultBackend"}), "spec.defaultBackend", found);
  }
  each_item(of, "rules", "spec", [&](const json::value& rule, const std::string& at) {
    check_host(std::string(find_string(rule, {"host"})), at + ".host", found);
    if (!is_there(rule, "http")) return;
    const auto& http = *find(rule, {"http"});
    if (!has_items(http, "paths")) require(found, at + ".http.paths");
    each_item(http, "paths", at + ".http", [&](const json::value& path, const std::string& where) {
      check_path(path, where, found);
    });
  });
}

void check_network_policy(const json::value&, const json::value& object,
                          std::vector<cause>& found) {
  const auto* const spec = find(object, {"spec"});
  if (spec == nullptr) return;
  for (const auto* direction : {"ingress", "egress"}) {
    each_item(*spec, direction, "spec", [&](const json::value& rule, const std::string& at) {
      each_item(rule, "ports", at, [&](const json::value& port, const std::string& where) {
        if (is_there(port, "port")) check_port_value(*find(port, {"port"}), where + ".port", found);
        check_choice(found, where + ".protocol", find_string(port, {"protocol"}),
                     {"SCTP", "TCP", "UDP"});
      });
    });
  }
}

}  // namespace rw::k8s::devserver
