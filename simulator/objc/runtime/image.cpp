// Linked into each library with Objective-C: registers its classes before its code runs.
#ifdef __APPLE__
#include <dlfcn.h>
#include <mach-o/getsect.h>
#else
#define SECTION(NAME) \
  extern "C" __attribute__((weak, visibility("hidden"))) void* __start_objc_##NAME[]; \
  extern "C" __attribute__((weak, visibility("hidden"))) void* __stop_objc_##NAME[]
SECTION(classlist);
SECTION(catlist);
SECTION(selrefs);
SECTION(nlclslist);
#endif

extern "C" void objc_simulator_register_image(const void* image);

namespace {

__attribute__((constructor(101))) void register_image() {
#ifdef __APPLE__
  void** image[8];
  Dl_info library{};
  dladdr(reinterpret_cast<const void*>(&register_image), &library);
  const auto* header = static_cast<const mach_header_64*>(library.dli_fbase);
  const char* const names[] = {"__objc_classlist", "__objc_catlist", "__objc_selrefs", "__objc_nlclslist"};
  for (int i = 0; i < 4; ++i) {
    unsigned long size = 0;
    const uint8_t* found = getsectiondata(header, "__DATA_CONST", names[i], &size);
    found = found ? found : getsectiondata(header, "__DATA", names[i], &size);
    auto* first = reinterpret_cast<void**>(const_cast<uint8_t*>(found));
    image[2 * i] = first;
    image[2 * i + 1] = first + size / sizeof(void*);
  }
#else
  void** image[8] = {__start_objc_classlist, __stop_objc_classlist, __start_objc_catlist,   __stop_objc_catlist,
                     __start_objc_selrefs,   __stop_objc_selrefs,   __start_objc_nlclslist, __stop_objc_nlclslist};
#endif
  objc_simulator_register_image(image);
}

} // namespace
