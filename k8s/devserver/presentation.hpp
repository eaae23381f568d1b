#pragma once

#include "rw/core/clock.hpp"
#include "rw/k8s/devserver/kinds.hpp"
#include "rw/k8s/devserver/problem.hpp"
#include "rw/k8s/devserver/storage.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace rw::k8s::devserver {

/// Representation of objects for a client: whole, as PartialObjectMetadata, or as rows of a Table
/// (Kubernetes API concepts, "Alternate representations of resources").
enum class shape : std::uint8_t { whole, metadata, table };

/// Content of a Table's rows in addition to the cells.
enum class row_objects : std::uint8_t { none, metadata, whole };

struct presentation {
  shape as = shape::whole;
  std::string_view version = "v1";  ///< of meta.k8s.io
  row_objects rows = row_objects::metadata;
  bool protobuf = false;              ///< instead of JSON
  const core::clock* time = nullptr;  ///< clock of a Table's ages
};

/// Returns the first accepted media type that can be served, for objects that have a protobuf or
/// others; 406 if none can.
outcome<presentation> negotiate(std::string_view accept, std::string_view include_object,
                                bool has_protobuf, const core::clock& time);

/// Returns true if the first accepted media type is protobuf.
bool prefers_protobuf(std::string_view accept);

void append_object(std::string& out, const record& record, const served_resource& in,
                   const presentation& presentation);

struct list_metadata {
  std::uint64_t version = 0;
  std::string continue_token = {};
  std::uint64_t remaining = 0;  ///< 0: not sent
};

void append_list(std::string& out, const std::vector<record_ptr>& items, const served_resource& in,
                 const presentation& presentation, const list_metadata& about);

/// Appends a line of a watch: ADDED, MODIFIED or DELETED and the object.
void append_event(std::string& out, std::string_view type, const record& record,
                  const served_resource& in, const presentation& presentation);

/// Appends a bookmark at `version`; the one after the initial events is marked as that.
void append_bookmark(std::string& out, std::uint64_t version, const served_resource& in,
                     const presentation& presentation, bool ends_initial_events);

/// Appends the error that ends a watch.
void append_error(std::string& out, const problem& problem, const presentation& presentation);

}  // namespace rw::k8s::devserver
