// Events of torch's mps backend on the one stream of the simulated device, which does work when it is encoded: a missing
// commit or wait is not seen. Compiled without ARC.
#define AT_PER_OPERATOR_HEADERS
#include <ATen/native/mps/OperationUtils.h>

#include <ATen/mps/MPSEvent.h>

namespace at::mps {

MPSEvent::MPSEvent(id_t number, MPSStream* stream, bool enable_timing)
    : m_id(number), m_enable_timing(enable_timing), m_stream(stream) {
  m_event = [stream->device() newSharedEvent];
}
MPSEvent::~MPSEvent() { [m_event release]; }

void MPSEvent::reset(MPSStream* stream, bool enable_timing) {
  m_stream = stream;
  m_enable_timing = enable_timing;
  m_signalCounter = 0;
  m_completion_time = 0;
  [m_event setSignaledValue:0];
}
void MPSEvent::recordLocked(bool syncEvent) {
  m_stream->endKernelCoalescing();
  [m_stream->commandBuffer() encodeSignalEvent:m_event value:++m_signalCounter];
  if (m_enable_timing) {
    m_stream->addCompletedHandler(^(id<MTLCommandBuffer>) {
      m_completion_time = getTime();
    });
  }
  m_stream->synchronize(syncEvent ? SyncType::COMMIT : SyncType::NONE);
}
bool MPSEvent::waitLocked(bool syncEvent) {
  if (m_signalCounter == 0) {
    return false;
  }
  m_stream->endKernelCoalescing();
  [m_stream->commandBuffer() encodeWaitForEvent:m_event value:m_signalCounter];
  m_stream->synchronize(syncEvent ? SyncType::COMMIT : SyncType::NONE);
  return true;
}
bool MPSEvent::notify(bool, MTLSharedEventNotificationBlock block) { return notifyLocked(block); }
bool MPSEvent::notifyLocked(MTLSharedEventNotificationBlock block) {
  if (m_signalCounter == 0) {
    return false;
  }
  id<MTLSharedEvent> event = m_event;
  const uint64_t value = m_signalCounter;
  m_stream->addCompletedHandler(^(id<MTLCommandBuffer>) {
    block(event, value);
  });
  return true;
}
void MPSEvent::record(bool, bool syncEvent) { recordLocked(syncEvent); }
bool MPSEvent::wait(bool, bool syncEvent) { return waitLocked(syncEvent); }
bool MPSEvent::query() const { return m_signalCounter == 0 || [m_event signaledValue] >= m_signalCounter; }
bool MPSEvent::synchronize() {
  if (m_signalCounter == 0) {
    return false;
  }
  m_stream->synchronize(SyncType::COMMIT_AND_WAIT);
  return true;
}
void MPSEvent::waitForCpuSync() { synchronize(); }

MPSEventPool::MPSEventPool(MPSStream* default_stream)
    : m_default_stream(default_stream), m_default_deleter([](MPSEvent* event) { delete event; }) {}
MPSEventPool::~MPSEventPool() = default;
void MPSEventPool::emptyCache() {}

MPSEventPtr MPSEventPool::acquireEvent(bool enable_timing, MPSStream* stream) {
  const std::lock_guard<std::recursive_mutex> guard(m_mutex);
  return {
      new MPSEvent(++m_event_counter, stream != nullptr ? stream : m_default_stream, enable_timing), m_default_deleter};
}
id_t MPSEventPool::acquireEvent(bool enable_timing) {
  const std::lock_guard<std::recursive_mutex> guard(m_mutex);
  MPSEventPtr event = acquireEvent(enable_timing, nullptr);
  const id_t number = event->getID();
  m_in_use_events.emplace(number, std::move(event));
  return number;
}
MPSEvent* MPSEventPool::getInUseEvent(id_t number, bool) {
  const std::lock_guard<std::recursive_mutex> guard(m_mutex);
  const auto found = m_in_use_events.find(number);
  TORCH_CHECK(found != m_in_use_events.end(), "there is no event ", number, " in use");
  return found->second.get();
}
void MPSEventPool::releaseEvent(id_t number) {
  const std::lock_guard<std::recursive_mutex> guard(m_mutex);
  TORCH_CHECK(m_in_use_events.erase(number) == 1, "there is no event ", number, " in use");
}
void MPSEventPool::recordEvent(id_t number, bool syncEvent) { getInUseEvent(number)->record(true, syncEvent); }
void MPSEventPool::waitForEvent(id_t number, bool syncEvent) { getInUseEvent(number)->wait(true, syncEvent); }
void MPSEventPool::synchronizeEvent(id_t number) { getInUseEvent(number)->synchronize(); }
bool MPSEventPool::queryEvent(id_t number) { return getInUseEvent(number)->query(); }
double MPSEventPool::elapsedTime(id_t start, id_t end) {
  const uint64_t from = getInUseEvent(start)->getCompletionTime(), to = getInUseEvent(end)->getCompletionTime();
  TORCH_CHECK(
      from != 0 && to != 0, "both events must be made with enable_timing=true and be recorded and synchronized");
  return (static_cast<double>(to) - static_cast<double>(from)) * 1e-6;
}

std::shared_ptr<MPSEventPool> getMPSEventPool() {
  static auto pool = std::make_shared<MPSEventPool>(getDefaultMPSStream());
  return pool;
}

} // namespace at::mps
