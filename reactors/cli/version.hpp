#pragma once

#include <string>

namespace rw::cli {

// Made by version.cmake: the commit that the program is built of, and its time in UTC (RFC 3339).
// Empty where the build knows none.
extern const char* const source_revision;
extern const char* const source_time;

/// Returns the program's version, with the revision of its sources where the build knows one:
/// "0.1.0+0a1b2c3d4e5f" (Semantic Versioning 2.0.0, section 10).
std::string version_text();

/// Returns the version as a sentence: "PROGRAM 0.1.0+0a1b2c3d4e5f of 2026-01-31T12:00:00Z".
std::string version_line(const std::string& program);

/// Returns the version as `kubectl version --client` does with `-o json` or `-o yaml`; fields that
/// the build does not know are left out.
std::string version_document(bool yaml);

}  // namespace rw::cli
