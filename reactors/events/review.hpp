#pragma once

#include "rw/core/json/token_index.hpp"
#include "rw/reactors/shared/events.hpp"

#include <boost/system/result.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rw::admission {

/// Result of a readable review. The response allows the write in every case.
enum class review_effect : std::uint8_t {
  event,                ///< the object has changed: `decision::event` is to be sent
  no_change,            ///< an update that changes nothing in the compared part
  invalid_subresource,  ///< an update of a subresource that is not watched
  connect_unsupported,  ///< operation CONNECT
  dry_run,              ///< nothing will be stored
  unknown_operation,    ///< operation missing, or not CREATE, UPDATE, DELETE or CONNECT
  unidentified,         ///< changed, but the review has no name or no kind of the object
  name_too_long,        ///< changed, but one of its names is longer than `max_name`
  unknown_manager,      ///< the managers' file does not name the manager; never from a reader
};

/// Supported versions of `admission.k8s.io`; a response has the version of its review.
enum class review_version : std::uint8_t { v1, v1beta1 };

/// The decision on a review.
struct review_decision {
  review_effect effect = review_effect::no_change;
  review_version version = review_version::v1;
  std::string uid;        ///< for the response; decoded, 1 to `max_name` bytes
  rw::watch_event event;  ///< with `review_effect::event`; else empty

  friend bool operator==(const review_decision&, const review_decision&) = default;
};

/// Returns a line with the decision, for the response's `status.message`. Static storage.
std::string_view message(review_effect effect) noexcept;

/// Why a body is rejected. The response to each is 400 with `reason`.
enum class review_error : std::uint8_t {
  empty_body = 1,
  malformed_json,        ///< truncated, not UTF-8, trailing bytes, lone surrogates, exponents
                         ///< beyond 32 bits, ...
  too_deep,              ///< more than `max_review_depth` levels
  not_admission_review,  ///< not an object, or its apiVersion is not admission.k8s.io/v1 or
                         ///< v1beta1, or its kind not AdmissionReview
  no_request,            ///< `request` missing or null
  no_uid,                ///< `request.uid` missing, null, empty or longer than `max_name`
  wrong_type,            ///< a relevant field has a value of the wrong type
};

/// Returns a line for the response, without a newline. Static storage.
std::string_view reason(review_error error) noexcept;

using review_result = boost::system::result<review_decision, review_error>;

/// Maximum nesting of arrays and objects in a review.
inline constexpr std::size_t max_review_depth = 512;

/// Decides about reviews: simdjson finds the tokens, and one walk over them checks the grammar of
/// the whole document and records the positions of the relevant values. Builds no DOM; time and
/// memory are linear in the length of the body, whatever it holds.
///
/// - A review without apiVersion is of v1, one without kind is an AdmissionReview: empty counts as
///   absent.
/// - Operation CREATE, DELETE: an event. UPDATE without subresource: an event unless both objects
///   have a `spec` and these are equal; null counts as absent. UPDATE of `status` (in any case of
///   letters): an event unless the `status` of both is equal or absent. Equality is that of
///   json_compare.hpp. UPDATE of another subresource: an event if it is among `subresources`, in
///   the same spelling.
/// - `dryRun: true` precedes all of that.
/// - The object is `object`, with DELETE `oldObject`; if that one is absent, the other. Name and
///   namespace are those of its metadata. If that has no name, both are the request's; if it has
///   only no namespace, the namespace is the request's: API servers before 1.24 call the webhook
///   before they default it. The request for a cluster-scoped object has none, except that for a
///   Namespace, which has its own name there and is ignored.
/// - Group, version and kind are those of `request.kind`, or, if it has no kind, of the object.
/// - Names match exactly, of duplicate names the last wins, null counts as absent, everything else
///   is ignored.
/// - A name longer than `max_name` gives no event.
///
/// Keeps a token index of 4 bytes per byte of the largest body up to 256 KiB, and frees the memory
/// of larger bodies at once. Not thread-safe: one for each thread.
class reader {
 public:
  /// `event.manager` is left empty. The body needs no padding.
  review_result read(const std::string& body, std::span<const std::string> subresources = {});
  /// The same into a decision that may be of an earlier review, whose memory it reuses.
  boost::system::result<void, review_error> read_into(review_decision& decided,
                                                      const std::string& body,
                                                      std::span<const std::string> subresources);

 private:
  core::token_index index_;
};

/// Appends the AdmissionReview in response to a review: with its apiVersion and uid, `allowed:
/// true`, `status: Success` with the decision's message, and the warnings, if any, which the API
/// server shows to the user as plain text. The output is always valid JSON.
void append_response(std::string& out, const review_decision& decided,
                     std::span<const std::string_view> warnings = {});

}  // namespace rw::admission
