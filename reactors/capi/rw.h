/**
 * @file rw.h
 * Runtime Watcher for C, and for every language that can call C: receives events in an operator's process, and serves the
 * webhook from a host's process.
 *
 * Flags are those of the commands `runtime-watcher listen` and `runtime-watcher webhook`, as an array that ends with a null
 * pointer, such as `{"--address=0.0.0.0:8082", "--component=lifecycle-manager", NULL}`; `runtime-watcher listen --help`
 * lists them, and --log-level=debug, info (the default), warning or error. Variables of the environment are not read.
 *
 * Each listener and webhook runs on a thread of its own, which handles no signals. Any function may be called from any
 * thread, except that nothing may be called with an object that is being freed, and that a callback must not free its own
 * object. Texts are UTF-8 and end with a null character. A function that returns a text returns it for as long as its
 * argument lives.
 *
 * Runtime Watcher itself is inside the library, and hidden. Not inside are eight shared libraries, which the host's machine must
 * have: libprometheus-cpp-core, libnghttp2, libssl, libcrypto, libsimdjson, libyaml-cpp, libboost_json and libboost_container;
 * a host that brings one of these brings the same version.
 *
 * The ABI: functions are never removed or changed within a version of the library's name (librw.so.0), and new ones carry a
 * new symbol version. A test compares this header with the recorded `reactors/capi/rw.abi`.
 */
#ifndef RW_H
#define RW_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** The version of the library, such as "0.1.0". */
const char* rw_version(void);

/** An object on a runtime changed. Carries no content of the object. */
typedef struct rw_event rw_event;

/** The runtime: common name of the certificate that the event came with, which is verified. */
const char* rw_event_runtime_id(const rw_event* event);
/**
 * Why the host is to look at everything of the runtime once more; null: this is an event of an object.
 *
 * "dropped": changes there were lost; "started", "watcher-changed", "watch-back": the watcher began to watch anew. The texts of
 * a resync's object are empty; verify is called with such an event, too. Only a listener with the flag `--resyncs` accepts resyncs.
 * It hands over one a minute for each runtime, whatever the runtime sends.
 */
const char* rw_event_resync(const rw_event* event);
/** API group of the object; empty for the core group. */
const char* rw_event_group(const rw_event* event);
/** API version of the object, such as "v1beta2". */
const char* rw_event_version(const rw_event* event);
/** Kind of the object. */
const char* rw_event_kind(const rw_event* event);
/** Namespace of the object; empty if its kind has none. */
const char* rw_event_namespace(const rw_event* event);
/** Name of the object. */
const char* rw_event_name(const rw_event* event);
/** Frees an event that rw_listener_next() returned. Null is ignored. */
void rw_event_free(rw_event* event);

/**
 * What the library calls, on its own thread. A callback returns soon: nothing else happens meanwhile. Any may be null.
 *
 * None may throw. A listener whose event callback does ends: its port rejects everything, the log says "listener failed", `failed`
 * is called, and rw_listener_free() is still to be called. An event whose verify callback throws is rejected with 500, and the
 * sender sends it again. What the other callbacks throw is ignored.
 */
typedef struct rw_callbacks {
  /** An event; it is freed when this returns. Null: events wait for rw_listener_next(). */
  void (*event)(void* context, const rw_event* event);
  /** A line of the log, JSON without the line's end. Null: the log goes to standard error. */
  void (*log)(void* context, const char* line);
  void* context; /**< given to all */
  /**
   * Whether an event is accepted; 0: its sender gets 403. `certificate` is the sender's, PEM. Both are freed when this returns.
   * Null: every sender with a verified certificate may send.
   */
  int (*verify)(void* context, const rw_event* event, const char* certificate);
  /** The listener has failed, with this message, and takes no more events. Called once; a webhook does not call it. */
  void (*failed)(void* context, const char* error);
} rw_callbacks;

/**
 * Receives events for one component in the control plane, and hands them over in turns over the runtimes that sent them.
 *
 * An event that it accepted (200) is in the memory of this process only, and lost if that crashes: a host reconciles
 * everything when it starts.
 */
typedef struct rw_listener rw_listener;

/**
 * Starts a listener.
 *
 * @param flags those of `runtime-watcher listen`, and a null pointer
 * @param callbacks copied; may be null
 * @param error where a message goes that names the invalid flag or the failure; may be null
 * @param error_size bytes at `error`; a longer message is cut off
 * @return null if it failed. To be freed with rw_listener_free().
 */
rw_listener* rw_listener_start(const char* const* flags, const rw_callbacks* callbacks, char* error, size_t error_size);

/** The port that it listens on. */
uint16_t rw_listener_port(const rw_listener* listener);

/**
 * A descriptor to poll(2) for reading: it is readable when rw_listener_next() may have something to return. It belongs to
 * the listener: the caller neither reads nor closes it.
 */
int rw_listener_fd(const rw_listener* listener);

/** What rw_listener_next() has found. */
typedef enum rw_outcome {
  RW_ENDED = -1, /**< no further event will come */
  RW_NONE = 0,   /**< there is no event now */
  RW_EVENT = 1   /**< there is an event */
} rw_outcome;

/**
 * Takes the next event, without waiting. While nobody takes events a bounded number is accepted from each runtime; then its
 * sender gets 503, and sends them again later.
 *
 * @param listener to take it from
 * @param event set if the result is RW_EVENT; to be freed with rw_event_free()
 */
rw_outcome rw_listener_next(rw_listener* listener, rw_event** event);

/**
 * Begins the end: new requests are rejected, those under way may take `--drain-timeout`. Events that were accepted can still
 * be taken, then rw_listener_next() returns RW_ENDED. Returns at once.
 */
void rw_listener_drain(rw_listener* listener);

/**
 * Ends it, after rw_listener_drain() if that was not called, and frees it. Waits for requests under way.
 *
 * @return the number of events that were accepted, and neither taken nor given to the callback
 */
size_t rw_listener_free(rw_listener* listener);

/** Takes AdmissionReviews on a watched cluster, and sends events to the control plane. */
typedef struct rw_webhook rw_webhook;

/** Starts a webhook, with flags of `runtime-watcher webhook`; otherwise as rw_listener_start(). No event is called back. */
rw_webhook* rw_webhook_start(const char* const* flags, const rw_callbacks* callbacks, char* error, size_t error_size);

/** The port that it serves reviews on. */
uint16_t rw_webhook_port(const rw_webhook* webhook);

/** The port of /metrics, /healthz, /livez and /readyz. */
uint16_t rw_webhook_metrics_port(const rw_webhook* webhook);

/**
 * Serves reviews for `--shutdown-delay` more, delivers what was accepted within `--drain-timeout`, and frees it.
 *
 * @return 0; 1 if events were not delivered, or it failed: the log has the reason
 */
int rw_webhook_free(rw_webhook* webhook);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
