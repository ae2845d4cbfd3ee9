// A conversation with a language model.
#pragma once

#include <vector>

#include "generate/language_model.h"
#include "text/chat_template.h"

namespace rlx {

/// Messages, and answers to them. The template is the model's own, or ChatML for a model that carries none.
class Chat {
 public:
  /// `model` must outlive this object. Throws Error for a template that cannot be read.
  explicit Chat(LanguageModel& model, std::string system = {});

  const std::vector<ChatMessage>& messages() const { return messages_; }
  /// Whether the template is the model's own.
  bool own_template() const { return own_; }
  /// Starts again, with the same system message or another.
  void clear();
  void set_system(std::string system);

  struct Answer {
    Completion completion;
    Index forgotten = 0;  // messages that were dropped from the beginning, for the conversation had no place
  };
  /// Adds a message and the model's answer, which may be cut short. Where the conversation would leave less than
  /// `reserve` tokens for the answer (or a quarter of the context, if that is less), its oldest messages but the
  /// system's are dropped. Throws Error for a message that alone is too long, and as the template does; the
  /// conversation is then as before.
  Answer ask(std::string text, const TextOptions& options = {}, const OnText& on_text = {}, Index reserve = 256);
  /// Answers the last message again. Throws Error when there is none.
  Answer ask_again(const TextOptions& options = {}, const OnText& on_text = {}, Index reserve = 256);

  /// The conversation as a JSON array of messages.
  std::string json() const;
  /// The tokens that a conversation becomes, with the head of an answer at the end.
  std::vector<std::int32_t> prompt(std::span<const ChatMessage> messages) const;

 private:
  Answer answer(std::vector<ChatMessage> messages, const TextOptions& options, const OnText& on_text, Index reserve);
  std::size_t first() const { return messages_.empty() || messages_[0].role != "system" ? 0 : 1; }

  LanguageModel& model_;
  bool own_;
  ChatTemplate template_;
  std::vector<ChatMessage> messages_;
};

}  // namespace rlx
