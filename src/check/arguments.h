// What check and exact_output ask of their arguments, a sentence each: a valid problem, host pointers that are there, good
// routing, an observed matrix that can be its D.
#pragma once

#include <finescale/check.h>

#include <cstdint>

namespace finescale {

Status check_operands(const GemmProblem& problem);
Status check_operands(const GroupedGemmProblem& problem);
// check_operands, and `observed` and `options`.
Status check_arguments(const GemmProblem& problem, const Matrix& observed, const CheckOptions& options);
Status check_arguments(const GroupedGemmProblem& problem, const Matrix& observed, const CheckOptions& options);
Status check_index(const MutableMatrix& d, std::int64_t batch, std::int64_t row, std::int64_t col);

}  // namespace finescale
