#pragma once

#include "rw/core/wake.hpp"
#include "rw/k8s/client/object_api.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rw::k8s::test {

/// What several fake clients share: objects, with resourceVersions, and what is to go wrong.
class fake_objects {
 public:
  using value = boost::json::value;

  explicit fake_objects(boost::asio::any_io_executor executor) : resumed_(std::move(executor)) {}

  /// Requests wait until `resume`, after they were done if `late` is set: their answers are lost
  /// when they are cancelled meanwhile.
  void pause(bool late = false) {
    paused_ = true;
    late_ = late;
  }
  void resume() {
    paused_ = false;
    resumed_.wake_all();
  }
  /// The next `times` requests fail.
  void fail(errc code, int times = 1, std::chrono::seconds retry_after = {}) {
    failure_ = code;
    failures_ = times;
    retry_after_ = retry_after;
  }

  const value* find(const std::string& name) const {
    const auto at = objects_.find(name);
    return at == objects_.end() ? nullptr : &at->second;
  }
  void put(const std::string& name, value object) {
    object.as_object()["metadata"].as_object()["resourceVersion"] = std::to_string(++version_);
    objects_[name] = std::move(object);
  }
  void erase(const std::string& name) { objects_.erase(name); }

  const std::map<std::string, value>& all() const { return objects_; }
  /// Such as "create a", in order.
  std::vector<std::string> requests;

 private:
  friend class fake_api;

  static failure failed(errc code) { return {make_error_code(code), 0, {}, "made to fail"}; }

  boost::asio::awaitable<result<value>> answer(std::string verb, std::string name, value with) {
    if (paused_ && !late_) co_await wait();
    requests.push_back(verb + " " + name);
    auto outcome = act(verb, name, std::move(with));
    if (paused_ && late_) co_await wait();
    co_return outcome;
  }

  boost::asio::awaitable<void> wait() {
    while (paused_) {
      const bool woken = co_await resumed_.wait();
      if (!woken) throw boost::system::system_error(boost::asio::error::operation_aborted);
    }
  }

  result<value> act(const std::string& verb, const std::string& name, value with) {
    if (failures_ > 0) {
      --failures_;
      auto why = failed(failure_);
      why.retry_after = retry_after_;
      return why;
    }
    const auto at = objects_.find(name);
    if (verb == "create") {
      if (at != objects_.end()) return failed(errc::already_exists);
      put(name, std::move(with));
      return objects_[name];
    }
    if (at == objects_.end()) return failed(errc::not_found);
    if (verb == "update") {
      if (resource_version_of(with) != resource_version_of(at->second)) {
        return failed(errc::conflict);
      }
      put(name, std::move(with));
    }
    if (verb == "merge") {
      auto merged = at->second;
      for (auto& [field, to] : with.as_object()) merged.as_object()[field] = to;
      put(name, std::move(merged));
    }
    return objects_[name];
  }

  std::map<std::string, value> objects_;
  core::wake_list resumed_;
  std::int64_t version_ = 0;
  bool paused_ = false;
  bool late_ = false;
  errc failure_ = errc::unreachable;
  int failures_ = 0;
  std::chrono::seconds retry_after_{0};
};

/// One process's way to them, which may be cut.
class fake_api final : public object_api {
 public:
  explicit fake_api(fake_objects& server) : server_(server) {}

  bool cut = false;

  boost::asio::awaitable<result<value>> get(resource_type, object_key key) override {
    return ask("get", key.name, nullptr);
  }
  boost::asio::awaitable<result<value>> create(resource_type, value object) override {
    auto name = key_of(object).name;
    return ask("create", std::move(name), std::move(object));
  }
  boost::asio::awaitable<result<value>> update(resource_type, value object) override {
    auto name = key_of(object).name;
    return ask("update", std::move(name), std::move(object));
  }
  boost::asio::awaitable<result<value>> merge(resource_type, object_key key,
                                              value change) override {
    return ask("merge", key.name, std::move(change));
  }

 private:
  boost::asio::awaitable<result<value>> ask(std::string verb, std::string name, value with) {
    if (cut) co_return fake_objects::failed(errc::unreachable);
    auto answer = server_.answer(std::move(verb), std::move(name), std::move(with));
    auto outcome = co_await std::move(answer);
    co_return outcome;
  }

  fake_objects& server_;
};

}  // namespace rw::k8s::test
