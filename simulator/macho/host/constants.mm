// Array and number literals that clang lays out in a library's data (-fobjc-constant-literals). They are never freed.
// Compiled without ARC.
#import <Foundation/Foundation.h>

#include <stdexcept>
#include <string>

#include "../../objc/foundation/methods.h"

#define IMMORTAL() \
  METHOD(instancetype, retain, self) \
  -(oneway void)release { \
  } \
  METHOD(instancetype, autorelease, self) \
  METHOD(id, copy, self)

__attribute__((visibility("default")))
@interface NSConstantArray : NSObject {
 @public
  NSUInteger count_;
  id* items_;
}
@end
@implementation NSConstantArray
IMMORTAL()
METHOD(NSUInteger, count, count_)
METHOD(id, firstObject, count_ == 0 ? nil : items_[0])
METHOD(id, lastObject, count_ == 0 ? nil : items_[count_ - 1])
- (id)objectAtIndex:(NSUInteger)index {
  if (index >= count_) {
    throw std::out_of_range(
        "NSRangeException: index " + std::to_string(index) + " beyond the " + std::to_string(count_) +
        " items of an NSArray");
  }
  return items_[index];
}
- (id)objectAtIndexedSubscript:(NSUInteger)index {
  return [self objectAtIndex:index];
}
- (NSUInteger)countByEnumeratingWithState:(NSFastEnumerationState*)state objects:(id*)buffer count:(NSUInteger)length {
  static unsigned long no_mutations;
  if (state->state) {
    return 0;
  }
  state->state = 1;
  state->mutationsPtr = &no_mutations;
  state->itemsPtr = items_;
  return count_;
}
- (NSArray*)simulatedArray {
  return [NSArray arrayWithObjects:items_ count:count_];
}
- (BOOL)isKindOfClass:(Class)other {
  return other == [NSArray class] || [super isKindOfClass:other];
}
- (BOOL)isEqual:(id)other {
  return self == other || [[self simulatedArray] isEqual:other];
}
METHOD(NSUInteger, hash, [[self simulatedArray] hash])
METHOD(NSString*, description, [[self simulatedArray] description])
@end

__attribute__((visibility("default")))
@interface NSConstantIntegerNumber : NSNumber
@end
// What clang lays out; the fields of NSNumber are further back, and no method below reads them.
struct IntegerLiteral {
  Class isa;
  const char* encoding;
  long long value;
};
@implementation NSConstantIntegerNumber
IMMORTAL()
static long long value_of(NSConstantIntegerNumber* number) { return ((const IntegerLiteral*)(void*)number)->value; }
METHOD(int, intValue, (int)value_of(self))
METHOD(unsigned int, unsignedIntValue, (unsigned int)value_of(self))
METHOD(long, longValue, value_of(self))
METHOD(unsigned long, unsignedLongValue, (unsigned long)value_of(self))
METHOD(long long, longLongValue, value_of(self))
METHOD(unsigned long long, unsignedLongLongValue, (unsigned long long)value_of(self))
METHOD(NSInteger, integerValue, value_of(self))
METHOD(NSUInteger, unsignedIntegerValue, (NSUInteger)value_of(self))
METHOD(float, floatValue, (float)value_of(self))
METHOD(double, doubleValue, (double)value_of(self))
METHOD(BOOL, boolValue, value_of(self) != 0)
METHOD(NSUInteger, hash, (NSUInteger)value_of(self))
METHOD(NSString*, description, [[NSNumber numberWithLongLong:value_of(self)] description])
- (BOOL)isEqual:(id)other {
  return [other isKindOfClass:[NSNumber class]] && [other longLongValue] == value_of(self) &&
      [other doubleValue] == (double)value_of(self);
}
@end

// The empty array.
extern "C" {
extern char class_of_arrays __asm__("_OBJC_CLASS_$_NSConstantArray");
struct ArrayLiteral {
  void* isa;
  NSUInteger count;
  id* items;
};
__attribute__((visibility("default"))) ArrayLiteral __NSArray0__struct = {&class_of_arrays, 0, nullptr};
}
