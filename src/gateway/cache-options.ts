import { GatewayError } from '../core/errors.ts'
import { checkMembers, memberNames } from '../core/known-members.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { HookTable } from '../hooks/hook-table.ts'
import { AnswerCache, type CachePartition, type CacheRule, type CacheStats } from '../pipeline/cache/answer-cache.ts'
import { ALL_ACCOUNTS } from '../pipeline/cache/serve-cached.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import { memoryCache } from '../stores/memory/memory-cache.ts'
import type { ResponseCache } from '../stores/response-cache.ts'

export type { CachePartition, CacheRule, CacheStats } from '../pipeline/cache/answer-cache.ts'

/** Options of the response cache. */
export interface CacheOptions {
  /** Store of the answers. Default: `memoryCache()`, 64 MiB in this process. */
  readonly store?: ResponseCache | undefined
  /**
   * Requests that are answered from the cache even if they do not request it. By default one rule covers all deterministic requests;
   * `[]` covers none.
   */
  readonly rules?: readonly CacheRule[] | undefined
  /**
   * With `may-ask`, the headers `x-signalbox-cache` and `x-signalbox-cache-ttl` of callers apply, also to requests that no rule
   * covers. Default `ignored`.
   */
  readonly callers?: 'may-ask' | 'ignored' | undefined
  /**
   * Callers that share answers: `account` (default), `key`, or `user`, which is an end user of an account. With `user`, requests without an
   * end user are not cached.
   */
  readonly partition?: CachePartition | undefined
  /** How long an answer is fresh, in milliseconds. Default 300,000. */
  readonly ttlMs?: number | undefined
  /** Maximum time that a caller can request, in milliseconds. Default and maximum 86,400,000. */
  readonly maxTtlMs?: number | undefined
  /** Whether equal requests at the same time in one process share one vendor call. Applies only to whole answers. Default true. */
  readonly collapse?: boolean | undefined
}

/** Selects the answers to clear. */
interface CacheScope {
  /** Account whose answers are cleared. By default all accounts. */
  readonly account?: string
}

/** Operations of the host on the cache. */
export interface CacheControl {
  /**
   * Makes all answers of an account unreachable, or those of all accounts: immediately in this process, and within a second in
   * others. Without a cache it has no effect.
   * @throws GatewayError `store_unavailable` if the cache cannot be reached.
   */
  clear(scope?: CacheScope): Promise<void>
  /** Returns the counts of the cache in this process; zeros without a cache. */
  stats(): Readonly<CacheStats>
}

const OWNER = 'createGateway'
const DAY_MS = 24 * 60 * 60_000
const DEFAULT_TTL_MS = 300_000

const CLEAR_OPTIONS = memberNames<CacheScope>()('account')

/**
 * Returns the cache of these options, or `undefined` if there is none.
 * @throws TypeError naming the option.
 */
export function answerCacheOf(
  options: CacheOptions | undefined,
  endpoints: readonly Endpoint[],
  hooks: HookTable | undefined,
): AnswerCache | undefined {
  if (options === undefined) return undefined
  const { store = memoryCache(), rules = [{}], callers = 'ignored', partition = 'account', collapse = true } = options
  const { maxTtlMs = DAY_MS } = options
  checkTime('cache.maxTtlMs', maxTtlMs, DAY_MS)
  const ttlMs = options.ttlMs ?? Math.min(DEFAULT_TTL_MS, maxTtlMs)
  checkTime('cache.ttlMs', ttlMs, maxTtlMs)
  checkRules(rules, maxTtlMs, endpoints)
  if (rules.length === 0 && callers === 'ignored')
    fail("cache: nothing is cached without rules. Add a rule, or set callers: 'may-ask'")
  const fingerprint = (endpoint: Endpoint): string => hooks?.of(endpoint)?.fingerprint ?? ''
  return new AnswerCache({ store, rules, callers, partition, collapse, fingerprint, ttlMs, maxTtlMs })
}

export function cacheControlOf({ cache, clock }: PipelineContext): CacheControl {
  return {
    async clear(scope = {}) {
      checkMembers(scope, CLEAR_OPTIONS, 'cache.clear')
      const { account = ALL_ACCOUNTS } = scope
      try {
        await cache?.settings.store.clear(account, clock.now())
      } catch (cause) {
        throw new GatewayError('store_unavailable', { cause })
      }
    },
    stats: () => ({ ...(cache?.stats ?? NOTHING_DONE) }),
  }
}

const NOTHING_DONE: CacheStats = { hits: 0, misses: 0, writes: 0, failedWrites: 0 }

function checkRules(rules: readonly CacheRule[], maxTtlMs: number, endpoints: readonly Endpoint[]): void {
  const known = cacheableIds(endpoints)
  for (const [index, rule] of rules.entries()) {
    const at = `cache.rules[${index}]`
    for (const id of rule.endpoints ?? [])
      if (!known.includes(id)) fail(`${at}.endpoints: ${JSON.stringify(id)} must be one of ${known.join(', ')}`)
    for (const id of rule.models ?? [])
      if (id.split('*').length > 2) fail(`${at}.models: ${JSON.stringify(id)} has more than one *`)
    checkTime(`${at}.ttlMs`, rule.ttlMs ?? maxTtlMs, maxTtlMs)
  }
}

/** Ids of the endpoints whose answers can be cached, each once. */
function cacheableIds(endpoints: readonly Endpoint[]): readonly string[] {
  return [...new Set(endpoints.filter(({ cached }) => cached !== undefined).map(({ id }) => id))]
}

function checkTime(name: string, value: number, most: number): void {
  if (value > most) fail(`${name} must be a positive number of milliseconds, at most ${most}`)
}

function fail(problem: string): never {
  throw new TypeError(`${OWNER}: ${problem}`)
}
