/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What stands in for the card where there is none, so that the training device's own code runs and
 * is tested: a CUDA runtime (fake_cuda.c), what is used of cuDNN's graph interface (fake_cudnn.c)
 * and of cublasLt (fake_cublas.c), each by plain C through the reference device, and our kernels by
 * emulate.h. "Memory of the card" is this machine's, exactly as large as was asked for and full of
 * 0xff, so that sanitizers see what goes beyond, and comparisons what was never written.
 *
 * DL2_FAKE_PACE says when what is queued runs: "eager", as soon as it may; "lazy", when somebody
 * waits for it, and then threads and blocks of kernels from the last to the first; "random",
 * streams by turns. DL2_FAKE_MEMORY is the card's, in bytes. There are DL2_FAKE_CARDS of them
 * (default: 1); several, each in a process of its own, add up by fake_nccl.c, which loses a peer
 * after DL2_FAKE_NCCL_SUMS of them. DL2_FAKE_FAULT="1 500": number 1 breaks at its 501st copy.
 * DL2_FAKE_REFUSED is the size of allocations that fail. The card's clock counts what its work
 * takes: three times as long at first, and less and less until it has worked for 200 ms.
 * DL2_FAKE_PLANS is the number of plans that cuDNN lists [4], DL2_FAKE_BEST that of the fastest [3]
 * once the L2 cache was overwritten. Number 0 cannot be made, 2 is the fastest as long as its own
 * tensors are in the cache, 4 fails, 5 needs a workspace of 5000 bytes instead of 1000.
 * That which DL2_FAKE_FAULTY names makes the card fault.
 * DL2_FAKE_WRONG is the number of a plan of convolutions, "product", "attention" or "attention's
 * gradient", whose last result is wrong; with "nan", that of all products is no number.
 * DL2_FAKE_ATTENTION says that cuDNN has no plans of attention, "none", or that they "fail";
 * DL2_FAKE_BIAS says so of convolutions with their bias; with "none", cublasLt has no products of
 * 16 bits with a bias either.
 * DL2_FAKE_RECORDING names the step at which recordings fail: "begin", "call", "end",
 * "instantiate", "launch". DL2_FAKE_PROFILE names a file for what a profiler is told.
 */
#ifndef DL2_TESTS_CUDA_FAKE_CUDA_H
#define DL2_TESTS_CUDA_FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>

struct CUstream_st;
/* Queues run(call); `size` bytes of `call` are copied. */
void dl2_fake_queue(struct CUstream_st *stream, void (*run)(void *call), void *call, size_t size);
/* The same for what waits for other processes. */
void dl2_fake_queue_meeting(struct CUstream_st *stream, void (*run)(void *call), void *call,
                            size_t size);
/* How many of these recordings have that are not yet destroyed. */
extern _Atomic unsigned dl2_fake_recorded_meetings;
/* Passes time on the card's clock, in milliseconds: `cold` where its L2 cache was overwritten since
 * the last such call. */
void dl2_fake_spend(double warm, double cold);
/* Queued, it is a kernel that makes the card fault: nothing works afterwards. */
void dl2_fake_break(void *call);
/* Must a library's call on this stream fail? It spoils what the stream records. */
bool dl2_fake_call_fails(struct CUstream_st *stream);

/* emulate.cpp's */
extern bool dl2_emulate_backwards;
extern void (*dl2_emulate_queue)(struct CUstream_st *stream, void (*run)(void *call), void *call,
                                 size_t size);

#endif
