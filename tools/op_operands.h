// Seeded operands for a problem, in host memory for the oracle and on the device under test.
//
// A shape (op_problem.h) has null pointers. fill_inputs() points its inputs at seeded host matrices; on_device() makes the
// same problem for the device: inputs copied (on "cpu" they are the host's own), outputs allocated there and poisoned.
#pragma once

#include "check/owned_matrix.h"
#include "ops/device_memory.h"

#include <finescale/dequantize.h>
#include <finescale/grouped_gemm.h>
#include <finescale/prepare.h>
#include <finescale/quantize.h>
#include <finescale/repack.h>

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace finescale::tools {

// Owns what the matrices of problems point at.
class OperandStore {
 public:
  explicit OperandStore(const Device& device) : device_(device) {}

  const Device& device() const { return device_; }
  // Counts bytes that are about to be allocated; out_of_memory where all of them are more than the machine has.
  Status claim_host_memory(double bytes);
  bool on_host() const { return device_.info().kind == DeviceKind::cpu; }

  // Host memory, all bits set: NaN in every element that has one. out_of_memory: more in all than the machine has.
  Result<MutableMatrix> poisoned(const Matrix& tags, std::int64_t groups = 1);
  Result<MutableMatrix> random(const Matrix& tags, std::uint64_t seed);
  std::span<std::int32_t> integers(std::int64_t count);
  std::span<float> floats(std::int64_t count);

  // The same matrix in memory of the device, bytes copied; absent matrices stay absent.
  Result<MutableMatrix> upload(const Matrix& host, std::int64_t groups = 1);
  template <class Number>
  Result<const Number*> upload(const Number* host, std::int64_t count);
  Result<DeviceMemory> allocate(std::int64_t bytes) { return DeviceMemory::allocate(device_, bytes); }
  // An output, back in host memory.
  Result<Matrix> download(const Matrix& on_device, std::int64_t groups = 1);

  // Did nothing write outside a host matrix.
  bool guards_intact() const;

 private:
  Result<std::byte*> upload_bytes(const void* host, std::int64_t bytes);

  Device device_;
  double host_bytes_ = 0;
  std::deque<OwnedMatrix> matrices_;
  std::deque<std::vector<std::int32_t>> integers_;
  std::deque<std::vector<float>> floats_;
  std::deque<DeviceMemory> memory_;
};

class CheckpointWeights;

struct OperandOptions {
  std::uint64_t seed = 0;
  const CheckpointWeights* weights = nullptr;  // products: B; null: random
  bool choose_alpha = true;                    // products: alpha becomes the power of two that brings D near 1
};

Status fill_inputs(QuantizeProblem& problem, const OperandOptions& options, OperandStore& store);
Status fill_inputs(DequantizeProblem& problem, const OperandOptions& options, OperandStore& store);
Status fill_inputs(RepackProblem& problem, const OperandOptions& options, OperandStore& store);
Status fill_inputs(GemmProblem& problem, const OperandOptions& options, OperandStore& store);
Status fill_inputs(GroupedGemmProblem& problem, const OperandOptions& options, OperandStore& store);

Result<QuantizeProblem> on_device(const QuantizeProblem& host, OperandStore& store);
Result<DequantizeProblem> on_device(const DequantizeProblem& host, OperandStore& store);
Result<RepackProblem> on_device(const RepackProblem& host, OperandStore& store);
Result<GemmProblem> on_device(const GemmProblem& host, OperandStore& store);
Result<GroupedGemmProblem> on_device(const GroupedGemmProblem& host, OperandStore& store);

// B (and B2) of a problem on the device, prepared there; other problems stay as they are.
template <class Problem>
Status prepare_weights(Problem&, OperandStore&) {
  return {};
}
Status prepare_weights(GemmProblem& problem, OperandStore& store);
Status prepare_weights(GroupedGemmProblem& problem, OperandStore& store);

inline MutableMatrix& output_of(QuantizeProblem& problem) { return problem.to; }
inline MutableMatrix& output_of(DequantizeProblem& problem) { return problem.to; }
inline MutableMatrix& output_of(RepackProblem& problem) { return problem.to; }
inline MutableMatrix& output_of(GemmProblem& problem) { return problem.d; }
inline MutableMatrix& output_of(GroupedGemmProblem& problem) { return problem.gemm.d; }

}  // namespace finescale::tools
