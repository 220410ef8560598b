// Methods that return a value, keep one, pass the message on, or do nothing.
#pragma once

#define METHOD(TYPE, NAME, ...) \
  -(TYPE)NAME { \
    return __VA_ARGS__; \
  }
#define CLASS_METHOD(TYPE, NAME, ...) \
  +(TYPE)NAME { \
    return __VA_ARGS__; \
  }
#define PROPERTY(TYPE, NAME, SETTER, FIELD) \
  METHOD(TYPE, NAME, FIELD) \
  -(void)SETTER : (TYPE)value { \
    FIELD = value; \
  }
#define FORWARDED(TYPE, NAME, RECEIVER) METHOD(TYPE, NAME, [RECEIVER NAME])
#define FORWARDED_WITH(TYPE, NAME, ARGUMENT, RECEIVER) \
  -(TYPE)NAME : (ARGUMENT)argument { \
    return [RECEIVER NAME:argument]; \
  }
#define IGNORED(NAME) \
  -(void)NAME { \
  }
#define IGNORED_WITH(NAME, ARGUMENT) \
  -(void)NAME : (ARGUMENT)argument { \
  }
