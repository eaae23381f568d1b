#include "rw/reactors/events/digest.hpp"

#include "rw/core/hash.hpp"
#include "rw/core/json/canonical_number.hpp"
#include "rw/core/json/json_fold.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/json/serialize.hpp>

#include <algorithm>
#include <cstddef>
#include <string>

namespace rw::observation {
namespace {

using core::json_view;

std::string_view bytes_of(const std::uint64_t& value) noexcept {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// A number that is no plain integer counts by its value, however it is spelled.
bool is_plain(std::string_view scalar) noexcept {
  const auto digits = scalar.starts_with('-') ? scalar.substr(1) : scalar;
  const bool is_word = digits.front() == 't' || digits.front() == 'f' || digits.front() == 'n';
  return is_word ||
         (scalar != "-0" && digits.find_first_not_of("0123456789") == std::string_view::npos);
}

struct state_hasher {
  static std::uint64_t text(std::string_view content) {
    return core::string_hash().add("\"").add(content).value();
  }
  static std::uint64_t scalar(std::string_view text) {
    core::string_hash hash;
    hash.add("");
    if (is_plain(text)) return hash.add(text).value();
    std::string canonical;
    core::append_canonical_number(canonical, text);
    return hash.add(canonical).value();
  }
  static std::uint64_t begin_array() { return core::string_hash().add("[]").value(); }
  static std::uint64_t add_element(std::uint64_t array, std::uint64_t element) {
    return core::string_hash(array).add(bytes_of(element)).value();
  }
  static std::uint64_t member(std::string_view name, std::uint64_t value) {
    return core::string_hash().add(name).add(bytes_of(value)).value();
  }
  static std::uint64_t object(std::uint64_t sum) {
    return core::string_hash().add("{}").add(bytes_of(sum)).value();
  }
};

}  // namespace

state_hash state_of(json_view object, std::string_view field, bool has_status) {
  const auto spec = object.find("spec");
  const auto status = object.find("status");
  const auto metadata = object.find("metadata");
  const auto part = field == "status" ? status : spec;
  const auto inner = part.exists() ? core::json_fold<state_hasher>()(part) : 0;
  const bool is_being_deleted = !metadata.find("deletionTimestamp").string().empty();
  core::string_hash hash;
  hash.add(metadata.find("uid").string()).add(is_being_deleted ? "-" : "").add(bytes_of(inner));
  // As a review: an update without spec is a change.
  const bool is_whole = !spec.exists() && (!status.exists() || field != "status");
  if (is_whole) hash.add(metadata.find("resourceVersion").string());
  const auto generation = metadata.find("generation");
  if (field == "spec" && has_status && generation.exists()) hash.add(generation.text());
  return std::max<state_hash>(hash.value(), absent_state + 1);
}

state_hash state_of(const boost::json::value& object, std::string_view field, bool has_status) {
  const auto text = boost::json::serialize(object);
  return state_of(core::json_document(text).root(), field, has_status);
}

bool has_labels(const boost::json::value& object,
                const std::map<std::string, std::string>& labels) {
  return std::ranges::all_of(labels, [&](const auto& each) {
    return k8s::has_label(object, each.first) && k8s::label(object, each.first) == each.second;
  });
}

}  // namespace rw::observation
