#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/http/message.hpp"
#include "rw/k8s/devserver/admission_gate.hpp"
#include "rw/k8s/devserver/call.hpp"
#include "rw/k8s/devserver/write_plan.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <functional>
#include <vector>

namespace rw::k8s::devserver {

/// Called after each write: the work of a real cluster's controllers begins here. Must not write
/// from within.
using write_observer = std::function<void(const std::shared_ptr<cluster>& in, const resource& of,
                                          const change& change)>;

/// Parses a request's object: JSON, YAML or protobuf. Sets `duplicates` to the paths of fields that
/// JSON has twice.
outcome<boost::json::value> parse_object(const call& to, const http::request& from,
                                         std::vector<std::string>* duplicates = nullptr);

/// Parses an object that is created below another: a Binding, Eviction or TokenRequest.
outcome<boost::json::value> parse_part(const call& to, const http::request& from);

/// The verbs that change something: create, update, patch, delete, deletecollection. A write is
/// planned, admitted and stored; if the object changes in between, it starts over.
class writes {
 public:
  struct parts {
    const core::clock& clock;
    const write_planner& planner;
    admission_gate& gate;
    std::size_t object_bytes;
    write_observer observer;
  };

  explicit writes(parts with) : parts_(std::move(with)) {}

  /// Both messages live until the returned awaitable has ended; it is empty if all is done.
  boost::asio::awaitable<void> create(call to, const http::request& from, http::response& into);
  boost::asio::awaitable<void> update(call to, const http::request& from, http::response& into);
  boost::asio::awaitable<void> patch(call to, const http::request& from, http::response& into);
  boost::asio::awaitable<void> remove(call to, const http::request& from, http::response& into);
  boost::asio::awaitable<void> remove_all(call to, const http::request& from, http::response& into);

  /// Binds a Pod to a node (core/v1, Binding).
  boost::asio::awaitable<void> bind(call to, const http::request& from, http::response& into);
  /// Deletes a Pod if its PodDisruptionBudget has room (policy/v1, Eviction).
  boost::asio::awaitable<void> evict(call to, const http::request& from, http::response& into);

  /// Receives an object that was admitted.
  using object_handler = std::function<boost::asio::awaitable<void>(boost::json::value object)>;
  /// Has the webhooks review the creation of an object that is not stored, then passes it, as they
  /// changed it, to `then`. Writes the response itself if there is no object or if it is rejected.
  boost::asio::awaitable<void> create_unstored(call to, outcome<boost::json::value> object,
                                               object_handler then, http::response& into);

  /// Plans a write from the object's current state.
  using plan_maker = std::function<outcome<write_plan>()>;

  /// A write in progress, of a client or of the server.
  struct request {
    call to;
    plan_maker make_plan;
    write_context context = {};
    bool asks_webhooks = true;
  };

  /// The result of a write: the object as it is stored now, or its last state.
  struct written {
    write_plan plan;
    record_ptr object;
  };

  /// Writes: plans, admits, stores. Stores exactly what the webhooks have admitted: if the object
  /// changes meanwhile, it plans and calls them again, for a minute at most (504).
  boost::asio::awaitable<outcome<written>> write(request request);

 private:
  using whole_plan = decltype(&write_planner::create);
  boost::asio::awaitable<void> put(call to, whole_plan make, const http::request& from,
                                   http::response& into);
  boost::asio::awaitable<void> perform(request request, http::response& into);
  boost::asio::awaitable<void> perform_asking(request request, http::response* into);
  boost::asio::awaitable<void> create_asking(call to, boost::json::value object,
                                             object_handler then, http::response* into);
  boost::asio::awaitable<void> bind_to(call to, std::string node, http::response* into);
  boost::asio::awaitable<void> evict_by(call to, delete_options with, http::response* into);
  boost::asio::awaitable<void> remove_each(call to, delete_options with,
                                           std::vector<record_ptr> chosen, http::response* into);
  boost::asio::awaitable<outcome<written>> write_asking(request request);
  boost::asio::awaitable<outcome<written>> write_at_once(request request);
  outcome<written> write_now(const request& request);
  outcome<record_ptr> commit(const request& request, const write_plan& plan);

  const parts parts_;
};

}  // namespace rw::k8s::devserver
