// Conversations as prompts; what is forgotten when they grow too long.
#include "generate/chat.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace rlx {

Chat::Chat(LanguageModel& model, std::string system)
    : model_(model),
      own_(!model.chat_template().empty()),
      template_(own_ ? std::string_view(model.chat_template()) : ChatTemplate::chatml()) {
  set_system(std::move(system));
}

void Chat::clear() { messages_.resize(first()); }

void Chat::set_system(std::string system) {
  messages_.clear();
  if (!system.empty()) messages_.push_back({"system", std::move(system)});
}

std::vector<std::int32_t> Chat::prompt(std::span<const ChatMessage> messages) const {
  const Tokenizer& t = model_.tokenizer();
  const auto spelt = [&](std::optional<std::int32_t> id) { return id ? std::string(t.token(*id)) : std::string(); };
  const std::string text = template_.render(messages, {.bos_token = spelt(t.bos()), .eos_token = spelt(t.eos())});
  std::vector<std::int32_t> tokens = t.encode(text, {.add_special = false, .parse_special = true});
  const bool starts = !t.adds_bos() || !t.bos() || (!tokens.empty() && tokens[0] == *t.bos());
  if (!starts) tokens.insert(tokens.begin(), *t.bos());
  return tokens;
}

Chat::Answer Chat::ask(std::string text, const TextOptions& options, const OnText& on_text, Index reserve) {
  std::vector<ChatMessage> messages = messages_;
  messages.push_back({"user", std::move(text)});
  return answer(std::move(messages), options, on_text, reserve);
}

Chat::Answer Chat::ask_again(const TextOptions& options, const OnText& on_text, Index reserve) {
  std::vector<ChatMessage> messages = messages_;
  while (!messages.empty() && messages.back().role == "assistant") messages.pop_back();
  require(!messages.empty() && messages.back().role == "user", "there is no message that could be answered again");
  return answer(std::move(messages), options, on_text, reserve);
}

Chat::Answer Chat::answer(std::vector<ChatMessage> messages, const TextOptions& options, const OnText& on_text,
                          Index reserve) {
  const Index context = model_.context(), most = context - std::min(reserve, context / 4);
  const std::size_t kept = first();
  Answer a;
  std::vector<std::int32_t> tokens = prompt(messages);
  while (static_cast<Index>(tokens.size()) > most) {
    require(messages.size() > kept + 1, "the message has {} tokens with all that belongs to it, but the context has {}",
            tokens.size(), context);
    // A question goes with its answer.
    do {
      messages.erase(messages.begin() + static_cast<std::ptrdiff_t>(kept));
      ++a.forgotten;
    } while (messages.size() > kept + 1 && messages[kept].role != "user");
    tokens = prompt(messages);
  }
  a.completion = model_.complete(std::move(tokens), options, on_text);
  messages.push_back({"assistant", a.completion.text});
  messages_ = std::move(messages);
  return a;
}

std::string Chat::json() const {
  using Json = nlohmann::ordered_json;
  Json all = Json::array();
  for (const ChatMessage& m : messages_) all.push_back({{"role", m.role}, {"content", m.content}});
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace rlx
