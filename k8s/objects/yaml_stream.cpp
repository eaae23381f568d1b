#include "k8s/objects/yaml_stream.hpp"

#include <sstream>
#include <unordered_map>
#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

namespace rw::k8s {
namespace {

std::size_t line_of(const YAML::Mark& mark) {
  return mark.is_null() ? 0 : static_cast<std::size_t>(mark.line) + 1;
}

}  // namespace

class yaml_stream::builder final : public YAML::EventHandler {
 public:
  builder(yaml_stream& into, std::size_t most) : into_(into), most_(most) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    const auto before = into_.documents_.size();
    // The parser has not advanced: it does not handle the character there.
    if (before > 0 && mark.pos <= began_) fail(mark, "is not YAML: unexpected character");
    began_ = mark.pos;
    into_.documents_.push_back(nullptr);
    anchors_.clear();
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(make(mark, yaml_node::kind::null, {}, anchor));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) fail(mark, "is not YAML: an alias without an anchor");
    add(found->second);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    auto* const one = make(mark, yaml_node::kind::scalar, tag, anchor);
    one->text = value;
    add(one);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(make(mark, yaml_node::kind::sequence, tag, anchor));
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(make(mark, yaml_node::kind::map, tag, anchor));
  }
  void OnMapEnd() override { open_.pop_back(); }

  std::size_t document() const noexcept { return into_.documents_.size(); }

 private:
  [[noreturn]] void fail(const YAML::Mark& mark, const char* why) const {
    throw yaml_error(document(), line_of(mark), why);
  }

  yaml_node* make(const YAML::Mark& mark, yaml_node::kind what, const std::string& tag,
                  YAML::anchor_t anchor) {
    if (into_.nodes_.size() >= most_) fail(mark, "is too large");
    auto& one = into_.nodes_.emplace_back();
    one.what = what;
    one.line = line_of(mark);
    one.tag = tag;
    if (anchor != YAML::NullAnchor) anchors_[anchor] = &one;
    return &one;
  }

  void add(const yaml_node* one) {
    if (open_.empty()) {
      into_.documents_.back() = one;
    } else {
      open_.back()->items.push_back(one);
    }
  }

  void open(yaml_node* one) {
    add(one);
    open_.push_back(one);
  }

  yaml_stream& into_;
  const std::size_t most_;
  int began_ = 0;  ///< position of the document's beginning
  std::vector<yaml_node*> open_;
  std::unordered_map<YAML::anchor_t, const yaml_node*> anchors_;
};

yaml_stream::yaml_stream(const std::string& text, std::size_t most) {
  builder events(*this, most);
  try {
    std::istringstream in(text);
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(events)) {
    }
  } catch (const YAML::Exception& e) {
    throw yaml_error(events.document(), line_of(e.mark), "is not YAML: " + e.msg);
  }
}

}  // namespace rw::k8s
