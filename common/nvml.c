/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/nvml.h"

#include "common/json.h"
#include "common/memory.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * The few of nvml.h's declarations that are needed here. NVML's binary interface is stable: what
 * changes gets a new name (nvmlInit_v2).
 */
enum { NVML_SUCCESS = 0 };
enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2 };
enum { NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE = 80, NVML_DEVICE_NAME_V2_BUFFER_SIZE = 96 };
typedef int nvml_return;
typedef struct nvmlDevice_st *nvml_device;

struct nvml_utilization {
    unsigned gpu, memory;
};

struct nvml_memory {
    unsigned long long total, free, used;
};

struct dl2_nvml {
    void *library;
    nvml_device device;
    nvml_return (*init)(void);
    nvml_return (*shutdown)(void);
    nvml_return (*driver_version)(char *, unsigned);
    nvml_return (*by_index)(unsigned, nvml_device *);
    nvml_return (*by_pci)(const char *, nvml_device *);
    nvml_return (*name)(nvml_device, char *, unsigned);
    nvml_return (*utilization)(nvml_device, struct nvml_utilization *);
    nvml_return (*memory)(nvml_device, struct nvml_memory *);
    nvml_return (*power)(nvml_device, unsigned *);            /* milliwatts */
    nvml_return (*power_limit)(nvml_device, unsigned *);      /* milliwatts */
    nvml_return (*energy)(nvml_device, unsigned long long *); /* millijoules */
    nvml_return (*clock)(nvml_device, int, unsigned *);       /* MHz */
    nvml_return (*max_clock)(nvml_device, int, unsigned *);   /* MHz */
};

/* Is everything there without which there is nothing to tell? Others may be missing: they came with
 * later drivers. */
static bool load_nvml(struct dl2_nvml *card)
{
    const struct {
        const char *name;
        void **function;
        bool needed;
    } symbols[] = {
        {"nvmlInit_v2", (void **)&card->init, true},
        {"nvmlShutdown", (void **)&card->shutdown, true},
        {"nvmlDeviceGetHandleByIndex_v2", (void **)&card->by_index, true},
        {"nvmlDeviceGetHandleByPciBusId_v2", (void **)&card->by_pci, true},
        {"nvmlSystemGetDriverVersion", (void **)&card->driver_version, false},
        {"nvmlDeviceGetName", (void **)&card->name, false},
        {"nvmlDeviceGetUtilizationRates", (void **)&card->utilization, false},
        {"nvmlDeviceGetMemoryInfo", (void **)&card->memory, false},
        {"nvmlDeviceGetPowerUsage", (void **)&card->power, false},
        {"nvmlDeviceGetEnforcedPowerLimit", (void **)&card->power_limit, false},
        {"nvmlDeviceGetTotalEnergyConsumption", (void **)&card->energy, false},
        {"nvmlDeviceGetClockInfo", (void **)&card->clock, false},
        {"nvmlDeviceGetMaxClockInfo", (void **)&card->max_clock, false},
    };
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        *symbols[i].function = dlsym(card->library, symbols[i].name);
        if (!*symbols[i].function && symbols[i].needed)
            return false;
    }
    return true;
}

static bool find_card(struct dl2_nvml *card, const char *which)
{
    char *end;
    const unsigned long index = strtoul(which, &end, 10);
    if (end != which && !*end)
        return card->by_index((unsigned)index, &card->device) == NVML_SUCCESS;
    return card->by_pci(which, &card->device) == NVML_SUCCESS;
}

struct dl2_nvml *dl2_nvml_open(const char *which)
{
    struct dl2_nvml *card = dl2_calloc(1, sizeof *card);
    if (!card)
        return NULL;
    const char *other = getenv("DL2_NVML");
    card->library = dlopen(other ? other : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (card->library && load_nvml(card) && card->init() == NVML_SUCCESS) {
        if (find_card(card, which))
            return card;
        card->shutdown();
    }
    if (card->library)
        dlclose(card->library);
    free(card);
    return NULL;
}

void dl2_nvml_close(struct dl2_nvml *card)
{
    if (!card)
        return;
    card->shutdown();
    dlclose(card->library);
    free(card);
}

/* A call that fails now may have an answer the next time. */
void dl2_nvml_read(const struct dl2_nvml *card, struct dl2_nvml_reading *reading)
{
    *reading = (struct dl2_nvml_reading){NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    struct nvml_utilization utilization;
    if (card->utilization && card->utilization(card->device, &utilization) == NVML_SUCCESS) {
        reading->percent = utilization.gpu;
        reading->memory_percent = utilization.memory;
    }
    struct nvml_memory memory;
    if (card->memory && card->memory(card->device, &memory) == NVML_SUCCESS)
        reading->memory_bytes = (double)memory.used;
    unsigned number;
    if (card->power && card->power(card->device, &number) == NVML_SUCCESS)
        reading->watts = number * 1e-3;
    unsigned long long energy;
    if (card->energy && card->energy(card->device, &energy) == NVML_SUCCESS)
        reading->joules = (double)energy * 1e-3;
    if (card->clock && card->clock(card->device, NVML_CLOCK_SM, &number) == NVML_SUCCESS)
        reading->sm_mhz = number;
    if (card->clock && card->clock(card->device, NVML_CLOCK_MEM, &number) == NVML_SUCCESS)
        reading->memory_mhz = number;
}

json_t *dl2_nvml_describe(const struct dl2_nvml *card)
{
    json_t *object = json_object();
    char text[NVML_DEVICE_NAME_V2_BUFFER_SIZE] = "";
    if (card->name && card->name(card->device, text, sizeof text) == NVML_SUCCESS)
        json_object_set_new(object, "name", dl2_json_text(text));
    if (card->driver_version &&
        card->driver_version(text, NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE) == NVML_SUCCESS)
        json_object_set_new(object, "driver", dl2_json_text(text));
    struct nvml_memory memory;
    if (card->memory && card->memory(card->device, &memory) == NVML_SUCCESS)
        json_object_set_new(object, "memory_bytes", json_integer((json_int_t)memory.total));
    unsigned number;
    if (card->power_limit && card->power_limit(card->device, &number) == NVML_SUCCESS)
        json_object_set_new(object, "power_limit_watts", json_real(number * 1e-3));
    if (card->max_clock && card->max_clock(card->device, NVML_CLOCK_SM, &number) == NVML_SUCCESS)
        json_object_set_new(object, "max_sm_mhz", json_integer(number));
    return object;
}
