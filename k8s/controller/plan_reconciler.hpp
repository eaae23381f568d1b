#pragma once

#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/controller/controller.hpp"
#include "rw/k8s/controller/operator_host.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

namespace rw::k8s {

/// Calls an `operator_plan` with the observed object, and sees to its finalizer. What it refers to
/// must outlive it.
class plan_reconciler final : public reconciler {
 public:
  plan_reconciler(const operator_plan& plan, const informer& objects, const client& api,
                  event_sink& events)
      : plan_(plan), objects_(objects), api_(api), events_(events) {}

  boost::asio::awaitable<reconcile_result> reconcile(object_key key) override;

 private:
  operator_scope scope_of(boost::json::value object) const;
  boost::asio::awaitable<reconcile_result> finalize(boost::json::value object);
  /// Writes the finalizers of an object as long as it is at that version.
  boost::asio::awaitable<result<boost::json::value>> write_finalizers(boost::json::value object);

  const operator_plan& plan_;
  const informer& objects_;
  const client api_;
  event_sink& events_;
};

/// Returns a mapping to the object's own key, for changes that the plan is about.
controller::mapping<delta> keys_of_changed(const operator_plan& plan);

/// Returns a mapping to the object that owns the changed one, as its controller, if it is of this
/// type.
controller::mapping<delta> keys_of_owners(const resource_type& type);

}  // namespace rw::k8s
