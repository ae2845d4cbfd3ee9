// All of rlx's public interface. Programs that compile often include only the parts they use.
#pragma once

#include "rlx/dlpack.h"
#include "rlx/generate.h"
#include "rlx/graph.h"
#include "rlx/io.h"
#include "rlx/models.h"
#include "rlx/nn.h"
#include "rlx/session.h"
#include "rlx/tensor.h"
