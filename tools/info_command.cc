// finescale info: this machine and this build: CPU, instruction sets, GPUs, formats, and the kernels of each op.
#include "command.h"
#include "printing.h"

#include "finescale_built.h"
#include "ops/registry.h"

#include <finescale/dequantize.h>
#include <finescale/device.h>
#include <finescale/grouped_gemm.h>
#include <finescale/prepare.h>
#include <finescale/quantize.h>
#include <finescale/repack.h>
#include <finescale/version.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <string>
#include <vector>

namespace finescale::tools {
namespace {

struct IsaName {
  Isa bit;
  const char* name;
};

constexpr IsaName kIsaNames[] = {{Isa::avx2, "avx2"},
                                 {Isa::avx512, "avx512"},
                                 {Isa::avx512_vnni, "avx512_vnni"},
                                 {Isa::avx512_bf16, "avx512_bf16"},
                                 {Isa::avx512_fp16, "avx512_fp16"},
                                 {Isa::amx_bf16, "amx_bf16"},
                                 {Isa::amx_int8, "amx_int8"},
                                 {Isa::neon, "neon"}};

std::vector<std::string> isa_names(std::uint64_t isa) {
  std::vector<std::string> names;
  for (const IsaName& row : kIsaNames) {
    if ((isa & static_cast<std::uint64_t>(row.bit)) != 0) names.emplace_back(row.name);
  }
  return names;
}

std::string_view element_name(Element element) {
  switch (element) {
    case Element::f32: return "f32";
    case Element::f16: return "f16";
    case Element::bf16: return "bf16";
    case Element::e4m3: return "e4m3";
    case Element::e5m2: return "e5m2";
    case Element::e2m1: return "e2m1";
    case Element::e8m0: return "e8m0";
    case Element::none: break;
  }
  return "-";
}

// The CPU, then every GPU that opens.
std::vector<Device> devices() {
  std::vector<Device> list;
  if (auto cpu = Device::open("cpu")) list.push_back(*cpu);
  if constexpr (built::kCuda) {
    for (int ordinal = 0;; ++ordinal) {
      auto gpu = Device::open(fmt::format("cuda:{}", ordinal));
      if (!gpu) break;
      list.push_back(*gpu);
    }
  }
  return list;
}

Json device_row(const Device& device) {
  const DeviceInfo& info = device.info();
  Json row{{"device", device.name()}, {"model", device.model()}};
  if (info.kind == DeviceKind::cpu) {
    row["isa"] = isa_names(info.isa);
    row["threads"] = info.workers;
  } else {
    row["capability"] = fmt::format("{}.{}", info.capability / 10, info.capability % 10);
    row["multiprocessors"] = info.multiprocessors;
    row["shared_bytes"] = info.shared_bytes;
  }
  return row;
}

struct OpKernels {
  const char* op;
  std::vector<std::string> kernels;
};

template <class Problem>
OpKernels kernels_of(const char* op) {
  OpKernels list{op, {}};
  for (const auto& table : kernel_tables<Problem>()) {
    for (const auto& kernel : table) list.kernels.emplace_back(kernel.name);
  }
  return list;
}

std::vector<OpKernels> all_kernels() {
  return {kernels_of<QuantizeProblem>("quantize"), kernels_of<DequantizeProblem>("dequantize"),
          kernels_of<RepackProblem>("repack"),     kernels_of<PrepareProblem>("prepare"),
          kernels_of<GemmProblem>("gemm"),         kernels_of<GroupedGemmProblem>("grouped_gemm")};
}

std::vector<std::string> backends() {
  std::vector<std::string> names{"reference", "cpu"};
  if constexpr (built::kCuda) names.push_back(fmt::format("cuda ({})", built::kCudaArchitectures));
  return names;
}

void print_for_programs(const std::vector<Device>& list) {
  Json rows = Json::array(), formats = Json::array(), kernels = Json::object();
  for (const Device& device : list) rows.push_back(device_row(device));
  for (const NamedFormat& row : kFormats) formats.push_back(row.name);
  for (const OpKernels& row : all_kernels()) kernels[row.op] = row.kernels;
  print_json("info", rows, {{"version", library_version()}, {"backends", backends()}, {"formats", formats}, {"kernels", kernels}});
}

void print_for_people(const std::vector<Device>& list) {
  fmt::print("finescale {}\n\n", library_version());
  Table chips({"device", "model", "what it can do"});
  for (const Device& device : list) {
    const DeviceInfo& info = device.info();
    const std::string facts =
        info.kind == DeviceKind::cpu
            ? fmt::format("{} threads; {}", info.workers,
                          info.isa == 0 ? "portable code only" : fmt::format("{}", fmt::join(isa_names(info.isa), " ")))
            : fmt::format("compute capability {}.{}, {} multiprocessors", info.capability / 10, info.capability % 10, info.multiprocessors);
    chips.add({device.name(), device.model(), facts});
  }
  chips.print();
  fmt::print("\nbackends: {}\n\n", fmt::join(backends(), ", "));

  Table formats({"format", "element", "block scale", "block", "global scale"});
  for (const NamedFormat& row : kFormats) {
    const Format& format = row.format;
    formats.add({std::string(row.name), std::string(element_name(format.element)), std::string(element_name(format.scale)),
                 format.has_scales() ? fmt::format("{} x {}", format.block_rows, format.block_cols) : "-", format.global ? "f32" : "-"});
  }
  formats.print();

  fmt::print("\n");
  Table kernels({"op", "kernels, best first"});
  for (const OpKernels& row : all_kernels()) {
    const char* op = row.op;
    for (const std::string& kernel : row.kernels) {
      kernels.add({op, kernel});
      op = "";
    }
  }
  kernels.print();
}

constexpr const char* kFooter = R"(Where no GPU is listed although one is there, open it to see why:
  finescale explain gemv --n 64 --k 64 --device cuda:0)";

}  // namespace

void add_info(CLI::App& app, Exit& exit) {
  CLI::App* command = app.add_subcommand("info", "Show this machine, and what this build holds");
  const auto output = std::make_shared<Output>();
  add_output_options(*command, *output);
  command->footer(kFooter);
  command->callback([output, &exit] {
    const std::vector<Device> list = devices();
    if (output->json) print_for_programs(list);
    if (!output->json && !output->quiet) print_for_people(list);
    exit = Exit::ok;
  });
}

}  // namespace finescale::tools
