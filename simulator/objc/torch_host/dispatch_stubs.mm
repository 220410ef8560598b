// Dispatch stubs that know mps. A torch built for Linux has a place for a kernel of mps in each of them, but its
// DispatchStubImpl::get_call_ptr refuses to look there. All stubs call it through one slot of libtorch_cpu's table of
// functions, which is pointed here when this library is loaded. Compiled without ARC.
#define AT_PER_OPERATOR_HEADERS
#include <ATen/native/mps/OperationUtils.h>

#include <ATen/native/DispatchStub.h>
#include <c10/util/Exception.h>

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

namespace {

using at::native::DispatchStubImpl;
// Arguments behind the device are a pointer for each instruction set that the build knows: as many as there may be.
using GetCallPtr = void* (*)(DispatchStubImpl*, c10::DeviceType, void*, void*, void*, void*);

constexpr const char* kFunction = "_ZN2at6native16DispatchStubImpl12get_call_ptrE";
constexpr const char* kLibrary = "libtorch_cpu.so";

GetCallPtr original;

void* get_call_ptr(DispatchStubImpl* stub, c10::DeviceType device, void* a, void* b, void* c, void* d) {
  if (device != c10::DeviceType::MPS) {
    return original(stub, device, a, b, c, d);
  }
  TORCH_CHECK(stub->mps_dispatch_ptr != nullptr, "DispatchStub: missing kernel for ", device);
  return stub->mps_dispatch_ptr;
}

// The table of a loaded library, as its dynamic section describes it.
struct FunctionTable {
  const char* names = nullptr;
  const ElfW(Sym) * symbols = nullptr;
  const ElfW(Rela) * slots = nullptr;
  size_t count = 0;

  FunctionTable(ElfW(Addr) base, const ElfW(Dyn) * entries) {
    for (; entries->d_tag != DT_NULL; ++entries) {
      // The dynamic linker of glibc has made addresses of these offsets; others leave them as they are.
      const auto value = entries->d_un.d_ptr;
      const auto address = value < base ? base + value : value;
      switch (entries->d_tag) {
        case DT_STRTAB:
          names = reinterpret_cast<const char*>(address);
          break;
        case DT_SYMTAB:
          symbols = reinterpret_cast<const ElfW(Sym)*>(address);
          break;
        case DT_JMPREL:
          slots = reinterpret_cast<const ElfW(Rela)*>(address);
          break;
        case DT_PLTRELSZ:
          count = entries->d_un.d_val / sizeof(ElfW(Rela));
          break;
      }
    }
  }
};

void replace(void** slot, void* address) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  auto* start = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(slot) & ~(page - 1));
  if (mprotect(start, page, PROT_READ | PROT_WRITE) == 0) {
    *slot = address;
  }
}

int point_stubs_here(dl_phdr_info* library, size_t, void*) {
  if (std::strstr(library->dlpi_name, kLibrary) == nullptr) {
    return 0;
  }
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    if (library->dlpi_phdr[i].p_type != PT_DYNAMIC) {
      continue;
    }
    const auto base = library->dlpi_addr;
    const FunctionTable table(base, reinterpret_cast<const ElfW(Dyn)*>(base + library->dlpi_phdr[i].p_vaddr));
    for (size_t k = 0; table.slots != nullptr && k < table.count; ++k) {
      const char* name = table.names + table.symbols[ELF64_R_SYM(table.slots[k].r_info)].st_name;
      if (std::strncmp(name, kFunction, std::strlen(kFunction)) == 0) {
        const auto& symbol = table.symbols[ELF64_R_SYM(table.slots[k].r_info)];
        original = reinterpret_cast<GetCallPtr>(base + symbol.st_value);
        replace(reinterpret_cast<void**>(base + table.slots[k].r_offset), reinterpret_cast<void*>(&get_call_ptr));
      }
    }
  }
  return 1;
}

__attribute__((constructor)) void point_all_stubs_here() { dl_iterate_phdr(point_stubs_here, nullptr); }

} // namespace
