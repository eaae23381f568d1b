#pragma once

#include "rw/core/sip_hash.hpp"
#include "rw/k8s/objects/names.hpp"
#include "rw/reactors/observation/digest.hpp"
#include "rw/reactors/shared/gap_account.hpp"
#include "rw/reactors/shared/managers_file.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

/// The bytes of the journal: records of what was delivered of each observed object, the latest
/// last.
///
/// A record is the 32-bit length of its content, a check of that ((length ^ 0x52575731) *
/// 0x9E3779B1), the content, and a 64-bit hash of the content. Integers are in the machine's byte
/// order, strings follow their length in 16 bits. The content is a letter and fields:
///
///   h  version, boot id of the node, series   once, first
///   w  number, Watcher, type, flags           defines the number, in place of another Watcher. One
///                                             that had a number before keeps its objects. With
///                                             flag 1 (outdated) all are unknown up to here; 2:
///                                             inherited
///   u  number                                 forgets the Watcher, and its objects
///   l  number, key                            the object's newest state is not delivered
///   t  number, key, mark                      it is delivered in that state; absent: forgets it.
///                                             The empty key: objects were told of that have no
///                                             record
///   g  manager, raised, told                  replaces the counts of the manager's gaps
///
/// A record of a number that is not defined has no effect. A file that ends within a record has a
/// torn end, as a process leaves that ends while it writes: the records before it are complete. Any
/// other defect is damage. The boot id tells whether the kernel may have lost what was written.
namespace rw::observation {

/// What a journal says.
struct journal_content {
  struct objects {
    std::uint32_t number = 0;
    k8s::resource_type type = {};  ///< no plural: not known
    bool outdated = false;         ///< no state is known (kept_objects.hpp)
    bool inherited = false;        ///< by another Watcher, likewise
    /// By key; unknown_mark: the newest state is not delivered.
    std::unordered_map<std::string, state_hash, core::foreign_text_hash> states = {};
  };

  std::map<managed_watch, objects> watches = {};
  std::map<std::string, gap_counts> gaps = {};  ///< by manager
  std::string series = {};
  bool complete = false;    ///< otherwise it is a hint: records may be missing
  bool old_format = false;  ///< the file is of a version that had a ledger in place of the journal
  std::string reason = {};  ///< why it is not complete: the end of a sentence
};

/// Appends records to a string, which must outlive it. Each call returns the string's size.
class record_writer {
 public:
  explicit record_writer(std::string& to) : out_(to) {}

  std::size_t header(std::string_view boot_id, std::string_view series) const;
  /// A Watcher has one number at a time.
  std::size_t watch(std::uint32_t number, const managed_watch& watch,
                    const k8s::resource_type& type) const;
  /// Likewise, with the objects' number, type and flags.
  std::size_t watch(const managed_watch& watch, const journal_content::objects& objects) const;
  std::size_t unwatch(std::uint32_t number) const;
  std::size_t left(std::uint32_t number, std::string_view key) const;
  std::size_t told(std::uint32_t number, std::string_view key, state_hash delivered) const;
  std::size_t gap(std::string_view manager, gap_counts counts) const;

 private:
  std::string& out_;
};

/// Returns a journal of the content, with the same numbers.
std::string encode_journal(const journal_content& content, std::string_view boot_id);
/// Reads a journal up to its first bad record, or an old ledger. Throws nothing but std::bad_alloc.
/// Not complete, too, if `boot_id` is empty or not the header's.
journal_content decode_journal(std::string_view bytes, std::string_view boot_id);

}  // namespace rw::observation
