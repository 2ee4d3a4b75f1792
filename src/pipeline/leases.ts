import { GatewayError } from '../core/errors.ts'
import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import type { Lease } from '../stores/rate-limiter.ts'
import { type PipelineContext, reportFault } from './pipeline-context.ts'

/** Lease to acquire. */
export interface WantedLease extends Lease {
  readonly limit: number
  readonly expiresAtMs: number
}

/**
 * Acquires all leases, or none.
 * @param taken Number of leases that are already acquired.
 * @throws GatewayError `rate_limited`, or the errors of the limiter.
 */
export function acquireLeases(
  context: PipelineContext,
  wanted: readonly WantedLease[],
  taken = 0,
): MaybePromise<readonly Lease[]> {
  for (let index = taken; index < wanted.length; index++) {
    let acquired: MaybePromise<boolean>
    try {
      acquired = context.concurrency.acquire(wanted[index]!, context.clock.now())
    } catch (error) {
      return giveUp(context, wanted, index, error)
    }
    if (isPending(acquired)) return acquireLater(context, wanted, index, acquired)
    if (!acquired) return giveUp(context, wanted, index, tooMany())
  }
  return wanted
}

function acquireLater(
  context: PipelineContext,
  wanted: readonly WantedLease[],
  index: number,
  acquired: PromiseLike<boolean>,
): PromiseLike<readonly Lease[]> {
  return acquired.then(
    (isAcquired) =>
      isAcquired ? acquireLeases(context, wanted, index + 1) : giveUp(context, wanted, index, tooMany()),
    (error) => giveUp(context, wanted, index, error),
  )
}

function tooMany(): GatewayError {
  return new GatewayError('rate_limited', { message: 'Too many requests at the same time.' })
}

/** Releases the leases before `index` if that one is taken. */
function giveUp(
  context: PipelineContext,
  wanted: readonly WantedLease[],
  index: number,
  error: unknown,
): MaybePromise<never> {
  return releaseAndThrow(context, wanted[index]!.leaseId, wanted.slice(0, index), error)
}

/** Releases leases, then throws. */
export function releaseAndThrow(
  context: PipelineContext,
  requestId: string,
  leases: readonly Lease[],
  error: unknown,
): MaybePromise<never> {
  const released = releaseLeases(context, requestId, leases)
  if (!isPending(released)) throw error
  return released.then(() => {
    throw error
  })
}

/** Releases leases. Never fails: the host gets an `internal-error` event, and the lease expires. */
export function releaseLeases(
  context: PipelineContext,
  requestId: string,
  leases: readonly Lease[],
): MaybePromise<void> {
  return eachReported(context, requestId, leases, releaseLease, undefined)
}

function releaseLease({ concurrency }: PipelineContext, lease: Lease): MaybePromise<void> {
  return concurrency.release(lease)
}

/**
 * Runs a function for each item of a list, and reports errors instead of throwing, because they must not fail a request.
 * @param value Passed to each run, so that no closure is needed.
 */
export function eachReported<Item, Value>(
  context: PipelineContext,
  requestId: string,
  items: readonly Item[],
  run: (context: PipelineContext, item: Item, value: Value) => MaybePromise<unknown>,
  value: Value,
): MaybePromise<void> {
  let pending: Promise<unknown>[] | undefined
  for (let index = 0; index < items.length; index++) {
    try {
      const done = run(context, items[index]!, value)
      if (isPending(done)) {
        pending ??= []
        pending.push(reportedLater(context, requestId, done))
      }
    } catch (error) {
      reportFault(context, requestId, 'limits', error)
    }
  }
  return pending === undefined ? undefined : Promise.all(pending).then(() => undefined)
}

// Separate from its caller, because a function that may create closures allocates for them in every call.
function reportedLater(context: PipelineContext, requestId: string, done: PromiseLike<unknown>): Promise<unknown> {
  return Promise.resolve(done).then(
    () => undefined,
    (error) => reportFault(context, requestId, 'limits', error),
  )
}
