#pragma once

#include "core/json/token_index.hpp"
#include "reactors/shared/event_json.hpp"
#include "reactors/shared/events.hpp"

#include <boost/system/result.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rw::admission {

/// What becomes of a review that could be read. The answer allows the write in every case.
enum class verdict : std::uint8_t {
  event,                ///< the object changed: `decision::event` is to be sent
  no_change,            ///< an update that left alone what is compared
  invalid_subresource,  ///< an update of a subresource that is not watched
  connect_unsupported,  ///< operation CONNECT
  dry_run,              ///< nothing will be stored, so nothing happened
  unknown_operation,    ///< operation missing, or none of CREATE, UPDATE, DELETE, CONNECT
  unidentified,         ///< changed, but the review gives the object no name or no kind
  name_too_long,        ///< changed, but one of its names is longer than `max_name`
  no_owner,             ///< contract v1, changed, and without a valid owned-by annotation
  unknown_manager,      ///< the managers' file does not name the manager; never by a reader
};

/// Versions of `admission.k8s.io` that are understood; a review is answered in its own.
enum class review_version : std::uint8_t { v1, v1beta1 };

/// What a review asks for.
struct decision {
  verdict what = verdict::no_change;
  review_version version = review_version::v1;
  std::string uid;        ///< to be echoed in the answer; decoded, 1 to `max_name` bytes
  rw::watch_event event;  ///< with `verdict::event` and `verdict::no_owner`; else empty

  friend bool operator==(const decision&, const decision&) = default;
};

/// One line that says what was decided, for the answer's `status.message`. Static storage.
std::string_view message(verdict what) noexcept;

/// Why a body was refused. Every one of them is to be answered with 400 and `reason`.
enum class review_error : std::uint8_t {
  empty_body = 1,
  malformed_json,        ///< truncated, not UTF-8, trailing bytes, lone surrogates, ...
  too_deep,              ///< more than `max_review_depth` levels
  not_admission_review,  ///< not an object of apiVersion admission.k8s.io/v1 or v1beta1, kind
                         ///< AdmissionReview
  no_request,            ///< `request` missing or null
  no_uid,                ///< `request.uid` missing, null, empty or longer than `max_name`
  wrong_type,            ///< a field that is looked at has a value of the wrong type
};

/// One line for the answer, without a newline. Static storage.
std::string_view reason(review_error error) noexcept;

using review_result = boost::system::result<decision, review_error>;

/// Levels of arrays and objects that a review may have.
inline constexpr std::size_t max_review_depth = 512;

/// Decides about a review by the documented rules, through a Boost.JSON DOM: clear rather than
/// fast. The reference that `reader` is held to, and that it asks in every odd case.
///
/// - Operation CREATE, DELETE: an event. UPDATE without subresource: an event unless both objects
/// have
///   a `spec` and these are equal; null counts as absent. UPDATE of `status` (whatever its case):
///   an event unless the `status` of both is equal or absent. Equality is that of json_compare.hpp.
///   UPDATE of another subresource: an event if it is among `subresources`, as it is spelled there.
/// - `dryRun: true` comes before all of that.
/// - The object is `object`, with DELETE `oldObject`; where that one is absent, the other. Name and
///   namespace stand in its metadata. If that has no name, both are the request's: a cluster-scoped
///   object must not get the namespace of its request (for a Namespace that is its own name).
/// - Group, version and kind are those of `request.kind`, or, if it has no kind, of the object.
/// - Names match exactly, of duplicate names the last wins, null counts as absent, what is not
///   mentioned here is ignored.
/// - A name longer than `max_name` is no name: no event is made of it.
/// - Contract v1: the annotation `operator.kyma-project.io/owned-by: <namespace>/<name>` of the
/// object
///   names the owner. Contract v2 does not look at annotations.
///
/// `event.manager` is left empty. Thread-safe.
review_result read_review_reference(std::string_view body, contract agreed,
                                    std::span<const std::string> subresources = {});

/// Decides about reviews as `read_review_reference` does, several times faster: simdjson finds the
/// tokens, and one walk over them checks the grammar and notes where the few things that matter
/// stand. No DOM is built as long as nothing is odd and the compared parts are equal byte by byte,
/// or differ in a way that no spelling explains.
///
/// All of the document is validated, what is skipped too: this reader never accepts what the
/// reference refuses, and never decides differently.
///
/// Keeps a token index of 4 bytes per byte of the largest body up to 256 KiB; what larger bodies
/// need is given back at once. Not thread-safe: one for each thread.
class reader {
 public:
  explicit reader(contract agreed) : contract_(agreed) {}

  /// `event.manager` is left empty. Needs no padding behind the body.
  review_result read(const std::string& body, std::span<const std::string> subresources = {});

  /// How many bodies were left to the reference so far.
  std::uint64_t deferred() const noexcept { return deferred_; }

 private:
  bool decide(const std::string& body, std::span<const std::string> subresources,
              decision& decided);

  contract contract_;
  core::token_index index_;
  std::uint64_t deferred_ = 0;
};

/// Appends the AdmissionReview that answers a review: of the same apiVersion, `uid` echoed,
/// `allowed: true`, `status: Success` with `text`, and the warnings, if any, which the API server
/// shows to the user. `text` and `warnings` are plain text; what is written is always valid JSON.
void append_answer(std::string& out, review_version version, std::string_view uid,
                   std::string_view text, std::span<const std::string_view> warnings = {});

/// The same with the decision's own message.
void append_answer(std::string& out, const decision& decided,
                   std::span<const std::string_view> warnings = {});

}  // namespace rw::admission
