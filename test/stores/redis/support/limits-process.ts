import { once } from 'node:events'
import { Redis } from 'ioredis'
import type { RateTake } from '../../../../src/stores/rate-limiter.ts'
import { redisLimits } from '../../../../src/stores/redis/redis-limits.ts'

/** Job for this process: take as often as possible until the time (Unix milliseconds) that it sends. */
export interface LimitsJob {
  readonly url: string
  readonly prefix: string
  readonly take: RateTake
}

/** Result of the job. Times in Unix milliseconds. */
export interface LimitsReport {
  readonly granted: number
  readonly refused: number
  readonly firstAskedAtMs: number
  readonly lastAnsweredAtMs: number
}

const CALLERS = 16

const job = JSON.parse(process.argv[2]!) as LimitsJob
const client = new Redis(job.url)
// Long enough for a busy machine, because the tests check decisions of the server.
const { rateLimiter } = redisLimits({ client, prefix: job.prefix, deadlineMs: 10_000 })
await client.ping()

const word = once(process, 'message')
process.send!('ready')
const endMs = Number((await word)[0])

let granted = 0
let refused = 0
const firstAskedAtMs = Date.now()

async function call(): Promise<void> {
  while (Date.now() < endMs) {
    const { allowed } = await rateLimiter.take([job.take], Date.now())
    if (allowed) granted += 1
    else refused += 1
  }
}

await Promise.all(Array.from({ length: CALLERS }, call))
process.send!({ granted, refused, firstAskedAtMs, lastAnsweredAtMs: Date.now() } satisfies LimitsReport)
client.disconnect()
process.disconnect()
