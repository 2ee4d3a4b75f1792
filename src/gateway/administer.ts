import { GatewayError } from '../core/errors.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import { assertAmount } from '../stores/ledger.ts'
import type { SpendingCap } from '../stores/principal.ts'

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
