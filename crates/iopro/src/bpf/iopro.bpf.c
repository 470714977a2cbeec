// SPDX-License-Identifier: GPL-2.0-only
/*
 * IOPro's capture: each thing that happens to an I/O on its way from the system
 * call to the device and back becomes one record in a ring buffer (wire.h).
 * capture.rs loads these programs and leaves out those whose function or
 * tracepoint the kernel does not have.
 */
#include "waits.h"
#include "journal.h"
#include "uring.h"

char LICENSE[] SEC("license") = "GPL";
