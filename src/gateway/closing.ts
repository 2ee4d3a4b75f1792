import { checkMembers } from '../core/known-members.ts'

/** Times of `close`, in milliseconds. */
export interface CloseTimes {
  readonly drainMs?: number
  readonly delayMs?: number
}

const CLOSE_OPTIONS = { drainMs: true, delayMs: true } as const
const LONGEST_INTERVAL_MS = 2 ** 31 - 1

/** @throws TypeError for an unknown option, or an invalid time. */
export function closeTimes(given: CloseTimes): Required<CloseTimes> {
  checkMembers(given, CLOSE_OPTIONS, 'gateway.close')
  for (const [name, ms = 0] of Object.entries(given))
    if (typeof ms !== 'number' || !(ms >= 0)) throw new TypeError(`gateway.close: ${name} must be a number from 0 on`)
  const { drainMs = 30_000, delayMs = 0 } = given
  return { drainMs, delayMs }
}

/**
 * Keeps the process alive until work has ended. The clock's timers do not, and a process that ends while a settlement waits for the
 * store has lost its charge.
 */
export async function keepingAlive(work: () => Promise<void>): Promise<void> {
  const handle = setInterval(() => undefined, LONGEST_INTERVAL_MS)
  try {
    await work()
  } finally {
    clearInterval(handle)
  }
}
