// Numbers. Compiled with ARC.
#import <Foundation/Foundation.h>

#include <charconv>
#include <iterator>
#include <string>

#include "methods.h"
#include "text.h"

@implementation NSValue {
  void* pointer_;
}
+ (NSValue*)valueWithPointer:(const void*)pointer {
  NSValue* value = [NSValue alloc];
  value->pointer_ = (void*)pointer;
  return value;
}
METHOD(void*, pointerValue, pointer_)
@end

namespace {
enum class Kind { whole, single, real };
}

@implementation NSNumber {
  Kind kind_;
  double real_;
  long long whole_;
}
static NSNumber* number_of(NSNumber* number, Kind kind, double real, long long whole) {
  number->kind_ = kind;
  number->real_ = real;
  number->whole_ = whole;
  return number;
}
#define NUMBER(NAME, TYPE, KIND) \
  +(NSNumber*)NAME : (TYPE)value { \
    return number_of([NSNumber alloc], Kind::KIND, (double)value, (long long)value); \
  }
NUMBER(numberWithChar, char, whole)
NUMBER(numberWithUnsignedChar, unsigned char, whole)
NUMBER(numberWithShort, short, whole)
NUMBER(numberWithUnsignedShort, unsigned short, whole)
NUMBER(numberWithInt, int, whole)
NUMBER(numberWithUnsignedInt, unsigned int, whole)
NUMBER(numberWithLong, long, whole)
NUMBER(numberWithUnsignedLong, unsigned long, whole)
NUMBER(numberWithLongLong, long long, whole)
NUMBER(numberWithUnsignedLongLong, unsigned long long, whole)
NUMBER(numberWithInteger, NSInteger, whole)
NUMBER(numberWithUnsignedInteger, NSUInteger, whole)
NUMBER(numberWithBool, BOOL, whole)
NUMBER(numberWithFloat, float, single)
NUMBER(numberWithDouble, double, real)
- (instancetype)initWithInteger:(NSInteger)value {
  return number_of(self, Kind::whole, (double)value, value);
}
METHOD(int, intValue, (int)whole_)
METHOD(unsigned int, unsignedIntValue, (unsigned int)whole_)
METHOD(long, longValue, (long)whole_)
METHOD(unsigned long, unsignedLongValue, (unsigned long)whole_)
METHOD(long long, longLongValue, whole_)
METHOD(unsigned long long, unsignedLongLongValue, (unsigned long long)whole_)
METHOD(NSInteger, integerValue, whole_)
METHOD(NSUInteger, unsignedIntegerValue, (NSUInteger)whole_)
METHOD(float, floatValue, (float)real_)
METHOD(double, doubleValue, real_)
METHOD(BOOL, boolValue, real_ != 0)
- (BOOL)isEqual:(id)other {
  return [other isKindOfClass:[NSNumber class]] && real_ == [other doubleValue] && whole_ == [other longLongValue];
}
METHOD(NSUInteger, hash, (NSUInteger)whole_)
- (NSString*)description { // the shortest text that reads back as the same number
  char text[32];
  const char* end = kind_ == Kind::whole ? std::to_chars(text, std::end(text), whole_).ptr
      : kind_ == Kind::single            ? std::to_chars(text, std::end(text), float(real_)).ptr
                                         : std::to_chars(text, std::end(text), real_).ptr;
  return string_of(std::string(text, end - text));
}
@end
