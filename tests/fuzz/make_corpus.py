"""Makes the seed corpora of the fuzz targets: Python 3, standard library only. Usage: python3 make_corpus.py"""
import json
import os
import struct

HERE = os.path.dirname(os.path.abspath(__file__))


def header_and_data(tensors, metadata=None):
    header, data = ({"__metadata__": metadata} if metadata else {}), b""
    for name, dtype, shape, raw in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    return json.dumps(header, separators=(",", ":")).encode(), data


def weight(module, modelopt, rows=2, cols=32):
    blocks = -(-cols // 16)
    return [(module + (".weight" if modelopt else ".weight_packed"), "U8", [rows, cols // 2], bytes(range(rows * cols // 2))),
            (module + ".weight_scale", "F8_E4M3", [rows, blocks], bytes([0x38, 0x00, 0x7F, 0x81] * rows)[:rows * blocks]),
            (module + (".weight_scale_2" if modelopt else ".weight_global_scale"), "F32", [] if modelopt else [1],
             struct.pack("<f", 0.001 if modelopt else 1000.0))]


def write(folder, name, content):
    path = os.path.join(HERE, "corpus", folder)
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, name), "wb") as file:
        file.write(content)


def part(text):
    return struct.pack("<H", len(text)) + text


def main():
    tensors = {
        "empty": [],
        "plain": [("l.0.q_proj.weight", "F32", [1, 16], bytes(64)), ("l.0.k_proj.weight", "BF16", [1, 16], bytes(32)),
                  ("l.norm.weight", "F16", [2], bytes(4)), ("scalar", "I64", [], bytes(8)), ("none", "F32", [0, 3], b"")],
        "narrow": [("a", "F4", [2, 3], bytes(3)), ("b", "F6_E2M3", [4], bytes(3)), ("c", "F8_E8M0", [1], b"\x7f"), ("d.weight", "I8", [1, 2], b"ab")],
        "modelopt": weight("l.0.gate_proj", True) + weight("l.0.up_proj", True, 1, 24) + [("l.0.up_proj.input_scale", "F32", [1, 1], bytes(4))],
        "packed": weight("l.0.w1", False) + weight("l.0.w3", False) + [("l.0.w3.input_global_scale", "F32", [1], bytes(4))],
        "comfy": weight("x", True) + [("x.comfy_quant", "U8", [2], b"{}"), ("x.pre_quant_scale", "F32", [1], bytes(4))],
    }
    modelopt = {"producer": {"name": "p"}, "quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head", "*.gate"]}}
    packed = {"quantization_config": {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized", "ignore": ["re:.*l\\.0$"],
                                      "config_groups": {"g": {"input_activations": None}}}}
    configs = {"modelopt": (b"", json.dumps(modelopt).encode()), "packed": (json.dumps(packed).encode(), b"")}
    for name, list_of_tensors in tensors.items():
        text, data = header_and_data(list_of_tensors, {"format": "pt"} if name == "plain" else None)
        write("fuzz_safetensors", name, struct.pack("<Q", len(text)) + text + data)
        config, other = configs.get(name, (b"", b""))
        write("fuzz_checkpoint", name, part(config) + part(other) + part(text) + data)

    # format, rows, cols, scale layout, global, code layout, element, profile, power, search, rounding, pow2, seed, mild, elements
    for number, head in enumerate([(0, 2, 48, 0, 1, 0, 0, 200), (0, 3, 71, 1, 2, 1, 2, 200), (1, 1, 40, 2, 0, 1, 200), (4, 2, 70, 0, 0, 1, 200),
                                   (0, 1, 16, 0, 1, 0, 1, 2), (7, 2, 9, 0, 1, 1, 200)]):
        write("fuzz_quantize", "problem%d" % number, bytes(head) + bytes([number % 3, number % 3, number % 3, 0, 1, 1]) + bytes(range(7, 250, 3)))


if __name__ == "__main__":
    main()
