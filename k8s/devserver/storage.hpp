#pragma once

#include "k8s/objects/names.hpp"

#include <boost/json/value.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {

/// An object at one of its versions: JSON text that lists, watches and history share. It begins
/// with apiVersion and kind, then metadata, so that other versions and metadata alone are cut out
/// of it without parsing.
class record {
 public:
  /// `object` carries metadata.resourceVersion already.
  record(object_key key, std::uint64_t version, boost::json::value object);

  std::string_view ns() const noexcept { return std::string_view(path_).substr(0, ns_length_); }
  std::string_view name() const noexcept {
    return std::string_view(path_).substr(ns_length_ == 0 ? 0 : ns_length_ + 1);
  }
  object_key key() const { return {std::string(ns()), std::string(name())}; }
  /// "namespace/name", or the name; objects are in the order of its bytes, as in etcd.
  const std::string& path() const noexcept { return path_; }
  std::uint64_t version() const noexcept { return version_; }

  const std::string& text() const noexcept { return text_; }
  /// The value of metadata.
  std::string_view metadata() const noexcept;
  /// All that stands behind apiVersion and kind, without a comma before and with the brace that
  /// closes the object.
  std::string_view rest() const noexcept { return std::string_view(text_).substr(rest_); }

  /// metadata.labels, or null.
  const boost::json::value* labels() const noexcept { return labels_.get(); }
  /// The uids of metadata.ownerReferences, or null.
  const std::vector<std::string>* owners() const noexcept { return owners_.get(); }
  /// metadata.deletionTimestamp is set.
  bool is_being_deleted() const noexcept { return deleted_; }

  boost::json::value parse() const;

 private:
  std::string path_;
  std::string text_;
  std::unique_ptr<const boost::json::value> labels_;
  std::unique_ptr<const std::vector<std::string>> owners_;
  std::uint64_t version_;
  std::uint32_t ns_length_;
  std::uint32_t rest_;          // where "metadata": begins
  std::uint32_t metadata_end_;  // behind its value
  bool deleted_ = false;
};

using record_ptr = std::shared_ptr<const record>;

std::string storage_path(std::string_view ns, std::string_view name);

/// One write, as watches are told of it.
struct change {
  record_ptr before;  ///< null: created
  record_ptr after;   ///< the object as it was last, under the version of its removal, if deleted
  bool deleted = false;

  std::uint64_t version() const noexcept { return after->version(); }
};

/// Whoever follows a collection. The collection may be watched by many.
class follower {
 public:
  virtual ~follower() = default;
  /// There are new changes, or the collection was closed. It may leave from within.
  virtual void changed() = 0;
};

/// The objects of one resource in one cluster, and their latest changes.
class collection {
 public:
  explicit collection(std::size_t history) : most_(history) {}

  record_ptr find(std::string_view path) const;
  bool empty() const noexcept { return objects_.empty(); }
  std::size_t size() const noexcept { return objects_.size(); }

  /// Calls `visit` with each object, in order, from the first whose path is not less than `from`,
  /// until it returns false.
  void visit(std::string_view from, const std::function<bool(const record_ptr&)>& visit) const;

  /// All objects of a namespace (empty: of all), as they are now.
  std::vector<record_ptr> all(std::string_view ns) const;

  /// All objects of a namespace as they were at `version`. False if history does not go back so
  /// far.
  bool all_at(std::uint64_t version, std::string_view ns, std::vector<record_ptr>& into) const;

  /// True if one may begin at `version`: all changes after it are there.
  bool reaches_back_to(std::uint64_t version) const noexcept { return version >= forgotten_; }
  /// True if a follower that has seen all changes up to `version` has missed none: compaction does
  /// not hurt one that had nothing left to read.
  bool holds_all_since(std::uint64_t version) const noexcept { return version >= lost_; }
  std::uint64_t forgotten() const noexcept { return forgotten_; }

  /// The changes after `version` that are kept, the oldest first; valid until the next change.
  std::deque<change>::const_iterator since(std::uint64_t version) const;
  std::deque<change>::const_iterator end() const { return history_.end(); }

  /// No change up to `version` is kept.
  void forget(std::uint64_t version);

  /// The collection is gone; followers are told, and find `closed`.
  void close();
  bool closed() const noexcept { return closed_; }

  void add(follower* one) { followers_.push_back(one); }
  void remove(follower* one) noexcept;

 private:
  friend class storage;
  struct by_path {
    using is_transparent = void;
    bool operator()(const record_ptr& a, const record_ptr& b) const noexcept {
      return a->path() < b->path();
    }
    bool operator()(const record_ptr& a, std::string_view b) const noexcept {
      return a->path() < b;
    }
    bool operator()(std::string_view a, const record_ptr& b) const noexcept {
      return a < b->path();
    }
  };
  void keep(change one);
  void tell();

  const std::size_t most_;  // changes that are kept
  std::set<record_ptr, by_path> objects_;
  std::deque<change> history_;
  std::uint64_t forgotten_ = 0;  // no change up to this version is kept
  std::uint64_t lost_ = 0;       // the version of the latest change that was thrown away
  std::vector<follower*> followers_;
  bool closed_ = false;
};

/// What one cluster keeps: collections, made when they are first asked for, and the one counter of
/// versions.
class storage {
 public:
  explicit storage(std::size_t history) : history_(history) {}
  ~storage() { close(); }
  storage(const storage&) = delete;
  storage& operator=(const storage&) = delete;

  std::uint64_t version() const noexcept { return version_; }

  std::shared_ptr<collection> open(std::string_view key);
  /// Null if nobody has asked for it yet.
  std::shared_ptr<collection> find(std::string_view key) const;
  /// Forgets a collection with all its objects; its watches end.
  void drop(std::string_view key);
  /// Ends all watches.
  void close();

  /// Makes the record of the next write: the object under the next version, which is set in its
  /// metadata. Nothing is stored yet.
  record_ptr next(object_key key, boost::json::value object) const;
  /// Stores a record that `next` made, with no write in between.
  void put(collection& in, record_ptr one);
  /// Removes the object of that key; `last` is its last state, made by `next`.
  void remove(collection& in, record_ptr last);

  /// Puts another text of the object under the version that it has: how it is read has changed,
  /// not what was written. Nobody is told.
  static void restate(collection& in, record_ptr one);

  /// Forgets all changes so far.
  void compact();

  using contents = std::map<std::string, std::vector<record_ptr>>;
  /// All objects, by the keys of their collections.
  contents save() const;
  /// Has these objects, at their old versions, and no others. All watches end. The counter goes on
  /// beyond all versions that were ever given, and nobody may resume from any of those.
  void restore(const contents& from);

  void each(const std::function<void(const std::string& key, collection& one)>& visit) const;

 private:
  void advance_to(const record& one);

  const std::size_t history_;
  std::uint64_t version_ = 0;
  std::uint64_t forgotten_ = 0;  // no collection made from now on reaches back beyond it
  std::map<std::string, std::shared_ptr<collection>, std::less<>> collections_;
};

}  // namespace rw::k8s::devserver
