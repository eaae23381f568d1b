#include "rw/core/json/json_view.hpp"
#include "rw/core/json/token_index.hpp"
#include "rw/core/json/token_walk.hpp"
#include "rw/reactors/events/decide.hpp"
#include "rw/reactors/events/json_compare.hpp"
#include "rw/reactors/events/review.hpp"

#include <utility>

namespace rw::admission {
namespace {

using core::json_flaw;
using core::json_view;
using core::token_list;
using core::token_walk;

/// A field that has to be a string. Absent, it is empty, and so is null. Read again, the last one
/// counts.
struct text_field {
  std::string_view text;
  bool is_wrong = false;

  bool read(token_walk& walk) {
    is_wrong = false;
    if (walk.peek() == '"') return walk.string(text);
    text = {};
    is_wrong = walk.peek() != 'n';
    return walk.skip();
  }
};

struct bool_field {
  bool value = false;
  bool is_wrong = false;

  bool read(token_walk& walk) {
    value = walk.peek() == 't';
    is_wrong = !value && walk.peek() != 'f' && walk.peek() != 'n';
    return walk.skip();
  }
};

/// A field of any type; null counts as absent.
struct value_field {
  const std::uint32_t* begin = nullptr;
  const std::uint32_t* end = nullptr;

  bool present() const noexcept { return begin != nullptr; }
  json_view view(const token_list& tokens) const noexcept { return {tokens, begin, end}; }

  bool read(token_walk& walk) {
    const bool null = walk.peek() == 'n';
    const auto* const from = walk.position();
    if (!walk.skip()) return false;
    begin = null ? nullptr : from;
    end = walk.position();
    return true;
  }
};

/// Whether a field is an object.
struct object_field {
  bool is_read = false;
  bool present = false;
  bool is_wrong = false;

  /// Walks the field, calling `member` as token_walk::object does.
  template <typename Member>
  bool read(token_walk& walk, Member&& member) {
    is_read = true;
    present = walk.peek() == '{';
    if (present) return walk.object(std::forward<Member>(member));
    is_wrong = walk.peek() != 'n';
    return walk.skip();
  }
};

/// The relevant values in `metadata`.
struct metadata_fields : object_field {
  text_field name, ns;

  bool read(token_walk& walk) {
    if (is_read) *this = {};
    return object_field::read(walk, [&](std::string_view member) {
      if (member == "name") return name.read(walk);
      if (member == "namespace") return ns.read(walk);
      return walk.skip();
    });
  }
  bool has_wrong() const noexcept { return is_wrong || name.is_wrong || ns.is_wrong; }
};

/// The relevant values in `object` or `oldObject`.
struct object_fields : object_field {
  metadata_fields metadata;
  text_field api_version, kind;
  value_field spec, status;

  bool read(token_walk& walk) {
    if (is_read) *this = {};
    return object_field::read(walk, [&](std::string_view member) {
      if (member == "spec") return spec.read(walk);
      if (member == "status") return status.read(walk);
      if (member == "metadata") return metadata.read(walk);
      if (member == "apiVersion") return api_version.read(walk);
      if (member == "kind") return kind.read(walk);
      return walk.skip();
    });
  }
  bool has_wrong() const noexcept {
    return is_wrong || metadata.has_wrong() || api_version.is_wrong || kind.is_wrong;
  }
};

/// The request's `kind`.
struct gvk_fields : object_field {
  text_field group, version, kind;

  bool read(token_walk& walk) {
    if (is_read) *this = {};
    return object_field::read(walk, [&](std::string_view member) {
      if (member == "group") return group.read(walk);
      if (member == "version") return version.read(walk);
      if (member == "kind") return kind.read(walk);
      return walk.skip();
    });
  }
  bool has_wrong() const noexcept {
    return is_wrong || group.is_wrong || version.is_wrong || kind.is_wrong;
  }
};

struct request_fields : object_field {
  text_field uid, operation, subresource, name, ns;
  bool_field dry_run;
  gvk_fields gvk;
  object_fields object, old_object;

  bool read(token_walk& walk) {
    if (is_read) *this = {};
    return object_field::read(walk, [&](std::string_view member) {
      if (member == "uid") return uid.read(walk);
      if (member == "kind") return gvk.read(walk);
      if (member == "name") return name.read(walk);
      if (member == "namespace") return ns.read(walk);
      if (member == "operation") return operation.read(walk);
      if (member == "subResource") return subresource.read(walk);
      if (member == "dryRun") return dry_run.read(walk);
      if (member == "object") return object.read(walk);
      if (member == "oldObject") return old_object.read(walk);
      return walk.skip();
    });
  }
  bool has_wrong() const noexcept {
    return uid.is_wrong || operation.is_wrong || subresource.is_wrong || name.is_wrong ||
           ns.is_wrong || dry_run.is_wrong || gvk.has_wrong() || object.has_wrong() ||
           old_object.has_wrong();
  }
};

struct review_fields {
  text_field api_version, kind;
  request_fields request;

  /// The position is at an object.
  bool read(token_walk& walk) {
    return walk.object([&](std::string_view member) {
      if (member == "request") return request.read(walk);
      if (member == "apiVersion") return api_version.read(walk);
      if (member == "kind") return kind.read(walk);
      return walk.skip();
    });
  }
};

bool changed(const token_list& tokens, first_look::part compare, const object_fields& object,
             const object_fields& old) {
  const auto same = [&](const value_field& a, const value_field& b) {
    return json_equal(a.view(tokens), b.view(tokens));
  };
  switch (compare) {
    case first_look::part::spec:
      return !object.spec.present() || !old.spec.present() || !same(object.spec, old.spec);
    case first_look::part::status:
      if (!object.status.present() || !old.status.present()) {
        return object.status.present() != old.status.present();
      }
      return !same(object.status, old.status);
    case first_look::part::nothing:
      break;
  }
  return true;
}

review_effect effect_of(const token_list& tokens, const request_fields& request,
                        std::span<const std::string> subresources, watch_event& event) {
  const auto first =
      look(request.dry_run.value, request.operation.text, request.subresource.text, subresources);
  if (first.settled) return *first.settled;
  if (!changed(tokens, first.compare, request.object, request.old_object)) {
    return review_effect::no_change;
  }
  const bool use_old =
      (first.prefers_old_object || !request.object.present) && request.old_object.present;
  const auto& source = use_old ? request.old_object : request.object;
  return make_event({request.name.text, request.ns.text, request.gvk.group.text,
                     request.gvk.version.text, request.gvk.kind.text, source.metadata.name.text,
                     source.metadata.ns.text, source.api_version.text, source.kind.text},
                    event);
}

boost::system::result<void, review_error> decide(const token_list& tokens,
                                                 std::span<const std::string> subresources,
                                                 review_decision& decided) {
  token_walk walk(tokens, max_review_depth);
  review_fields review;
  const bool is_object = walk.peek() == '{';
  const bool whole = is_object ? review.read(walk) : walk.skip();
  if (!whole || !walk.at_end()) {
    return walk.flaw() == json_flaw::too_deep ? review_error::too_deep
                                              : review_error::malformed_json;
  }
  const auto version =
      is_object ? parse_review_version(review.api_version.text, review.kind.text) : std::nullopt;
  if (!version) return review_error::not_admission_review;
  const auto& request = review.request;
  if (review.api_version.is_wrong || review.kind.is_wrong || request.is_wrong) {
    return review_error::wrong_type;
  }
  if (!request.present) return review_error::no_request;
  if (request.has_wrong()) return review_error::wrong_type;
  const auto uid = request.uid.text;
  if (uid.empty() || !names_fit({uid})) return review_error::no_uid;
  decided.version = *version;
  decided.uid = uid;
  decided.effect = effect_of(tokens, request, subresources, decided.event);
  return {};
}

}  // namespace

review_result reader::read(const std::string& body, std::span<const std::string> subresources) {
  review_decision decided;
  const auto read = read_into(decided, body, subresources);
  if (!read) return read.error();
  return decided;
}

boost::system::result<void, review_error> reader::read_into(
    review_decision& decided, const std::string& body, std::span<const std::string> subresources) {
  decided.event = {};
  if (body.empty()) return review_error::empty_body;
  token_list tokens;
  boost::system::result<void, review_error> out = review_error::malformed_json;
  if (index_.build(body, tokens)) out = decide(tokens, subresources, decided);
  index_.release();
  return out;
}

}  // namespace rw::admission
