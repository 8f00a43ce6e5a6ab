/* SPDX-License-Identifier: BSD-2-Clause */
#include "dataset/group_column.h"

#include "common/scope.h"
#include "dataset/container.h"
#include "dataset/postgresql/database_uri.h"

static const struct dl2_container *find_container(const char *address)
{
    const struct dl2_container *container;
    for (size_t i = 0; (container = dl2_container_at(i)); i++)
        if (container->read_groups && container->probe(address))
            return container;
    return NULL;
}

int dl2_group_column_check(const char *address, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_database_uri_free) struct dl2_database_uri uri = {0};
    return find_container(address) ? dl2_database_uri_parse(address, true, &uri, error)
                                   : dl2_database_unsupported(address, error);
}

int dl2_group_column_read(const char *address, struct dl2_bytes *lines, struct dl2_error *error)
{
    DL2_TRY(dl2_group_column_check(address, error));
    lines->size = 0;
    return find_container(address)->read_groups(address, lines, error);
}
