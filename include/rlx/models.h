// Models with all that belongs to them: SentenceModel turns texts into vectors.
#pragma once

#include "models/sentence.h"
#include "rlx/session.h"
