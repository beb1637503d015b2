// A limit per user as HTTP status and headers. Needs: npm install ioredis
import Redis from "ioredis";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");

async function allow(user) {
  const [allowed, limit, remaining, waitMs, resetMs] = await redis.call("RL.TOKENBUCKET", `user:${user}`, "3/m");
  if (allowed) {
    return [200, { RateLimit: `"user";r=${remaining};t=${Math.ceil(resetMs / 1000)}` }];
  }
  const retryS = Math.ceil(waitMs / 1000);
  return [429, { RateLimit: `"user";r=0;t=${retryS}`, "Retry-After": `${retryS}` }];
}

await redis.del("user:42");
for (let i = 0; i < 4; i++) {
  const [status, headers] = await allow(42);
  console.log([status, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)].join("  "));
}
redis.disconnect();
