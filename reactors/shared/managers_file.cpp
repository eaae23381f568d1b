#include "rw/reactors/shared/managers_file.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/objects/qualified_name.hpp"
#include "rw/k8s/objects/read_json.hpp"
#include "rw/tls/digest.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include <algorithm>

namespace rw {
namespace {

namespace json = boost::json;

constexpr std::size_t max_depth = 8;
constexpr std::int64_t format_version = 1;
constexpr std::size_t since_bytes = 64;  // of the member `since`, at most
using rule = bool (*)(std::string_view);

/// Reads one entry of `watches`; keeps the first error.
class watch_reader {
 public:
  watch_reader(const json::value& from, std::size_t number)
      : object_(from.if_object()), path_("watches[" + std::to_string(number) + "]") {}

  managed_watch read() {
    managed_watch out;
    if (object_ == nullptr) {
      fail("", "an object");
      return out;
    }
    out.manager = text("manager", "a label value such as lifecycle-manager", [](auto name) {
      return !name.empty() && k8s::label_value_errors(name).empty();
    });
    out.watched.group =
        text("group", "an API group, empty for the core group, or *", [](auto group) {
          return group.empty() || group == "*" || k8s::dns_subdomain_errors(group).empty();
        });
    out.watched.version = text("version", "an API version or *", [](auto version) {
      return version == "*" || k8s::dns_label_errors(version).empty();
    });
    out.watched.plural = text("resource", "a plural name such as kymas or *", [](auto name) {
      return name == "*" || k8s::dns_label_errors(name).empty();
    });
    out.field = text("field", "spec, status or the name of a subresource",
                     [](auto name) { return k8s::dns_label_errors(name).empty(); });
    read_labels(out);
    return out;
  }

  /// Empty: no error.
  const std::string& error() const noexcept { return error_; }

 private:
  void fail(std::string_view field, std::string_view allowed) {
    if (error_.empty()) error_ = path_ + std::string(field) + " must be " + std::string(allowed);
  }

  std::string text(std::string_view name, std::string_view allowed, rule valid) {
    const auto* const value = object_->if_contains(name);
    const auto* const string = value == nullptr ? nullptr : value->if_string();
    if (string != nullptr && valid(*string)) return std::string(*string);
    fail("." + std::string(name), allowed);
    return {};
  }

  void read_labels(managed_watch& into) {
    const auto* const value = object_->if_contains("matchLabels");
    if (value == nullptr) return;
    const auto* const labels = value->if_object();
    if (labels == nullptr) return fail(".matchLabels", "an object of labels");
    for (const auto& [key, label] : *labels) {
      const auto* const string = label.if_string();
      if (string == nullptr || !k8s::label_key_errors(key).empty() ||
          !k8s::label_value_errors(*string).empty()) {
        return fail(".matchLabels", "an object of labels");
      }
      into.labels.emplace(key, *string);
    }
  }

  const json::object* object_;
  std::string path_;
  std::string error_;
};

}  // namespace

managed_watch watch_of(const watcher& from) {
  const auto& watched = from.watched;
  return {from.manager,
          {watched.group, watched.version, watched.plural},
          watched.subresource.empty() ? std::string(to_string(from.field)) : watched.subresource,
          from.labels};
}

std::string_view unobserved_reason(const managed_watch& watch, bool secrets) {
  const auto& watched = watch.watched;
  if (watched.group == "*" || watched.plural == "*") return "wildcard";
  if (watch.field != "spec" && watch.field != "status") return "subresource";
  if (!secrets && watched.group.empty() && watched.plural == "secrets") return "secrets";
  return {};
}

known_managers::known_managers(std::vector<managed_watch> watches) : watches_(std::move(watches)) {
  std::ranges::sort(watches_);
  const auto doubles = std::ranges::unique(watches_);
  watches_.erase(doubles.begin(), doubles.end());
  for (const auto& each : watches_) {
    auto& names = subresources_[each.manager];
    if (each.field != "spec" && each.field != "status") names.push_back(each.field);
  }
}

const std::vector<std::string>* known_managers::find(std::string_view manager) const {
  const auto at = subresources_.find(manager);
  return at == subresources_.end() ? nullptr : &at->second;
}

bool known_managers::knows(const managed_watch& watch) const {
  const auto* const names = find(watch.manager);
  if (names == nullptr) return false;
  if (watch.field == "spec" || watch.field == "status") return true;
  return std::ranges::find(*names, watch.field) != names->end();
}

known_managers merge(const known_managers& a, const known_managers& b) {
  auto all = a.watches();
  all.insert(all.end(), b.watches().begin(), b.watches().end());
  return known_managers(std::move(all));
}

managers_result parse_managers(std::string_view text) {
  if (text.size() > managers_file_bytes) {
    return core::text_error{"it is larger than " + std::to_string(managers_file_bytes) + " bytes"};
  }
  const auto document = k8s::read_json(text, {.depth = max_depth});
  if (!document) return core::text_error{"it " + document.error().message};
  const auto* const root = document->if_object();
  if (root == nullptr) return core::text_error{"it must be a JSON object"};
  const auto* const version = root->if_contains("version");
  if (version == nullptr || *version != format_version) {
    return core::text_error{"version must be " + std::to_string(format_version)};
  }
  const auto* const value = root->if_contains("watches");
  const auto* const list = value == nullptr ? nullptr : value->if_array();
  if (list == nullptr || list->size() > managers_file_watches) {
    return core::text_error{"watches must be an array of at most " +
                            std::to_string(managers_file_watches) + " objects"};
  }
  std::vector<managed_watch> watches;
  for (std::size_t i = 0; i < list->size(); ++i) {
    watch_reader reader((*list)[i], i);
    watches.push_back(reader.read());
    if (!reader.error().empty()) return core::text_error{reader.error()};
  }
  return known_managers(std::move(watches));
}

bool fits_managers_file(const known_managers& managers) {
  return managers.watches().size() <= managers_file_watches &&
         render_managers(managers).size() + since_bytes <= managers_file_bytes;
}

namespace {

json::object rendered(const managed_watch& watch) {
  json::object out = {{"manager", watch.manager},
                      {"group", watch.watched.group},
                      {"version", watch.watched.version},
                      {"resource", watch.watched.plural},
                      {"field", watch.field}};
  if (watch.labels.empty()) return out;
  auto& labels = out["matchLabels"].emplace_object();
  for (const auto& [key, label] : watch.labels) labels.emplace(key, label);
  return out;
}

}  // namespace

std::string render_managers(const known_managers& managers, std::string_view since) {
  json::array watches;
  for (const auto& each : managers.watches()) watches.push_back(rendered(each));
  json::object root = {{"version", format_version}, {"watches", std::move(watches)}};
  if (!since.empty()) root["since"] = since;
  return json::serialize(root) + "\n";
}

std::size_t rendered_bytes() {
  constexpr std::string_view any_time = "2026-03-01T00:00:00.000000Z";
  return render_managers({}, any_time).size();
}

std::size_t rendered_bytes(const managed_watch& watch) {
  return json::serialize(rendered(watch)).size() + 1;  // and a comma
}

std::string managers_digest(std::string_view file) {
  return core::hex(tls::sha256(file));
}

void managers_in_use::replace(known_managers next) {
  const auto file = render_managers(next);
  replace(std::move(next), file);
}

void managers_in_use::replace(known_managers next, std::string_view file) {
  auto digest = managers_digest(file);
  auto made = std::make_shared<const known_managers>(std::move(next));
  const std::lock_guard lock(mutex_);
  current_.swap(made);
  digest_.swap(digest);
}

}  // namespace rw
