#include "commands/policy_definition.h"

#include <string.h>

#include "algo/notation.h"
#include "commands/limiter.h"
#include "server/clock.h"
#include "server/reply.h"
#include "types/memory.h"

struct draft {
    int rules;
    struct rl_limiter_rule rule[RL_RULES_MAX];
    int outcomes;
    struct rl_outcome outcome[RL_OUTCOMES_MAX];
    const char *source;
    size_t source_len;
    int steps;
    struct {
        int64_t load, percent;
    } step[RL_ADAPT_STEPS_MAX];
    bool shadow;
};

bool rl_policy_name_valid(RedisModuleCtx *ctx, const char *what, size_t len) {
    return (len >= 1 && len <= RL_NAME_MAX) || rl_reply_error(ctx, "ERR %s must have 1 to 128 bytes", what);
}

/* The next item of a list, up to a comma, cut in two at its last colon. False at the end, and where it has no colon. */
static bool next_pair(const char **at, const char *end, struct rl_name *left, struct rl_name *right) {
    const char *comma = *at < end ? memchr(*at, ',', (size_t)(end - *at)) : NULL;
    const char *item_end = comma ? comma : end;
    const char *colon = *at < item_end ? memrchr(*at, ':', (size_t)(item_end - *at)) : NULL;
    if (!colon) return false;
    *left = (struct rl_name){*at, (size_t)(colon - *at)};
    *right = (struct rl_name){colon + 1, (size_t)(item_end - colon - 1)};
    *at = comma ? comma + 1 : end + 1;
    return true;
}

static bool read_cost(const struct rl_name *text, int64_t *cost) {
    bool negative = text->len > 0 && text->bytes[0] == '-';
    if (!rl_notation_digits(text->bytes + negative, text->len - negative, 0, RL_UNITS_MAX, cost)) return false;
    if (negative) *cost = -*cost;
    return true;
}

static bool label_given(const struct draft *d, const struct rl_name *label) {
    for (int i = 0; i < d->outcomes; i++) {
        if (rl_name_is(&d->outcome[i].label, label->bytes, label->len)) return true;
    }
    return false;
}

static bool read_outcomes(struct rl_args *a, const char *name, void *into) {
    struct draft *d = into;
    size_t len;
    const char *at = rl_args_text(a, name, &len);
    if (!at) return false;
    const char *end = at + len;
    while (at <= end) {
        struct rl_outcome o;
        struct rl_name cost;
        if (!next_pair(&at, end, &o.label, &cost) || o.label.len < 1 || o.label.len > RL_NAME_MAX ||
            !read_cost(&cost, &o.cost)) {
            return rl_reply_error(a->ctx, "ERR %s must be label:cost pairs, such as 200:1,404:20,500:0,paid:-1,*:1",
                                  name);
        }
        if (label_given(d, &o.label)) return rl_reply_error(a->ctx, "ERR %s must have each label once", name);
        if (d->outcomes == RL_OUTCOMES_MAX) return rl_reply_error(a->ctx, "ERR %s must have at most 64 labels", name);
        d->outcome[d->outcomes++] = o;
    }
    return true;
}

static bool read_adapt(struct rl_args *a, const char *name, void *into) {
    struct draft *d = into;
    size_t len;
    d->source = rl_args_text(a, "ADAPT source", &d->source_len);
    if (!d->source || !rl_policy_name_valid(a->ctx, "ADAPT source", d->source_len)) return false;
    const char *at = rl_args_text(a, name, &len);
    if (!at) return false;
    const char *end = at + len;
    while (at <= end) {
        struct rl_name load, percent;
        int64_t *loads = d->steps < RL_ADAPT_STEPS_MAX ? &d->step[d->steps].load : NULL;
        int64_t least = d->steps > 0 ? d->step[d->steps - 1].load + 1 : 0;
        if (!loads || !next_pair(&at, end, &load, &percent) ||
            !rl_notation_digits(load.bytes, load.len, least, RL_SCALE_PERCENT_MAX, loads) ||
            !rl_notation_digits(percent.bytes, percent.len, 1, RL_SCALE_PERCENT_MAX, &d->step[d->steps].percent)) {
            return rl_reply_error(a->ctx,
                                  "ERR %s must be up to 16 pairs load:percent with ascending loads from 0 to 1000 and "
                                  "percents from 1 to 1000, such as 70:75,90:50",
                                  name);
        }
        d->steps++;
    }
    return true;
}

static bool read_shadow(struct rl_args *a, const char *name, void *into) {
    (void)a;
    (void)name;
    ((struct draft *)into)->shadow = true;
    return true;
}

static const struct rl_option options[] = {
    {"OUTCOME", read_outcomes, 0}, {"ADAPT", read_adapt, 0}, {"SHADOW", read_shadow, 0}, {0}};

static bool name_given(const struct draft *d, const struct rl_limiter_rule *rule) {
    for (int i = 0; i < d->rules; i++) {
        if (rule->name_len == d->rule[i].name_len && memcmp(rule->name, d->rule[i].name, rule->name_len) == 0)
            return true;
    }
    return false;
}

/* 1: read; 0: the next word isn't a rule; -1: wrong, and replied. */
static int read_rule(struct rl_args *a, struct draft *d) {
    struct rl_limiter_rule rule;
    int got = rl_limiter_read_rule(a, &rule);
    if (got != 1) return got;
    if (d->rules == RL_RULES_MAX) {
        rl_reply_error(a->ctx, "ERR a policy must have at most 8 rules");
        return -1;
    }
    if (name_given(d, &rule)) {
        rl_reply_error(a->ctx, "ERR two rules have the same name: give them different ones with AS");
        return -1;
    }
    d->rule[d->rules++] = rule;
    return 1;
}

static bool words_fit(struct rl_args *a) {
    bool fit = a->argc <= RL_DEFINITION_MAX;
    for (int i = 0; fit && i < a->argc; i++) {
        size_t len;
        RedisModule_StringPtrLen(a->argv[i], &len);
        fit = len <= RL_DEFINITION_WORD;
    }
    return fit || rl_reply_error(a->ctx, "ERR a policy must have at most 512 words of at most 16384 bytes");
}

static bool unknown(struct rl_args *a) {
    char shown[RL_ARGS_SHOWN];
    size_t len;
    const char *word = RedisModule_StringPtrLen(a->argv[a->at], &len);
    rl_args_show(word, len, shown);
    return rl_reply_error(a->ctx,
                          "ERR a policy is made of TOKENBUCKET, LEAKY, FIXED, SLIDING and QUOTA with their arguments, "
                          "then OUTCOME, ADAPT and SHADOW: '%s' is none of these",
                          shown);
}

static bool read_all(struct rl_args *a, struct draft *d) {
    unsigned seen = 0;
    if (!words_fit(a)) return false;
    d->rules = d->outcomes = d->steps = 0;
    d->source = NULL;
    d->shadow = false;
    while (rl_args_more(a)) {
        int got = read_rule(a, d);
        if (got == 0) got = rl_args_option(a, options, &seen, d);
        if (got < 0) return false;
        if (got > 0) continue;
        return unknown(a);
    }
    return d->rules > 0 || rl_reply_error(a->ctx, "ERR a policy must have at least one rule, such as TOKENBUCKET 10/s");
}

static struct rl_policy *make(const struct draft *d, const char *name, size_t name_len) {
    struct rl_policy *policy = rl_policy_make(name, name_len, d->rules);
    struct rl_shape shape = {.policy = {name, name_len}, .rules = d->rules};
    for (int i = 0; i < d->rules; i++) {
        struct rl_policy_rule *rule = &policy->rules[i];
        rule->limiter = d->rule[i].limiter;
        rule->kind = rule->limiter->type->kind;
        rule->keep_ms = d->rule[i].keep_ms;
        memcpy(rule->limit, d->rule[i].limit, sizeof(rule->limit));
        memcpy(rule->scaled, rule->limit, sizeof(rule->limit));
        shape.rule[i].kind = rule->kind;
        shape.rule[i].name = (struct rl_name){d->rule[i].name, d->rule[i].name_len};
    }
    policy->layout = rl_layout_hold(&shape);
    policy->shadow = d->shadow;
    policy->source = (struct rl_name){d->source, d->source_len};
    policy->steps_len = d->steps;
    memcpy(policy->steps, d->step, sizeof(policy->steps));
    policy->outcomes_len = d->outcomes;
    if (d->outcomes == 0) return policy;
    policy->outcomes = rl_alloc((size_t)d->outcomes * sizeof(d->outcome[0]));
    memcpy(policy->outcomes, d->outcome, (size_t)d->outcomes * sizeof(d->outcome[0]));
    for (int i = 0; i < d->outcomes; i++) {
        if (rl_name_is(&d->outcome[i].label, "*", 1)) policy->other = &policy->outcomes[i];
    }
    return policy;
}

struct rl_policy *rl_policy_define_owned(RedisModuleCtx *ctx, const char *name, size_t name_len,
                                         RedisModuleString **words, int words_len) {
    struct rl_args args = {.ctx = ctx, .argv = words, .argc = words_len};
    struct draft draft;
    if (rl_policy_name_valid(ctx, "the name of a policy", name_len) && read_all(&args, &draft)) {
        struct rl_policy *policy = make(&draft, name, name_len);
        policy->definition = words;
        policy->definition_len = words_len;
        return policy;
    }
    for (int i = 0; i < words_len; i++) RedisModule_FreeString(NULL, words[i]);
    rl_free(words);
    return NULL;
}

struct rl_policy *rl_policy_define(RedisModuleCtx *ctx, const char *name, size_t name_len, RedisModuleString **words,
                                   int words_len) {
    RedisModuleString **copies = rl_alloc((size_t)(words_len > 0 ? words_len : 1) * sizeof(*copies));
    for (int i = 0; i < words_len; i++) copies[i] = RedisModule_CreateStringFromString(NULL, words[i]);
    return rl_policy_define_owned(ctx, name, name_len, copies, words_len);
}

static bool read_for(struct rl_args *a, const char *name, void *ms) {
    return rl_args_duration(a, name, ms);
}

bool rl_policy_read_timed(struct rl_args *a, struct rl_timed_percent *p) {
    static const struct rl_option timed_options[] = {{"FOR", read_for, 0}, {0}};
    int64_t for_ms = 60000;
    if (!rl_args_number(a, "percent", 0, RL_SCALE_PERCENT_MAX, &p->percent)) return false;
    if (!rl_args_options(a, timed_options, NULL, &for_ms)) return false;
    p->until_ms = rl_clock_us() / 1000 + for_ms;
    return true;
}
