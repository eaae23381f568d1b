#include "rw/reactors/dev/live_view.hpp"

#include <algorithm>
#include <utility>

namespace rw::dev {

namespace asio = boost::asio;

bool shows_table(const dev_settings& settings, const terminal& on) {
  if (settings.json || settings.table == table_mode::never) return false;
  return settings.table == table_mode::always || on.options().movable;
}

live_view::live_view(asio::any_io_executor executor, core::clock& clock, terminal& on,
                     std::function<live_state()> read)
    : executor_(std::move(executor)),
      clock_(clock),
      terminal_(on),
      read_(std::move(read)),
      table_(on.options().colours) {}

live_view::~live_view() {
  end();
}

void live_view::add(const event_trace& trace) {
  table_.add(trace, clock_.now(), clock_.wall());
}

void live_view::print(const std::string& lines) {
  pending_ += lines;
  if (ended_) {
    terminal_.draw(std::exchange(pending_, {}), {});
  } else {
    poll();
  }
}

/// Draws if it is time to, and something has changed.
void live_view::poll() {
  const auto now = clock_.now();
  if (now < next_) return;
  const auto state = read_();
  if (state.runtimes) table_.set_runtimes(*state.runtimes);
  const auto size = terminal_.size();
  auto region = state.progress ? table_.render(size, *state.progress) : table_.render(size, now);
  if (pending_.empty() && region == drawn_ && size == size_) return;
  terminal_.draw(std::exchange(pending_, {}), region);
  drawn_ = std::move(region);
  size_ = size;
  next_ = now + interval;
}

asio::awaitable<void> live_view::run() {
  const auto timer = clock_.make_timer(executor_);
  for (;;) {
    poll();
    const auto now = clock_.now();
    timer->expires_at(next_ > now ? next_ : now + interval);
    const bool due = co_await timer->wait();
    if (!due) co_return;
  }
}

void live_view::end() {
  if (ended_) return;
  ended_ = true;
  terminal_.clear();
  if (!pending_.empty()) terminal_.draw(std::exchange(pending_, {}), {});
}

}  // namespace rw::dev
