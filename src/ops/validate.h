// Every rule on what a problem may be, a sentence each, and what dispatch needs beside it. No arithmetic on elements.
#pragma once

#include <finescale/dequantize.h>
#include <finescale/device.h>
#include <finescale/gemm.h>
#include <finescale/grouped_gemm.h>
#include <finescale/prepare.h>
#include <finescale/quantize.h>
#include <finescale/repack.h>
#include <finescale/status.h>

#include <cstdint>
#include <string_view>

namespace finescale {

// The rules that every operand obeys by itself: known format and layout, sizes and strides that fit int64, even strides of
// 4-bit codes, column stride, scale strides, global kind, promised alignment. `name` is what the sentence calls it.
Status validate_matrix(std::string_view name, const Matrix& matrix);

// storage() of a matrix that has passed validate_matrix: the sizes that overflow are refused here.
Result<Bytes> storage_of(std::string_view name, const Matrix& matrix, std::int64_t groups);

Status validate(const QuantizeProblem& problem);
Status validate(const DequantizeProblem& problem);
Status validate(const RepackProblem& problem);
Status validate(const PrepareProblem& problem);
Status validate(const GemmProblem& problem);
Status validate(const GroupedGemmProblem& problem);

QuantizeProblem with_strides(QuantizeProblem problem);
DequantizeProblem with_strides(DequantizeProblem problem);
RepackProblem with_strides(RepackProblem problem);
PrepareProblem with_strides(PrepareProblem problem);
GemmProblem with_strides(GemmProblem problem);
GroupedGemmProblem with_strides(GroupedGemmProblem problem);

// Pointers against the promise: not null where something is read or written, aligned. On a CPU also the routing's values.
Status check_pointers(const QuantizeProblem& problem, const Device& device);
Status check_pointers(const DequantizeProblem& problem, const Device& device);
Status check_pointers(const RepackProblem& problem, const Device& device);
Status check_pointers(const PrepareProblem& problem, const Device& device);
Status check_pointers(const GemmProblem& problem, const Device& device);
Status check_pointers(const GroupedGemmProblem& problem, const Device& device);

QuantizeProblem fewer_rows(QuantizeProblem problem, std::int64_t rows);
DequantizeProblem fewer_rows(DequantizeProblem problem, std::int64_t rows);
RepackProblem fewer_rows(RepackProblem problem, std::int64_t rows);
PrepareProblem fewer_rows(PrepareProblem problem, std::int64_t rows);
GemmProblem fewer_rows(GemmProblem problem, std::int64_t rows);
GroupedGemmProblem fewer_rows(GroupedGemmProblem problem, std::int64_t rows);

}  // namespace finescale
