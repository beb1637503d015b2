#include "server/zones.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct rl_zones_entry {
    struct rl_zone zone;
    size_t len;
    char text[RL_ZONE_TEXT_MAX];
};

void rl_zones_init(struct rl_zones *zones, const struct rl_allocator *mem, const char *directory) {
    memset(zones, 0, sizeof(*zones));
    zones->mem = mem;
    zones->directory = directory;
}

/* The real path of the database. */
static bool find_database(const struct rl_zones *zones, char real[PATH_MAX]) {
    static const char *const usual[] = {"/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/usr/share/lib/zoneinfo",
                                        "/etc/zoneinfo"};
    struct stat st;
    if (zones->directory) return realpath(zones->directory, real) && stat(real, &st) == 0 && S_ISDIR(st.st_mode);
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
        if (realpath(usual[i], real) && stat(real, &st) == 0 && S_ISDIR(st.st_mode)) return true;
    }
    return false;
}

/* The real path of a name, which may be a link, but never leads outside of the database. */
static enum rl_zones_error find_file(const char *database, const char *text, size_t len, char real[PATH_MAX]) {
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/%.*s", database, (int)len, text);
    if (n < 0 || (size_t)n >= sizeof(path)) return RL_ZONES_UNKNOWN;
    if (!realpath(path, real)) return errno == ENOENT || errno == ENOTDIR ? RL_ZONES_UNKNOWN : RL_ZONES_UNREADABLE;
    size_t inside = strlen(database);
    return strncmp(real, database, inside) == 0 && real[inside] == '/' ? RL_ZONES_OK : RL_ZONES_UNREADABLE;
}

static bool read_all(int fd, unsigned char *data, size_t len) {
    while (len > 0) {
        ssize_t n = read(fd, data, len);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        data += n;
        len -= (size_t)n;
    }
    return true;
}

/* Only a regular file of bounded size. Opening never blocks, should it be a pipe or a device. */
static enum rl_zones_error read_file(const char *path, const struct rl_allocator *mem, struct rl_zone *zone) {
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return errno == ENOENT ? RL_ZONES_UNKNOWN : RL_ZONES_UNREADABLE;
    struct stat st = {0};
    enum rl_zones_error error = RL_ZONES_UNREADABLE;
    if (fstat(fd, &st) != 0) goto done;
    if (S_ISDIR(st.st_mode)) error = RL_ZONES_UNKNOWN; /* America alone is not a zone */
    if (!S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > RL_ZONES_FILE_MAX) goto done;

    size_t len = (size_t)st.st_size;
    unsigned char *data = mem->alloc(len);
    if (!data)
        error = RL_ZONES_NO_MEMORY;
    else if (read_all(fd, data, len) && rl_zone_parse(zone, data, len, mem))
        error = RL_ZONES_OK;
    mem->free(data);
done:
    close(fd);
    return error;
}

static enum rl_zones_error load(const struct rl_zones *zones, const char *text, size_t len, struct rl_zone *zone) {
    char database[PATH_MAX], path[PATH_MAX];
    if (!find_database(zones, database)) return RL_ZONES_NO_DATABASE;
    enum rl_zones_error error = find_file(database, text, len, path);
    return error ? error : read_file(path, zones->mem, zone);
}

static void drop(struct rl_zones *zones, struct rl_zones_entry **slot) {
    if (!*slot) return;
    if (zones->last == *slot) zones->last = NULL;
    rl_zone_free(&(*slot)->zone, zones->mem);
    zones->mem->free(*slot);
    *slot = NULL;
}

static uint32_t hash(const char *text, size_t len) {
    uint32_t h = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < len; i++) h = (h ^ (unsigned char)text[i]) * 16777619u;
    return h;
}

static bool is(const struct rl_zones_entry *entry, const char *text, size_t len) {
    return entry->len == len && memcmp(entry->text, text, len) == 0;
}

static const struct rl_zone *get_named(struct rl_zones *zones, const char *text, size_t len,
                                       enum rl_zones_error *error) {
    struct rl_zones_entry **set = zones->sets[hash(text, len) % RL_ZONES_SETS];
    struct rl_zones_entry **slot = NULL;
    for (size_t i = 0; i < RL_ZONES_WAYS; i++) {
        if (!set[i]) {
            slot = &set[i];
        } else if (is(set[i], text, len)) {
            zones->last = set[i];
            return &set[i]->zone;
        }
    }
    struct rl_zone zone;
    *error = load(zones, text, len, &zone);
    if (*error) return NULL;
    struct rl_zones_entry *entry = zones->mem->alloc(sizeof(*entry));
    if (!entry) {
        rl_zone_free(&zone, zones->mem);
        *error = RL_ZONES_NO_MEMORY;
        return NULL;
    }
    if (!slot) slot = &set[zones->turn++ % RL_ZONES_WAYS];
    drop(zones, slot);
    entry->zone = zone;
    entry->len = len;
    memcpy(entry->text, text, len);
    *slot = zones->last = entry;
    return &entry->zone;
}

const struct rl_zone *rl_zones_get(struct rl_zones *zones, const char *text, size_t len, enum rl_zones_error *error) {
    int32_t offset_s = 0;
    *error = RL_ZONES_OK;
    if (zones->last && is(zones->last, text, len)) return &zones->last->zone;
    switch (rl_zone_form(text, len, &offset_s)) {
    case RL_ZONE_FIXED: zones->fixed = rl_zone_fixed(offset_s); return &zones->fixed;
    case RL_ZONE_NAMED: return get_named(zones, text, len, error);
    case RL_ZONE_BAD: break;
    }
    *error = RL_ZONES_BAD_SYNTAX;
    return NULL;
}

void rl_zones_forget(struct rl_zones *zones) {
    for (size_t i = 0; i < RL_ZONES_SETS; i++) {
        for (size_t k = 0; k < RL_ZONES_WAYS; k++) drop(zones, &zones->sets[i][k]);
    }
}

const char *rl_zones_error_text(enum rl_zones_error error) {
    switch (error) {
    case RL_ZONES_OK: break;
    case RL_ZONES_BAD_SYNTAX: return "must be UTC, an offset such as -03:00, or a zone such as America/Sao_Paulo";
    case RL_ZONES_NO_DATABASE:
        return "needs the tz database, which this machine lacks (install tzdata); UTC and offsets work without";
    case RL_ZONES_UNKNOWN: return "is not a zone of this machine's tz database";
    case RL_ZONES_UNREADABLE: return "has no readable, sound data in this machine's tz database";
    case RL_ZONES_NO_MEMORY: return "could not be loaded: out of memory";
    }
    return "";
}
