#include "rw/reactors/observation/journal_format.hpp"

#include "rw/core/hash.hpp"

#include <algorithm>
#include <concepts>
#include <cstring>
#include <utility>

namespace rw::observation {
namespace {

constexpr std::string_view journal_version = "runtime-watcher journal 1";
constexpr std::string_view old_ledger_version = "runtime-watcher ledger 1\n";
constexpr std::uint8_t outdated_flag = 1;
constexpr std::uint8_t inherited_flag = 2;
constexpr std::size_t head_size = 2 * sizeof(std::uint32_t);
constexpr std::size_t sum_size = sizeof(std::uint64_t);

std::uint64_t sum_of(std::string_view bytes) {
  return core::string_hash().add(bytes).value();
}

/// Another length has another check: multiplication by an odd number is a permutation.
constexpr std::uint32_t check_of(std::uint32_t length) {
  return (length ^ 0x52575731U) * 0x9E3779B1U;
}

/// Passes the fields of a type or Watcher that are not a map, to write or to read them.
void pass_fields(auto& type, auto& to)
  requires requires { type.gvk; }
{
  auto& [group, version, kind] = type.gvk;
  for (auto* text : {&group, &version, &kind, &type.plural}) to(*text);
  to(type.namespaced);
}
void pass_fields(auto& watch, auto& to) {
  auto& [group, version, plural, subresource] = watch.watched;
  for (auto* text : {&watch.manager, &group, &version, &plural, &subresource, &watch.field}) {
    to(*text);
  }
}

struct field_writer {
  void operator()(std::integral auto value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void operator()(std::string_view text) {
    const auto size = static_cast<std::uint16_t>(std::min<std::size_t>(text.size(), 0xFFFF));
    (*this)(size);
    to.append(text.substr(0, size));
  }
  void operator()(const k8s::resource_type& type) { pass_fields(type, *this); }
  void operator()(const managed_watch& watch) {
    pass_fields(watch, *this);
    (*this)(static_cast<std::uint32_t>(watch.labels.size()));
    for (const auto& [label, value] : watch.labels) {
      (*this)(label);
      (*this)(value);
    }
  }

  std::string& to;
};

/// After the first field that is cut off all are empty.
struct field_reader {
  void operator()(std::integral auto& value) {
    const auto from = take(sizeof value);
    if (!from.empty()) std::memcpy(&value, from.data(), sizeof value);
  }
  void operator()(bool& value) { value = next<std::uint8_t>() != 0; }
  void operator()(std::string& text) { text = take(next<std::uint16_t>()); }
  void operator()(k8s::resource_type& type) { pass_fields(type, *this); }
  void operator()(managed_watch& watch) {
    pass_fields(watch, *this);
    for (auto left = next<std::uint32_t>(); left > 0 && !failed; --left) {
      auto label = next<std::string>();
      watch.labels[std::move(label)] = next<std::string>();
    }
  }
  template <typename Field>
  Field next() {
    Field field{};
    (*this)(field);
    return field;
  }
  std::string_view take(std::size_t size) {
    failed = failed || size > bytes.size();
    const auto out = failed ? "" : bytes.substr(0, size);
    bytes.remove_prefix(out.size());
    return out;
  }

  std::string_view bytes;
  bool failed = false;
};

std::size_t append_record(std::string& to, char kind, const auto&... fields) {
  const auto at = to.size();
  to.append(head_size, '\0');
  field_writer write{to};
  write(kind);
  (write(fields), ...);
  const auto content = std::string_view(to).substr(at + head_size);
  const auto length = static_cast<std::uint32_t>(content.size());
  const std::uint32_t head[] = {length, check_of(length)};
  std::memcpy(to.data() + at, head, head_size);
  write(sum_of(content));
  return to.size();
}

/// Applies the records of a journal.
struct replay {
  struct watch_state {
    managed_watch watch;
    journal_content::objects objects;
  };

  /// Returns why it ended before the last record; null: it did not.
  const char* run(std::string_view bytes) {
    while (bytes.size() >= head_size) {
      field_reader from{bytes};
      const auto length = from.next<std::uint32_t>();
      const auto check = from.next<std::uint32_t>();
      if (check != check_of(length)) return "the head of a record is damaged";
      if (from.bytes.size() < length + sum_size) break;  // torn
      const auto record = from.take(length);
      const auto sum = from.next<std::uint64_t>();
      if (sum != sum_of(record)) return "the content of a record is damaged";
      const auto* error = apply({record});
      if (error != nullptr) return error;
      bytes = from.bytes;
    }
    return began ? nullptr : "it has no header";
  }

  const char* apply(field_reader from) {
    const auto kind = from.next<char>();
    if ((kind == 'h') == began) return "its header is not the first record";
    if (kind == 'h') {
      began = true;
      if (from.next<std::string>() != journal_version) return "it has another version";
      from(boot_id);
      from(content.series);
    } else if (kind == 'g') {
      auto& counts = content.gaps[from.next<std::string>()];
      from(counts.raised);
      from(counts.told);
    } else if (!apply_to_watch(kind, from.next<std::uint32_t>(), from)) {
      return "a record has an unknown kind";
    }
    return from.failed ? "a record is malformed" : nullptr;
  }

  bool apply_to_watch(char kind, std::uint32_t number, field_reader& from) {
    if (kind == 'w') {
      auto watch = from.next<managed_watch>();
      const auto former = std::ranges::find_if(
          watches, [&](const auto& each) { return each.second.watch == watch; });
      journal_content::objects objects;
      if (former != watches.end()) objects = std::move(watches.extract(former).mapped().objects);
      objects.number = number;
      auto& known = watches[number];
      known = {std::move(watch), std::move(objects)};
      from(known.objects.type);
      // Earlier versions did not write it.
      const auto flags = from.bytes.empty() ? 0U : from.next<std::uint8_t>();
      known.objects.outdated = (flags & outdated_flag) != 0;
      known.objects.inherited = (flags & inherited_flag) != 0;
      if (known.objects.outdated) {
        for (auto& [key, delivered] : known.objects.states) delivered = unknown_state;
      }
    } else if (kind == 'u') {
      watches.erase(number);
    } else if (kind == 'l' || kind == 't') {
      auto key = from.next<std::string>();
      const auto delivered = kind == 't' ? from.next<state_hash>() : unknown_state;
      const auto at = watches.find(number);
      if (at == watches.end()) return true;
      auto& states = at->second.objects.states;
      if (delivered != absent_state) states.insert_or_assign(std::move(key), delivered);
      if (delivered == absent_state) states.erase(key);
    } else {
      return false;
    }
    return true;
  }

  journal_content content;  ///< but for the watches
  std::map<std::uint32_t, watch_state> watches;
  std::string boot_id;
  bool began = false;
};

journal_content decode_old_format(std::string_view bytes) {
  journal_content content{.old_format = true, .reason = "it is a ledger of an earlier version"};
  const auto end = std::max(bytes.size() - sum_size, old_ledger_version.size());
  const auto sum = field_reader{bytes.substr(end)}.next<std::uint64_t>();
  field_reader from{bytes.substr(old_ledger_version.size(), end - old_ledger_version.size())};
  from.failed = sum_of(bytes.substr(0, end)) != sum;
  while (!from.failed && !from.bytes.empty()) {
    auto& states = content.watches[from.next<managed_watch>()].states;
    for (auto left = from.next<std::uint32_t>(); left > 0 && !from.failed; --left) {
      auto key = from.next<std::string>();
      states.try_emplace(std::move(key), from.next<state_hash>());
    }
  }
  if (from.failed) content = {.old_format = true, .reason = "it is a damaged ledger"};
  return content;
}

}  // namespace

std::size_t record_writer::header(std::string_view boot_id, std::string_view series) const {
  return append_record(out_, 'h', journal_version, boot_id, series);
}

std::size_t record_writer::watch(std::uint32_t number, const managed_watch& watch,
                                 const k8s::resource_type& type) const {
  return append_record(out_, 'w', number, watch, type);
}

std::size_t record_writer::watch(const managed_watch& watch,
                                 const journal_content::objects& objects) const {
  const unsigned flags =
      (objects.outdated ? outdated_flag : 0U) | (objects.inherited ? inherited_flag : 0U);
  return append_record(out_, 'w', objects.number, watch, objects.type,
                       static_cast<std::uint8_t>(flags));
}

std::size_t record_writer::unwatch(std::uint32_t number) const {
  return append_record(out_, 'u', number);
}

std::size_t record_writer::left(std::uint32_t number, std::string_view key) const {
  return append_record(out_, 'l', number, key);
}

std::size_t record_writer::told(std::uint32_t number, std::string_view key,
                                state_hash delivered) const {
  return append_record(out_, 't', number, key, delivered);
}

std::size_t record_writer::gap(std::string_view manager, gap_counts counts) const {
  return append_record(out_, 'g', manager, counts.raised, counts.told);
}

std::string encode_journal(const journal_content& content, std::string_view boot_id) {
  std::string out;
  const record_writer to(out);
  to.header(boot_id, content.series);
  for (const auto& [watch, objects] : content.watches) {
    to.watch(watch, objects);
    for (const auto& [key, delivered] : objects.states) to.told(objects.number, key, delivered);
  }
  for (const auto& [manager, counts] : content.gaps) to.gap(manager, counts);
  return out;
}

journal_content decode_journal(std::string_view bytes, std::string_view boot_id) {
  if (bytes.starts_with(old_ledger_version)) return decode_old_format(bytes);
  replay from;
  const auto* error = from.run(bytes);
  const bool rebooted = boot_id.empty() || boot_id != from.boot_id;
  if (error == nullptr && rebooted) error = "the node was restarted since";
  auto content = std::move(from.content);
  for (auto& [number, state] : from.watches) {
    content.watches.insert_or_assign(std::move(state.watch), std::move(state.objects));
  }
  content.complete = error == nullptr;
  if (error != nullptr) content.reason = error;
  return content;
}

}  // namespace rw::observation
