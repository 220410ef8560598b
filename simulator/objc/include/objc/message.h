#pragma once
#include <objc/objc.h>
extern "C" void objc_msgSend(), objc_msgSend_stret(), objc_msgSend_fpret();
