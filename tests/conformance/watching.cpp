#include "watching.hpp"

#include "tests/unit/k8s/watch_to_end.hpp"

namespace rw::conformance {

/// Cuts what comes into lines, each of them an event.
class watching::lines final : public k8s::watch_sink {
 public:
  explicit lines(watching& owner) : owner_(owner) {}

  bool take(std::string_view bytes) override {
    rest_ += bytes;
    for (auto end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n')) {
      const auto line = boost::json::parse(std::string_view(rest_).substr(0, end));
      rest_.erase(0, end + 1);
      const std::lock_guard lock(owner_.guard_);
      owner_.events_.push_back({text(line, "/type"), line.at("object")});
      owner_.changed_.notify_all();
    }
    return true;
  }

 private:
  watching& owner_;
  std::string rest_;
};

watching::watching(sandbox& in, const k8s::resource_type& type, k8s::selection what,
                   k8s::watch_options options)
    : here_(in.server.here),
      api_(in.api),
      sink_(std::make_unique<lines>(*this)),
      task_(here_.executor()) {
  task_.spawn(run(type, std::move(what), std::move(options)));
}

watching::watching(sandbox& in, const k8s::resource_type& type, k8s::selection what,
                   const json& since)
    : watching(in, type, std::move(what),
               k8s::watch_options{.resource_version = text(since, "/metadata/resourceVersion"),
                                  .bookmarks = false}) {}

watching::~watching() {
  task_.cancel();
  here_.call(task_.join());
}

boost::asio::awaitable<void> watching::run(k8s::resource_type type, k8s::selection what,
                                           k8s::watch_options options) {
  auto ended = co_await k8s::test::watch_to_end(api_, std::move(type), std::move(what),
                                                std::move(options), *sink_);
  const std::lock_guard lock(guard_);
  end_ = std::move(ended);
  changed_.notify_all();
}

watching::event watching::next() {
  std::unique_lock lock(guard_);
  changed_.wait_for(lock, http::test::patience, [this] { return !events_.empty() || end_; });
  BOOST_REQUIRE_MESSAGE(!events_.empty(),
                        "no event came: " << (!end_               ? "in time"
                                              : end_->has_error() ? end_->error().message
                                                                  : "the watch ended"));
  auto one = std::move(events_.front());
  events_.pop_front();
  return one;
}

json watching::expect(std::string_view type, std::string_view name) {
  auto got = next();
  const auto what = got.type + " " + text(got.object, "/metadata/name");
  BOOST_REQUIRE_EQUAL(what, std::string(type) + " " + std::string(name));
  return std::move(got.object);
}

k8s::result<void> watching::end() {
  std::unique_lock lock(guard_);
  const bool ended =
      changed_.wait_for(lock, http::test::patience, [this] { return end_.has_value(); });
  BOOST_REQUIRE_MESSAGE(ended, "the server did not end the watch");
  return *end_;
}

std::optional<watching::event> watching::poll() {
  const std::lock_guard lock(guard_);
  if (events_.empty()) return std::nullopt;
  auto one = std::move(events_.front());
  events_.pop_front();
  return one;
}

}  // namespace rw::conformance
