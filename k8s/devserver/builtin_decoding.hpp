#pragma once

#include "rw/k8s/devserver/builtin_table.hpp"

#include <boost/json/value.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace rw::k8s::devserver {

/// How numbers are read: as in JSON, or as Go converts an object without types to its type, which
/// server-side apply and strategic merge patches do (apimachinery, runtime/converter.go).
enum class number_reading : std::uint8_t { strict, converted };

/// Decodes an object of a built-in kind as Go's decoder does, in place: null means absent, unknown
/// fields are removed and added to `unknown`, zero values are left out where the type says so,
/// quantities become canonical. Where numbers are converted unknown fields stay, for the strict
/// reading that follows. Returns why the object can't be decoded, in the words of Go's decoder;
/// empty if it can.
std::string decode_builtin(const builtin_type& type, boost::json::value& object,
                           std::vector<std::string>& unknown,
                           number_reading numbers = number_reading::strict);

/// Makes empty lists and maps null: they are not there in the protobuf that is stored. Fields that
/// may be left out are left out (decode_builtin).
void store_empty_as_null(const builtin_type& type, boost::json::value& object);

/// Adds the fields that Go writes even if they are empty, and the defaults of builtin_defaults.cpp,
/// in place (idempotent).
void fill_typed_defaults(const builtin_type& type, boost::json::value& object);

}  // namespace rw::k8s::devserver
