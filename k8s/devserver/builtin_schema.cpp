#include "rw/k8s/devserver/builtin_table.hpp"
#include "rw/k8s/devserver/schema.hpp"
#include "rw/k8s/objects/names.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

/// A value without fields that are known: of a basic type, or any JSON.
class leaf : public schema {
 public:
  explicit leaf(value_form form, bool free_form = false) : form_(form), free_form_(free_form) {}

  const schema* property(std::string_view) const override { return free_form_ ? this : nullptr; }
  bool declares(std::string_view) const override { return free_form_; }
  const schema* items() const override { return nullptr; }
  value_form form() const override { return form_; }
  list_type merge() const override { return list_type::atomic; }
  const std::vector<std::string>& list_map_keys() const override { return keys_; }
  bool atomic_object() const override { return false; }
  std::string_view patch_merge_key() const override { return {}; }
  bool patch_merges() const override { return false; }
  void fill_defaults(json::value&) const override {}
  void prune(json::value&, std::vector<std::string>&) const override {}
  void validate(const json::value&, const std::string&, std::vector<cause>&) const override {}

 protected:
  std::vector<std::string> keys_;

 private:
  const value_form form_;
  const bool free_form_;
};

const leaf& scalar(go_type type) {
  static const leaf text(value_form::text);
  static const leaf boolean(value_form::boolean);
  static const leaf number(value_form::number);
  static const leaf any(value_form::any);
  switch (type) {
    case go_type::text:
    case go_type::bytes:
    case go_type::duration:
      return text;
    case go_type::boolean:
      return boolean;
    case go_type::integer32:
    case go_type::integer:
    case go_type::number:
      return number;
    default:
      return any;
  }
}
const leaf& anything() {
  static const leaf leaf(value_form::any, true);
  return leaf;
}

bool has(const builtin_field& field, trait::bits bits) {
  return (field.traits & bits) != 0;
}

/// A list or map, or an object that is atomic as this field's value.
class container final : public leaf {
 public:
  container(const builtin_field& of, const schema& items)
      : leaf(of.in == holder::list ? value_form::list : value_form::map),
        field_(of),
        items_(items) {
    for (auto rest = of.keys; !rest.empty();) {
      const auto end = std::min(rest.find(' '), rest.size());
      keys_.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }

  const schema* property(std::string_view name) const override {
    return is_object() ? items_.property(name) : nullptr;
  }
  bool declares(std::string_view name) const override {
    return is_object() && items_.declares(name);
  }
  const schema* items() const override { return is_object() ? nullptr : &items_; }
  list_type merge() const override {
    if (has(field_, trait::list_map)) return list_type::map;
    return has(field_, trait::list_set) ? list_type::set : list_type::atomic;
  }
  bool atomic_object() const override { return has(field_, trait::atomic); }
  std::string_view patch_merge_key() const override { return field_.merge_key; }
  bool patch_merges() const override { return has(field_, trait::patch_merges); }
  bool patch_replaces() const override { return has(field_, trait::replaces); }
  bool allows(std::string_view name) const override {
    return !patch_replaces() || items_.allows(name);
  }

 private:
  bool is_object() const { return field_.in == holder::single; }

  const builtin_field& field_;
  const schema& items_;
};

/// A Go type with its fields, those of embedded types among them.
class object_type final : public leaf {
 public:
  struct member {
    const builtin_field* field;
    const schema* type;
  };

  explicit object_type(unsigned traits) : leaf(value_form::map), traits_(traits) {}

  const schema* property(std::string_view name) const override {
    const auto found = members.find(name);
    return found != members.end() ? found->second.type : nullptr;
  }
  bool declares(std::string_view name) const override {
    return members.contains(name) || is_type(name);
  }
  bool allows(std::string_view name) const override { return declares(name); }
  bool always_present(std::string_view name) const override {
    const auto found = members.find(name);
    if (found == members.end()) return false;
    const auto& field = *found->second.field;
    if (!has(field, trait::omitempty)) return true;
    return field.type == go_type::object && field.in == holder::single &&
           !has(field, trait::pointer);
  }
  bool atomic_object() const override { return (traits_ & trait::atomic) != 0; }
  bool may_merge_lists(std::string_view name) const override {
    const auto found = members.find(name);
    if (found == members.end()) return !is_type(name);
    const auto& field = *found->second.field;
    return field.in == holder::list || field.type == go_type::bytes || has(field, trait::pointer);
  }

  /// Adds what identifies an item that leaves it out: the defaults of the OpenAPI document, and
  /// Go's zero for what is always there (kube-openapi, openapi-gen).
  void fill_defaults(json::value& value) const override {
    if (!value.is_object()) return;
    for (const auto& [name, member] : members) {
      const auto& field = *member.field;
      if (!field.by_default.empty()) {
        value.get_object().emplace(name, json::parse(field.by_default));
      } else if (field.in == holder::single && !has(field, trait::omitempty) &&
                 !has(field, trait::pointer)) {
        if (field.type == go_type::text) {
          value.get_object().emplace(name, "");
        } else if (field.type == go_type::integer32 || field.type == go_type::integer) {
          value.get_object().emplace(name, 0);
        }
      }
    }
  }

  std::map<std::string_view, member> members;

 private:
  bool is_type(std::string_view name) const {
    return (traits_ & trait::resource) != 0 && (name == "apiVersion" || name == "kind");
  }

  const unsigned traits_;
};

/// A kind that is not known: free-form, with the metadata of all.
class unknown_kind final : public leaf {
 public:
  explicit unknown_kind(const schema& metadata)
      : leaf(value_form::any, true), metadata_(metadata) {}
  const schema* property(std::string_view name) const override {
    return name == "metadata" ? &metadata_ : &anything();
  }

 private:
  const schema& metadata_;
};

/// All types of the table, linked.
class type_graph {
 public:
  type_graph() {
    for (const auto& type : builtin_types()) types_.emplace_back(type.traits);
    for (std::size_t i = 0; i < types_.size(); ++i) add_members(types_[i], builtin_types()[i]);
    const auto* const meta = find_builtin_type("meta.k8s.io/v1", "PartialObjectMetadata");
    unknown_ = std::make_unique<unknown_kind>(*of(*meta).property("metadata"));
  }

  const schema& of(const builtin_type& type) const {
    return types_[static_cast<std::size_t>(&type - builtin_types().data())];
  }
  const schema& unknown() const { return *unknown_; }

 private:
  void add_members(object_type& into, const builtin_type& type) {
    for (const auto& field : fields_of(type)) {
      if (field.name.empty()) {
        add_members(into, builtin_types()[field.of]);
      } else {
        into.members.emplace(field.name, object_type::member{&field, &link(field)});
      }
    }
  }

  const schema& link(const builtin_field& field) {
    const auto& value = value_of(field);
    const bool owns = field.type == go_type::object && field.in == holder::single;
    const bool differs = has(field, trait::atomic) || has(field, trait::replaces);
    if (field.in == holder::single && !(owns && differs)) return value;
    return containers_.emplace_back(field, value);
  }

  const schema& value_of(const builtin_field& field) {
    static constexpr builtin_field texts{"", 0, go_type::text, holder::list, 0, 0};
    if (field.type == go_type::object) return types_[field.of];
    if (field.type == go_type::raw) return anything();
    if (field.type == go_type::texts) {
      return containers_.emplace_back(texts, scalar(go_type::text));
    }
    return scalar(field.type);
  }

  std::deque<object_type> types_;
  std::deque<container> containers_;
  std::unique_ptr<unknown_kind> unknown_;
};

/// A built-in API group by its name, and the folder of its Go package.
struct group_folder {
  std::string_view group;
  std::string_view folder;
};

constexpr group_folder folders[] = {
    {"", "core"},
    {"rbac.authorization.k8s.io", "rbac"},
    {"flowcontrol.apiserver.k8s.io", "flowcontrol"},
};

}  // namespace

const builtin_type* find_builtin_type(std::string_view api_version,
                                      std::string_view kind) noexcept {
  const auto slash = api_version.find('/');
  const bool core = slash == std::string_view::npos;
  const auto group = core ? std::string_view() : api_version.substr(0, slash);
  const auto version = core ? api_version : api_version.substr(slash + 1);
  const auto* const found = std::ranges::find(folders, group, &group_folder::group);
  auto folder = found != std::end(folders) ? found->folder : group;
  if (folder.ends_with(".k8s.io")) folder.remove_suffix(std::string_view(".k8s.io").size());
  const auto types = builtin_types();
  const bool meta = kind == "DeleteOptions" || kind == "Status";
  const auto same = [&](const builtin_type& builtin_type) {
    if (builtin_type.name != kind) return false;
    if (meta) return builtin_type.group == "meta/v1";
    return builtin_type.group.size() == folder.size() + 1 + version.size() &&
           builtin_type.group.starts_with(folder) && builtin_type.group.ends_with(version);
  };
  const auto type = std::ranges::find_if(types, same);
  return type != types.end() ? &*type : nullptr;
}

std::shared_ptr<const schema> builtin_schema(std::string_view api_version, std::string_view kind) {
  static const auto all = std::make_shared<const type_graph>();
  const auto* const type = find_builtin_type(api_version, kind);
  return {all, type != nullptr ? &all->of(*type) : &all->unknown()};
}

}  // namespace rw::k8s::devserver
