#include "rw/reactors/cli/doctor_pre_manifests.hpp"

#include "rw/k8s/objects/manifests.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/cli/command_line.hpp"
#include "rw/reactors/cli/doctor_report.hpp"
#include "rw/reactors/cli/manager_manifests.hpp"
#include "rw/reactors/cli/options.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <utility>

namespace rw::cli {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

std::string read_text_of(std::istream& from) {
  return {std::istreambuf_iterator<char>(from), std::istreambuf_iterator<char>()};
}

bool is_manifest(const fs::path& file) {
  const auto extension = file.extension();
  return (extension == ".yaml" || extension == ".yml" || extension == ".json") &&
         file.stem() != "kustomization";
}

/// The files that `name` stands for: itself, or those of the directory, sorted by name.
std::vector<fs::path> manifest_files(const std::string& name) {
  if (!fs::is_directory(name)) return {name};
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(name)) {
    if (entry.is_regular_file() && is_manifest(entry.path())) out.push_back(entry.path());
  }
  std::ranges::sort(out);
  return out;
}

void add_objects(const std::string& text, const std::string& name, std::vector<json::value>& to) {
  auto parsed = k8s::parse_manifests(text);
  if (!parsed) throw setting_error("--filename: " + name + ": " + parsed.error().message());
  std::ranges::move(*parsed, std::back_inserter(to));
}

std::string built_in_manifests() {
  std::string out;
  for (const auto* part : {manager_manifests::definitions, manager_manifests::rbac,
                           manager_manifests::certificates, manager_manifests::workload}) {
    out += part;
  }
  return out;
}

/// The container that runs the manager; null: the Deployment has none.
const json::value* manager_container(const json::value& deployment) {
  const auto* const all = k8s::find_array(deployment, {"spec", "template", "spec", "containers"});
  if (all == nullptr) return nullptr;
  const auto found = std::ranges::find_if(*all, [](const json::value& container) {
    const auto* const args = k8s::find_array(container, {"args"});
    return args != nullptr && std::ranges::find(*args, "manager") != args->end();
  });
  return found == all->end() ? nullptr : &*found;
}

/// Variables of a container; nothing: the manifests do not have the value.
using variables = std::map<std::string, std::optional<std::string>, std::less<>>;

/// Replaces $(NAME) by the variable, as kubelet does (Kubernetes API reference, "Container", args);
/// nothing: its value is not known.
std::optional<std::string> expanded(std::string text, const variables& by) {
  for (auto at = text.find("$("); at != text.npos; at = text.find("$(", at)) {
    if (at > 0 && text[at - 1] == '$') {  // "$$(NAME)" is "$(NAME)"
      text.erase(at - 1, 1);
      ++at;
      continue;
    }
    const auto end = text.find(')', at);
    if (end == text.npos) break;
    const auto found = by.find(std::string_view(text).substr(at + 2, end - at - 2));
    if (found != by.end() && !found->second) return std::nullopt;
    if (found != by.end()) text.replace(at, end + 1 - at, *found->second);
    at += found != by.end() ? found->second->size() : 2;
  }
  return text;
}

variables variables_of(const json::value& container) {
  variables out;
  const auto* const all = k8s::find_array(container, {"env"});
  for (const auto& each : all == nullptr ? json::array() : *all) {
    const auto* const value = k8s::find(each, {"value"});
    const bool is_literal = value != nullptr || k8s::find(each, {"valueFrom"}) == nullptr;
    auto text = std::string(k8s::find_string(each, {"value"}));
    out[std::string(k8s::find_string(each, {"name"}))] =
        is_literal ? expanded(std::move(text), out) : std::nullopt;
  }
  return out;
}

/// The arguments without the command's name. Those whose value is not known go to `unknown`.
std::vector<std::string> arguments_of(const json::value& container, const variables& by,
                                      std::vector<std::string>& unknown) {
  std::vector<std::string> out;
  bool named = false;
  for (const auto& each : *k8s::find_array(container, {"args"})) {
    const auto given = each.is_string() ? std::string(each.get_string()) : "";
    if (given == "manager" && !std::exchange(named, true)) continue;
    if (auto text = expanded(given, by)) {
      out.push_back(std::move(*text));
    } else {
      unknown.push_back(given.substr(0, given.find('=')));
    }
  }
  return out;
}

/// Sets what no argument has set to its variable, as the program does, and adds to `unknown`. Flags
/// are noted in `line`.
void take_variables(CLI::App& app, const variables& from, std::vector<std::string>& unknown,
                    command_line& line) {
  for (auto* option : app.get_options({})) {
    const auto found = from.find(variable_of(*option, command().variable_prefix));
    if (found == from.end() || option->count() > 0) continue;
    if (!found->second) {
      unknown.push_back(found->first);
    } else if (!found->second->empty() && !is_service_link(*found->second)) {
      line.variables["--" + option->get_lnames().front()] = found->first;
      option->add_result(*found->second);
      option->run_callback();
    }
  }
}

/// Reads the settings of the container as the program does.
void read_settings(const json::value& container, planned_manager& into) {
  command_line line;
  try {
    CLI::App app;
    describe_manager(app, into.settings);
    allow_blanks(app);
    std::string log_level;  // a flag of the program, which it takes behind the command as well
    app.add_option("--log-level", log_level)
        ->check(CLI::IsMember({"debug", "info", "warning", "warn", "error"}));
    for (const auto* file : {"--rollout-prometheus-ca", "--rollout-prometheus-token-file"}) {
      app.get_option(file)->get_validator()->active(false);  // it is the pod's
    }
    const auto environment = variables_of(container);
    parse(app, arguments_of(container, environment, into.unknown));
    take_variables(app, environment, into.unknown, line);
    for (const auto* pods : {"--pod-ip", "POD_IP"}) std::erase(into.unknown, pods);
    if (k8s::find_array(container, {"envFrom"}) != nullptr) into.unknown.emplace_back("envFrom");
    check_manager(into.settings);
  } catch (const std::exception& error) {
    into.error = line.as_given(error.what());
  }
}

bool is_of_kind(const json::value& object, std::string_view kind) {
  return k8s::find_string(object, {"kind"}) == kind;
}

}  // namespace

std::vector<json::value> read_manifests(const std::vector<std::string>& files) {
  std::vector<json::value> out;
  if (files.empty()) add_objects(built_in_manifests(), "built-in manifests", out);
  for (const auto& name : files) {
    if (name == "-") {
      add_objects(read_text_of(std::cin), "standard input", out);
      continue;
    }
    for (const auto& path : manifest_files(name)) {
      std::ifstream file(path);
      if (!file) throw setting_error("--filename: cannot read " + path.string());
      add_objects(read_text_of(file), path.string(), out);
    }
  }
  if (out.empty()) throw setting_error("--filename: there are no manifests");
  k8s::sort_for_apply(out);
  return out;
}

planned_manager find_manager(const std::vector<json::value>& objects) {
  planned_manager out;
  for (const auto& object : objects) {
    const auto* const container =
        is_of_kind(object, "Deployment") ? manager_container(object) : nullptr;
    if (container == nullptr) continue;
    out.exists = true;
    read_settings(*container, out);
    break;
  }
  return out;
}

std::optional<k8s::resource_type> find_definition(const std::vector<json::value>& objects,
                                                  const k8s::group_version_kind& gvk) {
  for (const auto& object : objects) {
    if (!is_of_kind(object, "CustomResourceDefinition") ||
        k8s::find_string(object, {"spec", "group"}) != gvk.group ||
        k8s::find_string(object, {"spec", "names", "kind"}) != gvk.kind) {
      continue;
    }
    return k8s::resource_type{gvk,
                              std::string(k8s::find_string(object, {"spec", "names", "plural"})),
                              k8s::find_string(object, {"spec", "scope"}) == "Namespaced"};
  }
  return std::nullopt;
}

std::vector<access_right> granted_rights(const json::value& object,
                                         const std::vector<json::value>& objects) {
  if (is_of_kind(object, "Role") || is_of_kind(object, "ClusterRole"))
    return rights_of_role(object);
  const auto kind = k8s::find_string(object, {"roleRef", "kind"});
  const auto name = k8s::find_string(object, {"roleRef", "name"});
  const auto ns = kind == "Role" ? k8s::key_of(object).ns : std::string();
  for (const auto& role : objects) {
    const auto key = k8s::key_of(role);
    if (is_of_kind(role, kind) && key.name == name && key.ns == ns) return rights_of_role(role);
  }
  return {};
}

}  // namespace rw::cli
