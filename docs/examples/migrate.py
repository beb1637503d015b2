"""Limiters as they are often written, and what they do. See docs/guides/migrating.md. Needs: pip install redis"""

import os

import redis

r = redis.Redis.from_url(os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"))

SORTED_SET = """
local now, period, limit = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, now - period)
if redis.call('ZCARD', KEYS[1]) < limit then
  redis.call('ZADD', KEYS[1], now, now)
  redis.call('PEXPIRE', KEYS[1], period)
  return 1
end
return 0
"""

HASH_BUCKET = """
local rate, burst, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local tokens = tonumber(redis.call('HGET', KEYS[1], 'tokens') or burst)
local last = tonumber(redis.call('HGET', KEYS[1], 'last') or now)
tokens = math.min(burst, tokens + math.floor((now - last) * rate))
local allowed = 0
if tokens >= 1 then
  tokens = tokens - 1
  allowed = 1
end
redis.call('HSET', KEYS[1], 'tokens', tokens, 'last', now)
return allowed
"""


def incr_expire(key, limit, seconds):
    count = r.incr(key)
    if count == 1:
        r.expire(key, seconds)
    return count <= limit


def show(what, granted):
    print(f"{what}: {''.join('+' if g else '-' for g in granted)}")


if __name__ == "__main__":
    r.delete("hits", "log", "bucket")
    show("INCR, 3 a minute, 8 calls", [incr_expire("hits", 3, 60) for _ in range(8)])
    print("  counted:", int(r.get("hits")))

    log = r.register_script(SORTED_SET)
    show("sorted set, 3 a minute, 8 calls in one ms", [log(["log"], [1_000_000, 60_000, 3]) for _ in range(8)])
    r.delete("log")
    clocks = [1_000_000, 1_000_001, 1_000_002, 1_000_003, 1_061_003]
    show("sorted set, the last caller's clock is 61 s fast", [log(["log"], [now, 60_000, 3]) for now in clocks])

    bucket = r.register_script(HASH_BUCKET)
    polls = [bucket(["bucket"], [1, 2, 100 + 0.9 * i]) for i in range(12)]
    show("hash, 1 a second, burst 2, a call every 0.9 s", polls)
    print("  expires:", "never" if r.ttl("bucket") == -1 else "in time")
    r.delete("hits", "log", "bucket")
