/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of the cpu device: threads, partial sums, errors, calls of oneDNN. */
#include "device/cpu.h"

#include "common/memory.h"

#include <stdlib.h>
#include <string.h>

/* From the OpenMP runtime that oneDNN uses; only some compilers have <omp.h>. */
void omp_set_num_threads(int threads);
int omp_get_max_threads(void);

/* -- threads -- */

unsigned dl2_cpu_share_out(const struct dl2_cpu *cpu, size_t items, size_t grain,
                           dl2_cpu_work_fn *work, void *context)
{
    size_t most = items / (grain ? grain : 1);
    unsigned parts = most < 1 ? 1 : most < cpu->threads ? (unsigned)most : cpu->threads;
    if (parts == 1) {
        work(context, 0, 0, items);
        return 1;
    }
#pragma omp parallel for num_threads(parts) schedule(static, 1)
    for (unsigned p = 0; p < parts; p++)
        work(context, p, items * p / parts, items * (p + 1) / parts);
    return parts;
}

void dl2_cpu_claim_threads(const struct dl2_cpu *cpu)
{
    if (omp_get_max_threads() != (int)cpu->threads)
        omp_set_num_threads((int)cpu->threads);
}

bool dl2_cpu_reserve_partials(struct dl2_cpu *cpu, size_t period)
{
    size_t size;
    if (cpu->partial_period >= period)
        return true;
    if (!dl2_size_mul(period, 2 * (size_t)cpu->threads, &size))
        return false;
    double *partials = dl2_alloc_aligned(size, sizeof *partials);
    if (!partials)
        return false;
    free(cpu->partials);
    cpu->partials = partials;
    cpu->partial_period = period;
    return true;
}

double *dl2_cpu_begin_sums(const struct dl2_cpu *cpu, unsigned part, size_t period)
{
    double *sums = dl2_cpu_part_sums(cpu, part);
    memset(sums, 0, 2 * period * sizeof *sums);
    return sums;
}

/* -- errors, and calls of oneDNN -- */

int dl2_cpu_check(dnnl_status_t status, const char *what, struct dl2_error *error)
{
    if (status == dnnl_success)
        return DL2_OK;
    return dl2_error_set(error, status == dnnl_out_of_memory ? DL2_ERR_MEMORY : DL2_ERR_UNSUPPORTED,
                         "oneDNN cannot %s: %s", what, dnnl_status2str(status));
}

int dl2_cpu_out_of_memory(struct dl2_error *error, const char *what)
{
    return dl2_error_set(error, DL2_ERR_MEMORY, "device cpu: out of memory for %s", what);
}

void dl2_cpu_execute(struct dl2_cpu *cpu, const_dnnl_primitive_t primitive, int count,
                     const dnnl_exec_arg_t *args, const char *what)
{
    if (cpu->base.failure.status)
        return;
    dl2_cpu_claim_threads(cpu);
    dl2_cpu_check(dnnl_primitive_execute(primitive, cpu->stream, count, args), what,
                  &cpu->base.failure);
}

int dl2_cpu_make_layout(dl2_layout *layout, dnnl_data_type_t type, int dims,
                        const dnnl_dims_t sizes, dnnl_format_tag_t tag, struct dl2_error *error)
{
    return dl2_cpu_check(dl2_layout_create(layout, type, dims, sizes, tag), "describe a tensor",
                         error);
}
