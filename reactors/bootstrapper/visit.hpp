#pragma once

#include "reactors/bootstrapper/plan.hpp"
#include "reactors/bootstrapper/runtime_store.hpp"
#include "reactors/bootstrapper/sync.hpp"
#include "reactors/bootstrapper/writer.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rw::bootstrapper {

/// One runtime during one call of `sync` (sync.cpp), which decides what it is to have; how that
/// comes about stands in apply.cpp.
class visit {
 public:
  visit(std::shared_ptr<k8s::client> api, const sync_method& how, sync_request what)
      : how_(how),
        what_(std::move(what)),
        writer_(std::move(api), how.field_manager, what_.may_write),
        store_(writer_, how.record_namespace, how.record_key, what_.subject) {}

  boost::asio::awaitable<k8s::result<sync_report>> run();

 private:
  template <class T>
  using work = boost::asio::awaitable<k8s::result<T>>;

  // What is it to have?
  work<std::optional<known_set>> wanted_set();
  work<std::optional<known_set>> set_in_place();
  bool is_refused(const known_set& set) const;
  work<void> look_at_deployment();

  // How does it get that?
  work<bool> make(known_set set);
  work<void> resolve(known_set& set);
  work<std::optional<k8s::resource_type>> resource_of(const boost::json::value& object);
  work<std::optional<k8s::resource_type>> trust_bundle_resource(const boost::json::value& object);
  work<void> read_live(const known_set& set);
  work<std::string> try_dry(const known_set& set, const sync_plan& plan);
  work<void> begin(const known_set& set);
  work<void> keep_what_was_there(const known_set& set);
  std::vector<std::size_t> taken_over(const known_set& set);
  work<void> write(const known_set& set, const sync_plan& plan);
  work<void> take_over(const set_item& item, const boost::json::value& written);
  work<void> prune(std::vector<inventory_item> items);
  boost::asio::awaitable<void> clean_up();
  work<void> settle(const known_set& set);
  work<void> go_back(std::string digest, std::string why);
  work<void> roll_back(std::string digest, std::string why);
  work<void> ensure_namespaces();
  bool needs_new_version(const known_set& set) const;
  void note(const known_set& set, const sync_plan& plan);

  const sync_method& how_;
  const sync_request what_;
  writer writer_;
  runtime_store store_;
  bool has_record_ = false;
  sync_record record_;
  std::vector<boost::json::value> live_;  ///< of the set that is being made
  std::string no_way_back_;  ///< why this look could not roll back; empty: it had not to, or did
  sync_report out_;
};

/// Removes what is still ours of `items`, in their order.
boost::asio::awaitable<k8s::result<void>> remove_ours(writer* with,
                                                      std::vector<inventory_item> items);

}  // namespace rw::bootstrapper
