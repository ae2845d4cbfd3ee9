// ChatTemplate: parses once; each rendering has an arena of its own.
#include "text/chat_template.h"

#include <chrono>

#include "core/error.h"
#include "core/json.h"
#include "text/template_eval.h"
#include "text/template_parser.h"
#include "text/unicode.h"

namespace rlx {

struct ChatTemplate::Parts {
  std::string name;
  chat::Tree tree;
};

namespace {

std::string finish(const chat::Tree& tree, std::string_view name, chat::Arena& arena, chat::Value messages,
                   const ChatOptions& options) {
  const chat::Value variables = arena.dict();
  const auto set = [&](std::string_view key, chat::Value value) { arena.set(*variables.dict, key, value); };
  const auto text = [&](std::string_view s) { return arena.string(replace_invalid_utf8(s)); };
  set("messages", messages);
  set("add_generation_prompt", chat::Value::of(options.add_generation_prompt));
  set("bos_token", text(options.bos_token));
  set("eos_token", text(options.eos_token));
  set("tools", options.tools.empty() ? chat::Value::none()
                                     : arena.from_json(JsonDocument::parse(options.tools, "tools").root()));
  set("documents", chat::Value::none());
  if (!options.variables.empty()) {
    const JsonDocument more = JsonDocument::parse(options.variables, "variables");
    for (const JsonMember& m : more.root().members()) set(m.key, arena.from_json(m.value));
  }
  const std::int64_t clock =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  return chat::run_template(tree, name, arena, *variables.dict, options.now.value_or(clock));
}

}  // namespace

ChatTemplate::ChatTemplate(std::string_view source, std::string_view name) {
  const chat::TemplateLimits limits;
  require(source.size() <= limits.source_bytes, "{}: {} bytes, at most {} are read", name, source.size(),
          limits.source_bytes);
  require(is_valid_utf8(source), "{}: the template is not UTF-8", name);
  auto parts = std::make_shared<Parts>();
  parts->name = name;
  parts->tree = chat::parse_template(source, name, limits);
  parts_ = std::move(parts);
}

std::string ChatTemplate::render(std::span<const ChatMessage> messages, const ChatOptions& options) const {
  chat::Arena arena{chat::TemplateLimits()};
  std::vector<chat::Value> items;
  for (const ChatMessage& m : messages) {
    const chat::Value item = arena.dict();
    arena.set(*item.dict, "role", arena.string(replace_invalid_utf8(m.role)));
    arena.set(*item.dict, "content", arena.string(replace_invalid_utf8(m.content)));
    items.push_back(item);
  }
  return finish(parts_->tree, parts_->name, arena, arena.list(std::move(items)), options);
}

std::string ChatTemplate::render_json(std::string_view messages, const ChatOptions& options) const {
  chat::Arena arena{chat::TemplateLimits()};
  const JsonDocument document = JsonDocument::parse(messages, "messages");
  if (!document.root().is_array()) document.root().fail_expected("an array");
  return finish(parts_->tree, parts_->name, arena, arena.from_json(document.root()), options);
}

std::string_view ChatTemplate::chatml() {
  return "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' "
         "+ "
         "'\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
}

}  // namespace rlx
