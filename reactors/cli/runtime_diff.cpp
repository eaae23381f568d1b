#include "rw/reactors/cli/runtime_diff.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/objects/base64.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/cli/kcp_commands.hpp"
#include "rw/reactors/cli/unified_diff.hpp"
#include "rw/reactors/cli/yaml_text.hpp"
#include "rw/tls/digest.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <span>
#include <utility>

namespace rw::cli {
namespace {

namespace json = boost::json;
using k8s::find_string;

constexpr std::string_view in_kcp = "KCP";

std::string digest_of(std::string_view value) {
  const auto digest = tls::sha256(value);
  return "sha256:" + core::hex(std::span(digest).first(6)) + " (" + std::to_string(value.size()) +
         " bytes)";
}

std::string_view action_of(const k8s::tried_write& write, bool creates, bool deletes) {
  if (write.left_out) return "write";
  return creates ? "create" : deletes ? "delete" : "update";
}

json::object json_of(k8s::tried_write write, std::string_view cluster, std::size_t& rest) {
  const auto action = action_of(write, write.live.is_null(), write.next.is_null());
  json::object out{{"action", action},
                   {"cluster", cluster},
                   {"apiVersion", write.type.gvk.api_version()},
                   {"kind", write.type.gvk.kind},
                   {"namespace", write.key.ns},
                   {"name", write.key.name}};
  if (write.type.gvk.group.empty() && write.type.gvk.kind == "Secret") {
    hide_values(write.live);
    hide_values(write.next);
  }
  const auto size = json::serialize(write.live).size() + json::serialize(write.next).size();
  if (write.left_out || size > rest) {
    out["leftOut"] = true;
    return out;
  }
  rest -= size;
  out["live"] = std::move(write.live);
  out["next"] = std::move(write.next);
  return out;
}

bool is_in_kcp(const json::value& write) {
  return find_string(write, {"cluster"}) == in_kcp;
}

std::string described(const json::value& write) {
  const auto ns = find_string(write, {"namespace"});
  return std::string(find_string(write, {"kind"})) + " " + std::string(ns) +
         (ns.empty() ? "" : "/") + std::string(find_string(write, {"name"})) +
         (is_in_kcp(write) ? " (KCP)" : "");
}

/// An object for people: without members that say nothing (null, or an empty list, which API
/// servers have for none), and with digests in place of long base64, such as a caBundle.
json::value for_people(const json::value& of) {
  constexpr std::size_t long_text = 100;
  if (const auto* const object = of.if_object()) {
    json::object out;
    for (const auto& [name, member] : *object) {
      const bool is_none = member.is_null() || (member.is_array() && member.get_array().empty());
      if (!is_none) out[name] = for_people(member);
    }
    return out;
  }
  if (const auto* const array = of.if_array()) {
    json::array out;
    for (const auto& element : *array) out.push_back(for_people(element));
    return out;
  }
  const auto* const text = of.if_string();
  if (text == nullptr || text->size() < long_text || text->find(' ') != text->npos) return of;
  const auto decoded = k8s::base64_decode(*text);
  return decoded ? json::value(digest_of(*decoded)) : of;
}

std::string yaml_of(const json::value& write, std::string_view state) {
  const auto* const value = k8s::find(write, {state});
  return value == nullptr || value->is_null() ? std::string() : yaml_text(for_people(*value));
}

std::string text_of_write(const json::value& write) {
  const auto name = described(write);
  if (k8s::find(write, {"leftOut"}) != nullptr) {
    return "# " + name +
           ": it differs; its content is left out, as the response would be too large\n";
  }
  const auto live = yaml_of(write, "live");
  const auto next = yaml_of(write, "next");
  const auto hunks = unified_diff(live, next);
  if (hunks.empty())
    return "# " + name + ": only the owners of its fields (managedFields) change\n";
  const auto side = [&](std::string_view label, const std::string& text) {
    return text.empty() ? "/dev/null" : std::string(label) + " " + name;
  };
  return "--- " + side("live", live) + "\n+++ " + side("next", next) + "\n" + hunks;
}

/// Runtimes chose some of the text, and a terminal shows it.
std::string printable_lines(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    out.append(core::printable(line)).append("\n");
  }
  return out;
}

}  // namespace

void hide_values(json::value& secret) {
  if (!secret.is_object()) return;
  for (const auto* field : {"data", "stringData"}) {
    auto* const values = secret.get_object().if_contains(field);
    if (values == nullptr || values->is_null()) continue;
    if (!values->is_object()) {
      *values = digest_of(json::serialize(*values));
      continue;
    }
    for (auto& [name, value] : values->get_object()) {
      const std::string text =
          value.is_string() ? std::string(value.get_string()) : json::serialize(value);
      const auto decoded = k8s::base64_decode(text);
      value = digest_of(decoded && std::string_view(field) == "data" ? *decoded : text);
    }
  }
  // kubectl's and other tools' annotations may have the whole Secret in them.
  auto* const metadata = secret.get_object().if_contains("metadata");
  if (metadata == nullptr || !metadata->is_object()) return;
  auto* const annotations = metadata->get_object().if_contains("annotations");
  if (annotations == nullptr || !annotations->is_object()) return;
  for (auto& [name, value] : annotations->get_object()) {
    const bool own = std::string_view(name).starts_with("operator.kyma-project.io/");
    if (!own && value.is_string()) value = digest_of(std::string_view(value.get_string()));
  }
}

json::object json_of(std::vector<pass_preview> previews, std::size_t most_bytes) {
  json::array components;
  for (auto& each : previews) {
    json::array writes;
    for (auto& write : each.writes)
      writes.push_back(json_of(std::move(write), "runtime", most_bytes));
    for (auto& write : each.kcp_writes)
      writes.push_back(json_of(std::move(write), in_kcp, most_bytes));
    json::object component{{"component", each.component}, {"writes", std::move(writes)}};
    if (!each.waits.empty()) component["waits"] = json::array(each.waits.begin(), each.waits.end());
    if (!each.error.empty()) component["error"] = each.error;
    components.push_back(std::move(component));
  }
  return {{"components", std::move(components)}};
}

std::string diff_text(const json::value& diff, const kcp_access& kcp) {
  std::string out;
  std::string notes;
  for (const auto& component : diff.at("components").as_array()) {
    const std::string name(find_string(component, {"component"}));
    const auto& writes = component.at("writes").as_array();
    for (const auto& write : writes) out += text_of_write(write);
    const auto note = [&](std::string_view text) {
      const auto line = with_kcp_flags(core::printable(text), kcp);
      notes.append("# ").append(name).append(": ").append(line).append("\n");
    };
    if (const auto* const waits = k8s::find_array(component, {"waits"}); waits != nullptr) {
      for (const auto& each : *waits) {
        if (const auto* const text = each.if_string()) note(*text);
      }
    }
    const auto error = find_string(component, {"error"});
    if (!error.empty()) note("error: " + std::string(error));
    if (!error.empty() && writes.empty()) continue;
    const auto of_kcp = std::ranges::count_if(writes, is_in_kcp);
    note((writes.empty()       ? "nothing differs"
          : writes.size() == 1 ? "1 object differs"
                               : std::to_string(writes.size()) + " objects differ") +
         (of_kcp > 0 ? ", " + std::to_string(of_kcp) + " in KCP" : ""));
  }
  return printable_lines(out + notes);
}

int exit_code_of(const json::value& diff) {
  const auto& components = diff.at("components").as_array();
  const auto fails = [](const json::value& each) { return !find_string(each, {"error"}).empty(); };
  const auto differs = [](const json::value& each) {
    return !each.at("writes").as_array().empty();
  };
  if (std::ranges::any_of(components, fails)) return 1;
  return std::ranges::any_of(components, differs) ? 3 : 0;
}

}  // namespace rw::cli
