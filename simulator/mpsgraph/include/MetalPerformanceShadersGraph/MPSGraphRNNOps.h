// A header that host code includes by its own name.
#pragma once
#include "MetalPerformanceShadersGraph.h"
