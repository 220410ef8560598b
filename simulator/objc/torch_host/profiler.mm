// torch's profiler of mps operations, which host code calls around each kernel. It does nothing here. Compiled without
// ARC, also into the backend of a tree (simulator/upstream).
#if __has_include(<mpsmith/host_prelude.h>)
#include <mpsmith/host_prelude.h>
#else
#define AT_PER_OPERATOR_HEADERS
#endif
#include <ATen/native/mps/OperationUtils.h>

#include <ATen/mps/MPSProfiler.h>

namespace at::mps {

namespace Profiler {

MPSProfiler::MPSProfiler() : m_os_log_events(nullptr), m_os_log_intervals(nullptr) {}
MPSProfiler::~MPSProfiler() = default;

uint64_t MPSProfiler::beginProfileKernel(const void*, const std::string&, bool) { return 0; }
uint64_t MPSProfiler::beginProfileKernel(const void*, const std::string&, const TensorList&) { return 0; }
uint64_t MPSProfiler::beginProfileCopy(
    const void*, const void*, const OptionalTensorRef, const OptionalTensorRef, size_t, bool, bool) {
  return 0;
}
uint64_t MPSProfiler::beginProfileCPUFallback(const std::string&, const TensorList&) { return 0; }
void MPSProfiler::beginProfileGPUInterval(const void*) {}
void MPSProfiler::endProfileCopy(uint64_t, SyncType) {}
void MPSProfiler::endProfileKernel(const void*, SyncType) {}
void MPSProfiler::endProfileCPUFallback(const std::string&) {}
void MPSProfiler::StartTrace(const std::string&, bool) {}
void MPSProfiler::StopTrace() {}
#ifndef MPSMITH_WITHOUT_CAPTURE
bool MPSProfiler::isCaptureEnabled() const { return false; }
bool MPSProfiler::isCapturing() const { return false; }
void MPSProfiler::startCapture(const std::string&, MPSStream*) {}
void MPSProfiler::stopCapture(MPSStream*) {}
#endif

const std::string BaseInfo::toString(double, double) const { return ""; }
const std::string OperationInfo::toString(double, double) const { return strKey; }
const std::string CpuFbInfo::toString(double, double) const { return opName; }
const std::string CopyInfo::toString(double, double) const { return srcStrKey; }

} // namespace Profiler

Profiler::MPSProfiler& getMPSProfiler() {
  static auto* profiler = new Profiler::MPSProfiler;
  return *profiler;
}

} // namespace at::mps
