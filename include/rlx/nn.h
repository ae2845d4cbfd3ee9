// Layers as functions that build graphs, and the parameters they take from files.
#pragma once

#include "nn/layers.h"
#include "nn/parameters.h"
#include "rlx/graph.h"
