/* SPDX-License-Identifier: BSD-2-Clause */
#include "remote/credentials.h"

#include "common/file.h"
#include "common/memory.h"
#include "common/scope.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILE_BYTES = 1 << 20 };

/* ---- The files */

static void trim(const char **text, size_t *length)
{
    while (*length && isspace((unsigned char)**text))
        ++*text, --*length;
    while (*length && isspace((unsigned char)(*text)[*length - 1]))
        --*length;
}

char *dl2_ini_value(const char *text, const char *section, const char *name, bool *there)
{
    bool inside = false;
    char *value = NULL;
    *there = false;
    for (size_t length; *text && !value; text += length + (text[length] == '\n')) {
        length = strcspn(text, "\n");
        const char *line = text;
        size_t size = length;
        const bool indented = isspace((unsigned char)*line);
        trim(&line, &size);
        if (size > 1 && *line == '[' && line[size - 1] == ']') {
            const char *title = line + 1;
            size_t title_size = size - 2;
            trim(&title, &title_size);
            inside = title_size == strlen(section) && !memcmp(title, section, title_size);
            *there = *there || inside;
            continue;
        }
        const char *equals = memchr(line, '=', size);
        /* Indented lines belong to a setting with parts, such as "s3 =". */
        if (!inside || indented || !equals || *line == '#' || *line == ';')
            continue;
        const char *word = line, *rest = equals + 1;
        size_t word_size = (size_t)(equals - line), rest_size = size - word_size - 1;
        trim(&word, &word_size);
        trim(&rest, &rest_size);
        if (word_size == strlen(name) && !memcmp(word, name, word_size))
            value = strndup(rest, rest_size);
    }
    return value;
}

struct aws_file {
    char *path;
    struct dl2_bytes text; /* with a zero at its end; no data: there is no such file */
};

static int read_aws_file(const char *variable, const char *name, struct aws_file *file,
                         struct dl2_error *error)
{
    const char *given = getenv(variable), *home = getenv("HOME");
    *file = (struct aws_file){0};
    DL2_TRY(given && *given
                ? dl2_format(&file->path, error, "%s", given)
                : dl2_format(&file->path, error, "%s/.aws/%s", home && *home ? home : "/", name));
    if (!dl2_is_file(file->path))
        return given && *given
                   ? dl2_error_set(error, DL2_ERR_ARGUMENT, "%s: no such file, but %s names it",
                                   file->path, variable)
                   : DL2_OK;
    DL2_TRY(dl2_file_read(file->path, MAX_FILE_BYTES, &file->text, error));
    const int status = dl2_text_begin(&file->text, error);
    dl2_error_prefix(error, "%s", file->path);
    return status;
}

static void free_aws_file(struct aws_file *file)
{
    free(file->path);
    if (file->text.data) /* secrets are not left behind */
        explicit_bzero(file->text.data, file->text.capacity);
    dl2_bytes_free(&file->text);
}

/* A profile: "[NAME]" in the one file, "[profile NAME]" in the other, but for "[default]". */
struct profile {
    const char *name;
    struct aws_file credentials, config;
    bool there;
};

static char *profile_value(struct profile *profile, const char *name)
{
    DL2_AUTO_FREE char *section = NULL;
    char *value = NULL;
    bool there = false;
    if (profile->credentials.text.data)
        value = dl2_ini_value((char *)profile->credentials.text.data, profile->name, name, &there);
    profile->there = profile->there || there;
    const bool plain = !strcmp(profile->name, "default");
    if (!value && profile->config.text.data &&
        dl2_format(&section, NULL, "%s%s", plain ? "" : "profile ", profile->name) == DL2_OK) {
        value = dl2_ini_value((char *)profile->config.text.data, section, name, &there);
        profile->there = profile->there || there;
    }
    return value;
}

/* ---- Together */

static char *from_environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? strdup(value) : NULL;
}

/* Takes the value from the environment, else from the profile. */
static char *setting(struct profile *profile, const char *first, const char *second,
                     const char *name)
{
    char *value = from_environment(first);
    if (!value && second)
        value = from_environment(second);
    return value ? value : profile_value(profile, name);
}

static int half_a_pair(const char *where, const char *there, const char *missing,
                       struct dl2_error *error)
{
    return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s has %s, and no %s", where, there, missing);
}

static int load_keys(struct dl2_credentials *credentials, struct profile *profile,
                     struct dl2_error *error)
{
    static const char key[] = "AWS_ACCESS_KEY_ID", secret[] = "AWS_SECRET_ACCESS_KEY";
    credentials->key = from_environment(key);
    credentials->secret = from_environment(secret);
    if (!credentials->key != !credentials->secret)
        return half_a_pair("the environment", credentials->key ? key : secret,
                           credentials->key ? secret : key, error);
    if (credentials->key) {
        credentials->token = from_environment("AWS_SESSION_TOKEN");
        credentials->from = "AWS_ACCESS_KEY_ID";
        return DL2_OK;
    }
    credentials->key = profile_value(profile, "aws_access_key_id");
    credentials->secret = profile_value(profile, "aws_secret_access_key");
    credentials->token = profile_value(profile, "aws_session_token");
    credentials->from = profile->credentials.text.data ? "~/.aws/credentials" : "~/.aws/config";
    if (!credentials->key != !credentials->secret)
        return half_a_pair(profile->credentials.path,
                           credentials->key ? "aws_access_key_id" : "aws_secret_access_key",
                           credentials->key ? "aws_secret_access_key" : "aws_access_key_id", error);
    return DL2_OK;
}

/* Keys that only the AWS command line can fetch: requests without them would fail, or find the
 * public part of a bucket alone. */
static int refuse_other_ways(struct profile *profile, struct dl2_error *error)
{
    static const char *const ways[] = {"sso_session", "sso_start_url", "role_arn",
                                       "credential_process", "web_identity_token_file"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        DL2_AUTO_FREE char *value = profile_value(profile, ways[i]);
        if (value)
            return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                                 "the profile %s gets its keys by %s, which only the AWS command "
                                 "line can do: eval \"$(aws configure export-credentials --format "
                                 "env)\"",
                                 profile->name, ways[i]);
    }
    return DL2_OK;
}

static int load_all(struct dl2_credentials *credentials, struct profile *profile,
                    struct dl2_error *error)
{
    const char *named = getenv("AWS_PROFILE");
    profile->name = named && *named ? named : "default";
    DL2_TRY(
        read_aws_file("AWS_SHARED_CREDENTIALS_FILE", "credentials", &profile->credentials, error));
    DL2_TRY(read_aws_file("AWS_CONFIG_FILE", "config", &profile->config, error));
    DL2_TRY(load_keys(credentials, profile, error));
    if (!credentials->key)
        DL2_TRY(refuse_other_ways(profile, error));
    credentials->region = setting(profile, "AWS_REGION", "AWS_DEFAULT_REGION", "region");
    if (!credentials->region)
        credentials->region = strdup("us-east-1");
    credentials->endpoint =
        setting(profile, "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "endpoint_url");
    credentials->authorities = setting(profile, "AWS_CA_BUNDLE", NULL, "ca_bundle");
    if (!credentials->region)
        return dl2_error_memory(error, "credentials");
    if (named && *named && !profile->there)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "AWS_PROFILE names the profile '%s', which is neither in %s nor in %s",
                             named, profile->credentials.path, profile->config.path);
    for (const char *at = credentials->region; *at; at++)
        if (!isalnum((unsigned char)*at) && *at != '-')
            return dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s' is not a region, such as us-east-1",
                                 credentials->region);
    char *endpoint = credentials->endpoint;
    if (!endpoint)
        return DL2_OK;
    if (strncmp(endpoint, "http://", 7) != 0 && strncmp(endpoint, "https://", 8) != 0)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "AWS_ENDPOINT_URL: an endpoint begins with http:// or https://");
    if (strpbrk(endpoint, "@?# "))
        return dl2_error_set(
            error, DL2_ERR_ARGUMENT,
            "AWS_ENDPOINT_URL: an endpoint has no user, no password, and no ? or #");
    for (size_t length = strlen(endpoint); length && endpoint[length - 1] == '/';)
        endpoint[--length] = '\0';
    return DL2_OK;
}

int dl2_credentials_load(struct dl2_credentials *credentials, struct dl2_error *error)
{
    struct profile profile = {0};
    *credentials = (struct dl2_credentials){0};
    const int status = load_all(credentials, &profile, error);
    free_aws_file(&profile.credentials);
    free_aws_file(&profile.config);
    return status;
}

void dl2_credentials_free(struct dl2_credentials *credentials)
{
    if (credentials->secret)
        explicit_bzero(credentials->secret, strlen(credentials->secret));
    free(credentials->key);
    free(credentials->secret);
    free(credentials->token);
    free(credentials->region);
    free(credentials->authorities);
    free(credentials->endpoint);
    *credentials = (struct dl2_credentials){0};
}
