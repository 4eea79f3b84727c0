#pragma once

// Watermarks a loop over floats that is compiled once for each kind of processor; the loader picks
// the one that fits this machine. Only where the compiler is g++ and nothing is instrumented: clang
// 14 knows no such attribute for C++ functions, and sanitizers start after the loader has picked.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define EDL_VECTORIZED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define EDL_VECTORIZED
#endif
