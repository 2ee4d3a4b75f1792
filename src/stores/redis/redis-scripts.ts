import { createHash } from 'node:crypto'

/** Script that the server runs atomically, and its hash. */
export interface Script {
  readonly text: string
  readonly sha1: string
  /** Whether the script is always sent in full, so that no later command can run before it. */
  readonly isSentWhole?: boolean
}

/** A script with its hash. */
export function script(text: string): Script {
  return { text, sha1: createHash('sha1').update(text).digest('hex') }
}

/**
 * A bucket is the text `level microseconds`: the amount that was taken and not refilled at that time of the server's clock.
 * Levels keep all digits, so that limits that do not divide a minute do not drift. Time that runs backwards counts as standing
 * still for a few seconds; if the clock is set back further, or a replica with another clock takes over, the new time is used.
 */
const BUCKETS = `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local MINUTE_US = 60000000
local TOLERANCE = 0.000001
local SET_BACK_US = 5000000

local function milliseconds(level, per_minute)
  if level <= TOLERANCE then return 0 end
  if per_minute <= 0 then return 60000 end
  return math.min(math.ceil(level / per_minute * 60000 - TOLERANCE), 1000000000000)
end

local function write(key, level, at, per_minute)
  if level <= TOLERANCE then
    redis.call('DEL', key)
  else
    local lifetime = milliseconds(level, per_minute) + 1000
    redis.call('SET', key, string.format('%.17g %.0f', level, at), 'PX', string.format('%.0f', lifetime))
  end
end

local function read(key, per_minute)
  local state = redis.call('GET', key)
  if not state then return nil, now end
  local space = string.find(state, ' ', 1, true)
  local level, at = tonumber(string.sub(state, 1, space - 1)), tonumber(string.sub(state, space + 1))
  if at - now > SET_BACK_US then
    at = now
    write(key, level, at, per_minute)
  end
  return math.max(0, level - math.max(0, now - at) * per_minute / MINUTE_US), math.max(now, at)
end
`

/**
 * Takes from all buckets or from none. Arguments for each key: amount, limit per minute, size, and the level to assume if the
 * server has no such bucket. Returns the milliseconds to wait (0: taken), then for each key the remaining amount and the
 * milliseconds until it is full.
 */
export const TAKE = script(`${BUCKETS}
local levels, times, wait = {}, {}, 0
for index, key in ipairs(KEYS) do
  local first = (index - 1) * 4
  local per_minute, size = tonumber(ARGV[first + 2]), tonumber(ARGV[first + 3])
  local level, at = read(key, per_minute)
  levels[index], times[index] = level or tonumber(ARGV[first + 4]), at
  local above = levels[index] + math.min(tonumber(ARGV[first + 1]), size) - size
  if per_minute <= 0 then
    wait = math.max(wait, 60000)
  elseif above > TOLERANCE then
    wait = math.max(wait, math.ceil(above / per_minute * 60000))
  end
end
local reply = { wait }
for index, key in ipairs(KEYS) do
  local first = (index - 1) * 4
  local per_minute, size = tonumber(ARGV[first + 2]), tonumber(ARGV[first + 3])
  local level = levels[index]
  if wait == 0 then
    level = level + math.min(tonumber(ARGV[first + 1]), size)
    write(key, level, times[index], per_minute)
  end
  reply[#reply + 1] = math.max(0, math.floor(size - level + TOLERANCE))
  reply[#reply + 1] = milliseconds(level, per_minute)
end
return reply
`)

/** Adds an amount, or returns it if negative. Arguments: amount, limit per minute. Returns the milliseconds until it is full. */
export const ADJUST = script(`${BUCKETS}
local per_minute = tonumber(ARGV[2])
local level, at = read(KEYS[1], per_minute)
level = math.max(0, (level or 0) + tonumber(ARGV[1]))
write(KEYS[1], level, at, per_minute)
return milliseconds(level, per_minute)
`)

/** A bucket of leases is a sorted set of their ids by expiry, in milliseconds of the server's clock. */
const LEASES = `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local function hold(key, id, lifetime)
  lifetime = math.max(1, lifetime)
  redis.call('ZADD', key, string.format('%.0f', now + lifetime), id)
  if redis.call('PTTL', key) < lifetime then redis.call('PEXPIRE', key, string.format('%.0f', lifetime)) end
end
`

/** Arguments: lease id, limit, lifetime in milliseconds. Returns 1 if the lease was granted. */
export const ACQUIRE = script(`${LEASES}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
hold(KEYS[1], ARGV[1], tonumber(ARGV[3]))
return 1
`)

/** Arguments: lease id, lifetime in milliseconds. Returns 1 if the lease still existed. */
export const RENEW = script(`${LEASES}
local expiry = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not expiry or tonumber(expiry) <= now then return 0 end
hold(KEYS[1], ARGV[1], tonumber(ARGV[2]))
return 1
`)

/**
 * Adds a lease that was granted elsewhere, whatever the limit. Arguments: lease id, lifetime in milliseconds. Sent in full,
 * because a restarted server knows no hash, and later requests must find the lease counted.
 */
export const ENTER: Script = {
  ...script(`${LEASES}
hold(KEYS[1], ARGV[1], tonumber(ARGV[2]))
return 1
`),
  isSentWhole: true,
}

/** Argument: lease id. Hardly longer than its hash, and the next request must not find a released lease. */
export const RELEASE: Script = { ...script(`return redis.call('ZREM', KEYS[1], ARGV[1])`), isSentWhole: true }

/** Tests whether the server accepts writes. */
export const PROBE = script(`redis.call('SET', KEYS[1], '1', 'PX', 1000) return 1`)

/**
 * Returns the server's key of a bucket. In a cluster, buckets with the same text between their first colon and the next slash
 * (`requests:acct_1/key:key_1`, `tokens:acct_1/account`) are on one node, so that one script can take from all of them.
 */
export function bucketKey(prefix: string, bucket: string): string {
  return `${prefix}{${hashTag(bucket)}}:${bucket}`
}

/** Returns the text that the server hashes to choose a node: never empty, and without the closing brace. */
function hashTag(bucket: string): string {
  const [tag = ''] = bucket.slice(bucket.indexOf(':') + 1).split('/', 1)
  return tag.replaceAll('}', '') || '-'
}
