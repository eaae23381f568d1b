#include "k8s/types.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/runtime_config/audit.hpp"
#include "tests/unit/runtime_config/kim.hpp"
#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

namespace rw::runtime_config_test {

using namespace std::chrono_literals;
using k8s::find_string;

namespace {

constexpr std::string_view our_manager = "runtime-watcher-bootstrapper";
constexpr std::string_view our_signaller = "runtime-watcher-config-sync";

struct revision {
  std::uint64_t number = 0;
  std::string change;  ///< ADDED, MODIFIED, DELETED
  json::value object;
};

class collector final : public k8s::watch_sink {
 public:
  bool take(std::string_view bytes) override {
    text_ += bytes;
    return true;
  }
  void add_to(std::vector<revision>& all) const {
    std::size_t at = 0;
    for (auto end = text_.find('\n'); end != text_.npos; end = text_.find('\n', at)) {
      auto line = json::parse(std::string_view(text_).substr(at, end - at));
      at = end + 1;
      const auto& object = line.at("object");
      const auto number = std::stoull(std::string(k8s::resource_version_of(object)));
      all.push_back({number, std::string(find_string(line, {"type"})), object});
    }
  }

 private:
  std::string text_;
};

/// Everything that the server remembers of these kinds, in its order.
asio::awaitable<std::vector<revision>> history_of(land* in, std::string cluster,
                                                  std::vector<k8s::resource_type> types) {
  std::vector<revision> out;
  const k8s::watch_options from{.resource_version = "1", .timeout = 1s, .bookmarks = false};
  std::vector<collector> parts(types.size());
  core::task_group reading(in->context.get_executor());
  for (std::size_t i = 0; i < types.size(); ++i) {
    reading.spawn([](land* of, std::string name, k8s::resource_type type, k8s::watch_options how,
                     collector* into) -> asio::awaitable<void> {
      const auto read = co_await of->api(name).watch(std::move(type), {}, std::move(how), *into);
      BOOST_REQUIRE_MESSAGE(read.has_value(), read.error().message);
    }(in, cluster, types[i], from, &parts[i]));
  }
  co_await reading.join();
  for (const auto& one : parts) one.add_to(out);
  std::ranges::sort(out, {}, &revision::number);
  co_return out;
}

bool is_managed_by(const json::value& object, std::string_view manager) {
  const auto* const all = k8s::find(object, {"metadata", "managedFields"});
  return all != nullptr && std::ranges::any_of(all->as_array(), [&](const json::value& one) {
           return find_string(one, {"manager"}) == manager;
         });
}

std::string stamp_of(const json::value& object) {
  return std::string(k8s::annotation(object, kim_stamp).value_or(""));
}

const json::value* status_of(const json::value& object) {
  return k8s::find(object, {"status"});
}

/// The status is somebody else's, and written apart from the rest.
bool is_status(const json::value& before, const json::value& now) {
  const auto* const was = status_of(before);
  const auto* const is = status_of(now);
  return is != nullptr && (was == nullptr || *was != *is);
}

/// The number in "registry-17.example.com" and the like.
int version_in(const json::value& object, std::string_view behind) {
  const auto text = json::serialize(object.at("data"));
  const auto at = text.find(behind);
  return at == text.npos ? 0 : std::stoi(text.substr(at + behind.size()));
}

class runtime_audit {
 public:
  runtime_audit(std::string name, findings& into) : name_(std::move(name)), into_(into) {}

  void look(const revision& one) {
    const auto key = k8s::key_of(one.object);
    if (key.name.starts_with("fence-")) return pass(one.object.at("data"));
    const auto id = std::string(find_string(one.object, {"kind"})) + " " + k8s::to_string(key);
    const auto before = std::exchange(last_[id], one.object);
    const bool deleted = one.change == "DELETED";
    if (deleted) last_.erase(id);
    const bool tracked =
        is_managed_by(one.object, our_manager) || is_managed_by(one.object, "kim-bootstrapper");
    if (!tracked || (!deleted && is_status(before, one.object))) return;
    if (!deleted && stamp_of(one.object) != stamp_of(before)) {
      ++into_.kims;
      if (!is_managed_by(one.object, "kim-bootstrapper")) complain(one, id, "KIM's without it");
      if (!works_) complain(one, id, "KIM's while KIM does not work");
    } else {
      ++into_.ours;
      if (!is_managed_by(one.object, our_manager)) complain(one, id, "nobody's");
      if (!direct_) complain(one, id, "ours although it is not asked for");
    }
    if (deleted) return;
    if (id.starts_with("Deployment ") && before.is_object()) compare(one, id, before);
    if (id == "ConfigMap kyma-system/rt-bootstrapper-config") {
      const auto version = version_in(one.object, "registry-");
      if (version < newest_) complain(one, id, "older than what was there");
      newest_ = version;
    }
  }

 private:
  void pass(const json::value& fence) {
    const auto what = find_string(fence, {"what"});
    const auto changes = std::stoi(std::string(find_string(fence, {"changes"})));
    if (what == "begin") works_ = true;
    if (what == "end") works_ = false;
    if (what == "end" || changes < changes_) return;
    changes_ = changes;
    direct_ = find_string(fence, {"mode"}) == "direct";
  }

  void compare(const revision& one, const std::string& id, const json::value& before) {
    const auto image = [](const json::value& of) {
      return json::serialize(of.at("spec").at("template").at("spec").at("containers"));
    };
    const bool same = image(before) == image(one.object);
    if (same && k8s::generation_of(before) != k8s::generation_of(one.object)) {
      complain(one, id, "another generation of the same version");
    }
  }

  void complain(const revision& one, const std::string& id, const std::string& what) {
    into_.wrong += name_ + ", revision " + std::to_string(one.number) + " of " + id + " (" +
                   one.change + ") is " + what + "\n";
  }

  const std::string name_;
  findings& into_;
  std::map<std::string, json::value> last_;
  bool works_ = false;   ///< KIM
  bool direct_ = false;  ///< asked for
  int changes_ = -1;
  int newest_ = 0;
};

void look_at_marks(const revision& one, const json::value& before, findings& into) {
  const auto complain = [&](const std::string& what) {
    into.wrong += "Runtime " + k8s::key_of(one.object).name + ", revision " +
                  std::to_string(one.number) + ": " + what + "\n";
  };
  const auto note = [](const json::value& of) {
    return std::string(k8s::annotation(of, signalled_annotation).value_or(""));
  };
  const auto mode = k8s::annotation(one.object, bootstrapper_mode_annotation);
  const bool marked = carries_mark(one.object) && !carries_mark(before);
  if (marked && note(one.object) != note(before)) {
    ++into.marks;
    if (mode && *mode == "direct") complain("a mark is set in mode direct");
    if (note(one.object) == signalled_nothing) complain("a mark stands for nothing");
    if (!is_managed_by(one.object, our_signaller)) complain("the mark is nobody's");
  }
  if (note(one.object) == signalled_nothing && note(before) != signalled_nothing) {
    ++into.handovers;
    if (carries_mark(one.object)) complain("it is handed over with a mark");
    if (mode && *mode != "direct") complain("it is handed over in mode " + std::string(*mode));
    if (!is_managed_by(one.object, our_signaller)) complain("it is handed over by nobody");
  }
}

}  // namespace

asio::awaitable<void> audit_runtime(land* in, std::string runtime, findings* into) {
  const std::vector<k8s::resource_type> types{config_maps_type(), secrets_type(), bundles,
                                              deployments};
  const auto all = co_await history_of(in, runtime, types);
  runtime_audit audit(runtime, *into);
  for (const auto& one : all) audit.look(one);
}

asio::awaitable<void> audit_marks(land* in, findings* into) {
  const std::vector<k8s::resource_type> types{runtimes_type()};
  const auto all = co_await history_of(in, "kcp", types);
  std::map<std::string, json::value> last;
  for (const auto& one : all) {
    auto& before = last[k8s::key_of(one.object).name];
    look_at_marks(one, before, *into);
    before = one.object;
  }
}

}  // namespace rw::runtime_config_test
