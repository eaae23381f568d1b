#pragma once

#include "rw/k8s/objects/json_input.hpp"
#include "rw/k8s/objects/names.hpp"
#include "rw/k8s/objects/object.hpp"
#include "rw/k8s/objects/object_builder.hpp"
#include "rw/k8s/objects/projection.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace rw::k8s {

/// The objects expected in a server's response.
class object_format {
 public:
  /// `metadata_only`: PartialObjectMetadata is requested, and the whole object accepted.
  /// `any_version`: the objects may be of any version of the type's group.
  object_format(const resource_type& type, bool metadata_only, bool any_version = false);

  /// Returns the text that replaces the object's "{": "{", and the kind and apiVersion that it
  /// omits, as in the lists of many resources; the kind of the list implies them. Empty if the
  /// object is not an expected one.
  std::string_view head(std::string_view api_version, std::string_view kind,
                        std::string_view list_kind) const noexcept;

  const std::string& kind() const noexcept { return whole_.kind; }

 private:
  struct naming {
    naming(std::string an_api_version, std::string a_kind);
    std::string_view head(std::string_view of_api_version, std::string_view of_kind,
                          std::string_view list_kind) const noexcept;

    std::string api_version;
    std::string kind;
    std::string list_kind;
    std::string with_kind;
    std::string with_api_version;
    std::string with_both;
    std::string any_version_of = {};  ///< "group/"; empty: one version only
  };

  naming whole_;
  std::optional<naming> partial_;
};

/// Reads one object: copies the fields that a projection keeps into a builder, and finds the fields
/// that machinery reads. Used once for each object.
class object_reader {
 public:
  object_reader(core::token_walk& walk, object_builder& builder) : walk_(walk), builder_(builder) {
    builder.clear();
  }

  /// Walks the object at the position. Returns false if the walk returns false, or a field has a
  /// wrong type.
  bool read(const projection::rule& keep) {
    open();
    bool first = true;
    const bool whole = walk_.object([&](std::string_view name, const char* begin) {
      if (name == "metadata") return metadata(begin, first, keep.find(name));
      if (name == "apiVersion") return word(begin, first, api_version_) && !api_version_.empty();
      if (name == "kind") return word(begin, first, kind_) && !kind_.empty();
      return member(begin, first, keep.find(name));
    });
    return whole && close();
  }

  /// Returns the object, as an element of a list of that kind if it is in one. Empty if it is not
  /// an expected one; then sets `wrong` to the reason.
  object finish(const object_format& expected, std::string& wrong,
                std::string_view list_kind = {}) const {
    object made;
    const auto head = expected.head(api_version_, kind_, list_kind);
    if (head.empty()) {
      wrong = "has an object that is no " + expected.kind();
    } else if (fields_[object_block::name].value.empty()) {
      wrong = "has an object without metadata.name";
    } else if (fields_[object_block::resource_version].value.empty()) {
      wrong = "has an object without metadata.resourceVersion";
    } else {
      made = builder_.finish(head, fields_);
      if (!made) wrong = "has an object with a name that is too long";
    }
    return made;
  }

  /// Returns the object, of any kind. Empty if it has no name.
  object finish() const {
    if (fields_[object_block::name].value.empty()) return {};
    return builder_.finish("{", fields_);
  }

 private:
  using rule = projection::rule;
  using fate = projection::rule::fate;

  bool open() {
    builder_.add(walk_.here(), walk_.here() + 1);
    return true;
  }
  bool close() {
    builder_.add(walk_.here() - 1, walk_.here());
    return true;
  }

  /// Appends the member's name, or the element's comma. In compact text every member but the first
  /// has its comma right before it; the first that is kept must have none.
  void begin(const char* from, bool& first) {
    builder_.add(first ? from : from - 1, walk_.here());
    first = false;
  }

  /// Walks the value at the position and appends it unchanged.
  bool copy() {
    const char* const from = walk_.here();
    if (!walk_.skip()) return false;
    builder_.add(from, walk_.here());
    return true;
  }

  bool dropped(const rule& keep) const noexcept {
    if (keep.treatment != fate::look_inside) return keep.treatment == fate::drop;
    return keep.unnamed == fate::drop && walk_.peek() != '{' && walk_.peek() != '[';
  }

  /// Reads a member, or an element of a list, that begins at `from`.
  bool member(const char* from, bool& first, const rule& keep) {
    if (dropped(keep)) return walk_.skip();
    begin(from, first);
    if (keep.treatment == fate::look_inside && walk_.peek() == '{') return members(keep);
    if (keep.treatment == fate::look_inside && walk_.peek() == '[') return elements(keep);
    return copy();
  }

  bool members(const rule& keep) {
    open();
    bool first = true;
    return walk_.object([&](std::string_view name, const char* from) {
      return member(from, first, keep.find(name));
    }) && close();
  }

  bool elements(const rule& keep) {
    open();
    bool first = true;
    return walk_.array([&] { return member(walk_.here(), first, keep); }) && close();
  }

  bool word(const char* from, bool& first, std::string_view& into) {
    begin(from, first);
    const char* const value = walk_.here();
    if (!string_or_null(walk_, into)) return false;
    builder_.add(value, walk_.here());
    return true;
  }

  bool field(const char* from, bool& first, object_block::field part) {
    auto& place = fields_[part];
    const char* const quote = walk_.here();
    if (!word(from, first, place.value)) return false;
    const bool verbatim = place.value.data() == quote + 1;
    place.begin = verbatim ? builder_.offset(place.value.data()) : object_builder::place::elsewhere;
    return true;
  }

  bool metadata(const char* from, bool& first, const rule& keep) {
    // Of duplicates the last counts, as for every other reader of JSON.
    for (auto& place : fields_) place = {};
    if (walk_.peek() != '{') {
      begin(from, first);
      return copy();
    }
    begin(from, first);
    open();
    bool first_inside = true;
    return walk_.object([&](std::string_view name, const char* at) {
      if (name == "name") return field(at, first_inside, object_block::name);
      if (name == "namespace") return field(at, first_inside, object_block::ns);
      if (name == "uid") return field(at, first_inside, object_block::uid);
      if (name == "resourceVersion") {
        return field(at, first_inside, object_block::resource_version);
      }
      return member(at, first_inside, keep.find(name));
    }) && close();
  }

  core::token_walk& walk_;
  object_builder& builder_;
  std::string_view api_version_;
  std::string_view kind_;
  object_builder::place fields_[4];
};

}  // namespace rw::k8s
