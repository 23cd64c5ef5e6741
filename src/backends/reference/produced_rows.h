// The produced values of a quantize problem, as the reference walks them: include/finescale/producer.h, with the row factor of
// rms_norm kept while a row lasts.
#pragma once

#include <finescale/producer.h>

#include <cstdint>

namespace finescale::reference {

class ProducedValues {
 public:
  // Adds the residual, once.
  explicit ProducedValues(const QuantizeProblem& problem);

  float operator()(std::int64_t batch, std::int64_t row, std::int64_t col);

 private:
  float row_factor(std::int64_t batch, std::int64_t row) const;

  const QuantizeProblem& problem_;
  std::int64_t batch_ = -1, row_ = -1;  // whose factor is kept
  float factor_ = 1.0f;
};

}  // namespace finescale::reference
