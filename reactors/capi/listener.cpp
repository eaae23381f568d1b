#include "rw/reactors/intake/listener.hpp"

#include "rw/core/join_by.hpp"
#include "rw/reactors/capi/host_thread.hpp"
#include "rw/reactors/cli/listening.hpp"

#include <atomic>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace {

namespace asio = boost::asio;
using namespace rw;

class event_descriptor {
 public:
  event_descriptor() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  }
  ~event_descriptor() { ::close(fd_); }
  event_descriptor(const event_descriptor&) = delete;
  event_descriptor& operator=(const event_descriptor&) = delete;

  int get() const noexcept { return fd_; }
  void set() const noexcept { static_cast<void>(::eventfd_write(fd_, 1)); }
  void clear() const noexcept {
    eventfd_t ignored = 0;
    static_cast<void>(::eventfd_read(fd_, &ignored));
  }

 private:
  const int fd_;
};

struct parsed_flags {
  cli::listen_settings settings;
  core::log_level level = core::log_level::info;
};

parsed_flags parse(const char* const* flags) {
  parsed_flags all;
  auto& out = all.settings;
  all.level = capi::parse_flags(
      "listen", flags, [&out](CLI::App& app) { cli::describe_listen(app, out); },
      [&out](CLI::App& app) { cli::check_listen(app, out); });
  return all;
}

}  // namespace

struct rw_event {
  listener::received_event content;
};

struct rw_listener {
  rw_listener(parsed_flags flags, const rw_callbacks* given)
      : callbacks(given != nullptr ? *given : rw_callbacks{}),
        thread(given, flags.level),
        settings(std::move(flags.settings)),
        registered(listener::register_component(
            thread.services().executor, options(),
            {services().clock, services().watchdog, services().log, services().metrics})),
        stopping(services().executor),
        abandoning(services().executor) {
    thread.start([this] { return run(); });
  }

  cli::services& services() { return thread.services(); }
  listener::listener_options options() {
    auto out = cli::listening_options(services(), settings.listening, "--address", reloader);
    out.drain_requests = settings.drain_timeout;
    out.resyncs = settings.resyncs;
    if (callbacks.verify != nullptr) {
      out.verify = [this](const http::request&, const watch_event& event,
                          const listener::event_sender& from) { return verify(event, from); };
    }
    return out;
  }
  bool verify(const watch_event& event, const listener::event_sender& from) const {
    const rw_event given{{.runtime_id = from.runtime_id, .event = event}};
    return callbacks.verify(callbacks.context, &given, from.certificate.pem().c_str()) != 0;
  }
  void fail(const char* error) noexcept;

  asio::awaitable<int> run();
  asio::awaitable<void> hand_over();
  asio::awaitable<void> abandon(core::task_group* intake, core::task_group* handing) {
    const auto aborted = co_await abandoning.wait();
    if (aborted) co_return;
    intake->cancel();
    handing->cancel();
  }

  const rw_callbacks callbacks;
  capi::host_thread thread;
  const cli::listen_settings settings;
  std::unique_ptr<tls::reloader> reloader;
  listener::registration registered;
  core::wake stopping;
  core::wake abandoning;  ///< the host takes no more events
  core::channel<rw_event> ready{listener::listener::channel_capacity};
  std::atomic<bool> ended = false;  ///< set after the last event went into `ready`
  event_descriptor readable;
  std::size_t dropped = 0;
  bool failed = false;
};

/// Ends when the listener has ended, and what it accepted is handed over.
asio::awaitable<void> rw_listener::hand_over() {
  for (;;) {
    auto got = co_await registered.events->receive();
    if (got.has_error()) co_return;
    rw_event event{std::move(*got)};
    if (callbacks.event != nullptr) {
      callbacks.event(callbacks.context, &event);
      continue;
    }
    const auto error = co_await ready.send(std::move(event));
    if (error) {
      ++dropped;
      co_return;
    }
    readable.set();
  }
}

/// Tells the host, once.
void rw_listener::fail(const char* error) noexcept {
  if (std::exchange(failed, true)) return;
  try {
    services().log.error("listener failed", {{"error", error}});
    if (callbacks.failed != nullptr) callbacks.failed(callbacks.context, error);
  } catch (...) {  // it ends anyway
  }
}

asio::awaitable<int> rw_listener::run() {
  const auto fail = [this](std::exception_ptr failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& e) {
      this->fail(e.what());
    } catch (...) {
      this->fail("not a std::exception");
    }
    registered.events->close();  // it may have no reader any more
    stopping.set();
  };
  core::task_group background(services().executor, fail);
  core::task_group intake(services().executor, fail);
  core::task_group handing(services().executor, fail);
  background.spawn(services().watchdog.run());
  if (reloader) background.spawn(reloader->run());
  background.spawn(abandon(&intake, &handing));
  handing.spawn(hand_over());
  intake.spawn(registered.runnable->run());
  cli::log_listening(services().log, "listener", registered.runnable->address());

  co_await stopping.wait();

  registered.runnable->drain();
  co_await core::join_all(intake);
  co_await handing.join();
  background.cancel();
  co_await background.join();
  ended = true;
  readable.set();
  co_return 0;
}

const char* rw_version(void) {
  return RW_VERSION;
}

const char* rw_event_runtime_id(const rw_event* event) {
  return event->content.runtime_id.c_str();
}
const char* rw_event_resync(const rw_event* event) {
  const auto& reason = event->content.resync;
  return reason ? to_string(*reason).data() : nullptr;
}
const char* rw_event_group(const rw_event* event) {
  return event->content.event.gvk.group.c_str();
}
const char* rw_event_version(const rw_event* event) {
  return event->content.event.gvk.version.c_str();
}
const char* rw_event_kind(const rw_event* event) {
  return event->content.event.gvk.kind.c_str();
}
const char* rw_event_namespace(const rw_event* event) {
  return event->content.event.watched.ns.c_str();
}
const char* rw_event_name(const rw_event* event) {
  return event->content.event.watched.name.c_str();
}
void rw_event_free(rw_event* event) {
  delete event;
}

rw_listener* rw_listener_start(const char* const* flags, const rw_callbacks* callbacks, char* error,
                               size_t error_size) {
  try {
    return new rw_listener(parse(flags), callbacks);
  } catch (const std::exception& e) {
    capi::write_error(e.what(), error, error_size);
    return nullptr;
  }
}

uint16_t rw_listener_port(const rw_listener* listener) {
  return listener->registered.runnable->address().port();
}

int rw_listener_fd(const rw_listener* listener) {
  return listener->readable.get();
}

rw_outcome rw_listener_next(rw_listener* listener, rw_event** event) {
  // The end is read first: what was sent before it is found then.
  const bool ended = listener->ended;
  auto taken = listener->ready.try_receive();
  if (!taken && !ended) {
    listener->readable.clear();
    taken = listener->ready.try_receive();  // one that came before the descriptor was cleared
    if (!taken && listener->ended) listener->readable.set();
  }
  if (!taken) return ended ? RW_ENDED : RW_NONE;
  try {
    *event = new rw_event(std::move(*taken));
    return RW_EVENT;
  } catch (const std::bad_alloc&) {
    return RW_NONE;
  }
}

void rw_listener_drain(rw_listener* listener) {
  listener->thread.post([listener] { listener->stopping.set(); });
}

size_t rw_listener_free(rw_listener* listener) {
  if (listener == nullptr) return 0;
  listener->thread.post([listener] {
    listener->stopping.set();
    if (listener->callbacks.event == nullptr) listener->abandoning.set();
  });
  listener->thread.join();
  const auto lost = listener->ready.size() + listener->registered.events->size() +
                    listener->registered.runnable->pending() + listener->dropped;
  delete listener;
  return lost;
}
