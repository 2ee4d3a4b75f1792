import { GatewayError } from '../core/errors.ts'
import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import type { Lease } from '../stores/rate-limiter.ts'
import { type PipelineContext, reportFault } from './pipeline-context.ts'

/** A place to take. */
export interface WantedLease extends Lease {
  readonly limit: number
  readonly expiresAtMs: number
}

/**
 * Takes all places, or none.
 * @param taken How many of them are taken already.
 * @throws GatewayError `rate_limited`, or what the limiter throws.
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

/** The place at `index` is taken: those before it are given back. */
function giveUp(
  context: PipelineContext,
  wanted: readonly WantedLease[],
  index: number,
  error: unknown,
): MaybePromise<never> {
  return releaseAndThrow(context, wanted[index]!.leaseId, wanted.slice(0, index), error)
}

/** Gives places back, then throws. */
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

/** Gives places back. Never fails: the host gets an `internal-error` event, and the lease expires. */
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
 * Does for each of a list what must not fail a request; a fault is reported instead.
 * @param value Given to each run, so that none needs a closure.
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

// Apart from its caller: a function that may make closures allocates for them in every call.
function reportedLater(context: PipelineContext, requestId: string, done: PromiseLike<unknown>): Promise<unknown> {
  return Promise.resolve(done).then(
    () => undefined,
    (error) => reportFault(context, requestId, 'limits', error),
  )
}
