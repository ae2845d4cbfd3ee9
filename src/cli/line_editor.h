// Lines from a terminal, with editing and history where the machine has libedit; plain lines from anything else.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace rlx::cli {

class LineEditor {
 public:
  LineEditor();
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  enum class Event { line, interrupted, end };
  struct Result {
    Event event = Event::line;
    std::string text;  // without the line's end
  };
  /// The next line, after the prompt, which only a terminal shows. Ctrl-C throws the line away.
  Result read(const std::string& prompt);
  /// Whether standard input is a terminal.
  bool terminal() const { return terminal_; }

 private:
  struct Edit;
  bool terminal_;
  std::unique_ptr<Edit> edit_;
};

}  // namespace rlx::cli
