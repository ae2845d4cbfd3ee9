// The prompt that a model expects for a conversation, by the template that the model carries.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace rlx {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant" or what else the template knows
  std::string content;
};

struct ChatOptions {
  bool add_generation_prompt = true;  // ends with the head of the assistant's answer
  std::string bos_token, eos_token;   // texts that the template may write
  std::string tools;                  // JSON: an array of tool descriptions; empty for none
  std::string variables;              // JSON: an object of further variables, such as {"enable_thinking": false}
  std::optional<std::int64_t> now;    // seconds since 1970 for dates; the clock if not given
};

/// A template in the part of Jinja that models' chat templates use, with the settings they are written for. Evaluated
/// within bounds on steps, depth, memory and output, and without access to anything but its variables. Immutable, cheap
/// to copy; safe to use from several threads at once.
class ChatTemplate {
 public:
  /// An Error with the line for what is not valid or not supported, and for a template over 1 MiB.
  explicit ChatTemplate(std::string_view source, std::string_view name = "chat template");

  /// The prompt for a conversation. An Error with the line of the template if it refuses the conversation
  /// (raise_exception), uses what is undefined or not supported, or exceeds a bound.
  std::string render(std::span<const ChatMessage> messages, const ChatOptions& options = {}) const;

  /// The same for messages as a JSON array, as tool calls and contents of several parts need them.
  std::string render_json(std::string_view messages, const ChatOptions& options = {}) const;

  /// The text of a template for ChatML, for models that carry none.
  static std::string_view chatml();

 private:
  struct Parts;
  std::shared_ptr<const Parts> parts_;
};

}  // namespace rlx
