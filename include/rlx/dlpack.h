// Exchange of tensors with other libraries by DLPack: to_dlpack, from_dlpack, view_dlpack.
#pragma once

#include "io/dlpack.h"
#include "rlx/session.h"
