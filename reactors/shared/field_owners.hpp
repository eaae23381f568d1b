#pragma once

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace rw {

// What the metadata of an object says of those who write its fields (Kubernetes, "Server-Side
// Apply", "Field management"). Entries of subresources, such as the status, do not count. Pure.

/// A merge patch by which the fields of `former` become those of `own`, which applies them: what
/// `own` does not ask for any more is then removed by its next apply, as if it had always applied
/// all of it. Bound to the resourceVersion of `object`. None: `former` owns nothing.
std::optional<boost::json::value> take_over_fields(const boost::json::value& object,
                                                   std::string_view own, std::string_view former);

/// metadata.managedFields of an object.
const boost::json::array& managed_fields(const boost::json::value& object);

/// The fields (FieldsV1) that `manager` applies; null: none.
boost::json::value applied_fields(const boost::json::value& object, std::string_view manager);

/// What `own` lacks of `fields`, both FieldsV1. Null: nothing.
boost::json::value subtract_fields(const boost::json::value& fields, const boost::json::value& own);

/// The fields (FieldsV1) that any of `managers` owns, and `own` does not; null: none.
boost::json::value fields_of_others(const boost::json::value& object,
                                    std::span<const std::string> managers, std::string_view own);

/// True if `object` has in one of the fields (FieldsV1) what `newer` asks for, and `older` does
/// not. Only what an object asks for is compared, since servers add defaults.
bool has_newer_field(const boost::json::value& fields, const boost::json::value& object,
                     const boost::json::value& older, const boost::json::value& newer);

/// True if `manager` applies fields of the object.
bool applies_fields(const boost::json::value& object, std::string_view manager);

/// When `other` wrote the object later than `own` did, to the second; none: it did not, or `own`
/// has never applied the object. A write that changed nothing leaves no trace.
std::optional<std::chrono::system_clock::time_point> written_after(const boost::json::value& object,
                                                                   std::string_view own,
                                                                   std::string_view other);

}  // namespace rw
