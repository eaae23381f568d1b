#include "rw/reactors/observation/delivery_record.hpp"

#include <chrono>
#include <cstddef>
#include <utility>

namespace rw::observation {
namespace {

constexpr std::size_t most_kept = 100'000;    // objects of Watchers that are gone
const std::string begin_record = "/journal";  ///< in place of a manager: a begin without a journal

}  // namespace

delivery_record::delivery_record(boost::asio::any_io_executor executor, std::string file,
                                 journal_environment writing,
                                 delivery_record_environment environment)
    : has_file_(!file.empty()),
      environment_(std::move(environment)),
      journal_(std::move(executor), std::move(file),
               [&] {
                 writing.write_all = [this](const record_writer& to) { write_all(to); };
                 writing.on_written = [this] { on_written(); };
                 return std::move(writing);
               }()),
      kept_(most_kept,
            [this](const auto& of, std::uint32_t number, bool lost) { drop(of, number, lost); }) {}

void delivery_record::load() {
  environment_.objects.set_history(false);
  if (!has_file_) return;
  auto content = journal_.load();
  const auto begin = content.gaps.extract(begin_record);
  const bool was_reported = begin.empty() || !begin.mapped().outstanding();
  began_without_ = !was_reported || journal_.state() == "missing";
  unreported_ = began_without_;
  kept_.restore(std::move(content.watches));
  environment_.objects.set_history(content.complete);
  if (environment_.gaps == nullptr) return;
  environment_.gaps->restore_series(content.series);
  for (const auto& [manager, counts] : content.gaps) environment_.gaps->restore(manager, counts);
}

void delivery_record::keep_removed(const observation_plan& next) {
  environment_.objects.visit([&](const auto& table) {
    const auto& watch = environment_.objects.watch_of(table);
    if (next.has(watch)) return;
    journal_content::objects known{
        .number = environment_.objects.number_of(table),
        .type = {environment_.objects.kind_of(table), watch.watched.plural}};
    environment_.objects.visit(table, [&](std::string_view key, state_hash delivered) {
      known.states.emplace(key, delivered);
    });
    kept_.keep(watch, std::move(known));
  });
}

void delivery_record::drop(const managed_watch& of, std::uint32_t number, bool lost) {
  journal_.watch(number, of, {});
  journal_.unwatch(number);
  if (lost) environment_.objects.report_gap(of.manager);
}

void delivery_record::take(const managed_watch& added, const observation_plan& next,
                           const std::function<void(const k8s::resource_type&)>& set_type) {
  auto& table = environment_.objects.add(added);
  const auto take_type = [&](const k8s::resource_type& type) {
    const bool is_known = !environment_.objects.kind_of(table).kind.empty();
    if (!is_known && !type.gvk.kind.empty()) set_type(type);
  };
  const auto own = kept_.take(added);
  // Its manager may have been told of more by reviews, or for other Watchers.
  if (!own || own->outdated || !is_first_plan_) environment_.objects.set_history(table, false);
  if (own) {
    take_type(own->type);
    for (const auto& [key, delivered] : own->states) {
      if (own->outdated) environment_.objects.inherit(table, key);
      if (!own->outdated) environment_.objects.remember(table, key, delivered);
    }
  }
  for (const auto& gone : kept_.heritage_of(added, next)) {
    const auto known = kept_.inherit(gone);
    take_type(known.type);
    for (const auto& [key, delivered] : known.states) environment_.objects.inherit(table, key);
    journal_.watch(gone, known);
  }
}

/// The table's number stands for its Watcher in the records that follow.
template <typename Writer>
void delivery_record::define(const dispatch::observed_objects::table& of, Writer& to) {
  const auto number = environment_.objects.number_of(of);
  const auto& watch = environment_.objects.watch_of(of);
  const auto& kind = environment_.objects.kind_of(of);
  to.watch(number, watch, {kind, watch.watched.plural});
  if (defined_.size() <= number) defined_.resize(number + 1, "-");
  defined_[number] = kind.kind;
}

void delivery_record::record(const dispatch::observed_objects::table& of, std::string_view key,
                             state_hash delivered, core::time_point now) {
  if (!has_file_) return;
  const auto number = environment_.objects.number_of(of);
  if (defined_.size() <= number || defined_[number] != environment_.objects.kind_of(of).kind) {
    define(of, journal_);
  }
  const auto position = journal_.told(number, key, delivered);
  const bool gates = delivered == unknown_state && now != core::time_point();
  if (!gates || journal_.written() >= position) return;
  if (unwritten_.empty() || unwritten_.back().second != now) unwritten_.emplace_back(0, now);
  unwritten_.back().first = position;
  if (unwritten_.size() == 1) environment_.objects.set_recorded(now - std::chrono::microseconds(1));
}

void delivery_record::on_written() {
  const auto written = journal_.written();
  while (!unwritten_.empty() && unwritten_.front().first <= written) unwritten_.pop_front();
  environment_.objects.set_recorded(unwritten_.empty()
                                        ? core::time_point::max()
                                        : unwritten_.front().second - std::chrono::microseconds(1));
  if (environment_.on_recorded) environment_.on_recorded();
}

void delivery_record::write_all(const record_writer& to) {
  environment_.objects.visit([&](const auto& table) {
    define(table, to);
    const auto number = environment_.objects.number_of(table);
    environment_.objects.visit(table, [&](std::string_view key, state_hash delivered) {
      to.told(number, key, delivered);
    });
  });
  for (const auto& [watch, objects] : kept_.by_watch()) {
    to.watch(watch, objects);
    for (const auto& [key, delivered] : objects.states) to.told(objects.number, key, delivered);
  }
  to.gap(begin_record, {1, unreported_ ? 0U : 1U});
  if (environment_.gaps == nullptr) return;
  for (const auto& [manager, counts] : environment_.gaps->counts()) to.gap(manager, counts);
}

void delivery_record::reported() {
  if (std::exchange(unreported_, false)) journal_.gap(begin_record, {1, 1});
}

void delivery_record::applied(const observation_plan& now) {
  kept_.outdate(now, [&](const auto& of, const auto& known) { journal_.watch(of, known); });
  is_first_plan_ = false;
}

std::string_view delivery_record::state() const noexcept {
  const auto state = journal_.state();
  return began_without_ && state == "read" ? "missing" : state;
}

}  // namespace rw::observation
