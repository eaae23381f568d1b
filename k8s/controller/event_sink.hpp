#pragma once

#include "rw/k8s/controller/event_correlator.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace rw::k8s {

/// Takes what the owners of objects should know: usually an event_recorder. Never blocks and never
/// fails: events are for people, and must not delay work.
class event_sink {
 public:
  virtual void record(event_note note) noexcept = 0;

  void normal(const object_reference& about, std::string_view reason, std::string_view message) {
    record({about, event_type::normal, std::string(reason), std::string(message)});
  }
  void warning(const object_reference& about, std::string_view reason, std::string_view message) {
    record({about, event_type::warning, std::string(reason), std::string(message)});
  }

 protected:
  ~event_sink() = default;
};

/// Passes events on to another sink, which must outlive it, unless `*is_quiet`: for reactors that
/// only try their writes (`client::dry`), which have not happened.
class quiet_events final : public event_sink {
 public:
  quiet_events(event_sink& to, std::shared_ptr<const bool> is_quiet)
      : sink_(to), is_quiet_(std::move(is_quiet)) {}

  void record(event_note note) noexcept override {
    if (!*is_quiet_) sink_.record(std::move(note));
  }

 private:
  event_sink& sink_;
  const std::shared_ptr<const bool> is_quiet_;
};

}  // namespace rw::k8s
