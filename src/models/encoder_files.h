// How encoders other than BERT and DistilBERT are described.
#pragma once

#include "models/encoder.h"

namespace rlx {

/// Nomic BERT from the fields of its config.json, the publisher's own or that of transformers.
EncoderConfig nomic_from_fields(const ModelFields& config);

}  // namespace rlx
