// What metal-cpp needs of CoreFoundation, with the headers that it brings on a Mac.
#pragma once
#include <dispatch/dispatch.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
typedef double CFTimeInterval;
typedef const struct __CFString* CFStringRef;
