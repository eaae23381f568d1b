#pragma once

#include "rw/k8s/objects/names.hpp"

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
#include <utility>
#include <vector>

namespace rw::k8s::devserver {

/// An object at one of its versions: JSON text that lists, watches and history share. It begins
/// with apiVersion and kind, then metadata, so that other versions and metadata alone can be cut
/// out of it without parsing.
class record {
 public:
  /// `object` must carry metadata.resourceVersion.
  record(object_key key, std::uint64_t version, boost::json::value object);

  std::string_view ns() const noexcept { return std::string_view(path_).substr(0, ns_length_); }
  std::string_view name() const noexcept {
    return std::string_view(path_).substr(ns_length_ == 0 ? 0 : ns_length_ + 1);
  }
  object_key key() const { return {std::string(ns()), std::string(name())}; }
  /// "namespace/name", or the name; objects are sorted by its bytes, as in etcd.
  const std::string& path() const noexcept { return path_; }
  std::uint64_t version() const noexcept { return version_; }

  const std::string& text() const noexcept { return text_; }
  std::string_view metadata() const noexcept;
  /// Returns the text after apiVersion and kind, without a leading comma and with the closing brace
  /// of the object.
  std::string_view rest() const noexcept { return std::string_view(text_).substr(rest_); }

  /// metadata.labels, or null.
  const boost::json::value* labels() const noexcept { return labels_.get(); }
  /// The uids of metadata.ownerReferences, or null.
  const std::vector<std::string>* owners() const noexcept { return owners_.get(); }
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
  std::uint32_t metadata_end_;  // after its value
  bool deleted_ = false;
};

using record_ptr = std::shared_ptr<const record>;

std::string storage_path(std::string_view ns, std::string_view name);

/// One write, as watches receive it.
struct change {
  record_ptr before;  ///< null: created
  record_ptr after;   ///< the object's last state; if deleted, under the version of its deletion
  bool deleted = false;

  std::uint64_t version() const noexcept { return after->version(); }
};

/// Observes a collection. A collection may have many followers.
class follower {
 public:
  virtual ~follower() = default;
  /// Called after new changes, or when the collection is closed. The follower may leave from
  /// within.
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

  /// Returns all objects of a namespace (empty: of all) in their current state.
  std::vector<record_ptr> all(std::string_view ns) const;

  /// Appends all objects of a namespace in their state at `version`. Returns false if history is
  /// too short.
  bool all_at(std::uint64_t version, std::string_view ns, std::vector<record_ptr>& into) const;

  /// Returns true if a watch may begin at `version`: all changes after it are kept.
  bool reaches_back_to(std::uint64_t version) const noexcept { return version >= forgotten_; }
  /// Returns true if a follower that has read all changes up to `version` has missed none:
  /// compaction does not affect a follower with nothing left to read.
  bool holds_all_since(std::uint64_t version) const noexcept { return version >= lost_; }
  std::uint64_t forgotten() const noexcept { return forgotten_; }

  /// Returns the kept changes after `version`, the oldest first; valid until the next change.
  std::deque<change>::const_iterator since(std::uint64_t version) const;
  std::deque<change>::const_iterator end() const { return history_.end(); }

  /// Drops the changes up to `version`.
  void forget(std::uint64_t version);

  /// Closes the collection; followers are notified, and find `closed`.
  void close();
  bool closed() const noexcept { return closed_; }

  void add(follower* follower) { followers_.push_back(follower); }
  void remove(follower* follower) noexcept;

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
  void keep(change change);
  void tell();

  const std::size_t most_;  // maximum number of kept changes
  std::set<record_ptr, by_path> objects_;
  std::deque<change> history_;
  std::uint64_t forgotten_ = 0;  // changes up to this version are dropped
  std::uint64_t lost_ = 0;       // the version of the latest change that was dropped
  std::vector<follower*> followers_;
  bool closed_ = false;
};

/// The stored state of one cluster: collections, made on first use, and the one counter of
/// versions.
class storage {
 public:
  /// Begins with the objects of `base`, whose records it shares, and after their versions.
  explicit storage(std::size_t history, std::shared_ptr<const storage> base = nullptr)
      : history_(history),
        base_(std::move(base)),
        version_(base_ ? base_->version() : 0),
        forgotten_(version_) {}
  ~storage() { close(); }
  storage(const storage&) = delete;
  storage& operator=(const storage&) = delete;

  std::uint64_t version() const noexcept { return version_; }

  std::shared_ptr<collection> open(std::string_view key);
  /// Returns null if the collection has never been used, and has no objects from the start.
  std::shared_ptr<collection> find(std::string_view key) const;
  /// Removes a collection with all its objects; its watches end.
  void drop(std::string_view key);
  /// Ends all watches.
  void close();

  /// Makes the record of the next write: the object under the next version, which it sets in its
  /// metadata. Stores nothing.
  record_ptr next(object_key key, boost::json::value object) const;
  /// Stores a record made by `next`, with no write in between.
  void put(collection& in, record_ptr record);
  /// Removes the object of that key; `last` is its last state, made by `next`.
  void remove(collection& in, record_ptr last);

  /// Replaces the text of an object under its version: its representation has changed, not its
  /// content. Followers are not notified.
  static void restate(collection& in, record_ptr record);

  void compact();

  using contents = std::map<std::string, std::vector<record_ptr>>;
  /// Returns all objects, by the keys of their collections.
  contents save() const;
  /// Replaces all objects by these, at their old versions. All watches end. The counter continues
  /// beyond all versions ever used, and no watch may resume from any of those. With
  /// `reuse_versions` it continues behind the newest of these, and later versions are handed out
  /// once more.
  void restore(const contents& from, bool reuse_versions = false);

  void for_each(
      const std::function<void(const std::string& key, collection& collection)>& visit) const;

 private:
  void advance_to(const record& record);
  std::shared_ptr<collection> make(std::string_view key) const;

  const std::size_t history_;
  std::shared_ptr<const storage> base_;
  std::uint64_t version_;
  std::uint64_t forgotten_;  // a new collection has no history up to this version
  mutable std::map<std::string, std::shared_ptr<collection>, std::less<>> collections_;
};

}  // namespace rw::k8s::devserver
