// A page for a browser: the graph of a compiled model, its steps and its memory, in one file without links.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "runtime/report.h"

namespace rlx::cli {

struct PageContent {
  std::string title;
  Graph source, lowered;        // as it was read, and as it is run
  RunReport report;             // of the lowered graph; without steps when there is none
  std::string no_report;        // why there is none
  std::vector<double> seconds;  // of every step; empty: nothing was timed
  int threads = 0;              // of the timed runs
  std::vector<std::string> notes;
};

/// The page: HTML with its drawing, styles and script inside.
std::string page(const PageContent& content);

}  // namespace rlx::cli
