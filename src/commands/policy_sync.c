#include "commands/policy_sync.h"

#include <string.h>

#include "commands/policy_dump.h"
#include "server/clock.h"
#include "types/memory.h"
#include "types/policy.h"

/* A replica may load a new data set while it serves the old one: then this is where the new policies go. */
static struct rl_policies staged;
static bool staging;

static struct rl_policies *loading(void) {
    return staging ? &staged : &rl_policies;
}

/* ---- The RDB */

static void aux_save(RedisModuleIO *io, int when) {
    (void)when;
    size_t len;
    unsigned char *bytes = rl_policy_dump_all(&rl_policies, rl_clock_us() / 1000, &len);
    RedisModule_SaveStringBuffer(io, (const char *)bytes, len);
    rl_free(bytes);
}

static bool none(void) {
    return rl_policies.policies.count == 0 && rl_policies.loads.count == 0;
}

static void aux_save_some(RedisModuleIO *io, int when) {
    if (!none()) aux_save(io, when);
}

static int aux_load(RedisModuleIO *io, int encver, int when) {
    (void)when;
    size_t len;
    char *bytes = encver == 1 ? RedisModule_LoadStringBuffer(io, &len) : NULL;
    if (!bytes) return REDISMODULE_ERR;
    const char *wrong = rl_policy_restore(loading(), (unsigned char *)bytes, len, true, rl_clock_us() / 1000);
    if (wrong) RedisModule_LogIOError(io, "warning", "the policies can't be loaded: %s", wrong);
    RedisModule_Free(bytes);
    return wrong ? REDISMODULE_ERR : REDISMODULE_OK;
}

const struct rl_policy_aux rl_policy_aux = {.save = aux_save, .save_some = aux_save_some, .load = aux_load};

static void on_loading(RedisModuleCtx *ctx, RedisModuleEvent event, uint64_t subevent, void *data) {
    (void)ctx;
    (void)event;
    (void)data;
    bool starts = subevent == REDISMODULE_SUBEVENT_LOADING_RDB_START ||
                  subevent == REDISMODULE_SUBEVENT_LOADING_AOF_START ||
                  subevent == REDISMODULE_SUBEVENT_LOADING_REPL_START;
    if (starts) rl_policies_clear(loading());
}

static void on_async_loading(RedisModuleCtx *ctx, RedisModuleEvent event, uint64_t subevent, void *data) {
    (void)ctx;
    (void)event;
    (void)data;
    if (subevent == REDISMODULE_SUBEVENT_REPL_ASYNC_LOAD_COMPLETED && staging) {
        rl_policies_clear(&rl_policies);
        rl_policies = staged;
        staged = (struct rl_policies){0};
    }
    rl_policies_clear(&staged);
    staging = subevent == REDISMODULE_SUBEVENT_REPL_ASYNC_LOAD_STARTED;
}

/* ---- The AOF
 *
 * Written without an RDB at its beginning, a new AOF has only what keys emit. So when a rewrite has begun all policies
 * are logged once more: that comes after what the child writes. Not from within the event, but as soon as the server is
 * back in its loop: what is replicated inside of a command makes the server replicate that command, here BGREWRITEAOF
 * or CONFIG SET. And not while writes are paused, when nothing may be replicated. */

enum { SOON_MS = 1, PAUSED_MS = 50 };

static void log_all(RedisModuleCtx *ctx, void *data) {
    if (RedisModule_AvoidReplicaTraffic()) {
        RedisModule_CreateTimer(ctx, PAUSED_MS, log_all, data);
        return;
    }
    size_t len;
    unsigned char *bytes = rl_policy_dump_all(&rl_policies, rl_clock_us() / 1000, &len);
    RedisModule_Replicate(ctx, "RL.POLICY", "Rcbc", "RESTORE", (const char *)bytes, len, "REPLACE");
    rl_free(bytes);
}

static bool rewriting_aof(RedisModuleCtx *ctx) {
    RedisModuleServerInfoData *info = RedisModule_GetServerInfo(ctx, "persistence");
    const char *field = RedisModule_ServerInfoGetFieldC(info, "aof_rewrite_in_progress");
    bool rewriting = field && strcmp(field, "1") == 0;
    RedisModule_FreeServerInfo(ctx, info);
    return rewriting;
}

static void on_fork(RedisModuleCtx *ctx, RedisModuleEvent event, uint64_t subevent, void *data) {
    (void)event;
    (void)data;
    if (subevent != REDISMODULE_SUBEVENT_FORK_CHILD_BORN || none() || !rewriting_aof(ctx)) return;
    RedisModule_CreateTimer(ctx, SOON_MS, log_all, NULL);
}

bool rl_policy_sync_register(RedisModuleCtx *ctx) {
    return RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_Loading, on_loading) == REDISMODULE_OK &&
           RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_ReplAsyncLoad, on_async_loading) ==
               REDISMODULE_OK &&
           RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_ForkChild, on_fork) == REDISMODULE_OK;
}
