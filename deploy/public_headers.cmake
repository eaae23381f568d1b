# The public headers: what is installed and in the reference, by the reference's groups. A header that is not named here is
# private: no header here includes it. tests/install/headers/<group>.cpp includes each of its group alone with other public
# ones, against an installed copy, and uses it.
#
#   rw_public_headers(GROUP TITLE HEADER...)
set(RW_PUBLIC_HEADERS)
set(RW_HEADER_GROUPS)
set(RW_REFERENCE_GROUPS)
function(rw_public_headers group title)
  set(groups "${RW_REFERENCE_GROUPS}/** @defgroup ${group} ${title} */\n")
  foreach(header ${ARGN})
    if(NOT EXISTS ${CMAKE_SOURCE_DIR}/${header})
      message(FATAL_ERROR "deploy/public_headers.cmake: there is no ${header}")
    endif()
    string(APPEND groups "/** @file rw/${header}\n @ingroup ${group} */\n")
    cmake_path(GET header PARENT_PATH folder)
    install(FILES ${CMAKE_SOURCE_DIR}/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rw/${folder})
  endforeach()
  set(RW_REFERENCE_GROUPS "${groups}" PARENT_SCOPE)
  set(RW_PUBLIC_HEADERS ${RW_PUBLIC_HEADERS} ${ARGN} PARENT_SCOPE)
  set(RW_HEADER_GROUPS ${RW_HEADER_GROUPS} ${group} PARENT_SCOPE)
  set(RW_HEADERS_OF_${group} ${ARGN} PARENT_SCOPE)
endfunction()

rw_public_headers(queues "Queues and channels"
  core/channel.hpp core/channel_error.hpp core/coalescing_set.hpp core/work_queue.hpp)
rw_public_headers(tasks "Tasks and time"
  core/task_group.hpp core/unhandled.hpp core/gather.hpp core/within.hpp core/wake.hpp core/clock.hpp core/watchdog.hpp core/backoff.hpp
  core/token_bucket.hpp core/circuit_breaker.hpp)
rw_public_headers(observability "Log and metrics"
  core/log.hpp core/metrics.hpp)
rw_public_headers(http "Network and HTTP"
  core/network.hpp core/resolver.hpp core/stream.hpp core/http/message.hpp core/http/server.hpp core/http/client.hpp
  core/http/client_error.hpp)
rw_public_headers(tls "TLS and certificates"
  tls/error.hpp tls/certificate.hpp tls/issuer.hpp tls/key_memory.hpp tls/material.hpp tls/reload.hpp tls/transport.hpp tls/stream.hpp)
rw_public_headers(kubernetes_client "Kubernetes: configuration and client"
  k8s/config/config.hpp k8s/client/client.hpp k8s/client/client_pool.hpp k8s/client/fence.hpp)
rw_public_headers(kubernetes_objects "Kubernetes: objects"
  k8s/objects/names.hpp k8s/objects/object.hpp k8s/objects/types.hpp k8s/objects/failure.hpp
  k8s/objects/label_selector.hpp k8s/objects/manifests.hpp k8s/objects/difference.hpp k8s/objects/projection.hpp
  k8s/objects/delta.hpp k8s/objects/described.hpp)
rw_public_headers(kubernetes_cache "Kubernetes: informers"
  k8s/cache/informer.hpp k8s/cache/list_watch.hpp k8s/cache/store.hpp k8s/cache/own_writes.hpp
  k8s/cache/api_source.hpp)
rw_public_headers(kubernetes_controller "Kubernetes: controllers"
  k8s/controller/operator_host.hpp k8s/controller/operator_request.hpp
  k8s/controller/controller.hpp k8s/controller/reconciler.hpp k8s/controller/leader_election.hpp
  k8s/controller/event_sink.hpp k8s/controller/event_recorder.hpp k8s/client/object_api.hpp)
rw_public_headers(devserver "An API server in memory"
  k8s/devserver/server.hpp k8s/devserver/faults.hpp k8s/devserver/service_route.hpp)
rw_public_headers(listener "Events of runtimes"
  reactors/intake/listener.hpp reactors/intake/serve.hpp reactors/intake/identity.hpp reactors/intake/san_pinning.hpp
  reactors/shared/events.hpp reactors/shared/heartbeat.hpp reactors/shared/resync.hpp)
rw_public_headers(webhook "Reviews of a runtime"
  reactors/events/serve.hpp)
# What the headers above are made of. A program includes none of them.
rw_public_headers(parts "Parts of other headers"
  core/channel/index_ring.hpp core/channel/operation.hpp core/channel/state.hpp core/channel/wait_list.hpp
  core/config.hpp core/requirements.hpp core/http/send_permit.hpp core/lifetime.hpp core/lru_map.hpp core/recycled.hpp core/text.hpp core/text_error.hpp
  core/thread_owner.hpp
  tls/digest.hpp tls/directory_watch.hpp tls/files.hpp tls/trust_store.hpp
  k8s/controller/election.hpp k8s/controller/event_correlator.hpp
  k8s/controller/failing_keys.hpp reactors/intake/fair_queue.hpp reactors/intake/resync_turns.hpp reactors/shared/event_json.hpp)
