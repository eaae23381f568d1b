#include "tests/simulation/store.hpp"

#include <algorithm>
#include <set>

namespace rw::simulation {
namespace {

std::string describe(const model_object& object) {
  return " stored at " + std::to_string(object.version) + ": spec " + std::to_string(object.spec) +
         ", status " + std::to_string(object.status) + (object.labelled ? ", labelled" : "") +
         (object.deleting ? ", being deleted" : "");
}

}  // namespace

const model_object* store::find(std::size_t kind, const std::string& name) const {
  const auto at = objects_[kind].find(name);
  return at == objects_[kind].end() ? nullptr : &at->second;
}

void store::put(std::size_t kind, const std::string& name, std::optional<model_object> next) {
  change made{version_ += stride_, in_.now(), kind, name, {}, {}};
  if (const auto* before = find(kind, name)) made.before = *before;
  if (next) {
    next->version = version_;
    objects_[kind][name] = *next;
  } else {
    objects_[kind].erase(name);
  }
  made.after = next;
  in_.note(kinds_[kind].kind + " " + name +
           (next ? describe(*next) : " deleted at " + std::to_string(version_)));
  tell(kind, name, false);
  changes_.push_back(std::move(made));
  on_change();
}

void store::tell(std::size_t kind, const std::string& name, bool restored) {
  history_.persisted(kinds_[kind], {space, name}, find(kind, name), restored);
}

std::uint64_t store::any_version() const {
  const auto old = std::ranges::upper_bound(changes_, in_.now() - seconds(10), {}, &change::at);
  const auto count = static_cast<std::size_t>(old - changes_.begin());
  if (count == 0) return version_;
  return changes_[count - 1 - in_.chance.draw(std::min<std::size_t>(count, 20))].version;
}

void store::restore(std::uint64_t version) {
  in_.note("etcd is restored, from " + std::to_string(version_) + " to " + std::to_string(version));
  std::set<std::pair<std::size_t, std::string>> changed;
  for (; !changes_.empty() && changes_.back().version > version; changes_.pop_back()) {
    auto& last = changes_.back();
    if (!defined_[last.kind]) continue;
    objects_[last.kind].erase(last.name);
    if (last.before) objects_[last.kind].emplace(last.name, *last.before);
    changed.emplace(last.kind, last.name);
  }
  version_ = version;
  stride_ = 1;
  compacted_ = std::min(compacted_, version);
  for (const auto& [kind, name] : changed) tell(kind, name, true);
}

void store::define(std::size_t kind, bool defined) {
  in_.note("definition of " + kinds_[kind].kind + (defined ? " is added" : " is deleted"));
  while (!defined && !objects_[kind].empty()) {
    const auto name = objects_[kind].begin()->first;
    put(kind, name, {});
  }
  defined_[kind] = defined;
  on_change();
}

void store::compact() {
  compacted_ = version_;
}

std::size_t store::after(std::uint64_t version) const {
  const auto at = std::ranges::upper_bound(changes_, version, {}, &change::version);
  return static_cast<std::size_t>(at - changes_.begin());
}

std::string store::text(std::size_t kind, const std::string& name,
                        const model_object& object) const {
  const auto& of = kinds_[kind];
  std::string out = R"({"apiVersion":")" + of.group + "/" + of.version + R"(","kind":")" + of.kind +
                    R"(","metadata":{"name":")" + name + R"(","namespace":")" + space +
                    R"(","uid":")" + object.uid + R"(","resourceVersion":")" +
                    std::to_string(object.version) + R"(","generation":)" +
                    std::to_string(object.generation) + R"(,"annotations":{"note":")" +
                    std::to_string(object.note) + R"("})";
  if (object.labelled) out += R"(,"labels":{"watched":"yes"})";
  if (object.deleting) out += R"(,"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["a/b"])";
  return out + R"(},"spec":{"size":)" + std::to_string(object.spec) + R"(},"status":{"step":)" +
         std::to_string(object.status) + "}}";
}

}  // namespace rw::simulation
