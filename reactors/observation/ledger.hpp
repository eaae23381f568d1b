#pragma once

#include "reactors/observation/observed_objects.hpp"

#include <boost/system/result.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The ledger: a file with what was delivered of each observed object, which a restart compares the
/// first list with. It is a hint: without it, or with one that is seconds old, events repeat.
///
/// Form: `ledger_header`, then sections, each with the fields of a Watcher and some of its objects,
/// then a 64-bit hash of all that. Integers are in the machine's byte order, strings follow their
/// length. Of several states of one object the first counts.
namespace rw::observation {

/// Names the version of the form.
inline constexpr std::string_view ledger_header = "runtime-watcher ledger 1\n";
/// Larger files are rejected: 1,000,000 objects with keys of 50 bytes.
inline constexpr std::size_t ledger_bytes = 64u << 20;

using ledger_content = std::map<managed_watch, std::vector<std::pair<std::string, mark>>>;

/// Why bytes are no ledger: the end of a sentence.
struct ledger_defect {
  std::string message;
};

/// Encodes objects in slices, between which they may change: each is encoded as it is when its
/// slice comes. Not thread-safe.
class ledger_encoder {
 public:
  /// The objects must outlive it.
  explicit ledger_encoder(const observed_objects& objects);

  /// Encodes about `count` more. Returns false when it has encoded the last ones.
  bool encode(std::size_t count);
  /// Returns what it has encoded; to be sealed.
  std::string take() { return std::move(bytes_); }

 private:
  void end_section();

  const observed_objects& objects_;
  observed_objects::position position_;
  std::string bytes_;
  std::size_t count_at_ = 0;  ///< where the section has its number of objects; 0: there is none
  std::uint32_t count_ = 0;
};

/// Completes encoded objects by their hash. Any thread.
void seal_ledger(std::string& bytes);

/// Encodes all objects, and seals them.
std::string encode_ledger(const observed_objects& objects);
/// Throws nothing but std::bad_alloc.
boost::system::result<ledger_content, ledger_defect> decode_ledger(std::string_view bytes);

/// Reads a file. A missing one is a ledger without objects.
boost::system::result<ledger_content, ledger_defect> read_ledger(const std::string& file);
/// Replaces the file (temporary file, then rename; not synchronized to the disk). Returns why not;
/// empty: it did.
std::string write_ledger(const std::string& file, std::string_view bytes);

}  // namespace rw::observation
