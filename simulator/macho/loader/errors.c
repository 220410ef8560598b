// Numbers of errors: 1 to 34 agree but for one, the others do not.
#include <errno.h>
#include <string.h>

#include "loader.h"

static const uint8_t pairs[][2] = {
    {EDEADLK, 11},         {EAGAIN, 35},       {EINPROGRESS, 36},      {EALREADY, 37},     {ENOTSOCK, 38},
    {EDESTADDRREQ, 39},    {EMSGSIZE, 40},     {EPROTOTYPE, 41},       {ENOPROTOOPT, 42},  {EPROTONOSUPPORT, 43},
    {ESOCKTNOSUPPORT, 44}, {ENOTSUP, 45},      {EPFNOSUPPORT, 46},     {EAFNOSUPPORT, 47}, {EADDRINUSE, 48},
    {EADDRNOTAVAIL, 49},   {ENETDOWN, 50},     {ENETUNREACH, 51},      {ENETRESET, 52},    {ECONNABORTED, 53},
    {ECONNRESET, 54},      {ENOBUFS, 55},      {EISCONN, 56},          {ENOTCONN, 57},     {ESHUTDOWN, 58},
    {ETOOMANYREFS, 59},    {ETIMEDOUT, 60},    {ECONNREFUSED, 61},     {ELOOP, 62},        {ENAMETOOLONG, 63},
    {EHOSTDOWN, 64},       {EHOSTUNREACH, 65}, {ENOTEMPTY, 66},        {EUSERS, 68},       {EDQUOT, 69},
    {ESTALE, 70},          {EREMOTE, 71},      {ENOLCK, 77},           {ENOSYS, 78},       {EOVERFLOW, 84},
    {ECANCELED, 89},       {EIDRM, 90},        {ENOMSG, 91},           {EILSEQ, 92},       {EBADMSG, 94},
    {EMULTIHOP, 95},       {ENODATA, 96},      {ENOLINK, 97},          {ENOSR, 98},        {ENOSTR, 99},
    {EPROTO, 100},         {ETIME, 101},       {ENOTRECOVERABLE, 104}, {EOWNERDEAD, 105},
};

int darwin_error(int number) {
  if (number == 0) return 0; // most calls succeed
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
    if (pairs[i][0] == number) return pairs[i][1];
  return number;
}

int linux_error(int number) {
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
    if (pairs[i][1] == number) return pairs[i][0];
  return number;
}

// A failed call leaves a number in Linux's errno; it moves to Darwin's when somebody looks there.
int* darwin_errno(void) {
  static __thread int number;
  if (errno) number = darwin_error(errno);
  errno = 0;
  return &number;
}
