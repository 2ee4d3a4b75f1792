import type { Reservation, ReserveResult } from '../ledger.ts'

/** Judges reservations of one account, in order, in one round trip; one outcome for each. */
export type ReserveBatch = (
  accountId: string,
  reservations: readonly Reservation[],
  nowMs: number,
) => Promise<readonly ReserveResult[]>

interface Waiting {
  readonly reservation: Reservation
  readonly nowMs: number
  readonly resolve: (result: ReserveResult) => void
  readonly reject: (error: unknown) => void
}

const MAX_BATCH = 100

/**
 * Combines reservations: those of one account that come in the same turn, or while an earlier round trip of that account is
 * under way, share the next one. They would wait for each other's lock on the account's row anyway. Accounts do not wait
 * for each other.
 */
export function reserveQueue(judge: ReserveBatch): (reservation: Reservation, nowMs: number) => Promise<ReserveResult> {
  const queues = new Map<string, Waiting[]>()

  async function work(accountId: string, queue: Waiting[]): Promise<void> {
    while (queue.length > 0) {
      const batch = queue.splice(0, MAX_BATCH)
      try {
        const nowMs = batch.reduce((latest, waiting) => Math.max(latest, waiting.nowMs), batch[0]!.nowMs)
        const reservations = batch.map((waiting) => waiting.reservation)
        const results = await judge(accountId, reservations, nowMs)
        for (const [index, waiting] of batch.entries()) waiting.resolve(results[index]!)
      } catch (error) {
        for (const waiting of batch) waiting.reject(error)
      }
    }
    queues.delete(accountId)
  }

  return (reservation, nowMs) =>
    new Promise((resolve, reject) => {
      const { accountId } = reservation
      const waiting = { reservation, nowMs, resolve, reject }
      const queue = queues.get(accountId)
      if (queue !== undefined) {
        queue.push(waiting)
        return
      }
      const fresh = [waiting]
      queues.set(accountId, fresh)
      queueMicrotask(() => void work(accountId, fresh))
    })
}
