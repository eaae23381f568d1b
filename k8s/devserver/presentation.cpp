#include "rw/k8s/devserver/presentation.hpp"

#include "rw/core/json_text.hpp"
#include "rw/k8s/devserver/conversion.hpp"
#include "rw/k8s/devserver/protobuf.hpp"
#include "rw/k8s/devserver/refusals.hpp"
#include "rw/k8s/devserver/table.hpp"

#include <boost/json/monotonic_resource.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>

namespace rw::k8s::devserver {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// Takes the text up to `separator` off the front.
std::string_view take(std::string_view& text, char separator) {
  const auto end = std::min(text.find(separator), text.size());
  const auto part = trimmed(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

/// Parses one media range with its parameters. Returns false if it can't be served: some objects
/// have no protobuf, but their metadata has.
bool serve(std::string_view range, bool has_protobuf, presentation& into) {
  const auto type = take(range, ';');
  into.protobuf = type == protobuf_media_type;
  if (!into.protobuf && type != "application/json" && type != "application/*" && type != "*/*") {
    return false;
  }
  std::string_view as;
  std::string_view version;
  while (!range.empty()) {
    auto parameter = take(range, ';');
    const auto name = take(parameter, '=');
    if (name == "as") as = parameter;
    if (name == "v") version = parameter;
  }
  if (as.empty()) return !into.protobuf || has_protobuf;
  if (version != "v1" && version != "v1beta1") return false;
  into.version = version == "v1" ? "v1" : "v1beta1";
  if (as == "PartialObjectMetadata" || as == "PartialObjectMetadataList") {
    into.as = shape::metadata;
    return true;
  }
  into.as = shape::table;
  return as == "Table" && !into.protobuf;
}

void append_type(std::string& out, std::string_view api_version, std::string_view kind) {
  out += "{\"apiVersion\":\"";
  out += api_version;
  out += "\",\"kind\":\"";
  out += kind;
  out += "\",";
}

void append_metadata_only(std::string& out, const record& record,
                          const presentation& presentation) {
  append_type(out, "meta.k8s.io/" + std::string(presentation.version), "PartialObjectMetadata");
  out += "\"metadata\":";
  out += record.metadata();
  out += '}';
}

void append_list_metadata(std::string& out, const list_metadata& about) {
  out += "\"metadata\":{\"resourceVersion\":\"" + std::to_string(about.version) + "\"";
  if (!about.continue_token.empty()) out += ",\"continue\":\"" + about.continue_token + "\"";
  if (about.remaining > 0) out += ",\"remainingItemCount\":" + std::to_string(about.remaining);
  out += '}';
}

/// Appends a table up to its rows.
void begin_table(std::string& out, const served_resource& in, const presentation& presentation,
                 const list_metadata& about) {
  append_type(out, "meta.k8s.io/" + std::string(presentation.version), "Table");
  append_list_metadata(out, about);
  out += ",\"columnDefinitions\":";
  append_columns(out, in);
  out += ",\"rows\":[";
}

/// Replaces the event in JSON that begins at `from` by a frame.
void to_frame(std::string& out, std::size_t from, const presentation& presentation) {
  if (!presentation.protobuf) return;
  boost::json::monotonic_resource memory;
  const auto event = boost::json::parse(std::string_view(out).substr(from), &memory);
  out.resize(from);
  append_protobuf_event(out, event);
}

}  // namespace

outcome<presentation> negotiate(std::string_view accept, std::string_view include_object,
                                bool has_protobuf, const core::clock& time) {
  presentation presentation;
  presentation.time = &time;
  if (include_object == "None") presentation.rows = row_objects::none;
  if (include_object == "Object") presentation.rows = row_objects::whole;
  if (trimmed(accept).empty()) return presentation;
  while (!accept.empty()) {
    if (serve(take(accept, ','), has_protobuf, presentation)) return presentation;
  }
  return not_acceptable("application/json");
}

void append_object(std::string& out, const record& record, const served_resource& in,
                   const presentation& presentation) {
  if (presentation.as == shape::metadata) {
    append_metadata_only(out, record, presentation);
  } else if (presentation.as == shape::table) {
    begin_table(out, in, presentation, {record.version()});
    append_row(out, record, in, presentation);
    out += "]}";
  } else if (renames_fields(in) ||
             (in.of->custom && in.version != &in.of->versions[in.of->stored])) {
    auto object = record.parse();
    to_view(object, in);
    out += boost::json::serialize(object);
  } else {
    out += record.text();
  }
}

void append_list(std::string& out, const std::vector<record_ptr>& items, const served_resource& in,
                 const presentation& presentation, const list_metadata& about) {
  if (presentation.as == shape::table) {
    begin_table(out, in, presentation, about);
    for (const auto& record : items) {
      append_row(out, *record, in, presentation);
      out += ',';
    }
    if (!items.empty()) out.pop_back();
    out += "]}";
    return;
  }
  std::size_t bytes = 256;
  for (const auto& record : items) bytes += record->text().size() + 1;
  out.reserve(bytes);
  if (presentation.as == shape::metadata) {
    append_type(out, "meta.k8s.io/" + std::string(presentation.version),
                "PartialObjectMetadataList");
  } else {
    append_type(out, in.api_version(), in.of->list_kind);
  }
  append_list_metadata(out, about);
  out += ",\"items\":[";
  bool first = true;
  for (const auto& record : items) {
    if (!first) out += ',';
    first = false;
    if (presentation.as == shape::whole && !in.of->custom && !renames_fields(in)) {
      // Items of a typed list omit apiVersion and kind.
      out += '{';
      out += record->rest();
    } else {
      append_object(out, *record, in, presentation);
    }
  }
  out += "]}";
}

bool prefers_protobuf(std::string_view accept) {
  return take(accept, ',').starts_with(protobuf_media_type);
}

void append_event(std::string& out, std::string_view type, const record& record,
                  const served_resource& in, const presentation& presentation) {
  const auto from = out.size();
  out += "{\"type\":\"";
  out += type;
  out += "\",\"object\":";
  append_object(out, record, in, presentation);
  out += "}\n";
  to_frame(out, from, presentation);
}

void append_bookmark(std::string& out, std::uint64_t version, const served_resource& in,
                     const presentation& presentation, bool ends_initial_events) {
  const auto from = out.size();
  out += "{\"type\":\"BOOKMARK\",\"object\":";
  if (presentation.as == shape::table) {
    begin_table(out, in, presentation, {version});
    out += "]}}\n";
    return;
  }
  if (presentation.as == shape::metadata) {
    append_type(out, "meta.k8s.io/" + std::string(presentation.version), "PartialObjectMetadata");
  } else {
    append_type(out, in.api_version(), in.of->kind);
  }
  out += "\"metadata\":{\"resourceVersion\":\"" + std::to_string(version) + "\"";
  // kube-apiserver writes the field, whose Go type is not a pointer.
  out += ",\"creationTimestamp\":null";
  if (ends_initial_events) out += ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}";
  out += "}}}\n";
  to_frame(out, from, presentation);
}

void append_error(std::string& out, const problem& problem, const presentation& presentation) {
  const auto from = out.size();
  out += "{\"type\":\"ERROR\",\"object\":";
  out += boost::json::serialize(to_status(problem));
  out += "}\n";
  to_frame(out, from, presentation);
}

}  // namespace rw::k8s::devserver
