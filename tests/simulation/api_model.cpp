#include "tests/simulation/api_model.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace rw::simulation {
namespace {

namespace asio = boost::asio;

constexpr auto bookmarks_every = seconds(60);

std::uint64_t number(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string status_text(unsigned code, std::string_view reason) {
  return R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"simulated","reason":")" +
         std::string(reason) + R"(","code":)" + std::to_string(code) + "}";
}

constexpr std::string_view expired = "Expired";

}  // namespace

/// A request's path and query.
struct api_model::target {
  explicit target(std::string_view text) {
    const auto mark = text.find('?');
    auto path = text.substr(0, mark);
    while (!path.empty()) {
      path.remove_prefix(1);
      parts.emplace_back(path.substr(0, path.find('/')));
      path.remove_prefix(parts.back().size());
    }
    auto query = mark == std::string_view::npos ? std::string_view() : text.substr(mark + 1);
    while (!query.empty()) {
      const auto one = query.substr(0, query.find('&'));
      query.remove_prefix(std::min(query.size(), one.size() + 1));
      parameters.emplace(one.substr(0, one.find('=')), one.substr(one.find('=') + 1));
    }
  }
  std::string get(const std::string& name) const {
    const auto at = parameters.find(name);
    return at == parameters.end() ? std::string() : at->second;
  }

  std::vector<std::string> parts;
  std::map<std::string, std::string> parameters;
  std::size_t kind = 0;
};

/// What a list or watch is of.
struct api_model::selection {
  selection(const target& path) : kind(path.kind), labelled(!path.get("labelSelector").empty()) {}

  bool takes(const model_object& object) const { return !labelled || object.labelled; }
  bool takes(const std::optional<model_object>& object) const { return object && takes(*object); }

  std::size_t kind;
  bool labelled;
};

/// One watch that is open.
class api_model::watch final : public http::body_source {
 public:
  watch(api_model& of, const target& path)
      : model_(of),
        what_(path),
        until_(of.in_.now() + seconds(number(path.get("timeoutSeconds")))),
        at_(of.watches_.insert(of.watches_.end(), this)) {
    const auto version = path.get("resourceVersion");
    from_ = version.empty() ? of.store_.version() : number(version);
    next_ = of.store_.after(from_);
    if (path.get("sendInitialEvents") != "true") return;
    const auto& kind = of.store_.kinds()[what_.kind];
    for (const auto& [name, object] : of.store_.all(what_.kind)) {
      if (what_.takes(object)) first_ += line("ADDED", of.store_.text(what_.kind, name, object));
    }
    first_ += bookmark(kind, of.store_.version(),
                       R"(,"annotations":{"k8s.io/initial-events-end":"true"})");
  }
  ~watch() override { model_.watches_.erase(at_); }

  void on_ready(std::function<void()> ready) override { ready_ = std::move(ready); }
  void wake() const {
    if (ready_) ready_();
  }

  state read(std::string& into, std::size_t) override {
    const auto time = model_.in_.now();
    if (model_.now.stalls) return state::pending;
    if (!model_.store_.defines(what_.kind) && next_ == model_.store_.changes().size()) {
      return state::end;
    }
    into += std::exchange(first_, {});
    const auto& changes = model_.store_.changes();
    for (; next_ < changes.size(); ++next_) {
      if (changes[next_].at + model_.now.watch_delay > time) return state::pending;
      append(into, changes[next_]);
    }
    if (time >= until_) return state::end;
    if (time >= bookmark_at_) {
      bookmark_at_ = time + bookmarks_every;
      into += bookmark(model_.store_.kinds()[what_.kind], model_.store_.version(), "");
    }
    return state::pending;
  }

 private:
  static std::string line(std::string_view type, const std::string& object) {
    return R"({"type":")" + std::string(type) + R"(","object":)" + object + "}\n";
  }
  static std::string bookmark(const model_kind& of, std::uint64_t version, std::string_view more) {
    return line("BOOKMARK", R"({"apiVersion":")" + of.group + "/" + of.version + R"(","kind":")" +
                                of.kind + R"(","metadata":{"resourceVersion":")" +
                                std::to_string(version) + "\"" + std::string(more) + "}}");
  }

  /// An object that leaves the selection is deleted, as far as the watch is concerned, with the
  /// version of the change.
  void append(std::string& into, const store::change& change) const {
    // Versions begin again when etcd is restored: what is older than asked for is not shown.
    if (change.kind != what_.kind || change.version <= from_) return;
    const bool was = what_.takes(change.before);
    const bool is = what_.takes(change.after);
    if (!was && !is) return;
    auto shown = is ? *change.after : *change.before;
    shown.version = change.version;
    into += line(!is   ? "DELETED"
                 : was ? "MODIFIED"
                       : "ADDED",
                 model_.store_.text(change.kind, change.name, shown));
  }

  api_model& model_;
  const selection what_;
  const time_point until_;
  const std::list<watch*>::iterator at_;
  std::uint64_t from_ = 0;  ///< version
  std::size_t next_ = 0;
  std::string first_;
  time_point bookmark_at_ = model_.in_.now() + bookmarks_every;
  std::function<void()> ready_;
};

/// What ends with the server.
struct api_model::process {
  explicit process(api_model& of)
      : server(of.in_.executor(), {"api", {asio::ip::address_v4::loopback(), port}, {}}, of,
               {*of.transport_, of.in_.watchdog, of.in_.log, of.metrics_}),
        tasks(of.in_.executor()) {
    tasks.spawn(server.run());
    tasks.spawn(of.tick());
  }

  http::server server;
  core::task_group tasks;
};

api_model::api_model(environment& in, store& objects, bool http2)
    : in_(in), store_(objects), transport_(make_transport(http2)) {
  store_.on_change = [this] { wake(); };
}

api_model::~api_model() {
  stop();
}

void api_model::start() {
  if (!running_) running_ = std::make_unique<process>(*this);
}

void api_model::stop() {
  if (!running_) return;
  in_.finish(running_->tasks);
  running_.reset();
  pages_.clear();
}

void api_model::wake() {
  for (const auto* each : watches_) each->wake();
}

/// Of watches, whose bookmarks, ends and delays come with time alone.
asio::awaitable<void> api_model::tick() {
  for (;;) {
    co_await in_.sleep(now.watch_delay > duration::zero() ? milliseconds(50) : milliseconds(1000));
    wake();
  }
}

void api_model::fail(http::response& into, unsigned code, std::string_view reason) {
  into.status = code;
  into.headers.add("content-type", "application/json");
  into.body = status_text(code, reason);
}

asio::awaitable<void> api_model::handle(http::request& from, http::response& into) {
  target path(from.target);
  in_.note("api " + from.method + " " + from.target.substr(0, 100));
  if (now.failing != 0) {
    fail(into, now.failing, now.failing == 403 ? "Forbidden" : "InternalError");
    return {};
  }
  into.headers.add("content-type", "application/json");
  if (path.parts.size() <= 3) {
    discover(path, into);
    return {};
  }
  const auto& plural = path.parts[path.parts.size() > 4 ? 5 : 3];
  const auto& kinds = store_.kinds();
  const auto kind = std::ranges::find(kinds, plural, &model_kind::plural);
  path.kind = static_cast<std::size_t>(kind - kinds.begin());
  if (kind == kinds.end() || !serves(path.kind)) {
    fail(into, 404, "NotFound");
  } else if (path.parts.size() > 4) {
    get(path, into);
  } else if (now.forbids && path.kind == 0) {
    fail(into, 403, "Forbidden");
  } else if (path.get("watch") == "true") {
    open_watch(path, into);
  } else {
    list(path, into);
  }
  return {};
}

void api_model::discover(const target& path, http::response& into) const {
  if (path.parts.at(0) == "version") {
    into.body = R"({"major":"1","minor":")" + std::to_string(now.minor) + "\"}";
    return;
  }
  if (path.parts.size() == 1) {
    into.body = R"({"kind":"APIGroupList","apiVersion":"v1","groups":[)";
    for (std::size_t i = 0; i < store_.kinds().size(); ++i) {
      const auto& each = store_.kinds()[i];
      if (!serves(i)) continue;
      if (into.body.back() == '}') into.body += ',';
      const auto entry = R"({"groupVersion":")" + each.group + "/" + each.version +
                         R"(","version":")" + each.version + "\"}";
      into.body += R"({"name":")" + each.group + R"(","versions":[)" + entry +
                   R"(],"preferredVersion":)" + entry + "}";
    }
    into.body += "]}";
    return;
  }
  const auto& group = path.parts.at(1);
  const auto at = std::ranges::find(store_.kinds(), group, &model_kind::group);
  const auto index = static_cast<std::size_t>(at - store_.kinds().begin());
  if (at == store_.kinds().end() || !serves(index)) return fail(into, 404, "NotFound");
  const auto version = group + "/" + at->version;
  into.body = R"({"kind":"APIResourceList","apiVersion":"v1","groupVersion":")" + version +
              R"(","resources":[)";
  for (const auto& each : store_.kinds()) {
    if (each.group != group) continue;
    if (into.body.back() == '}') into.body += ',';
    const auto entry = [&](const std::string& name, std::string_view verbs) {
      return R"({"name":")" + name + R"(","singularName":"","namespaced":true,"kind":")" +
             each.kind + R"(","verbs":)" + std::string(verbs) + "}";
    };
    into.body += entry(each.plural, R"(["get","list","watch"])");
    if (each.has_status) into.body += "," + entry(each.plural + "/status", R"(["get","patch"])");
  }
  into.body += "]}";
}

void api_model::get(const target& path, http::response& into) {
  const auto& name = path.parts.back();
  const auto* object = store_.find(path.kind, name);
  if (object == nullptr) return fail(into, 404, "NotFound");
  into.body = store_.text(path.kind, name, *object);
}

void api_model::list(const target& path, http::response& into) {
  const selection what(path);
  const auto& kind = store_.kinds()[what.kind];
  auto token = path.get("continue");
  auto version = std::to_string(store_.version());
  std::vector<std::string> left;
  if (token.empty()) {
    for (const auto& [name, object] : store_.all(what.kind)) {
      if (what.takes(object)) left.push_back(store_.text(what.kind, name, object));
    }
  } else {
    // "token-version": its pages are of that version, or gone.
    version = token.substr(token.find('-') + 1);
    const auto page = pages_.extract(token);
    if (page.empty() || store_.is_compacted(number(version)) || number(version) > store_.version())
      return fail(into, 410, expired);
    left = page.mapped();
  }
  const auto limit = path.get("limit").empty() ? left.size() : now.page;
  const auto count = std::min(left.size(), limit);
  token.clear();
  std::string items;
  for (std::size_t i = 0; i < count; ++i) items += (i == 0 ? "" : ",") + left[i];
  left.erase(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(count));
  if (!left.empty()) {
    token = std::to_string(++tokens_) + "-" + version;
    pages_[token] = std::move(left);
  }
  into.body = R"({"kind":")" + kind.kind + R"(List","apiVersion":")" + kind.group + "/" +
              kind.version + R"(","metadata":{"resourceVersion":")" + version +
              R"(","continue":")" + token + R"("},"items":[)" + items + "]}";
}

void api_model::open_watch(const target& path, http::response& into) {
  const auto version = path.get("resourceVersion");
  if (path.get("sendInitialEvents") == "true" && now.minor < 32) return fail(into, 422, "Invalid");
  if (version.empty() || !store_.is_compacted(number(version))) {
    into.source = std::make_unique<watch>(*this, path);
    return;
  }
  // A watch cache says so in an event, etcd in the answer's status.
  if (in_.chance.likely(0.5)) return fail(into, 410, expired);
  into.body = R"({"type":"ERROR","object":)" + status_text(410, expired) + "}\n";
}

}  // namespace rw::simulation
