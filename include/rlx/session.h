// Compiling and running: cpu_session makes a Session, Session::compile an Executable. It runs by name with pooled
// results, or with handles (InputHandle, OutputHandle) bound to memory of the caller, at any sizes within the graph's
// bounds. RunOptions has the deadline, cancellation and state of a run, RunReport what a program does and needs.
#pragma once

#include "backend/cpu/cpu_device.h"
#include "rlx/graph.h"
#include "runtime/executable.h"
#include "runtime/session.h"
