#pragma once

#include "reactors/bootstrapper/record.hpp"
#include "reactors/bootstrapper/writer.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace rw::bootstrapper {

/// What this reactor keeps on a runtime about itself, in Secrets, since sets hold credentials:
///
///   rt-bootstrapper-sync-record          the record, and its seal (record_seal.hpp); one write of
///                                        it is the moment at which a sync begins, or ends
///   rt-bootstrapper-sync-<digest>-<n>    a whole set, in pieces below Kubernetes' limit of 1 MiB
///   for
///                                        a Secret's data; named by its content, so never changed
///
/// At rest there is one set, the one that is in place; during a sync there are two.
class runtime_store {
 public:
  static constexpr std::string_view record_name = "rt-bootstrapper-sync-record";
  /// Of one Secret's data; base64 makes it a third more, and etcd takes 1.5 MiB.
  static constexpr std::size_t piece = 700u << 10;
  /// Largest set that can be kept, and so applied.
  static constexpr std::size_t most = 8u << 20;

  /// `key` and `subject`: of the record's seal.
  runtime_store(writer& with, std::string ns, std::string key, std::string subject)
      : with_(with), ns_(std::move(ns)), key_(std::move(key)), subject_(std::move(subject)) {}

  /// None: nothing was ever applied, or all of it is removed. One that is not sealed, or can't be
  /// read, is `foreign`.
  boost::asio::awaitable<k8s::result<std::optional<sync_record>>> read();
  boost::asio::awaitable<k8s::result<void>> write(sync_record record);
  boost::asio::awaitable<k8s::result<void>> forget();

  /// Keeps a set, and tells in how many pieces. Too large: `errc::too_large`.
  boost::asio::awaitable<k8s::result<std::size_t>> keep(known_set set);
  /// None if it is not there whole.
  boost::asio::awaitable<k8s::result<std::optional<known_set>>> load(std::string digest,
                                                                     std::size_t parts);
  /// Removes all sets but one; an empty digest removes all. What has the label of a set and not
  /// the name of one is somebody else's.
  boost::asio::awaitable<k8s::result<void>> drop_others(std::string digest);

 private:
  std::string piece_name(std::string_view digest, std::size_t number) const;

  writer& with_;
  const std::string ns_;
  const std::string key_;
  const std::string subject_;
};

}  // namespace rw::bootstrapper
