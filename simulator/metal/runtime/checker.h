// The `checked` mode: the events of a dispatch apart from loads and stores.
#pragma once
#include "runtime.h"

void checker_begin(Dispatch* d);
void checker_group_end();
void checker_group_begin();
void checker_threadgroup_barrier(uint32_t flags);
void checker_simdgroup_barrier(uint32_t simdgroup, uint32_t flags);
void checker_exchange(uint32_t simdgroup, uint32_t lanes);
void checker_end();
