import { Buffer } from 'node:buffer'
import type { Clock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { Ids } from '../core/ids.ts'
import { checkMembers, memberNames } from '../core/known-members.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { AuditEntry } from '../stores/audit-store.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import { assertAmount } from '../stores/ledger.ts'
import type { SpendingCap } from '../stores/principal.ts'
import { checkPageSize, type PageOptions, pageOf, partsOfPlace, placeOf } from './page-cursor.ts'

/** Selects a page of the audit. */
export interface AuditPageOptions extends PageOptions {
  /** Id of the changed object. If omitted, all changes are listed. */
  readonly subject?: string | undefined
  /** First time in Unix milliseconds, inclusive. */
  readonly fromMs?: number | undefined
  /** End of the range in Unix milliseconds, exclusive. */
  readonly untilMs?: number | undefined
}

const AUDIT_PAGE_OPTIONS = memberNames<AuditPageOptions>()('subject fromMs untilMs cursor limit')

/** Page of the audit. */
export interface AuditPage {
  /** Changes, newest first. */
  readonly entries: readonly AuditEntry[]
  /** Cursor of the next page, or `undefined` if there is none. */
  readonly next: string | undefined
}

/** Change to be recorded, with the full state of its subject before and after. */
export type AuditDraft = Omit<AuditEntry, 'id' | 'createdAtMs'>

/** Changes by operators, kept for a year. */
export interface Audit {
  /**
   * Lists changes, newest first.
   * @throws GatewayError `invalid_request` for a bad limit or cursor; `store_unavailable`.
   */
  list(options?: AuditPageOptions): Promise<AuditPage>
  /**
   * Records a change. Only members that differ between `before` and `after` are kept, and a part above 16 KiB is replaced by its size.
   * @throws GatewayError `store_unavailable`.
   */
  record(change: AuditDraft): Promise<void>
}

/** Creates the audit of a store. `ready` resolves once the store can be used. */
export function auditOf({ audit }: GatewayStore, clock: Clock, ids: Ids, ready: () => Promise<void>): Audit {
  return {
    async list(options = {}) {
      checkMembers(options, AUDIT_PAGE_OPTIONS, 'audit.list')
      const { cursor, limit = 100, ...range } = options
      if (audit === undefined)
        throw new GatewayError('invalid_request', { message: 'The store of this gateway keeps no audit.' })
      return administer(ready, async () => {
        checkPageSize(limit)
        const rows = await audit.list({ ...range, after: placeOf(cursor), limit: limit + 1 })
        const page = pageOf(rows, limit, partsOfPlace)
        return { entries: page.rows, next: page.next }
      })
    },
    async record({ input, before, after, ...facts }) {
      if (audit === undefined) return
      const entry = {
        ...facts,
        id: ids.next('aud'),
        createdAtMs: clock.now(),
        input: bounded(input),
        before: before && bounded(changedMembers(before, after)),
        after: after && bounded(changedMembers(after, before)),
      }
      await administer(ready, () => audit.add(entry))
    },
  }
}

type Members = Readonly<Record<string, unknown>>

function changedMembers(state: Members, other: Members | undefined): Members {
  if (other === undefined) return state
  const isChanged = (name: string) => JSON.stringify(state[name]) !== JSON.stringify(other[name])
  return Object.fromEntries(Object.entries(state).filter(([name]) => isChanged(name)))
}

const MAX_PART_BYTES = 16 * 1024

/** Amounts become decimal digits of nano-dollars, because JSON has no bigint. */
function bounded(members: Members): Members {
  const text = JSON.stringify(members, (_name, value: unknown) => (typeof value === 'bigint' ? String(value) : value))
  const byteLength = Buffer.byteLength(text)
  return byteLength > MAX_PART_BYTES ? { omitted_bytes: byteLength } : (JSON.parse(text) as Members)
}

/**
 * Runs one call of the management API once the store is open.
 * @throws GatewayError `invalid_request` if the store rejects an argument with a `RangeError`; `store_unavailable` for every other
 *   error of the store, which is its `cause`.
 */
export async function administer<Value>(ready: () => Promise<void>, call: () => MaybePromise<Value>): Promise<Value> {
  await ready()
  try {
    return await call()
  } catch (cause) {
    if (GatewayError.isInstance(cause)) throw cause
    if (cause instanceof RangeError) throw new GatewayError('invalid_request', { message: cause.message, cause })
    throw new GatewayError('store_unavailable', { cause })
  }
}

/**
 * Runs a check of one argument.
 * @throws GatewayError `invalid_request` with `param` if the check throws a `RangeError`.
 */
export function checkArgument<Value>(param: string, check: () => Value): Value {
  try {
    return check()
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause
    throw new GatewayError('invalid_request', { message: cause.message, param, cause })
  }
}

/** @throws GatewayError `invalid_request` for an amount that no store can store, or an unknown period. */
export function checkSpendingCap(cap: SpendingCap | null | undefined): void {
  if (cap == null) return
  checkArgument('spendingCap', () => assertAmount(cap.amount))
  if (cap.period === 'day' || cap.period === 'month') return
  throw new GatewayError('invalid_request', {
    message: 'spendingCap.period must be day or month',
    param: 'spendingCap',
  })
}

/** @throws GatewayError `invalid_request` if the overlap is negative or not finite. */
export function checkOverlap(overlapMs: number): void {
  if (overlapMs >= 0 && Number.isFinite(overlapMs)) return
  const message = `overlapMs must be a number of at least 0, not ${overlapMs}`
  throw new GatewayError('invalid_request', { message, param: 'overlapMs' })
}

/** Creates the error for an account that does not exist. */
export function noSuchAccount(accountId: string, cause?: unknown): GatewayError {
  const message = `there is no account ${JSON.stringify(accountId)}`
  return new GatewayError('invalid_request', { message, param: 'accountId', cause })
}

const MAX_REASON_LENGTH = 500

/** @throws GatewayError `invalid_request` if the reason is missing, empty, too long, or more than one line. */
export function checkReason(reason: string): void {
  if (typeof reason === 'string' && reason !== '' && reason.length <= MAX_REASON_LENGTH && !/\p{Cc}/u.test(reason))
    return
  const message = `reason must be one line of 1 to ${MAX_REASON_LENGTH} characters`
  throw new GatewayError('invalid_request', { message, param: 'reason' })
}

/** @throws GatewayError `invalid_request` if not every store can store the id. */
export function checkId(param: string, id: string): void {
  if (/^[\x21-\x7e]{1,200}$/.test(id)) return
  const message = `${param} must be 1 to 200 printable ASCII characters without spaces`
  throw new GatewayError('invalid_request', { message, param })
}
