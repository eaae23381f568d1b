#include "tests/oracle/review_reference.hpp"

#include "rw/core/json/canonical_number.hpp"
#include "rw/reactors/events/decide.hpp"

#include <boost/json/error.hpp>
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <system_error>

namespace rw::admission {
namespace {

namespace json = boost::json;

constexpr char number_mark = '\xFF';

bool begins_number(char c) noexcept {
  return c == '-' || (c >= '0' && c <= '9');
}

/// Boost.JSON from 1.84 on reads any exponent, earlier ones those of 32 bits.
bool has_small_exponent(std::string_view number) {
  const auto mark = number.find_first_of("eE");
  if (mark == std::string_view::npos) return true;
  const auto digits = number.substr(number.find_first_of("0123456789", mark));
  std::int32_t value = 0;
  return std::from_chars(digits.data(), digits.data() + digits.size(), value).ec == std::errc();
}

/// Returns a valid JSON text with its numbers as strings of `number_mark` and their canonical
/// spelling; nothing if an exponent is too large.
std::optional<std::string> with_numbers_as_strings(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    auto end = i + 1;
    if (text[i] == '"') {
      while (text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      out += text.substr(i, ++end - i);
    } else if (begins_number(text[i])) {
      end = std::min(text.find_first_not_of("0123456789+-.eE", i), text.size());
      const auto number = text.substr(i, end - i);
      if (!has_small_exponent(number)) return std::nullopt;
      (out += '"') += number_mark;
      core::append_canonical_number(out, number);
      out += '"';
    } else {
      out += text[i];
    }
    i = end;
  }
  return out;
}

/// Parses a JSON text without rounding: a number becomes a string of the byte 0xFF, which no string
/// of a JSON text contains, and the number's canonical spelling.
json::value parse_exact(std::string_view text, std::size_t max_depth, json::storage_ptr storage,
                        boost::system::error_code& error) {
  json::parse_options options;
  options.max_depth = max_depth;
  json::monotonic_resource unused;
  json::parse(text, error, &unused, options);
  if (error) return nullptr;
  const auto exact = with_numbers_as_strings(text);
  if (!exact) error = json::error::exponent_overflow;
  if (error) return nullptr;
  options.allow_invalid_utf8 = true;  // the mark
  return json::parse(*exact, error, std::move(storage), options);
}

const json::string* exact_string(const json::value& value) noexcept {
  const auto* text = value.if_string();
  if (text != nullptr && !text->empty() && text->front() == number_mark) return nullptr;
  return text;
}

/// Reads typed members; records whether any had the wrong type.
class member_reader {
 public:
  bool failed() const noexcept { return failed_; }

  /// Returns the member, null if it is missing or JSON's null.
  static const json::value* find(const json::object* from, std::string_view name) {
    if (from == nullptr) return nullptr;
    const auto* found = from->if_contains(name);
    return found != nullptr && !found->is_null() ? found : nullptr;
  }

  const json::object* object(const json::object* from, std::string_view name) {
    const auto* found = find(from, name);
    if (found == nullptr) return nullptr;
    failed_ |= !found->is_object();
    return found->if_object();
  }

  std::string_view text(const json::object* from, std::string_view name) {
    const auto* found = find(from, name);
    if (found == nullptr) return {};
    const auto* string = exact_string(*found);
    failed_ |= string == nullptr;
    return string != nullptr ? std::string_view(*string) : std::string_view();
  }

  bool boolean(const json::object* from, std::string_view name) {
    const auto* found = find(from, name);
    if (found == nullptr) return false;
    failed_ |= !found->is_bool();
    return found->is_bool() && found->get_bool();
  }

 private:
  bool failed_ = false;
};

/// The relevant values in `object` or `oldObject`.
struct object_facts {
  object_facts(member_reader& read, const json::object* request, std::string_view member) {
    whole = read.object(request, member);
    api_version = read.text(whole, "apiVersion");
    kind = read.text(whole, "kind");
    const auto* metadata = read.object(whole, "metadata");
    ns = read.text(metadata, "namespace");
    name = read.text(metadata, "name");
    spec = member_reader::find(whole, "spec");
    status = member_reader::find(whole, "status");
  }

  const json::object* whole = nullptr;
  std::string_view api_version, kind, ns, name;
  const json::value* spec = nullptr;
  const json::value* status = nullptr;
};

bool changed(first_look::part compare, const object_facts& object, const object_facts& old) {
  switch (compare) {
    case first_look::part::spec:
      return object.spec == nullptr || old.spec == nullptr || *object.spec != *old.spec;
    case first_look::part::status:
      if (object.status == nullptr || old.status == nullptr) return object.status != old.status;
      return *object.status != *old.status;
    case first_look::part::nothing:
      break;
  }
  return true;
}

review_result read_request(const json::object& request, review_decision decided,
                           std::span<const std::string> subresources) {
  member_reader read;
  decided.uid = read.text(&request, "uid");
  const auto operation = read.text(&request, "operation");
  const auto subresource = read.text(&request, "subResource");
  const auto name = read.text(&request, "name");
  const auto ns = read.text(&request, "namespace");
  const bool dry_run = read.boolean(&request, "dryRun");
  const auto* gvk = read.object(&request, "kind");
  const auto group = read.text(gvk, "group");
  const auto version = read.text(gvk, "version");
  const auto kind = read.text(gvk, "kind");
  const object_facts object(read, &request, "object");
  const object_facts old(read, &request, "oldObject");
  if (read.failed()) return review_error::wrong_type;
  if (decided.uid.empty() || !names_fit({decided.uid})) return review_error::no_uid;

  const auto first = look(dry_run, operation, subresource, subresources);
  decided.effect = first.settled.value_or(review_effect::event);
  if (first.settled) return decided;
  if (!changed(first.compare, object, old)) {
    decided.effect = review_effect::no_change;
    return decided;
  }
  const bool use_old =
      (first.prefers_old_object || object.whole == nullptr) && old.whole != nullptr;
  const auto& source = use_old ? old : object;
  decided.effect = make_event(
      {name, ns, group, version, kind, source.name, source.ns, source.api_version, source.kind},
      decided.event);
  return decided;
}

}  // namespace

bool reference_equal(std::string_view a, std::string_view b) {
  if (a == b) return true;
  boost::system::error_code error;
  const auto left = parse_exact(a, max_review_depth, {}, error);
  if (error) return false;
  const auto right = parse_exact(b, max_review_depth, {}, error);
  if (error) return false;
  return left == right;
}

review_result read_review_reference(std::string_view body,
                                    std::span<const std::string> subresources) {
  if (body.empty()) return review_error::empty_body;
  unsigned char memory[16384];
  json::monotonic_resource resource(memory, sizeof memory);
  boost::system::error_code error;
  const auto document = parse_exact(body, max_review_depth, &resource, error);
  if (error == json::error::too_deep) return review_error::too_deep;
  if (error) return review_error::malformed_json;

  const auto* root = document.if_object();
  if (root == nullptr) return review_error::not_admission_review;
  member_reader read;
  const auto api_version = read.text(root, "apiVersion");
  const auto kind = read.text(root, "kind");
  const auto version = parse_review_version(api_version, kind);
  if (!version) return review_error::not_admission_review;
  const auto* request = read.object(root, "request");
  if (read.failed()) return review_error::wrong_type;
  if (request == nullptr) return review_error::no_request;
  review_decision decided;
  decided.version = *version;
  return read_request(*request, std::move(decided), subresources);
}

}  // namespace rw::admission
