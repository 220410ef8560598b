// Linked into each library with Objective-C: registers its classes before its code runs.
#define SECTION(NAME) \
  extern "C" __attribute__((weak, visibility("hidden"))) void* __start_objc_##NAME[]; \
  extern "C" __attribute__((weak, visibility("hidden"))) void* __stop_objc_##NAME[]
SECTION(classlist);
SECTION(catlist);
SECTION(selrefs);
SECTION(nlclslist);

extern "C" void objc_simulator_register_image(const void* image);

namespace {

__attribute__((constructor(101))) void register_image() {
  void** image[8] = {__start_objc_classlist, __stop_objc_classlist, __start_objc_catlist,   __stop_objc_catlist,
                     __start_objc_selrefs,   __stop_objc_selrefs,   __start_objc_nlclslist, __stop_objc_nlclslist};
  objc_simulator_register_image(image);
}

} // namespace
