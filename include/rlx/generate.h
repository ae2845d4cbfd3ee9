// Language models: LanguageModel continues texts, Chat holds conversations, Generator runs requests in tokens together,
// PagedDecoder is the model with its cache.
#pragma once

#include "generate/chat.h"
#include "generate/language_model.h"
#include "rlx/session.h"
