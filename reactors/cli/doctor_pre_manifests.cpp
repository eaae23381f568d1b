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
#include <iostream>
#include <iterator>
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

/// The arguments of the container that runs the manager, without the command's name.
std::optional<std::vector<std::string>> manager_arguments(const json::value& deployment) {
  const auto* const containers =
      k8s::find_array(deployment, {"spec", "template", "spec", "containers"});
  for (const auto& container : containers == nullptr ? json::array() : *containers) {
    const auto* const args = k8s::find_array(container, {"args"});
    if (args == nullptr || args->empty() || args->front() != "manager") continue;
    std::vector<std::string> out;
    for (std::size_t i = 1; i < args->size(); ++i) {
      out.emplace_back((*args)[i].is_string() ? (*args)[i].get_string() : "");
    }
    return out;
  }
  return std::nullopt;
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
    const auto arguments =
        is_of_kind(object, "Deployment") ? manager_arguments(object) : std::nullopt;
    if (!arguments) continue;
    out.exists = true;
    try {
      CLI::App app;
      describe_manager(app, out.settings);
      std::string log_level;  // a flag of the program, which it takes behind the command as well
      app.add_option("--log-level", log_level);
      for (const auto* file : {"--rollout-prometheus-ca", "--rollout-prometheus-token-file"}) {
        app.get_option(file)->get_validator()->active(false);  // it is the pod's
      }
      parse(app, *arguments);
      check_manager(out.settings);
    } catch (const std::exception& error) {
      out.error = error.what();
    }
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
