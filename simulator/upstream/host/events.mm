// What the streams of older trees make for their events, and never wait with here. Compiled without ARC.
#include <mpsmith/host_prelude.h>

@implementation MTLSharedEventListener
- (instancetype)init {
  return [super init];
}
- (instancetype)initWithDispatchQueue:(dispatch_queue_t)dispatchQueue {
  return [super init];
}
- (dispatch_queue_t)dispatchQueue {
  return nil;
}
@end
