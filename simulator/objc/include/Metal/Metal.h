// Metal's header, where setBytes: of an encoder learns the type of the numbers that it is given.
#pragma once
#include "../element_types.h"
#ifdef __cplusplus
#define setBytes \
  setBytes: \
  (SimulatedBytes) numbers length : (NSUInteger)size atIndex : (NSUInteger)at; \
  -(void)simulatedUntypedBytes
#endif
#include_next <Metal/Metal.h>
#undef setBytes
