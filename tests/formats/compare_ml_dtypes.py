"""Compares the element encodings with ml_dtypes and numpy, an implementation of its own.

    compare_ml_dtypes.py <dump_codes program>

Every code of every input must be theirs, but for the differences listed in expected_codes(); every decoded value must
be theirs without exception. Exit status: 0 equal, 1 a difference, 77 ml_dtypes or numpy is not installed.
"""

import pathlib
import subprocess
import sys
import tempfile

try:
    import ml_dtypes
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

DTYPES = {
    "e2m1": ml_dtypes.float4_e2m1fn,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e8m0": ml_dtypes.float8_e8m0fnu,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
}


def bits_of(array):
    return array.view(np.uint8 if array.dtype.itemsize == 1 else np.uint16).astype(np.uint32)


def next_power_of_two_code(inputs):
    """E8M0, rounded up: the exponent code of the smallest power of two >= |x|, at most 254."""
    mantissa, exponent = np.frexp(np.abs(inputs.astype(np.float64)))
    power = np.where(mantissa == 0.5, exponent - 1, exponent)
    return np.clip(np.where(inputs == 0, 0, power + 127), 0, 254)


def expected_codes(name, inputs, theirs):
    """Their codes with the written differences applied."""
    nan, negative, magnitude = np.isnan(inputs), np.signbit(inputs), np.abs(inputs)
    if name == "e8m0":  # theirs: nearest, and NaN for what has no power of two; ours: up, sign dropped, clamped
        rounded = next_power_of_two_code(np.where(np.isfinite(inputs), inputs, 0))
        return np.where(nan, 255, np.where(np.isinf(inputs), 254, rounded))
    nan_code = {"e2m1": 0x7, "e4m3": 0x7F, "e5m2": 0x7F, "f16": 0x7E00, "bf16": 0x7FC0}[name]
    expected = np.where(nan, nan_code, theirs)  # ours has no sign and one form
    if name == "e4m3":  # theirs overflows to NaN, ours saturates
        expected = np.where(~nan & (magnitude > 464), np.where(negative, 0xFE, 0x7E), expected)
    if name == "e5m2":  # theirs overflows to Inf, ours saturates
        expected = np.where(~nan & (magnitude >= 61440), np.where(negative, 0xFB, 0x7B), expected)
    return expected


def first_difference(label, ours, theirs, inputs):
    wrong = np.flatnonzero(ours != theirs)
    if wrong.size:
        i = wrong[0]
        print(f"{label}: {wrong.size} differences, first at {inputs[i]!r}: ours {ours[i]!r}, theirs {theirs[i]!r}")
    return wrong.size == 0


def main(program):
    equal = True
    with tempfile.TemporaryDirectory() as directory, np.errstate(all="ignore"):
        subprocess.run([program, directory], check=True)
        folder = pathlib.Path(directory)
        inputs = np.fromfile(folder / "inputs.f32", "<f4")
        assert inputs.size == 2 * 65536 + 1000000, inputs.size
        for name, dtype in DTYPES.items():
            codes = np.fromfile(folder / f"{name}.codes", "<u4")
            theirs = bits_of(inputs.astype(dtype))
            equal &= first_difference(f"{name} encode", codes, expected_codes(name, inputs, theirs), inputs)
            if name == "e8m0":  # where their rounding has no say, theirs without a written difference
                exact = next_power_of_two_code(inputs) == theirs
                powers = (np.frexp(inputs)[0] == 0.5) & (inputs >= 2.0**-127)
                equal &= bool(exact[powers].all()) and bool((codes[powers] == theirs[powers]).all())
            values = np.fromfile(folder / f"{name}.values", "<f4")
            unsigned = np.uint16 if np.dtype(dtype).itemsize == 2 else np.uint8
            decoded = np.arange(values.size).astype(unsigned).view(dtype).astype(np.float32)
            same = (values == decoded) & (np.signbit(values) == np.signbit(decoded)) | np.isnan(values) & np.isnan(decoded)
            equal &= first_difference(f"{name} decode", same, np.ones_like(same), np.arange(values.size))
            print(f"{name}: {inputs.size} inputs and {values.size} codes compared")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
