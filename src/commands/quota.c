/* RL.QUOTA key count/calendar [TZ zone] [ANCHOR n] [HISTORY n] [ALERT p[,p...]] [options] */
#include "commands/quota.h"

#include <string.h>

#include "algo/notation.h"
#include "server/alert.h"
#include "server/reply.h"
#include "server/zones.h"
#include "types/memory.h"
#include "types/quota.h"

static struct rl_zones zones = {.mem = &rl_memory};

const struct rl_zone *rl_quota_zone(const struct rl_quota_limit *lim, const char **why) {
    char text[RL_ZONE_TEXT_MAX + 1];
    enum rl_zones_error error;
    const struct rl_zone *zone = rl_zones_get(&zones, text, rl_zone_unpack(lim->zone, text), &error);
    if (!zone && why) *why = rl_zones_error_text(error);
    return zone;
}

static bool parse(struct rl_args *a, void *limit) {
    struct rl_quota_limit *lim = limit;
    *lim = (struct rl_quota_limit){.anchor = 1};
    size_t len;
    const char *s = rl_args_text(a, "quota", &len);
    if (!s) return false;
    const char *slash = memchr(s, '/', len);
    size_t count_len = slash ? (size_t)(slash - s) : 0;
    if (slash) lim->unit = rl_calendar_unit(slash + 1, len - count_len - 1);
    if (lim->unit == RL_CALENDAR_NONE ||
        !rl_notation_digits(s, count_len, 0, INT64_C(1000000000000000000), &lim->count)) {
        return rl_reply_error(a->ctx, "ERR quota must be count/period with a period of hour, day, week, month or year, "
                                      "such as 1000/day");
    }
    return lim->count <= RL_UNITS_MAX || rl_reply_error(a->ctx, "ERR quota must have a count from 0 to 1000000000000");
}

static bool read_zone(struct rl_args *a, const char *name, void *limit) {
    size_t len;
    const char *s = rl_args_text(a, name, &len);
    if (!s) return false;
    return rl_zone_pack(((struct rl_quota_limit *)limit)->zone, s, len) ||
           rl_reply_error(a->ctx, "ERR %s must be UTC, an offset such as -03:00 or a zone such as America/Sao_Paulo",
                          name);
}

static bool read_anchor(struct rl_args *a, const char *name, void *limit) {
    struct rl_quota_limit *lim = limit;
    int max = rl_calendar_anchor_max((enum rl_calendar_unit)lim->unit);
    if (max == 1) return rl_reply_error(a->ctx, "ERR %s goes only with month and week", name);
    return rl_args_number(a, name, 1, max, &lim->anchor);
}

static bool read_history(struct rl_args *a, const char *name, void *limit) {
    return rl_args_number(a, name, 1, RL_QUOTA_HISTORY_MAX, &((struct rl_quota_limit *)limit)->history);
}

static bool read_alerts(struct rl_args *a, const char *name, void *limit) {
    int64_t percents[RL_QUOTA_ALERTS_MAX];
    size_t n = 0, len;
    const char *s = rl_args_text(a, name, &len);
    if (!s) return false;
    const char *end = s + len;
    bool good = true;
    for (const char *comma; good && n < RL_QUOTA_ALERTS_MAX && s <= end; s = comma + 1) {
        comma = memchr(s, ',', (size_t)(end - s));
        if (!comma) comma = end;
        good = rl_notation_digits(s, (size_t)(comma - s), 1, RL_QUOTA_PERCENT_MAX, &percents[n++]);
    }
    good = good && s > end && rl_quota_pack_alerts(((struct rl_quota_limit *)limit)->alerts, percents, n);
    return good ||
           rl_reply_error(a->ctx, "ERR %s must be up to 8 different percents from 1 to 1000, such as 80,95", name);
}

static const struct rl_option options[] = {
    {"TZ", read_zone, 0}, {"ANCHOR", read_anchor, 0}, {"HISTORY", read_history, 0}, {"ALERT", read_alerts, 0}, {0},
};

static const char *locate(const void *state, const void *limit, struct rl_moment *m) {
    const struct rl_quota *q = state;
    const struct rl_quota_limit *lim = limit;
    if (rl_quota_current(q, rl_moment_ms(m), &m->period)) return NULL;
    const char *why;
    const struct rl_zone *zone = rl_quota_zone(lim, &why);
    if (!zone) {
        m->period = (struct rl_period){.start_ms = q->start_ms, .end_ms = q->end_ms};
        return why;
    }
    m->period = rl_calendar_period(zone, (enum rl_calendar_unit)lim->unit, (int)lim->anchor, rl_moment_ms(m));
    return NULL;
}

static void tell(RedisModuleCtx *ctx, struct rl_alert where, const void *state, const void *limit, unsigned told) {
    const struct rl_quota_limit *lim = limit;
    const struct rl_quota *q = state;
    int64_t percents[RL_QUOTA_ALERTS_MAX];
    size_t n = rl_quota_alerts(lim, percents);
    where.kind = rl_quota_type.kind->name;
    where.used = q->used;
    where.limit = lim->count;
    where.period_end_ms = q->end_ms;
    for (size_t i = 0; i < n; i++) {
        if (!(told & 1u << i)) continue;
        where.percent = percents[i];
        rl_alert_publish(ctx, &where);
    }
}

static int describe(RedisModuleCtx *ctx, const void *state, const void *limit, const struct rl_moment *m) {
    const struct rl_quota_limit *lim = limit;
    char zone[RL_ZONE_TEXT_MAX + 1];
    int64_t used = rl_quota_used(state, rl_moment_ms(m));
    rl_zone_unpack(lim->zone, zone);
    rl_reply_field(ctx, "period_start_ms", m->period.start_ms);
    rl_reply_field(ctx, "period_end_ms", m->period.end_ms);
    rl_reply_field(ctx, "percent_used", rl_quota_percent(used, lim->count));
    rl_reply_field(ctx, "over", used > lim->count ? used - lim->count : 0);
    rl_reply_text_field(ctx, "zone", zone);
    return 5;
}

static struct rl_stats stats = {.command = "rl.quota"};

const struct rl_limiter rl_quota_limiter = {
    .type = &rl_quota_type,
    .rule = "quota",
    .stats = &stats,
    .parse = parse,
    .options = options,
    .locate = locate,
    .tell = tell,
    .describe = describe,
};

static int run(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    return rl_limiter_run(ctx, argv, argc, &rl_quota_limiter);
}

static RedisModuleCommandArg args[] = {
    {.name = "key", .type = REDISMODULE_ARG_TYPE_KEY, .key_spec_index = 0},
    {.name = "quota", .type = REDISMODULE_ARG_TYPE_STRING},
    {RL_LIMITER_OPTION("zone", REDISMODULE_ARG_TYPE_STRING), .token = "TZ"},
    {RL_LIMITER_OPTION("day", REDISMODULE_ARG_TYPE_INTEGER), .token = "ANCHOR"},
    {RL_LIMITER_OPTION("periods", REDISMODULE_ARG_TYPE_INTEGER), .token = "HISTORY"},
    {RL_LIMITER_OPTION("percents", REDISMODULE_ARG_TYPE_STRING), .token = "ALERT"},
    RL_LIMITER_SHARED_ARGS,
    {0},
};

static const RedisModuleCommandInfo info = {
    .version = REDISMODULE_COMMAND_INFO_VERSION,
    .summary = "Takes units from a budget per hour, day, week, month or year of the calendar.",
    .complexity = "O(1)",
    .since = RL_SINCE,
    .arity = -3,
    .key_specs = (RedisModuleCommandKeySpec *)(uintptr_t)rl_command_updates_key,
    .args = args,
};

const struct rl_command rl_quota_command = {
    .name = "RL.QUOTA",
    .run = run,
    .flags = "write deny-oom fast",
    .categories = "write fast",
    .info = &info,
    .stats = &stats,
};
