// Kernels, and LAPACK, that another process runs. Both processes map buffers at one address, so that a pointer means the
// same in both; requests and answers go over stdout and stdin, while the other process waits for a call's end.
#pragma once
#include <string>

#include "../../objc/metal/programs.h"

// Whether the environment names shared memory; then it is mapped, and the functions below may be called.
bool remote_is_there();
// The functions of MetalPrograms, answered by the other process.
const MetalPrograms& remote_programs();
// What the other process answers, shared memory or not. Throws std::runtime_error with its message.
std::string remote_answer(const char* kind, const std::string& request);

// Memory of zeros in the shared part. Throws std::runtime_error if none is left.
void* shared_memory(uint64_t bytes);
void shared_memory_free(void* memory, uint64_t bytes);
// Memory that is no longer used, a line "ADDRESS BYTES" for each part. The other process must release its pages, after
// which it holds zeros.
extern "C" __attribute__((visibility("default"))) const char* shared_memory_release();
