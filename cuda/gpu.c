/* SPDX-License-Identifier: BSD-2-Clause */
#include "cuda/gpu.h"

#include <stdio.h>

bool dl2_gpu_present(void)
{
    int count = 0;
    cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess)
        cudaGetLastError(); /* or the next call that asks would find it */
    return status == cudaSuccess && count > 0;
}

const char *dl2_gpu_version(void)
{
    static char text[32];
    if (!text[0])
        snprintf(text, sizeof text, "CUDA %d.%d", CUDART_VERSION / 1000,
                 CUDART_VERSION % 1000 / 10);
    return text;
}

/* Advice for the user; "" if there is none. */
static const char *advice(cudaError_t status)
{
    switch (status) {
    case cudaErrorMemoryAllocation:
        return "; choose a smaller batch, or a card that nothing else runs on";
    case cudaErrorNoDevice:
        return "; use another device (--device cpu), or see that the job has been given a card";
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
        return "; this machine has no NVIDIA driver, or one too old for this build's CUDA: update "
               "it, or use another device (--device cpu)";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorInvalidPtx:
        return "; this build has no kernels for this card: build it with configure "
               "--with-cuda-arch for the card's compute capability";
    case cudaErrorInitializationError:
        return "; a process that was forked from one that uses a card can't use it: start it anew "
               "(in Python: multiprocessing's \"spawn\")";
    case cudaErrorSystemNotReady:
        return "; cards that are joined by NVSwitch need the machine's Fabric Manager to run: see "
               "systemctl status nvidia-fabricmanager";
    case cudaErrorDevicesUnavailable:
        return "; another process holds the card alone: wait for it or choose another (cuda:1)";
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorMisalignedAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError:
    case cudaErrorInvalidPc:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorAssert:
        return "; an earlier call made the card fault, which ends what this process can do with "
               "it: start again from the last checkpoint, and please report it (compute-sanitizer "
               "names the place)";
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
        return "; the card's memory or links are faulty: use another card, and start again from "
               "the last checkpoint";
    default:
        return "";
    }
}

static enum dl2_status status_of(cudaError_t status)
{
    switch (status) {
    case cudaErrorMemoryAllocation:
        return DL2_ERR_MEMORY;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorInvalidPtx:
        return DL2_ERR_UNSUPPORTED;
    default:
        return DL2_ERR_SYSTEM;
    }
}

int dl2_gpu_check(cudaError_t status, const char *call, struct dl2_error *error)
{
    if (status == cudaSuccess)
        return DL2_OK;
    return dl2_error_set(error, status_of(status), "%s: %s (%s)%s", call,
                         cudaGetErrorString(status), cudaGetErrorName(status), advice(status));
}

int dl2_gpu_use(unsigned number, struct dl2_error *error)
{
    int count = 0;
    DL2_TRY(dl2_gpu_check(cudaGetDeviceCount(&count), "cudaGetDeviceCount", error));
    if (!count)
        return dl2_gpu_check(cudaErrorNoDevice, "cudaGetDeviceCount", error);
    if (number >= (unsigned)count)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "there is no card number %u: this process sees %d, numbered from 0 "
                             "(CUDA_VISIBLE_DEVICES chooses which)",
                             number, count);
    /* Since CUDA 12 this starts the card too, and so says what is wrong with it. */
    return dl2_gpu_check(cudaSetDevice((int)number), "cudaSetDevice", error);
}

int dl2_gpu_enter(unsigned number, int *before, struct dl2_error *error)
{
    DL2_TRY(dl2_gpu_check(cudaGetDevice(before), "cudaGetDevice", error));
    return dl2_gpu_check(cudaSetDevice((int)number), "cudaSetDevice", error);
}

void dl2_gpu_leave(int before)
{
    cudaSetDevice(before);
}
