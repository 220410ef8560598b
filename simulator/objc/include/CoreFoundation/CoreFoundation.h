// What metal-cpp needs, with the headers that CoreFoundation brings on a Mac.
#pragma once
#include <dispatch/dispatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
typedef double CFTimeInterval;
