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
 * @throws GatewayError `rate_limited`, or what the limiter throws.
 */
export function acquireLeases(
  context: PipelineContext,
  wanted: readonly WantedLease[],
  held: readonly Lease[] = [],
): MaybePromise<readonly Lease[]> {
  const lease = wanted[held.length]
  if (lease === undefined) return held
  const refuse = (error: unknown): MaybePromise<never> => {
    const released = releaseLeases(context, lease.leaseId, held)
    if (!isPending(released)) throw error
    return released.then(() => {
      throw error
    })
  }
  const decided = (isAcquired: boolean): MaybePromise<readonly Lease[]> =>
    isAcquired
      ? acquireLeases(context, wanted, [...held, lease])
      : refuse(new GatewayError('rate_limited', { message: 'Too many requests at the same time.' }))
  let acquired: MaybePromise<boolean>
  try {
    acquired = context.concurrency.acquire(lease, context.clock.now())
  } catch (error) {
    return refuse(error)
  }
  return isPending(acquired) ? acquired.then(decided, refuse) : decided(acquired)
}

/** Gives places back. Never fails: the host gets an `internal-error` event, and the lease expires. */
export function releaseLeases(
  context: PipelineContext,
  requestId: string,
  leases: readonly Lease[],
): MaybePromise<void> {
  return eachReported(context, requestId, leases, (lease) => context.concurrency.release(lease))
}

/** Does for each of a list what must not fail a request; a fault is reported instead. */
export function eachReported<Item>(
  context: PipelineContext,
  requestId: string,
  items: readonly Item[],
  run: (item: Item) => MaybePromise<unknown>,
): MaybePromise<void> {
  const onFault = (error: unknown): void => reportFault(context, requestId, 'limits', error)
  let pending: Promise<unknown>[] | undefined
  for (const item of items) {
    try {
      const done = run(item)
      if (isPending(done)) {
        pending ??= []
        pending.push(Promise.resolve(done).then(() => undefined, onFault))
      }
    } catch (error) {
      onFault(error)
    }
  }
  return pending === undefined ? undefined : Promise.all(pending).then(() => undefined)
}
