#pragma once
#define TARGET_OS_MAC 1
#define TARGET_OS_OSX 1
