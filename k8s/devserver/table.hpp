#pragma once

#include "rw/k8s/devserver/kinds.hpp"
#include "rw/k8s/devserver/presentation.hpp"
#include "rw/k8s/devserver/storage.hpp"

#include <chrono>
#include <string>

namespace rw::k8s::devserver {

/// Appends meta.k8s.io Table's `columnDefinitions` of a kind, as a JSON array: those of
/// table_rows.cpp, or of a CustomResourceDefinition.
void append_columns(std::string& out, const served_resource& of);

/// Appends one of its rows.
void append_row(std::string& out, const record& record, const served_resource& of,
                const presentation& presentation);

/// Formats a time span as kubectl does: "5s", "3m12s", "2d4h".
std::string human_duration(std::chrono::seconds span);

}  // namespace rw::k8s::devserver
