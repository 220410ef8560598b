// The types of Objective-C, for host code of Metal kernels on Linux.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
typedef struct objc_class* Class;
typedef struct objc_object { Class isa; }* id;
#ifdef __OBJC__
@class Protocol;
#else
typedef struct objc_object Protocol;
#endif
typedef struct objc_selector* SEL;
typedef void (*IMP)(void);
typedef bool BOOL;
typedef long NSInteger;
typedef unsigned long NSUInteger;
#define YES __objc_yes
#define NO __objc_no
#define Nil nullptr
#ifndef nil
#define nil nullptr
#endif
#define OBJC_EXPORT extern "C"
#define OBJC_OLD_DISPATCH_PROTOTYPES 0
extern "C" {
const char* sel_getName(SEL);
SEL sel_registerName(const char*);
Class objc_getClass(const char*);
Class objc_lookUpClass(const char*);
Protocol* objc_getProtocol(const char*);
Class object_getClass(id);
const char* object_getClassName(id);
const char* class_getName(Class);
Class class_getSuperclass(Class);
IMP class_getMethodImplementation(Class, SEL);
BOOL class_respondsToSelector(Class, SEL);
}
