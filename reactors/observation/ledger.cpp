#include "reactors/observation/ledger.hpp"

#include "core/hash.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <sys/stat.h>
#include <system_error>
#include <type_traits>

namespace rw::observation {
namespace {

constexpr std::size_t object_bytes = 64;  // of one object, about

std::uint64_t checksum(std::string_view bytes) {
  return core::string_hash().add(bytes).value();
}

class writer {
 public:
  explicit writer(std::string& into) : into_(into) {}

  template <typename Integer>
  void number(Integer value) {
    into_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string_view value) {
    number(static_cast<std::uint16_t>(value.size()));
    into_.append(value);
  }

 private:
  std::string& into_;
};

/// Reads what a writer wrote. After the first value that is cut off all are empty.
class reader {
 public:
  explicit reader(std::string_view bytes) : bytes_(bytes) {}

  bool failed() const noexcept { return failed_; }
  bool at_end() const noexcept { return failed_ || bytes_.empty(); }

  template <typename Integer>
  Integer number() {
    Integer value{};
    const auto from = raw(sizeof value);
    if (!from.empty()) std::memcpy(&value, from.data(), sizeof value);
    return value;
  }
  std::string text() {
    const auto size = number<std::uint16_t>();
    return std::string(raw(size));
  }

 private:
  std::string_view raw(std::size_t size) {
    failed_ = failed_ || size > bytes_.size();
    if (failed_) return {};
    const auto out = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return out;
  }

  std::string_view bytes_;
  bool failed_ = false;
};

void write_watch(writer& to, const managed_watch& watch) {
  const auto& watched = watch.watched;
  for (const auto* text : {&watch.manager, &watched.group, &watched.version, &watched.plural,
                           &watched.subresource, &watch.field}) {
    to.text(*text);
  }
  to.number(static_cast<std::uint32_t>(watch.labels.size()));
  for (const auto& [key, value] : watch.labels) {
    to.text(key);
    to.text(value);
  }
}

managed_watch read_watch(reader& from) {
  managed_watch watch;
  auto& watched = watch.watched;
  for (auto* text : {&watch.manager, &watched.group, &watched.version, &watched.plural,
                     &watched.subresource, &watch.field}) {
    *text = from.text();
  }
  for (auto left = from.number<std::uint32_t>(); left > 0 && !from.failed(); --left) {
    auto key = from.text();
    watch.labels[std::move(key)] = from.text();
  }
  return watch;
}

std::string reason_of(int error) {
  return std::generic_category().message(error);
}

}  // namespace

ledger_encoder::ledger_encoder(const observed_objects& objects) : objects_(objects) {
  // Growing would copy all that is encoded within one slice.
  bytes_.reserve(object_bytes * (objects.size() + 1));
  bytes_ += ledger_header;
}

bool ledger_encoder::encode(std::size_t count) {
  writer to(bytes_);
  const bool more = objects_.visit(
      position_, count,
      [&](const managed_watch& watch) {
        end_section();
        write_watch(to, watch);
        count_at_ = bytes_.size();
        to.number(count_);
      },
      [&](std::string_view key, mark delivered) {
        to.text(key);
        to.number(delivered);
        ++count_;
      });
  end_section();
  return more;
}

void ledger_encoder::end_section() {
  if (count_at_ != 0) std::memcpy(bytes_.data() + count_at_, &count_, sizeof count_);
  count_at_ = 0;
  count_ = 0;
}

void seal_ledger(std::string& bytes) {
  const auto hash = checksum(bytes);
  writer(bytes).number(hash);
}

std::string encode_ledger(const observed_objects& objects) {
  ledger_encoder encoder(objects);
  while (encoder.encode(std::numeric_limits<std::size_t>::max())) {
  }
  auto bytes = encoder.take();
  seal_ledger(bytes);
  return bytes;
}

boost::system::result<ledger_content, ledger_defect> decode_ledger(std::string_view bytes) {
  if (!bytes.starts_with(ledger_header)) return ledger_defect{"it has another version"};
  if (bytes.size() < ledger_header.size() + sizeof(std::uint64_t)) {
    return ledger_defect{"it is truncated"};
  }
  const auto signed_part = bytes.substr(0, bytes.size() - sizeof(std::uint64_t));
  const auto expected = reader(bytes.substr(signed_part.size())).number<std::uint64_t>();
  if (checksum(signed_part) != expected) return ledger_defect{"its checksum is wrong"};
  reader from(signed_part.substr(ledger_header.size()));
  ledger_content content;
  while (!from.at_end()) {
    auto& objects = content[read_watch(from)];
    for (auto left = from.number<std::uint32_t>(); left > 0 && !from.failed(); --left) {
      auto key = from.text();
      const auto delivered = from.number<mark>();
      objects.emplace_back(std::move(key), delivered);
    }
  }
  if (from.failed()) return ledger_defect{"it is malformed"};
  return content;
}

boost::system::result<ledger_content, ledger_defect> read_ledger(const std::string& file) {
  struct ::stat status = {};
  if (::stat(file.c_str(), &status) != 0) {
    if (errno == ENOENT) return ledger_content();
    return ledger_defect{reason_of(errno)};
  }
  if (!S_ISREG(status.st_mode)) return ledger_defect{"it is no regular file"};
  if (static_cast<std::uint64_t>(status.st_size) > ledger_bytes) {
    return ledger_defect{"it is larger than " + std::to_string(ledger_bytes) + " bytes"};
  }
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!in) return ledger_defect{"it cannot be read"};
  return decode_ledger(bytes);
}

std::string write_ledger(const std::string& file, std::string_view bytes) {
  const auto temporary = file + ".new";
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out || std::rename(temporary.c_str(), file.c_str()) != 0) {
    const int error = errno;
    std::remove(temporary.c_str());
    return reason_of(error);
  }
  return {};
}

}  // namespace rw::observation
