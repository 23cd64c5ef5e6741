"""Makes the golden checkpoints of tests/checkpoint: Python 3, standard library only, from the format definitions alone.

Everything is exact (fractions) and rounded to FP32 or to a code where the contract rounds. Usage: python3 make_golden.py

    plain.safetensors               weights to quantize, as f32, f16 and bf16
    modelopt.safetensors            the same, quantized (g = amax / 2688, shared by q/k/v), ModelOpt nvfp4
    compressed_tensors.safetensors  the same codes and scales in compressed-tensors nvfp4
    dequantized.safetensors         modelopt.safetensors as f32
"""
import json
import os
import random
import struct
from fractions import Fraction

HERE = os.path.dirname(os.path.abspath(__file__))
E2M1 = [Fraction(m) for m in (0, Fraction(1, 2), 1, Fraction(3, 2), 2, 3, 4, 6)]
E4M3 = [Fraction(m, 512) if e == 0 else Fraction(8 + m) * Fraction(2) ** (e - 10)
        for e in range(16) for m in range(8)][:0x7F]


def f32(value):
    """An exact rational, rounded once to binary32 (normal range), as an exact rational."""
    if value == 0:
        return Fraction(0)
    sign, magnitude = (-1 if value < 0 else 1), abs(Fraction(value))
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    step = Fraction(2) ** (max(exponent, -126) - 23)
    return sign * nearest_even(magnitude / step) * step


def nearest_even(value):
    whole, rest = divmod(value, 1)
    return whole + (1 if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2) else 0)


def nearest_code(grid, value):
    """The code of the nearest grid value, ties to the even code, saturating. value >= 0."""
    if value >= grid[-1]:
        return len(grid) - 1
    above = next(i for i, g in enumerate(grid) if g > value)
    low, high = value - grid[above - 1], grid[above] - value
    if low != high:
        return above - 1 if low < high else above
    return above - 1 if (above - 1) % 2 == 0 else above


def quantize(rows, g):
    """Rows of exact FP32 values -> (packed codes, scale codes)."""
    codes, scales = bytearray(), bytearray()
    for row in rows:
        line = []
        for start in range(0, len(row), 16):
            block = row[start:start + 16]
            scale = nearest_code(E4M3, f32(max(abs(x) for x in block) / f32(6 * g)))
            scales.append(scale)
            divisor = f32(E4M3[scale] * g)
            for x in block:
                code = nearest_code(E2M1, abs(f32(x / divisor))) if divisor else 0
                line.append(code | (8 if x < 0 and divisor else 0))
        codes += bytes(line[i] | line[i + 1] << 4 for i in range(0, len(line), 2))
    return bytes(codes), bytes(scales)


def dequantize(codes, scales, g, rows, cols):
    values, blocks = [], -(-cols // 16)
    for r in range(rows):
        for c in range(cols):
            code = codes[(r * cols + c) // 2] >> (4 * (c % 2)) & 15
            element = E2M1[code & 7] * (-1 if code & 8 else 1)
            value = f32(f32(element * E4M3[scales[r * blocks + c // 16]]) * g)
            values.append(-0.0 if code == 8 else float(value))
    return struct.pack("<%df" % len(values), *values)


def random_rows(seed, rows, cols, spread, dtype):
    """Values that the dtype holds exactly, as exact rationals, and their bytes."""
    generator = random.Random(seed)
    values, raw = [], b""
    for r in range(rows):
        row = []
        for c in range(cols):
            x = struct.unpack("<f", struct.pack("<f", generator.gauss(0, spread) * 2 ** generator.randint(-3, 1)))[0]
            if dtype == "F16":
                piece = struct.pack("<e", x)
                x = struct.unpack("<e", piece)[0]
            elif dtype == "BF16":
                piece = struct.pack("<f", x)[2:]
                x = struct.unpack("<f", b"\0\0" + piece)[0]
            else:
                piece = struct.pack("<f", x)
            raw += piece
            row.append(Fraction(x))
        values.append(row)
    return values, raw


def write(name, tensors, metadata=None):
    header, offset = ({"__metadata__": metadata} if metadata else {}), 0
    for tensor, dtype, shape, raw in tensors:
        header[tensor] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(raw)]}
        offset += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    with open(os.path.join(HERE, name), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(raw for *_, raw in tensors))


def main():
    weights = {}
    for i, (part, dtype, rows, cols) in enumerate([("q_proj", "F32", 5, 48), ("k_proj", "F16", 3, 48), ("v_proj", "BF16", 2, 48),
                                                   ("o_proj", "F32", 4, 40), ("zero_proj", "F32", 2, 16)]):
        name = "model.layers.0.self_attn." + part
        values, raw = random_rows(i, rows, cols, 0.05, dtype)
        if part == "zero_proj":
            values, raw = [[Fraction(0)] * cols for _ in range(rows)], bytes(4 * rows * cols)
        weights[name] = (dtype, [rows, cols], values, raw)
    norm = ("model.layers.0.norm.weight", "BF16", [3], struct.pack("<3H", 0x3F80, 0x4000, 0xC040))
    amax = {name: max(abs(x) for row in values for x in row) for name, (_, _, values, _) in weights.items()}
    shared = max(amax[name] for name in amax if name[-6:] in ("q_proj", "k_proj", "v_proj"))

    plain, modelopt, packed, dense = [norm], [norm], [norm], [norm]
    for name, (dtype, shape, values, raw) in weights.items():
        largest = shared if name[-6:] in ("q_proj", "k_proj", "v_proj") else amax[name]
        g = f32(largest / 2688) if largest else Fraction(1)
        codes, scales = quantize(values, g)
        rows, cols = shape
        scale_shape = [rows, -(-cols // 16)]
        plain.append((name + ".weight", dtype, shape, raw))
        modelopt += [(name + ".weight", "U8", [rows, cols // 2], codes), (name + ".weight_scale", "F8_E4M3", scale_shape, scales),
                     (name + ".weight_scale_2", "F32", [], struct.pack("<f", float(g)))]
        packed += [(name + ".weight_packed", "U8", [rows, cols // 2], codes), (name + ".weight_scale", "F8_E4M3", scale_shape, scales),
                   (name + ".weight_global_scale", "F32", [1], struct.pack("<f", float(f32(1 / g))))]
        dense.append((name + ".weight", "F32", shape, dequantize(codes, scales, g, rows, cols)))
    write("plain.safetensors", plain, {"format": "pt"})
    write("modelopt.safetensors", modelopt)
    write("compressed_tensors.safetensors", packed)
    write("dequantized.safetensors", dense)


if __name__ == "__main__":
    main()
