// Objective-C exceptions are C++ exceptions with type information that compares classes, as on macOS. libstdc++ does the
// rest.
#include "runtime.h"

#include <cxxabi.h>
#include <exception>
#include <typeinfo>

namespace {

struct ExceptionType { // objc_typeinfo
  void** vtable;
  const char* name;
  Class of; // null: any object
};

bool is_no(const void*) { return false; }
bool do_catch(const ExceptionType* wanted, const std::type_info* thrown, void** object, unsigned) {
  if (*reinterpret_cast<void** const*>(thrown) != wanted->vtable) {
    return false; // a C++ exception
  }
  id exception = *reinterpret_cast<id*>(*object);
  if (wanted->of != nullptr && !objc_opt_isKindOfClass(exception, wanted->of)) {
    return false;
  }
  *object = exception;
  return true;
}
bool do_upcast(const void*, const void*, void**) { return false; }
void no_destructor(void*) {}

void destroy_exception(void* object) { objc_release(*static_cast<id*>(object)); }

} // namespace

extern "C" {

// offset to top, type_info, two destructors, __is_pointer_p, __is_function_p, __do_catch, __do_upcast
void* objc_ehtype_vtable[] = {
    nullptr,
    nullptr,
    reinterpret_cast<void*>(&no_destructor),
    reinterpret_cast<void*>(&no_destructor),
    reinterpret_cast<void*>(&is_no),
    reinterpret_cast<void*>(&is_no),
    reinterpret_cast<void*>(&do_catch),
    reinterpret_cast<void*>(&do_upcast)};
ExceptionType OBJC_EHTYPE_id = {&objc_ehtype_vtable[2], "id", nullptr};

void objc_exception_throw(id exception) {
  auto* place = static_cast<id*>(abi::__cxa_allocate_exception(sizeof(id)));
  *place = objc_retain(exception);
  abi::__cxa_throw(place, reinterpret_cast<std::type_info*>(&OBJC_EHTYPE_id), &destroy_exception);
}
void objc_exception_rethrow() { throw; }
id objc_begin_catch(void* exception) { return static_cast<id>(abi::__cxa_begin_catch(exception)); }
void objc_end_catch() { abi::__cxa_end_catch(); }
void objc_terminate() { std::terminate(); }

int __gxx_personality_v0(int, int, uint64_t, void*, void*);
int __objc_personality_v0(int version, int actions, uint64_t kind, void* exception, void* context) {
  return __gxx_personality_v0(version, actions, kind, exception, context);
}

} // extern "C"
