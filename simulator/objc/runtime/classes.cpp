// Classes and selectors by name, and registration of images.
#include "runtime.h"

#include <cstring>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace {

struct Names {
  std::mutex mutex;
  std::unordered_map<std::string, SEL> selectors;
  std::unordered_map<std::string, Class> classes;
  std::unordered_set<std::string> implemented; // selectors that some class has a method for
  std::string unknown; // selectors that an image sends and no class has a method for, one a line
};
Names& names() {
  static auto* all = new Names;
  return *all;
}

void note_methods(const objc::MethodList* methods) {
  for (uint32_t i = 0; methods != nullptr && i < methods->count; ++i) {
    names().implemented.insert((*methods)[i].name);
  }
}

template <class T>
struct Range {
  T *first, *last;
  T* begin() const { return first; }
  T* end() const { return last; }
};

} // namespace

extern "C" {

// The Objective-C sections of a library, in the order of image.cpp.
struct Image {
  Range<Class> classes;
  Range<const objc::Category*> categories;
  Range<SEL> selectors;
  Range<Class> with_load; // classes that have a method +load
};

// Whether a class of any image has a method of this name.
BOOL objc_simulator_implements(const char* selector) {
  const std::lock_guard<std::mutex> guard(names().mutex);
  return names().implemented.count(selector) != 0;
}

void objc_simulator_register_image(const Image* image) {
  {
    const std::lock_guard<std::mutex> guard(names().mutex);
    for (Class of : image->classes) {
      names().classes[of->data()->name] = of;
      note_methods(of->data()->methods);
      note_methods(of->isa->data()->methods);
    }
    for (const objc::Category* category : image->categories) {
      note_methods(category->instance_methods);
      note_methods(category->class_methods);
    }
  }
  for (const objc::Category* category : image->categories) {
    objc::add_category(category);
  }
  for (SEL& selector : image->selectors) {
    const char* name = reinterpret_cast<const char*>(selector);
    if (!objc_simulator_implements(name)) {
      names().unknown.append(name).append("\n");
    }
    selector = sel_registerName(name);
  }
  for (Class of : image->with_load) {
    if (IMP load = objc::own_method(of->isa, "load")) {
      reinterpret_cast<void (*)(Class, SEL)>(load)(of, sel_registerName("load"));
    }
  }
}

// Selectors that images send and no class implements, since the last call, one a line.
const char* objc_simulator_unknown_selectors() {
  thread_local std::string answer;
  const std::lock_guard<std::mutex> guard(names().mutex);
  answer.swap(names().unknown);
  names().unknown.clear();
  return answer.c_str();
}

SEL sel_registerName(const char* name) {
  const std::lock_guard<std::mutex> guard(names().mutex);
  SEL& known = names().selectors[name];
  if (known == nullptr) {
    known = reinterpret_cast<SEL>(strdup(name));
  }
  return known;
}
SEL sel_getUid(const char* name) { return sel_registerName(name); }
const char* sel_getName(SEL name) { return reinterpret_cast<const char*>(name); }

Class objc_getClass(const char* name) {
  const std::lock_guard<std::mutex> guard(names().mutex);
  const auto found = names().classes.find(name);
  return found == names().classes.end() ? nullptr : found->second;
}
Class objc_lookUpClass(const char* name) { return objc_getClass(name); }
// metal-cpp asks for those of Metal when it is loaded. No object here is asked for one.
id objc_getProtocol(const char*) { return nullptr; }
Class object_getClass(id object) { return object ? objc::class_of(object) : nullptr; }
const char* class_getName(Class of) { return of ? of->data()->name : "nil"; }
const char* object_getClassName(id object) { return class_getName(object_getClass(object)); }
Class class_getSuperclass(Class of) { return of ? of->superclass : nullptr; }
BOOL class_isMetaClass(Class of) { return of && of->is_meta(); }
IMP class_getMethodImplementation(Class of, SEL name) { return objc::method_or_null(of, name); }
BOOL class_respondsToSelector(Class of, SEL name) { return of && objc::method_or_null(of, name) != nullptr; }

id objc_opt_self(id object) { return object; }
Class objc_opt_class(id object) {
  if (object == nullptr) {
    return nullptr;
  }
  Class of = objc::class_of(object);
  return of->is_meta() ? reinterpret_cast<Class>(object) : of;
}
BOOL objc_opt_isKindOfClass(id object, Class of) {
  for (Class c = object_getClass(object); c != nullptr; c = c->superclass) {
    if (c == of) {
      return true;
    }
  }
  return false;
}
BOOL objc_opt_respondsToSelector(id object, SEL name) {
  return object && objc::method_or_null(objc::class_of(object), name) != nullptr;
}

} // extern "C"
