#pragma once
#include <objc/objc.h>
extern "C" void* _Block_copy(const void*);
extern "C" void _Block_release(const void*);
#define Block_copy(b) ((__typeof(b))_Block_copy((const void*)(b)))
#define Block_release(b) _Block_release((const void*)(b))
