#pragma once

// Marks a function with a loop over floats. The compiler makes one version of it for each kind of
// processor, and the dynamic loader picks the version for this machine. Has an effect only with g++
// and without sanitizers: clang 14 lacks this attribute for C++ functions, and the loader picks
// before sanitizers are initialized.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define EDL_VECTORIZED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define EDL_VECTORIZED
#endif
