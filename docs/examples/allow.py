"""A limit per user as HTTP status and headers. Needs: pip install redis"""

import math
import os

import redis

r = redis.Redis.from_url(os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"))


def allow(user, cost=1):
    allowed, limit, remaining, wait_ms, reset_ms = r.execute_command(
        "RL.TOKENBUCKET", f"user:{user}", "3/m", "COST", cost
    )
    if allowed:
        return 200, {"RateLimit": f'"user";r={remaining};t={math.ceil(reset_ms / 1000)}'}
    if wait_ms < 0:  # never: the cost is above the limit
        return 413, {}
    retry_s = math.ceil(wait_ms / 1000)
    return 429, {"RateLimit": f'"user";r={max(remaining, 0)};t={retry_s}', "Retry-After": str(retry_s)}


if __name__ == "__main__":
    r.delete("user:42")
    for cost in 1, 1, 1, 1, 4:
        status, headers = allow(42, cost)
        print(status, *(f"{name}: {value}" for name, value in headers.items()), sep="  ")
