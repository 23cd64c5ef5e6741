#!/usr/bin/env python3
"""Makes quantizers.json: what independent implementations write for the same numbers.

Profiles torchao, compressed_tensors, modelopt: the published packages themselves, on the CPU. deepgemm: deep_gemm/utils/math.py of a
checkout (--deepgemm). flashrt and finescale: computed here from the contract, numpy float32 for each operation, exact
comparison of distances for each rounding.

    pip install numpy==2.4.6 torch==2.15.0 torchao==0.18.0 compressed-tensors==0.20.0 nvidia-modelopt==0.47.0
    python make_quantizers.py --deepgemm <checkout of 54e2261>/deep_gemm/utils/math.py
"""
import argparse
import base64
import importlib.util
import json
import math
import pathlib
import struct

import numpy as np

F = np.float32
HERE = pathlib.Path(__file__).parent


# ---- numbers ---------------------------------------------------------------------------------------------------------

def bits(x):
    return int(np.asarray(x, F).view(np.uint32))


def from_bits(b):
    return np.uint32(b).view(F)


def float_table(exponent_bits, mantissa_bits, codes):
    """Magnitudes of the finite codes 0..codes-1."""
    bias = (1 << (exponent_bits - 1)) - 1
    out = []
    for c in range(codes):
        e, m = c >> mantissa_bits, c & ((1 << mantissa_bits) - 1)
        frac = m / (1 << mantissa_bits)
        out.append(math.ldexp(frac, 1 - bias) if e == 0 else math.ldexp(1 + frac, e - bias))
    return np.array(out)


TABLES = {"e2m1": float_table(2, 1, 8), "e4m3": float_table(4, 3, 127), "e5m2": float_table(5, 2, 124)}
SIGN = {"e2m1": 8, "e4m3": 128, "e5m2": 128}
NAN = {"e2m1": 7, "e4m3": 127, "e5m2": 127}
MANTISSA = {"e2m1": 1, "e4m3": 3, "e5m2": 2}


def neighbours(element, magnitude):
    """Codes around a finite magnitude inside the table's range, and how far up it lies between them."""
    table = TABLES[element]
    low = int(np.searchsorted(table, magnitude, side="right")) - 1
    if low == len(table) - 1:
        return low, 0.0
    return low, (magnitude - table[low]) / (table[low + 1] - table[low])


def encode(element, x, ties="even", word=None):
    x = float(x)
    if math.isnan(x):
        return NAN[element]
    sign = SIGN[element] if math.copysign(1.0, x) < 0 else 0
    magnitude = min(abs(x), TABLES[element][-1])
    low, part = neighbours(element, magnitude)
    if word is not None:
        up = word / 2.0**32 < part
    elif part == 0.5:
        up = {"even": low % 2 == 1, "zero": False}[ties]
    else:
        up = part > 0.5
    return sign | (low + int(up))


def decode(element, code):
    value = TABLES[element][code & (SIGN[element] - 1)]
    return F(-value if code & SIGN[element] else value)


def to_bf16(x):
    """float32 array rounded to bf16, nearest even; finite and Inf."""
    u = np.asarray(x, F).view(np.uint32).astype(np.uint64)
    u = (u + 0x7FFF + ((u >> 16) & 1)) & 0xFFFF0000
    out = u.astype(np.uint32).view(F)
    return np.where(np.isnan(x), F(np.nan), out).astype(F)


def rounded(dtype, x):
    x = np.asarray(x, F)
    with np.errstate(over="ignore"):
        return x.astype(np.float16).astype(F) if dtype == "f16" else to_bf16(x) if dtype == "bf16" else x


def raw(dtype, x):
    if dtype == "f16":
        return x.astype(np.float16).tobytes()
    if dtype == "bf16":
        return (x.view(np.uint32) >> 16).astype(np.uint16).tobytes()
    return x.astype(F).tobytes()


def pack(codes):
    """Two codes a byte along each row, even index low, an odd row's last high nibble 0."""
    rows, cols = codes.shape
    padded = np.zeros((rows, cols + cols % 2), np.uint8)
    padded[:, :cols] = codes
    return padded[:, 0::2] | (padded[:, 1::2] << 4)


# ---- inputs ----------------------------------------------------------------------------------------------------------

MIDPOINTS = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 6.0]


def make_inputs():
    rng = np.random.default_rng(20)
    blocks = [
        (np.arange(16) - 8) * 0.375,
        np.array(MIDPOINTS + [-v for v in MIDPOINTS]),
        np.array(MIDPOINTS + [-v for v in MIDPOINTS]) * 0.4375,
        np.zeros(16),
        -np.zeros(16),
        np.array([0.005] * 8 + [-0.005] * 8),
        np.array([4000.0] * 8 + [-1.0] * 8),
        np.array([1e-30, -1e-30, 0, -0.0] * 4),
        np.array([1e-40, -3e-45, 2e-38, 0] * 4),
        np.array([1e30, -2.5e29, 1e-5, -0.0] * 4),
        np.array([1.0] + [0.75 / 6] * 7 + [-0.75 / 6] * 8),
        np.array([448.0 * 6, 1.0, -1.0, 2.0] * 4),
    ]
    edges = np.stack(blocks).astype(F)
    inputs = {
        "edges": edges.reshape(6, 32),
        "plain": (rng.standard_normal((6, 64)) * 0.25).astype(F),
        "wide": np.ldexp(rng.standard_normal((6, 64)), rng.integers(-20, 12, (6, 64))).astype(F),
        "small": (rng.standard_normal((4, 32)) * 1e-4).astype(F),
        "one_block": np.array([[8.02734375] + [1.00341796875] * 15], F),
        "odd": rng.standard_normal((5, 37)).astype(F),
        "not_finite": rng.standard_normal((4, 64)).astype(F),
        "rows128": (np.ldexp(rng.standard_normal((3, 300)), rng.integers(-6, 6, (3, 300)))).astype(F),
        "square": (rng.standard_normal((129, 130)) * 0.1).astype(F),
        "zeros": np.zeros((2, 256), F),
    }
    inputs["formula_ties"], inputs["bf16_ties"], inputs["sum_ties"] = formula_ties(rng), bf16_ties(rng), sum_ties(rng)
    inputs["flushed"] = np.array([[1e-10, -1e-10] * 8, [1e-7, -1e-7] * 8, [3e-8, -2e-8, 1.0, -3e-5] * 4], F)
    inputs["not_finite"][0, 3] = np.nan
    inputs["not_finite"][1, 20] = np.inf
    inputs["not_finite"][2, 40] = -np.inf
    inputs["rows128"][1, :128] = 0
    inputs["square"][:, 128] = 300.0
    return inputs


# ---- inputs on which near-equal formulas part --------------------------------------------------------------------------

G = F(0.00123)


def nearby(x, steps=6):
    """FP32 numbers around x."""
    return [from_bits(bits(F(x)) + d) for d in range(-steps, steps + 1)]


def parting_elements(amax):
    """amax and numbers whose code, at its scale, depends on the order of quotients and reciprocals."""
    block, s = [amax], decode("e4m3", encode("e4m3", amax / (F(6) * G)))
    for m in MIDPOINTS[:7]:
        for x in nearby(F(m) * s * G):
            formulas = (x / (s * G), x / s / G, x * (F(1) / (s * G)), x * (F(1) / G / s))
            if len({encode("e2m1", v) for v in formulas}) > 1 and len(block) < 16:
                block.append(x)
    return block + [F(0)] * (16 - len(block))


def formula_ties(rng):
    """Blocks at G whose scale depends on that order, and blocks whose scale does not."""
    scales = TABLES["e4m3"]
    blocks = [parting_elements(F(6) * F(scales[i]) * G) for i in rng.integers(64, 120, 6)]
    for i in rng.permutation(np.arange(16, 120)):
        for amax in nearby(6 * G * F((scales[i] + scales[i + 1]) / 2)):
            if encode("e4m3", amax / F(6) / G) != encode("e4m3", amax / (F(6) * G)):
                blocks.append(parting_elements(amax))
    return np.array(blocks[:14], F)


def bf16_ties(rng):
    """Blocks whose scale depends on rounding amax/6 to bf16, at an encode global of 900."""
    moves = lambda amax: encode("e4m3", F(900) * (amax / F(6))) != encode("e4m3", F(900) * to_bf16(amax / F(6)))
    largest = [F(i / 512) for i in range(128, 256) if moves(F(i / 512))]
    return np.array([np.concatenate([[amax], to_bf16(rng.uniform(-0.01, 0.01, 15))]) for amax in largest], F)


def sum_ties(rng):
    """Blocks at G where two scales tie but for rounding, and the order of the sum decides."""
    blocks = []
    while len(blocks) < 4:
        # Each pair is as far from the grid of scale 1 as from that of 1.5.
        v = np.array([6.0] + [v for _ in range(7) for v in [(0.5, 0.75), (2, 2.25), (1, 0.75), (4, 4.5)][rng.integers(4)]] + [0])
        v[1:] = rng.permutation(v[1:]) * rng.choice([-1, 1], 15)
        x = np.array([nearby(F(t) * G, 1)[rng.integers(3)] if t else 0 for t in v], F)
        pairs = lambda code: tree_error(x[np.argsort([0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15])], code, G)
        six, four = encode("e4m3", x[0] / (F(6) * G)), encode("e4m3", x[0] / (F(4) * G))
        if (tree_error(x, four, G) < tree_error(x, six, G)) != (pairs(four) < pairs(six)):
            blocks.append(x)
    return np.array(blocks, F)


# ---- profile finescale -----------------------------------------------------------------------------------------------

FORMATS = {
    "nvfp4": ("e2m1", "e4m3", 1, 16, True), "mxfp4": ("e2m1", "e8m0", 1, 32, False), "mxfp8_e4m3": ("e4m3", "e8m0", 1, 32, False),
    "mxfp8_e5m2": ("e5m2", "e8m0", 1, 32, False), "fp8_e4m3_1x128": ("e4m3", "f32", 1, 128, False),
    "fp8_e4m3_128x128": ("e4m3", "f32", 128, 128, False), "fp8_e4m3_tensor": ("e4m3", None, 1, 1, True), "fp4_tensor": ("e2m1", None, 1, 1, True),
}


def e8m0_code(element, rule, amax):
    top = F(TABLES[element][-1])
    emax = int(math.floor(math.log2(float(top))))
    if rule == "round_up":
        q = F(amax) / top
        if q <= F(2.0**-127):
            return 0
        mantissa, exponent = math.frexp(float(q))
        return max(0, min(254, (exponent - 1 if mantissa == 0.5 else exponent) + 127))
    b = bits(amax) + ((1 << (22 - MANTISSA[element])) if rule == "even" else 0)
    return max(0, (b >> 23) - emax)


def philox(index, seed):
    counter, key = [index // 4 & 0xFFFFFFFF, index // 4 >> 32, 0, 0], [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [(b >> 32) ^ counter[1] ^ key[0], b & 0xFFFFFFFF, (a >> 32) ^ counter[3] ^ key[1], a & 0xFFFFFFFF]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter[index % 4]


def decode_scale(kind, code):
    if kind == "e8m0":
        return F(np.nan) if code == 255 else F(math.ldexp(1.0, code - 127))
    if kind == "f32":
        return from_bits(code)
    return F(np.nan) if code == 127 else decode("e4m3", code)


def tree_error(x, scale_code, g):
    p = decode("e4m3", scale_code) * g
    errors = np.zeros(16, F)
    for i, v in enumerate(x):
        q = decode("e2m1", encode("e2m1", v / p)) if p != 0 else F(0)
        d = v - q * p
        errors[i] = d * d
    for step in (8, 4, 2, 1):
        errors = errors[:step] + errors[step:2 * step]
    return errors[0]


def scale_code(fmt, recipe, x, amax, g):
    element, kind = fmt[0], fmt[1]
    top = F(TABLES[element][-1])
    if kind == "e8m0":
        return e8m0_code(element, recipe["power"], amax)
    if kind == "f32":
        s = F(amax) / (top * g)
        if recipe["pow2"] and s != 0:
            mantissa, exponent = math.frexp(float(s))
            s = F(math.ldexp(1.0, exponent - 1 if mantissa == 0.5 else exponent))
        return bits(s)
    best = encode("e4m3", F(amax) / (top * g))
    tries = {"max": [], "four_six": [encode("e4m3", F(amax) / (F(4) * g))], "mse": range(1, 127)}[recipe["search"]]
    least = tree_error(x, best, g) if recipe["search"] != "max" else None
    for code in tries:
        error = tree_error(x, code, g)
        if error < least:
            best, least = code, error
    return best


def finescale(x, name, recipe, g_given):
    fmt = FORMATS[name]
    element, kind, brows, bcols, two_level = fmt
    rows, cols = x.shape
    finite = np.isfinite(x)
    g, g_out = F(1), None
    if g_given is not None:
        g = g_out = F(g_given)
    elif recipe["global"] == "one":
        amax = np.max(np.abs(np.where(finite, x, 0)))
        divisor = F(TABLES[element][-1]) * (F(448) if kind else F(1))
        g = F(1) if amax == 0 else max(F(amax) / divisor, F(2.0**-126))
        if name == "fp4_tensor" and not finite.all():
            g = F(np.nan)
        g_out = g
    codes = np.zeros((rows, cols), np.uint8)
    scales = []
    for r in range(0, rows, brows):
        for c in range(0, cols, bcols):
            block = x[r:r + brows, c:c + bcols]
            ok = np.isfinite(block).all()
            if kind:
                amax = np.max(np.abs(block)) if ok else 0
                code = scale_code(fmt, recipe, block.reshape(-1), amax, g) if ok else {"e8m0": 255, "f32": 0x7FC00000, "e4m3": 127}[kind]
                scales.append(code)
                divisor = decode_scale(kind, code) * g
            else:
                divisor = g
            for i in range(block.shape[0]):
                for j in range(block.shape[1]):
                    index = (r + i) * cols + c + j
                    word = philox(index, recipe["seed"]) if recipe["rounding"] == "stochastic" else None
                    if divisor == 0:
                        code = 0
                    elif not ok:
                        code = NAN[element]
                    else:
                        code = encode(element, block[i, j] / divisor, "even", word)
                    codes[r + i, c + j] = code
    scale_bytes = np.array(scales, np.uint32 if kind == "f32" else np.uint8).tobytes() if kind else b""
    data = pack(codes) if element == "e2m1" else codes
    return data.tobytes(), scale_bytes, g_out


def flashrt(x, dtype):
    x = rounded("f16", x)
    codes, scales = np.zeros(x.shape, np.uint8), []
    for r in range(x.shape[0]):
        for c in range(0, x.shape[1], 16):
            block = x[r, c:c + 16]
            amax = F(0)
            for v in np.abs(block):
                if v > amax:
                    amax = v
            sf = encode("e4m3", max(amax / F(6), F(1e-12)))
            scales.append(sf)
            inverse = F(1) / decode("e4m3", sf)
            for j, v in enumerate(block):
                t = v * inverse
                code = next((i for i, m in enumerate(MIDPOINTS[:7]) if abs(t) <= m), 7)
                codes[r, c + j] = code | (8 if t < 0 else 0)
    return pack(codes).tobytes(), bytes(scales), None


# ---- the other systems -----------------------------------------------------------------------------------------------

def tensor(x, dtype):
    import torch
    return torch.from_numpy(x.copy()).to({"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[dtype])


def u8(t):
    import torch
    return t.contiguous().view(torch.uint8).numpy().tobytes()


def torchao(x, dtype, mode, given):
    import torch
    from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize, per_tensor_amax_to_scale
    t = tensor(x, dtype)
    g = None if mode == "none" else torch.tensor(given, dtype=torch.float32) if given is not None else per_tensor_amax_to_scale(t.abs().max())
    scales, data = nvfp4_quantize(t, 16, g)
    return u8(data), u8(scales), None if g is None else F(g.item())


def modelopt(x, dtype, mode, given):
    import torch
    from modelopt.torch.quantization.qtensor.nvfp4_tensor import NVFP4QTensor
    g = None if given is None else torch.tensor(given, dtype=torch.float32)
    q, scales, g = NVFP4QTensor.quantize(tensor(x, dtype), 16, None, g)
    return u8(q._quantized_data), u8(scales), F(g.item())


def compressed_tensors(x, dtype, mode, given):
    import torch
    from compressed_tensors.compressors.nvfp4.base import NVFP4PackedCompressor
    from compressed_tensors.quantization import preset_name_to_scheme
    from compressed_tensors.quantization.utils.helpers import calculate_qparams, generate_gparam
    scheme = preset_name_to_scheme("NVFP4", ["Linear"])
    t = tensor(x, dtype)
    groups = t.unflatten(-1, (-1, 16))
    encode_global = torch.tensor([given], dtype=torch.float32) if given is not None else generate_gparam(t.amin(), t.amax())
    scale, _ = calculate_qparams(groups.amin(-1), groups.amax(-1), scheme.weights, encode_global)
    out = NVFP4PackedCompressor.compress({"weight": t, "weight_scale": scale, "weight_global_scale": encode_global}, scheme)
    return u8(out["weight_packed"]), u8(out["weight_scale"]), F(1) / F(encode_global.item())


def deepgemm(math_module, x, dtype, fmt, pow2):
    t = tensor(x, dtype)
    if fmt == "mxfp4":
        data, scales = math_module.per_token_cast_to_fp4(t, True, 32)
        return u8(data), (scales.numpy().view(np.uint32) >> 23).astype(np.uint8).tobytes(), None
    cast = math_module.per_token_cast_to_fp8 if fmt == "fp8_e4m3_1x128" else math_module.per_block_cast_to_fp8
    data, scales = cast(t, pow2)
    return u8(data), scales.contiguous().numpy().tobytes(), None


# ---- the file --------------------------------------------------------------------------------------------------------

def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--deepgemm", required=True)
    spec = importlib.util.spec_from_file_location("deepgemm_math", arguments.parse_args().deepgemm)
    deepgemm_math = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(deepgemm_math)
    inputs, cases, used = make_inputs(), [], {}
    b64 = lambda b: base64.b64encode(b).decode()

    def add(profile, fmt, source, dtype, call, mode="none", given=None, **recipe):
        x = rounded(dtype, inputs[source])
        full = {"global": mode, "power": "round_up", "search": "max", "rounding": "nearest_even", "pow2": False, "seed": 0, **recipe}
        with np.errstate(all="ignore"):
            data, scales, g = call(x, full)
        key = f"{source}_{dtype}"
        used[key] = {"from": dtype, "rows": x.shape[0], "cols": x.shape[1], "values": b64(raw(dtype, x))}
        case = {"profile": profile, "format": fmt, "input": key, **{k: v for k, v in full.items() if k == "global" or v not in ("round_up", "max", "nearest_even", False, 0)}}
        case["codes"], case["scales"] = b64(data), b64(scales)
        if g is not None:
            case["g"] = bits(g)
        if given is not None:
            case["given"] = True
        cases.append(case)

    for fmt in FORMATS:
        two_level = FORMATS[fmt][4]
        for source in ("edges", "wide", "odd", "not_finite", "zeros") + (("square",) if fmt == "fp8_e4m3_128x128" else ("rows128",)):
            mode = "one" if two_level else "none"
            dtype = "bf16" if source == "square" else "f32"
            add("finescale", fmt, source, dtype, lambda x, r: finescale(x, fmt, r, None), mode)
        if two_level:
            if fmt == "nvfp4":
                add("finescale", fmt, "edges", "f32", lambda x, r: finescale(x, fmt, r, None), "none")
            add("finescale", fmt, "wide", "bf16", lambda x, r: finescale(x, fmt, r, 0.0123), "one", 0.0123)
        mode = "one" if two_level else "none"
        add("finescale", fmt, "plain", "f16", lambda x, r: finescale(x, fmt, r, None), mode, rounding="stochastic", seed=0x123456789)
    for power in ("ocp_floor", "even"):
        for fmt in ("mxfp4", "mxfp8_e4m3", "mxfp8_e5m2"):
            for source in ("edges", "wide"):
                add("finescale", fmt, source, "f32", lambda x, r: finescale(x, fmt, r, None), power=power)
    for search in ("four_six", "mse"):
        for source, mode in (("edges", "none"), ("plain", "one"), ("wide", "one"), ("odd", "one"), ("small", "none")):
            add("finescale", "nvfp4", source, "f32", lambda x, r: finescale(x, "nvfp4", r, None), mode, search=search)
    add("finescale", "nvfp4", "one_block", "f32", lambda x, r: finescale(x, "nvfp4", r, 1.337890625), "one", 1.337890625)
    for search in ("max", "four_six", "mse"):
        for source in ("sum_ties", "formula_ties"):
            add("finescale", "nvfp4", source, "f32", lambda x, r: finescale(x, "nvfp4", r, G), "one", G, search=search)
    for fmt in ("fp8_e4m3_1x128", "fp8_e4m3_128x128"):
        add("finescale", fmt, "rows128", "f32", lambda x, r: finescale(x, fmt, r, None), pow2=True)

    for dtype in ("f16", "bf16"):
        for source in ("edges", "plain", "wide", "small", "not_finite", "flushed"):
            if dtype == "f16" or source != "edges":
                add("flashrt", "nvfp4", source, dtype, lambda x, r: flashrt(x, dtype))
    add("modelopt", "nvfp4", "formula_ties", "f32", lambda x, r: modelopt(x, "f32", "one", G), "one", G)
    add("torchao", "nvfp4", "formula_ties", "f32", lambda x, r: torchao(x, "f32", "one", G), "one", G)
    add("compressed_tensors", "nvfp4", "bf16_ties", "bf16", lambda x, r: compressed_tensors(x, "bf16", "one", 900.0), "one", 900.0)
    for dtype in ("f32", "bf16", "f16"):
        for source in ("edges", "plain", "wide", "small"):
            if dtype == "f16" and source == "edges":  # 1e30 is Inf there
                continue
            add("modelopt", "nvfp4", source, dtype, lambda x, r: modelopt(x, dtype, "one", None), "one")
            add("modelopt", "nvfp4", source, dtype, lambda x, r: modelopt(x, dtype, "one", 0.00123), "one", 0.00123)
            add("compressed_tensors", "nvfp4", source, dtype, lambda x, r: compressed_tensors(x, dtype, "one", None), "one")
            add("compressed_tensors", "nvfp4", source, dtype, lambda x, r: compressed_tensors(x, dtype, "one", 1344.0), "one", 1344.0)
            if dtype != "f16":
                add("torchao", "nvfp4", source, dtype, lambda x, r: torchao(x, dtype, "none", None))
                add("torchao", "nvfp4", source, dtype, lambda x, r: torchao(x, dtype, "one", None), "one")
                add("torchao", "nvfp4", source, dtype, lambda x, r: torchao(x, dtype, "one", 0.00123), "one", 0.00123)
        for pow2 in (False, True):
            for source in ("rows128", "zeros"):
                add("deepgemm", "fp8_e4m3_1x128", source, dtype, lambda x, r: deepgemm(deepgemm_math, x, dtype, "fp8_e4m3_1x128", pow2), pow2=pow2)
    for pow2 in (False, True):
        add("deepgemm", "fp8_e4m3_128x128", "square", "bf16", lambda x, r: deepgemm(deepgemm_math, x, "bf16", "fp8_e4m3_128x128", pow2), pow2=pow2)
    for source in ("edges", "plain", "wide", "small"):
        for dtype in ("f32", "bf16"):
            add("deepgemm", "mxfp4", source, dtype, lambda x, r: deepgemm(deepgemm_math, x, dtype, "mxfp4", True))

    lines = ",\n".join("  " + json.dumps(c) for c in cases)
    sources = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in used.items())
    (HERE / "quantizers.json").write_text(f'{{"inputs": {{\n{sources}\n}},\n"cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
