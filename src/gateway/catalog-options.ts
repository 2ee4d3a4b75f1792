import * as z from 'zod'
import { whileUsed } from '../core/on-demand.ts'
import { checkBySchema, positive } from '../core/option-schema.ts'
import { type BatchSettings, type LimitSet, withDefaults } from '../pipeline/pipeline-context.ts'
import type { BlobStore } from '../stores/blob-store.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import type { RateLimits } from '../stores/rate-limiter.ts'

const OWNER = 'createGateway'

/** Source of newer models and list prices than those of the package. */
export interface CatalogOptions {
  /**
   * Path, or http(s) URL, of a snapshot that `signalbox catalog update --snapshot` wrote. It is read at start, before the first
   * request, and at every interval of `refreshMs`.
   */
  readonly from: string
  /** Interval of the search for a newer snapshot, in milliseconds. Default 600,000. */
  readonly refreshMs?: number | undefined
  /** URL of an HTTP proxy for an address. If omitted, the connection is direct. */
  readonly proxy?: string | undefined
}

/** Catalog in force. */
export interface CatalogState {
  /** Date of the vendors' models and list prices: `2026-07-02`. */
  readonly date: string
  readonly ageDays: number
  /** Whether the catalog is older than 60 days. */
  readonly isOld: boolean
  /** Reason why the last load failed, or `undefined` if it succeeded. */
  readonly error: string | undefined
}

/** Default of `refreshMs`. */
export const DEFAULT_REFRESH_MS = 600_000

/** Whether a source is a URL, and not a path. */
export function isAddress(from: string): boolean {
  return /^https?:\/\//i.test(from)
}

/** Limits by scope. Omitted members limit nothing. */
export interface LimitScopes {
  /** Limits of each key that does not set its own. */
  readonly perKey?: RateLimits | undefined
  /** Limits of all keys of an account together. */
  readonly perAccount?: RateLimits | undefined
  /** Limits of each end user of an account: from `authenticate`, or named by a key with `namesEndUsers`. */
  readonly perEndUser?: RateLimits | undefined
}

/** Limits. Without a scope they apply per key. */
export type LimitOptions = RateLimits | LimitScopes

/** Settings of a plan. */
export interface Plan {
  /** Limits that replace the gateway's, one by one. */
  readonly limits?: LimitOptions | undefined
}

const SCOPES = ['perKey', 'perAccount', 'perEndUser'] as const

/** Schemas of limits without a scope, of the option `limits`, and of plans by name. */
export const limitSchemas = whileUsed(() => {
  const rateLimits = z.strictObject({ requestsPerMinute: positive, tokensPerMinute: positive, concurrency: positive })
  const scope = rateLimits.optional()
  const limits = z.strictObject({ perKey: scope, perAccount: scope, perEndUser: scope, ...rateLimits.shape }).optional()
  const plans = z.record(z.string(), z.strictObject({ limits }), 'must be an object of plans by name')
  return { rateLimits, limits, plans }
})

/**
 * Checks limits and fills in omitted ones.
 * @param name Name of the option, for errors.
 * @throws TypeError naming the member.
 */
export function limitSetOf(options: LimitOptions | undefined, name: string): LimitSet {
  checkBySchema(limitSchemas().limits, options, OWNER, name)
  const given = Object.entries(options ?? {}).filter(([, value]) => value !== undefined)
  const isScope = ([member]: readonly [string, unknown]): boolean => SCOPES.some((scope) => scope === member)
  const scoped = given.filter(isScope)
  const other = given.find((entry) => !isScope(entry))
  if (scoped.length > 0 && other !== undefined)
    throw new TypeError(
      `${OWNER}: ${name}.${other[0]} must be in one of ${SCOPES.map((scope) => `${name}.${scope}`).join(', ')}`,
    )
  const scopes: LimitScopes = Object.fromEntries(scoped.length > 0 ? scoped : [['perKey', Object.fromEntries(given)]])
  const { perKey = {}, perAccount = {}, perEndUser = {} } = scopes
  return { perKey, perAccount, perEndUser }
}

/**
 * Returns the name of an invalid limit, or `undefined` if all are valid. NaN, a string, zero or less would limit nothing, or
 * everything.
 */
export function badLimitOf(limits: unknown): string | undefined {
  return Object.entries(limits ?? {}).find(
    ([, value]) => value !== undefined && !(Number.isFinite(value) && value > 0),
  )?.[0]
}

/**
 * Returns the limits of each plan; the gateway's limits fill in omitted ones.
 * @throws TypeError naming the plan.
 */
export function planLimitsOf(
  plans: Readonly<Record<string, Plan>> | undefined,
  defaults: LimitSet,
): ReadonlyMap<string, LimitSet> {
  const sets = new Map<string, LimitSet>()
  for (const [name, plan] of Object.entries(plans ?? {})) {
    const { perKey, perAccount, perEndUser } = limitSetOf(plan.limits, `plans.${name}.limits`)
    sets.set(name, {
      perKey: withDefaults(perKey, defaults.perKey),
      perAccount: withDefaults(perAccount, defaults.perAccount),
      perEndUser: withDefaults(perEndUser, defaults.perEndUser),
    })
  }
  return sets
}

/** Options of files and batches. */
export interface BatchOptions {
  /** Store for the bytes of files: `directoryBlobs`, or one of the host. Defaults to the gateway's store. */
  readonly blobs?: BlobStore | undefined
  /** Maximum size of a file in bytes. Default 209,715,200 (200 MiB). */
  readonly maxFileBytes?: number | undefined
  /** How many days a file is kept unless its caller requests less. At least 1; default 30. */
  readonly retentionDays?: number | undefined
  /** Maximum number of requests in one batch. Default 50,000. */
  readonly maxRequests?: number | undefined
  /** Maximum number of unfinished batches of an account. Default 10. */
  readonly maxOpenBatches?: number | undefined
  /** Maximum number of requests of one batch that a process runs at the same time, within the caller's limits. Default 8. */
  readonly requestsAtOnce?: number | undefined
  /**
   * Whether to submit batches to the batch API of vendors that have one, at batch prices. If false, requests are sent as ordinary
   * calls. Default true.
   */
  readonly native?: boolean | undefined
}

const DAY_MS = 24 * 60 * 60_000

/**
 * Returns the settings of these options, or `undefined` if there are neither files nor batches.
 * @throws TypeError if the store does not support batches.
 */
export function batchSettingsOf(options: BatchOptions | undefined, store: GatewayStore): BatchSettings | undefined {
  if (options === undefined) return undefined
  const { files, batches: outcomes } = store
  const blobs = options.blobs ?? store.blobs
  if (files === undefined || outcomes === undefined || blobs === undefined)
    throw new TypeError('createGateway: batches need a store that has files, blobs and batches')
  return {
    files,
    blobs,
    outcomes,
    maxFileBytes: options.maxFileBytes ?? 200 * 2 ** 20,
    retentionMs: (options.retentionDays ?? 30) * DAY_MS,
    maxRequests: options.maxRequests ?? 50_000,
    maxOpen: options.maxOpenBatches ?? 10,
    requestsAtOnce: options.requestsAtOnce ?? 8,
    isNative: options.native ?? true,
  }
}
