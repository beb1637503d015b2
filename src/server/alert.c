#include "server/alert.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "server/config.h"
#include "types/memory.h"

/* How long the character is that valid UTF-8 text has here and that can be shown as it is; 0: there is none. */
static size_t shown_length(const unsigned char *s, size_t len) {
    if (s[0] >= 0x20 && s[0] < 0x7f) return 1;
    size_t n = s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;
    if (n == 0 || n > len) return 0;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
    }
    /* Overlong forms, surrogates, beyond Unicode, and the control characters after ASCII. */
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f)) return 0;
    if ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f)) return 0;
    return s[0] == 0xc2 && s[1] < 0xa0 ? 0 : n;
}

static bool is_text(const unsigned char *s, size_t len) {
    for (size_t i = 0, n; i < len; i += n) {
        n = shown_length(s + i, len - i);
        if (n == 0) return false;
    }
    return true;
}

/* A byte of a name that is no text, as redis-cli would show it. */
static size_t escape(unsigned char byte, char out[5]) {
    static const char plain[] = "\\\"\n\r\t\a\b", letter[] = "\\\"nrtab";
    const char *found = byte ? strchr(plain, byte) : NULL;
    if (found) return (size_t)snprintf(out, 5, "\\%c", letter[found - plain]);
    if (byte >= 0x20 && byte < 0x7f) return (size_t)snprintf(out, 5, "%c", byte);
    return (size_t)snprintf(out, 5, "\\x%02x", byte);
}

/* Appends as the inside of a JSON string, where only quotes and backslashes need care: the rest is printable. */
static char *put_json(char *out, const char *s, size_t len) {
    for (size_t i = 0; i < len; i++) {
        if (s[i] == '"' || s[i] == '\\') *out++ = '\\';
        *out++ = s[i];
    }
    return out;
}

static char *put_bytes(char *out, const char *key, size_t len) {
    if (is_text((const unsigned char *)key, len)) return put_json(out, key, len);
    for (size_t i = 0; i < len; i++) {
        char escaped[5];
        out = put_json(out, escaped, escape((unsigned char)key[i], escaped));
    }
    return out;
}

void rl_alert_publish(RedisModuleCtx *ctx, const struct rl_alert *alert) {
    size_t len;
    const char *key = RedisModule_StringPtrLen(alert->key, &len);
    RedisModule_NotifyKeyspaceEvent(ctx, REDISMODULE_NOTIFY_MODULE, "rl.alert", alert->key);
    if (!rl_config_alert_channel()) return;

    size_t room = 5 * (len + alert->policy_len + alert->rule_len) + 256; /* a byte becomes at most the five of \\xff */
    char *json = rl_alloc(room);
    char *end = json + snprintf(json, room, "{\"key\":\"");
    end = put_bytes(end, key, len);
    if (alert->policy) {
        end += snprintf(end, room - (size_t)(end - json), "\",\"policy\":\"");
        end = put_bytes(end, alert->policy, alert->policy_len);
        end += snprintf(end, room - (size_t)(end - json), "\",\"rule\":\"");
        end = put_bytes(end, alert->rule, alert->rule_len);
    }
    end += snprintf(end, room - (size_t)(end - json),
                    "\",\"kind\":\"%s\",\"percent\":%" PRId64 ",\"used\":%" PRId64 ",\"limit\":%" PRId64
                    ",\"period_end_ms\":%" PRId64 "}",
                    alert->kind, alert->percent, alert->used, alert->limit, alert->period_end_ms);
    RedisModuleString *message = RedisModule_CreateString(ctx, json, (size_t)(end - json));
    RedisModule_PublishMessage(ctx, rl_config_alert_channel(), message);
    RedisModule_FreeString(ctx, message);
    rl_free(json);
}
