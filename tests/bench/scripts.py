"""The limiters that people have without a module: Lua scripts, as good as such scripts get.

They use the server's clock where that is usual, write nothing they need not, and set a TTL.
"""

# A token bucket in a hash. A refusal writes nothing.
BUCKET = """
local rate, burst, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local t = redis.call('TIME')
local now = t[1] + t[2] / 1000000
local b = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = math.min(burst, (tonumber(b[1]) or burst) + (now - (tonumber(b[2]) or now)) * rate)
if tokens < cost then return {0, math.floor(tokens), math.ceil((cost - tokens) / rate * 1000)} end
tokens = tokens - cost
redis.call('HSET', KEYS[1], 'tokens', tokens, 'at', string.format('%.6f', now))
redis.call('PEXPIRE', KEYS[1], math.ceil((burst - tokens) / rate * 1000))
return {1, math.floor(tokens), 0}
"""

# A sliding log in a sorted set, a member for each grant.
LOG = """
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, now - window)
local used = redis.call('ZCARD', KEYS[1])
if used >= limit then return {0, 0} end
redis.call('ZADD', KEYS[1], now, t[1] .. t[2] .. ':' .. used)
redis.call('PEXPIRE', KEYS[1], window)
return {1, limit - used - 1}
"""

# A sliding window by two counters, the older one weighted: an approximation. The caller names both keys and the time.
TWO_COUNTERS = """
local limit, window, now, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local current = tonumber(redis.call('GET', KEYS[1]) or 0)
local before = tonumber(redis.call('GET', KEYS[2]) or 0)
local used = current + math.floor(before * (1 - (now % window) / window))
if used + cost > limit then return {0, 0} end
if redis.call('INCRBY', KEYS[1], cost) == cost then redis.call('PEXPIRE', KEYS[1], window * 2) end
return {1, limit - used - cost}
"""

# A fixed window by INCR and EXPIRE, from Redis' own documentation.
FIXED = """
local used = redis.call('INCR', KEYS[1])
if used == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
if used > tonumber(ARGV[1]) then return {0, 0} end
return {1, tonumber(ARGV[1]) - used}
"""

# Leases in a sorted set by their end.
LEASES = """
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, now)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then return {0} end
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {1}
"""

ALL = {"bucket": BUCKET, "log": LOG, "two counters": TWO_COUNTERS, "fixed": FIXED, "leases": LEASES}


def load(server):
    """Their digests, by name."""
    return {name: server.run("SCRIPT", "LOAD", text) for name, text in ALL.items()}
