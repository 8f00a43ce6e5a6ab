/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stands in for libnvidia-ml.so.1 in card.sh: one card at 0000:1b:00.0, or at 0000:00:00.0, number
 * 0, that takes 250 W, of which a kernel runs 80% of the time. Its energy counter goes up by 2 J at
 * each reading, however busy the machine is. FAKE_NVML lists what is amiss: "noinit", "nocounter"
 * (no energy counter), "nothing" (every reading fails).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    DRIVER_NOT_LOADED = 9
};

static int open_count;
static int card;

static int amiss(const char *what)
{
    const char *list = getenv("FAKE_NVML");
    return list && strstr(list, what);
}

static int ready(const void *device)
{
    return open_count <= 0    ? UNINITIALIZED
           : device != &card  ? INVALID_ARGUMENT
           : amiss("nothing") ? NOT_SUPPORTED
                              : SUCCESS;
}

int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
    if (amiss("noinit"))
        return DRIVER_NOT_LOADED;
    open_count++;
    return SUCCESS;
}

int nvmlShutdown(void);
int nvmlShutdown(void)
{
    if (open_count <= 0)
        abort(); /* more often than nvmlInit_v2() */
    open_count--;
    return SUCCESS;
}

int nvmlSystemGetDriverVersion(char *version, unsigned length);
int nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    snprintf(version, length, "580.00.00");
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    if (index > 0)
        return INVALID_ARGUMENT;
    *device = &card;
    return SUCCESS;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **device);
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **device)
{
    if (strcmp(id, "0000:1b:00.0") != 0 && strcmp(id, "0000:00:00.0") != 0)
        return NOT_FOUND;
    *device = &card;
    return SUCCESS;
}

int nvmlDeviceGetName(void *device, char *name, unsigned length);
int nvmlDeviceGetName(void *device, char *name, unsigned length)
{
    (void)device;
    snprintf(name, length, "Pretended card");
    return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(void *device, unsigned utilization[2]);
int nvmlDeviceGetUtilizationRates(void *device, unsigned utilization[2])
{
    utilization[0] = 80;
    utilization[1] = 40;
    return ready(device);
}

int nvmlDeviceGetMemoryInfo(void *device, unsigned long long memory[3]);
int nvmlDeviceGetMemoryInfo(void *device, unsigned long long memory[3])
{
    memory[0] = 8ull << 30;
    memory[1] = 6ull << 30;
    memory[2] = 2ull << 30;
    return ready(device);
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts);
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
    *milliwatts = 250000;
    return ready(device);
}

int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts);
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts)
{
    *milliwatts = 700000;
    return ready(device);
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules);
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules)
{
    static _Atomic unsigned long long readings;
    *millijoules = 1000000000ull + 2000 * ++readings;
    return amiss("nocounter") ? NOT_SUPPORTED : ready(device);
}

int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz);
int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz)
{
    *mhz = type == 1 ? 1980 : type == 2 ? 3201 : 0;
    return ready(device);
}
