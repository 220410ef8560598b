// Lets a kernel refuse what only it sees, such as an index out of range. Where the running torch has a buffer for
// errors (REPORTS, see runtime/shader.py) the error is raised at the next synchronisation; elsewhere it is lost.
// The buffer is the last argument of the kernel: REPORT_BUFFER(n) closes the list of buffers, before the positions.
#ifdef REPORTS
#include <c10/metal/error.h>
#define REPORT_BUFFER(n) device c10::metal::ErrorMessages *reports [[buffer(n)]],
#define REPORT_TYPE device c10::metal::ErrorMessages *,
#define REPORT(...) TORCH_REPORT_ERROR(reports, __VA_ARGS__)
#else
#define REPORT_BUFFER(n)
#define REPORT_TYPE
#define REPORT(...)
#endif
