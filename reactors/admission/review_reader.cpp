#include "rw/core/json/token_index.hpp"
#include "rw/core/json/token_walk.hpp"
#include "rw/reactors/admission/decide.hpp"
#include "rw/reactors/admission/json_compare.hpp"
#include "rw/reactors/admission/review.hpp"

#include <utility>

namespace rw::admission {
namespace {

using core::escapes_are_valid;
using core::token_index;
using core::token_list;
using core::token_walk;

/// Walks a string or null; returns false for other values. Null counts as empty, as an absent field
/// does.
bool string_or_null(token_walk& walk, std::string_view& text) {
  if (walk.peek() == '"') return walk.string(text);
  text = {};
  return walk.peek() == 'n' && walk.skip();
}

bool bool_or_null(token_walk& walk, bool& value) {
  value = walk.peek() == 't';
  return (value || walk.peek() == 'f' || walk.peek() == 'n') && walk.skip();
}

/// Walks an object, calling `member` as token_walk::object does, or null.
template <typename Member>
bool object_or_null(token_walk& walk, Member&& member) {
  if (walk.peek() == '{') return walk.object(std::forward<Member>(member));
  return walk.peek() == 'n' && walk.skip();
}

/// Position of a value; absent, or null, if `begin` is null.
struct value_place {
  const std::uint32_t* begin = nullptr;
  const std::uint32_t* end = nullptr;
  std::string_view text;

  bool present() const noexcept { return begin != nullptr; }

  bool read(token_walk& walk) {
    *this = {};
    const bool null = walk.peek() == 'n';
    const auto* from = walk.position();
    if (!walk.skip(text)) return false;
    if (!null) {
      begin = from;
      end = walk.position();
    }
    return true;
  }
};

/// The relevant values in `object` or `oldObject`.
struct object_spans {
  bool seen = false;
  bool present = false;
  bool metadata_seen = false;
  bool annotations_seen = false;
  std::string_view api_version, kind, ns, name, owned_by;
  value_place spec, status;

  /// A second object of the same name would override the first: the reference handles that.
  bool read(token_walk& walk, contract agreed) {
    if (std::exchange(seen, true)) return false;
    present = walk.peek() == '{';
    return object_or_null(walk, [&](std::string_view member) {
      if (member == "spec") return spec.read(walk);
      if (member == "status") return status.read(walk);
      if (member == "metadata") return read_metadata(walk, agreed);
      if (member == "apiVersion") return string_or_null(walk, api_version);
      if (member == "kind") return string_or_null(walk, kind);
      return walk.skip();
    });
  }

 private:
  bool read_metadata(token_walk& walk, contract agreed) {
    if (std::exchange(metadata_seen, true)) return false;
    return object_or_null(walk, [&](std::string_view member) {
      if (member == "name") return string_or_null(walk, name);
      if (member == "namespace") return string_or_null(walk, ns);
      if (agreed == contract::v1 && member == "annotations") return read_annotations(walk);
      return walk.skip();
    });
  }

  bool read_annotations(token_walk& walk) {
    if (std::exchange(annotations_seen, true)) return false;
    return object_or_null(walk, [&](std::string_view member) {
      if (member != owner_annotation) return walk.skip();
      owned_by = {};
      return walk.peek() == '"' ? walk.string(owned_by) : walk.skip();
    });
  }
};

/// The relevant values in a review.
struct review_spans {
  std::string_view api_version, kind;
  bool request_seen = false;
  bool gvk_seen = false;
  bool dry_run = false;
  std::string_view uid, operation, subresource, name, ns;
  std::string_view gvk_group, gvk_version, gvk_kind;
  object_spans object, old_object;

  bool read(token_walk& walk, contract agreed) {
    return walk.object([&](std::string_view member) {
      if (member == "request") return read_request(walk, agreed);
      if (member == "apiVersion") return string_or_null(walk, api_version);
      if (member == "kind") return string_or_null(walk, kind);
      return walk.skip();
    });
  }

 private:
  bool read_request(token_walk& walk, contract agreed) {
    if (std::exchange(request_seen, true)) return false;
    return walk.object([&](std::string_view member) {
      if (member == "uid") return walk.string(uid);
      if (member == "kind") return read_gvk(walk);
      if (member == "name") return string_or_null(walk, name);
      if (member == "namespace") return string_or_null(walk, ns);
      if (member == "operation") return string_or_null(walk, operation);
      if (member == "subResource") return string_or_null(walk, subresource);
      if (member == "dryRun") return bool_or_null(walk, dry_run);
      if (member == "object") return object.read(walk, agreed);
      if (member == "oldObject") return old_object.read(walk, agreed);
      return walk.skip();
    });
  }

  bool read_gvk(token_walk& walk) {
    if (std::exchange(gvk_seen, true)) return false;
    return object_or_null(walk, [&](std::string_view member) {
      if (member == "group") return string_or_null(walk, gvk_group);
      if (member == "version") return string_or_null(walk, gvk_version);
      if (member == "kind") return string_or_null(walk, gvk_kind);
      return walk.skip();
    });
  }
};

bool same(const token_list& tokens, const value_place& a, const value_place& b) {
  if (a.text == b.text) return true;
  switch (compare_tokens(tokens, a.begin, a.end, b.begin, b.end)) {
    case relation::equal:
      return true;
    case relation::different:
      return false;
    case relation::unclear:
      break;
  }
  return json_equal(a.text, b.text);
}

bool changed(const token_list& tokens, first_look::part compare, const object_spans& object,
             const object_spans& old) {
  switch (compare) {
    case first_look::part::spec:
      return !object.spec.present() || !old.spec.present() || !same(tokens, object.spec, old.spec);
    case first_look::part::status:
      if (!object.status.present() || !old.status.present()) {
        return object.status.present() != old.status.present();
      }
      return !same(tokens, object.status, old.status);
    case first_look::part::nothing:
      break;
  }
  return true;
}

/// Decides. Returns false if the reference must decide; `decided` is then invalid.
bool decide(const token_list& tokens, contract agreed, std::span<const std::string> subresources,
            review_decision& decided) {
  review_spans review;
  token_walk walk(tokens, max_review_depth);
  if (!review.read(walk, agreed) || !walk.at_end()) return false;
  const auto version = parse_review_version(review.api_version, review.kind);
  if (!version || !review.request_seen) return false;
  if (review.uid.empty() || !names_fit({review.uid})) return false;

  decided.version = *version;
  decided.uid = review.uid;
  const auto first = look(review.dry_run, review.operation, review.subresource, subresources);
  decided.effect = first.settled.value_or(review_effect::event);
  if (first.settled) return true;
  if (!changed(tokens, first.compare, review.object, review.old_object)) {
    decided.effect = review_effect::no_change;
    return true;
  }
  const bool use_old =
      (first.prefers_old_object || !review.object.present) && review.old_object.present;
  const auto& source = use_old ? review.old_object : review.object;
  decided.effect =
      make_event({review.name, review.ns, review.gvk_group, review.gvk_version, review.gvk_kind,
                  source.name, source.ns, source.api_version, source.kind, source.owned_by},
                 agreed, decided.event);
  return true;
}

}  // namespace

/// Returns false if the reference must decide; `decided` is then invalid.
bool reader::decide(const std::string& body, std::span<const std::string> subresources,
                    review_decision& decided) {
  token_list tokens;
  const bool done = index_.build(body, tokens) && escapes_are_valid(body) &&
                    admission::decide(tokens, contract_, subresources, decided);
  index_.release();
  return done;
}

review_result reader::read(const std::string& body, std::span<const std::string> subresources) {
  review_decision decided;
  const auto read = read_into(decided, body, subresources);
  if (!read) return read.error();
  return decided;
}

boost::system::result<void, review_error> reader::read_into(
    review_decision& decided, const std::string& body, std::span<const std::string> subresources) {
  decided.event = {};
  if (decide(body, subresources, decided)) return {};
  ++deferred_;
  auto by_reference = read_review_reference(body, contract_, subresources);
  if (!by_reference) return by_reference.error();
  decided = std::move(*by_reference);
  return {};
}

}  // namespace rw::admission
