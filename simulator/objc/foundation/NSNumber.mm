// Numbers. Compiled with ARC.
#import <Foundation/Foundation.h>

#include <string>

#include "text.h"

@implementation NSValue
@end

@implementation NSNumber {
  bool is_real_;
  double real_;
  long long whole_;
}
static NSNumber* number_of(NSNumber* number, bool is_real, double real, long long whole) {
  number->is_real_ = is_real;
  number->real_ = real;
  number->whole_ = whole;
  return number;
}
#define NUMBER(NAME, TYPE, IS_REAL) \
  +(NSNumber*)NAME : (TYPE)value { \
    return number_of([NSNumber alloc], IS_REAL, (double)value, (long long)value); \
  }
NUMBER(numberWithChar, char, false)
NUMBER(numberWithUnsignedChar, unsigned char, false)
NUMBER(numberWithShort, short, false)
NUMBER(numberWithUnsignedShort, unsigned short, false)
NUMBER(numberWithInt, int, false)
NUMBER(numberWithUnsignedInt, unsigned int, false)
NUMBER(numberWithLong, long, false)
NUMBER(numberWithUnsignedLong, unsigned long, false)
NUMBER(numberWithLongLong, long long, false)
NUMBER(numberWithUnsignedLongLong, unsigned long long, false)
NUMBER(numberWithInteger, NSInteger, false)
NUMBER(numberWithUnsignedInteger, NSUInteger, false)
NUMBER(numberWithBool, BOOL, false)
NUMBER(numberWithFloat, float, true)
NUMBER(numberWithDouble, double, true)
- (int)intValue {
  return (int)whole_;
}
- (long long)longLongValue {
  return whole_;
}
- (unsigned long long)unsignedLongLongValue {
  return (unsigned long long)whole_;
}
- (NSInteger)integerValue {
  return whole_;
}
- (NSUInteger)unsignedIntegerValue {
  return (NSUInteger)whole_;
}
- (float)floatValue {
  return (float)real_;
}
- (double)doubleValue {
  return real_;
}
- (BOOL)boolValue {
  return real_ != 0;
}
- (BOOL)isEqual:(id)other {
  return [other isKindOfClass:[NSNumber class]] && real_ == [other doubleValue] && whole_ == [other longLongValue];
}
- (NSUInteger)hash {
  return (NSUInteger)whole_;
}
- (NSString*)description {
  if (!is_real_) {
    return string_of(std::to_string(whole_));
  }
  char text[32];
  snprintf(text, sizeof(text), "%.17g", real_);
  for (int digits = 1; digits < 17; ++digits) { // the shortest text that reads back as the same number
    char shorter[32];
    snprintf(shorter, sizeof(shorter), "%.*g", digits, real_);
    if (strtod(shorter, nullptr) == real_) {
      return string_of(shorter);
    }
  }
  return string_of(text);
}
@end
