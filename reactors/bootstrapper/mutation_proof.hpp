#pragma once

#include "rw/k8s/client/client.hpp"
#include "rw/k8s/objects/failure.hpp"
#include "rw/reactors/bootstrapper/desired_set.hpp"
#include "rw/reactors/bootstrapper/state.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace rw::bootstrapper {

// A pod of the bootstrapper stays ready with a configuration that it can't read, or does not apply.
// The proof is a dry run of creating a Pod, which the bootstrapper's webhook must mutate as the
// configuration demands. Nothing is created.

/// What pods that are created in one namespace get from the bootstrapper's webhook.
struct demanded_mutation {
  std::string ns = {};
  std::string from = {};  ///< registry of an image; empty: images stay
  std::string to = {};    ///< the registry that takes its place
  std::string pull_secret = {};
  std::string volume = {};   ///< of the trust bundle
  bool environment = false;  ///< a variable of the FIPS mode or of the landscape

  friend bool operator==(const demanded_mutation&, const demanded_mutation&) = default;
};

/// By namespace, the target's first, then as the configuration lists them. A feature counts where
/// it is available; a namespace in which nothing can be seen is left out.
std::vector<demanded_mutation> demanded_of(const boost::json::value& configuration,
                                           const target_names& to);

/// The bootstrapper's webhooks for the creation of pods, of a revision's manifests.
std::vector<boost::json::value> pod_webhooks_of(const revision& of);

/// The webhook is called for the Pod of the proof in that namespace, an object. False also where
/// that can't be told: it has matchConditions.
bool is_called_in(const boost::json::value& webhook, const boost::json::value& ns);

/// The Pod of the proof.
boost::json::value pod_to_mutate(const demanded_mutation& demanded);

/// What the Pod has not got; empty: it has all.
std::string missing_in(const boost::json::value& pod, const demanded_mutation& demanded);

/// What it means that the dry run failed, with the bootstrapper's webhooks by name. Others reject
/// the Pod, or there is no right to create it: that says nothing of the bootstrapper.
mutation_proof judge_failure(const k8s::failure& error, std::string_view ns,
                             const std::vector<boost::json::value>& webhooks);

/// Tries it on a runtime whose Deployment of the revision is ready. Fails with what concerns the
/// runtime as a whole.
boost::asio::awaitable<k8s::result<mutation_proof>> prove_mutation(k8s::client* api,
                                                                   target_names to,
                                                                   revision_ptr in_place);

}  // namespace rw::bootstrapper
