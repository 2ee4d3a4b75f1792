import { Redis } from 'ioredis'
import type { ContractClock } from '../../../../src/testing/contracts/contract-runner.ts'

// Ages the keys of a prefix on the server, as if its clock had been advanced.
const AGE = `
local milliseconds = tonumber(ARGV[1])
local key = KEYS[1]
if redis.call('TYPE', key).ok == 'zset' then
  local members = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  for index = 1, #members, 2 do
    redis.call('ZADD', key, string.format('%.0f', tonumber(members[index + 1]) - milliseconds), members[index])
  end
else
  local level, at = string.match(redis.call('GET', key), '^(%S+) (%S+)$')
  redis.call('SET', key, level .. ' ' .. string.format('%.0f', tonumber(at) - milliseconds * 1000), 'KEEPTTL')
end
local lifetime = redis.call('PTTL', key) - milliseconds
if lifetime > 0 then redis.call('PEXPIRE', key, lifetime) else redis.call('DEL', key) end
return lifetime
`

/** A look behind the driver, and a clock for the server that can be moved on. */
export interface ServerClock extends ContractClock {
  /** Keys under the current prefix. */
  keys(): Promise<string[]>
  readonly redis: Redis
}

export function serverClock(url: string, prefix: () => string): ServerClock {
  const redis = new Redis(url)
  const keys = async (): Promise<string[]> => redis.keys(`${prefix()}*`)
  return {
    redis,
    keys,
    now: () => Date.now(),
    async advance(milliseconds) {
      for (const key of await keys()) await redis.eval(AGE, 1, key, milliseconds)
    },
  }
}
