// rlx chat: a conversation with a language model in the terminal.
#include "generate/chat.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <random>

#include "cli/cli.h"
#include "cli/language.h"
#include "cli/line_editor.h"
#include "core/error.h"

namespace rlx::cli {

namespace {

struct ChatArguments {
  ModelArguments model;
  TextArguments text;
  std::string system;
};

constexpr const char* help_text =
    "/help            this list\n"
    "/clear           forget the conversation\n"
    "/system TEXT     start again with this system message; without a text: with none\n"
    "/retry           answer the last message again, differently\n"
    "/save FILE       write the conversation as JSON\n"
    "/stats           counts and speeds of the last answer, and how full the context is\n"
    "/exit            leave; so does Ctrl-D\n"
    "A line that ends with a backslash goes on with the next. Ctrl-C stops an answer, or throws a line away.\n";

class Terminal {
 public:
  Terminal(const ChatArguments& a, LanguageModel& model)
      : model_(model), chat_(model, a.system), options_(a.text.options(std::random_device()())) {}

  void run() {
    greet();
    const Interrupt interrupt;
    for (std::optional<std::string> line; (line = read());) {
      if (line->empty()) continue;
      try {
        if (line->starts_with('/')) {
          if (!command(*line)) return;
        } else {
          answer([&] { return chat_.ask(*line, options_, hear()); });
        }
      } catch (const Error& e) {
        print(fmt::format("{}error: {}{}\n", dim(), e.what(), plain()));
      }
    }
  }

 private:
  const char* dim() const { return editor_.terminal() ? "\033[2m" : ""; }
  const char* plain() const { return editor_.terminal() ? "\033[0m" : ""; }
  void note(const std::string& text) { print(fmt::format("{}{}{}\n", dim(), text, plain())); }

  void greet() {
    if (!editor_.terminal()) return;
    note(fmt::format("{}, {:.0f} M weights, context of {} tokens. /help lists commands, Ctrl-D leaves.",
                     model_.config().architecture, static_cast<double>(model_.weight_count()) / 1e6, model_.context()));
    if (!chat_.own_template()) note("The model carries no chat template: ChatML is used.");
  }

  // A message, of several lines if they end with a backslash; nothing at the end of the input.
  std::optional<std::string> read() {
    std::string text;
    for (bool more = false;; more = true) {
      LineEditor::Result r = editor_.read(more ? "... " : "> ");
      if (r.event == LineEditor::Event::end) {
        if (editor_.terminal()) print("\n");
        return text.empty() ? std::nullopt : std::optional(text);
      }
      if (r.event == LineEditor::Event::interrupted) {
        Interrupt::clear();
        return "";
      }
      const bool goes_on = r.text.ends_with('\\');
      if (goes_on) r.text.pop_back();
      text += (more ? "\n" : "") + r.text;
      if (!goes_on) return text;
    }
  }

  OnText hear() {
    return [](std::string_view piece) {
      if (!piece.empty()) print(piece);
      return !Interrupt::seen();
    };
  }

  template <class Ask>
  void answer(Ask ask) {
    Interrupt::clear();
    Chat::Answer a = ask();
    ++options_.sampling.seed;  // the next answer draws other numbers
    print("\n");
    Interrupt::clear();
    if (a.forgotten > 0) note(fmt::format("[the context is full: the {} oldest messages were forgotten]", a.forgotten));
    if (a.completion.finish == TextFinish::cancelled) note("[stopped]");
    if (a.completion.finish == TextFinish::context) note("[the context is full]");
    if (a.completion.finish == TextFinish::length) note("[as long as asked for]");
    if (editor_.terminal()) print("\n");
    last_ = std::move(a.completion);
  }

  void stats() {
    if (last_) note(summary(*last_) + fmt::format(", finish: {}", finish_name(last_->finish)));
    const GeneratorCounts& n = model_.generator().counts();
    if (n.guessed > 0) note(fmt::format("{} of {} guesses were right", n.accepted, n.guessed));
    const std::size_t used = chat_.messages().empty() ? 0 : chat_.prompt(chat_.messages()).size();
    note(fmt::format("{} messages, {} of {} tokens of context; seed {}", chat_.messages().size(), used,
                     model_.context(), options_.sampling.seed));
  }

  void save(const std::string& path) {
    require(!path.empty(), "/save needs the name of a file");
    std::ofstream out(path, std::ios::binary);
    out << chat_.json();
    out.close();
    require(out.good(), "cannot write {}", path);
    note(fmt::format("{} messages in {}", chat_.messages().size(), path));
  }

  // False: leave.
  bool command(const std::string& line) {
    const std::size_t blank = line.find(' ');
    const std::string name = line.substr(0, blank);
    std::string rest = blank == std::string::npos ? "" : line.substr(blank + 1);
    if (name == "/exit" || name == "/quit") return false;
    if (name == "/help") {
      print(help_text);
    } else if (name == "/clear") {
      chat_.clear();
      note("[a new conversation]");
    } else if (name == "/system") {
      chat_.set_system(std::move(rest));
      note("[a new conversation]");
    } else if (name == "/retry") {
      answer([&] { return chat_.ask_again(options_, hear()); });
    } else if (name == "/save") {
      save(rest);
    } else if (name == "/stats") {
      stats();
    } else {
      fail("there is no command {}; /help lists them", name);
    }
    return true;
  }

  LineEditor editor_;
  LanguageModel& model_;
  Chat chat_;
  TextOptions options_;
  std::optional<Completion> last_;
};

}  // namespace

void add_chat(CLI::App& app, std::function<void()>& run) {
  auto o = std::make_shared<ChatArguments>();
  CLI::App* c = app.add_subcommand("chat", "Talk with a language model.");
  o->model.add(*c);
  c->add_option("-s,--system", o->system, "System message");
  o->text.add(*c);
  c->footer(std::string("In the chat:\n") + help_text +
            "\nFrom something else than a terminal each line is a message, and answers are all that is printed.\n\n"
            "Example:\n  rlx chat model.gguf --system 'Answer briefly.'");
  c->callback([o, &run] {
    run = [o] {
      LanguageModel model = o->model.load();
      Terminal(*o, model).run();
    };
  });
}

}  // namespace rlx::cli
