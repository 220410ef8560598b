// MPSGraph as PyTorch's host code sees it: the types of Apple's headers, and what simulator/mpsgraph implements.
#pragma once
#include "MPSGraphCore.h"
#include "MPSGraphDescriptors.h"
#include "MPSGraphOperations.h"
