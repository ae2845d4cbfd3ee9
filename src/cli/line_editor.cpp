// libedit, or lines as they are.
#include "cli/line_editor.h"

#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstring>

#include "cli/cli.h"

#ifdef RLX_LIBEDIT
#include <histedit.h>
#endif

namespace rlx::cli {

#ifdef RLX_LIBEDIT

struct LineEditor::Edit {
  EditLine* line = nullptr;
  History* history = nullptr;
  HistEvent event{};
  std::string prompt;

  static char* prompt_of(EditLine* e) {
    Edit* self = nullptr;
    el_get(e, EL_CLIENTDATA, &self);
    return self->prompt.data();
  }
  Edit() {
    std::setlocale(LC_CTYPE, "");
    line = el_init("rlx", stdin, stdout, stderr);
    history = history_init();
    if (!line || !history) return;
    ::history(history, &event, H_SETSIZE, 1000);
    ::history(history, &event, H_SETUNIQUE, 1);
    el_set(line, EL_CLIENTDATA, this);
    el_set(line, EL_PROMPT, prompt_of);
    el_set(line, EL_EDITOR, "emacs");
    el_set(line, EL_HIST, ::history, history);
    el_set(line, EL_SIGNAL, 0);
    el_set(line, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  }
  ~Edit() {
    if (history) history_end(history);
    if (line) el_end(line);
  }
  Edit(const Edit&) = delete;
  Edit& operator=(const Edit&) = delete;

  Result read(const std::string& text) {
    prompt = text;
    int count = 0;
    errno = 0;
    const char* const got = el_gets(line, &count);
    if (!got || count <= 0) {
      if (count < 0 && errno == EINTR) {
        el_reset(line);
        std::fputs("\n", stdout);
        return {Event::interrupted, {}};
      }
      return {Event::end, {}};
    }
    Result r{Event::line, std::string(got, strcspn(got, "\n"))};
    if (!r.text.empty()) ::history(history, &event, H_ENTER, r.text.c_str());
    return r;
  }
};

#else

struct LineEditor::Edit {};

#endif

LineEditor::LineEditor() : terminal_(isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0) {
#ifdef RLX_LIBEDIT
  if (terminal_) edit_ = std::make_unique<Edit>();
  if (edit_ && (!edit_->line || !edit_->history)) edit_.reset();
#endif
}
LineEditor::~LineEditor() = default;

LineEditor::Result LineEditor::read(const std::string& prompt) {
#ifdef RLX_LIBEDIT
  if (edit_) return edit_->read(prompt);
#endif
  if (terminal_) print(prompt);
  Result r;
  for (int c = 0; (c = std::fgetc(stdin)) != EOF && c != '\n';) r.text += static_cast<char>(c);
  if (std::ferror(stdin) != 0 && errno == EINTR) {
    std::clearerr(stdin);
    print("\n");
    return {Event::interrupted, {}};
  }
  if (std::feof(stdin) != 0 && r.text.empty()) r.event = Event::end;
  return r;
}

}  // namespace rlx::cli
