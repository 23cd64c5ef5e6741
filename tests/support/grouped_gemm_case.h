// One grouped product as a test sees it: a GemmCase for formats and epilogue, a routing from sizes.
#pragma once

#include "support/gemm_case.h"

#include <finescale/grouped_gemm.h>
#include <finescale/routing.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace finescale::test {

struct GroupedCase {
  GemmCase gemm{};  // batch and m follow from the routing
  Routing::Kind kind = Routing::Kind::end_offsets;
  std::vector<std::int32_t> sizes{};  // rows of each group
  std::int32_t tail = 0;              // rows of no group: past the last offset, or with id -1; counts: rows that pad each group
  bool shuffled = false;              // row_groups: the rows in any order
  std::int64_t tokens = 0;            // gathered from that many rows of A; 0: not gathered
  bool summed = false, weighted = false;

  std::string label() const {
    std::string text("routing ");
    text += std::to_string(static_cast<int>(kind)) + ", sizes";
    for (const std::int32_t size : sizes) text.append(" ").append(std::to_string(size));
    return text + ", tail " + std::to_string(tail) + (shuffled ? ", shuffled" : "") + ", tokens " + std::to_string(tokens) +
           (summed ? ", summed" : "") + (weighted ? ", weighted" : "") + ", " + gemm.label();
  }
  std::int64_t routed_rows() const { return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}); }
  std::int64_t largest() const { return sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end()); }
};

// The arrays of a Routing.
struct RoutingArrays {
  std::vector<std::int32_t> index, gather;
  std::vector<float> weight;
};

inline RoutingArrays routing_arrays(const GroupedCase& c) {
  RoutingArrays arrays;
  const auto groups = static_cast<std::int32_t>(c.sizes.size());
  std::int32_t end = 0;
  if (c.kind == Routing::Kind::offsets_from_zero) arrays.index.push_back(0);
  for (std::int32_t g = 0; g < groups; ++g) {
    const std::int32_t size = c.sizes[static_cast<std::size_t>(g)];
    end += size;
    if (c.kind == Routing::Kind::row_groups) arrays.index.insert(arrays.index.end(), static_cast<std::size_t>(size), g);
    if (has_offsets({.kind = c.kind})) arrays.index.push_back(end);
    if (c.kind == Routing::Kind::counts) arrays.index.push_back(size);
  }
  if (c.kind == Routing::Kind::row_groups) {
    arrays.index.insert(arrays.index.end(), static_cast<std::size_t>(c.tail), -1);
    for (std::size_t i = arrays.index.size(); c.shuffled && i > 1; --i)
      std::swap(arrays.index[i - 1], arrays.index[hash_bits(c.gemm.seed, i) % i]);
  }
  const std::int64_t rows = c.routed_rows() + c.tail;
  for (std::int64_t i = 0; c.tokens != 0 && i < rows; ++i) {
    const bool real = c.kind == Routing::Kind::row_groups ? arrays.index[static_cast<std::size_t>(i)] >= 0 : i < c.routed_rows();
    const auto token =
        static_cast<std::int32_t>(hash_bits(c.gemm.seed + 7, static_cast<std::uint64_t>(i)) % static_cast<std::uint64_t>(c.tokens));
    arrays.gather.push_back(real ? token : -1);  // that of a row of no group is never read
    if (c.weighted) arrays.weight.push_back(static_cast<float>(hash_unit(c.gemm.seed + 8, static_cast<std::uint64_t>(i))) - 0.25f);
  }
  return arrays;
}

// scale_128x4_per_group: the padded row of each of `rows` rows; those of no group get `absent`.
inline std::vector<std::int64_t> padded_rows_of(const GroupedCase& c, std::int64_t rows, std::int64_t absent) {
  std::vector<std::int64_t> padded;
  std::int64_t start = 0;
  for (const std::int32_t size : c.sizes) {
    for (std::int64_t i = 0; i < size; ++i) padded.push_back(start + i);
    start += round_up(size, 128);
  }
  padded.resize(static_cast<std::size_t>(rows), absent);
  return padded;
}

inline std::int64_t padded_tile_rows(const GroupedCase& c) {
  std::int64_t rows = 0;
  for (const std::int32_t size : c.sizes) rows += round_up(size, 128);
  return rows;
}

inline GroupedGemmProblem grouped_tags(const GroupedCase& c) {
  GemmCase gemm = c.gemm;
  const auto groups = static_cast<std::int64_t>(c.sizes.size());
  const bool counts = c.kind == Routing::Kind::counts;
  const std::int64_t rows = counts ? c.largest() + c.tail : c.routed_rows() + c.tail;
  gemm.batch = counts ? groups : 1;
  gemm.m = rows;
  GemmProblem p = gemm_tags(gemm);
  for (Matrix* m : {&p.b, &p.b2, &p.epilogue.bias}) {
    m->batch = groups;
    if (!gemm.strided && !gemm.broadcast) m->batch_stride = m->scale_batch_stride = kPacked;
  }
  GroupedGemmProblem grouped{.gemm = p};
  if (c.tokens != 0) {
    grouped.gemm.a.rows = c.tokens;
    if (c.summed) grouped.gemm.d.rows = c.tokens;
    grouped.routing.gather_length = rows;
  }
  grouped.routing.kind = c.kind;
  grouped.routing.index_length = static_cast<std::int64_t>(routing_arrays(c).index.size());
  grouped.routing.summed_rows = c.summed ? c.tokens : 0;
  return grouped;
}

// Rows of A that no group reads hold NaN: nothing may come of them.
inline void poison_unread_rows(const GroupedCase& c, const RoutingArrays& arrays, const MutableMatrix& given) {
  if (c.tokens != 0) return;
  const MutableMatrix a = with_strides(given);
  for (std::int64_t b = 0; b < a.batch; ++b) {
    for (std::int64_t r = 0; r < a.rows; ++r) {
      const bool read = c.kind == Routing::Kind::counts       ? r < c.sizes[static_cast<std::size_t>(b)]
                        : c.kind == Routing::Kind::row_groups ? arrays.index[static_cast<std::size_t>(r)] >= 0
                                                              : r < c.routed_rows();
      for (std::int64_t k = 0; !read && k < a.cols; ++k) set_code(a, b, r, k, 0xFFFFFFFFu >> (32 - bits(a.format.element)));
    }
  }
}

// Operands and routing on the host; placed, on a device.
template <class Owner, class Buffer>
struct GroupedOperands {
  GemmOperands<Owner> gemm;
  Buffer index, gather, weight;
};

template <class T>
GuardedBuffer guarded(const std::vector<T>& values) {
  GuardedBuffer buffer(static_cast<std::int64_t>(values.size() * sizeof(T)));
  if (!values.empty()) std::memcpy(buffer.data(), values.data(), values.size() * sizeof(T));
  return buffer;
}

inline GroupedOperands<OwnedMatrix, GuardedBuffer> make_grouped_operands(const GroupedCase& c, const GroupedGemmProblem& tags,
                                                                         const Device& device) {
  const auto groups = static_cast<std::int64_t>(c.sizes.size());
  const RoutingArrays arrays = routing_arrays(c);
  GroupedOperands<OwnedMatrix, GuardedBuffer> host;
  GemmProblem others = tags.gemm;
  host.index = guarded(arrays.index);
  host.gather = guarded(arrays.gather);
  host.weight = guarded(arrays.weight);
  const bool a_per_group = tags.gemm.a.scale_layout == ScaleLayout::scale_128x4_per_group;
  const bool d_per_group = tags.gemm.d.scale_layout == ScaleLayout::scale_128x4_per_group;
  others.a = {};
  others.d = {};
  host.gemm = make_gemm_operands(c.gemm, others, device);
  host.gemm.a = detail::random_owned(tags.gemm.a, c.gemm.seed, c.gemm.values, groups,
                                     a_per_group ? padded_rows_of(c, tags.gemm.a.rows, 0) : std::vector<std::int64_t>{});
  poison_unread_rows(c, arrays, host.gemm.a.view());
  host.gemm.d = detail::owned_matrix(tags.gemm.d, d_per_group ? groups : 1);
  for (std::int64_t i = 0; i < host.gemm.d.global_count(); ++i) host.gemm.d.view().global[i] = 0x1.3p-4f;
  return host;
}

template <class Owner, class Buffer>
GroupedGemmProblem grouped_problem(const GroupedGemmProblem& tags, const GroupedOperands<Owner, Buffer>& operands) {
  GroupedGemmProblem p = tags;
  p.gemm = gemm_problem(tags.gemm, operands.gemm, false);
  p.routing.index = reinterpret_cast<const std::int32_t*>(operands.index.data());
  p.routing.gather = reinterpret_cast<const std::int32_t*>(operands.gather.data());
  p.routing.weight = reinterpret_cast<const float*>(operands.weight.data());
  return p;
}

// An array on a device and the host buffer behind it.
class PlacedArray {
 public:
  PlacedArray() = default;
  static Result<PlacedArray> place(const Device& device, GuardedBuffer host) {
    auto buffer = PlacedBuffer::place(device, host);
    FINESCALE_TRY(buffer);
    PlacedArray placed;
    placed.buffer_ = std::move(*buffer);
    placed.host_ = std::move(host);
    return placed;
  }
  std::byte* data() const { return buffer_.data(); }

 private:
  GuardedBuffer host_;
  PlacedBuffer buffer_;
};

inline Result<GroupedOperands<PlacedMatrix, PlacedArray>> place(const Device& device, GroupedOperands<OwnedMatrix, GuardedBuffer> host) {
  GroupedOperands<PlacedMatrix, PlacedArray> placed;
  auto gemm = place(device, std::move(host.gemm));
  FINESCALE_TRY(gemm);
  placed.gemm = std::move(*gemm);
  for (const auto& [to, from] : {std::pair{&placed.index, &host.index}, {&placed.gather, &host.gather}, {&placed.weight, &host.weight}}) {
    auto array = PlacedArray::place(device, std::move(*from));
    FINESCALE_TRY(array);
    *to = std::move(*array);
  }
  return placed;
}

}  // namespace finescale::test
