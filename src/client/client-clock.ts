import type { Clock } from '../core/clock.ts'

// Longer delays overflow timers, which would then fire immediately.
const MAX_DELAY_MS = 2 ** 31 - 1

/** System clock. Its timers keep a Node process alive until the answer arrives. */
export const clientClock: Clock = {
  now: () => Date.now(),
  schedule(delayMs, callback) {
    const handle = setTimeout(callback, Math.min(Math.max(delayMs, 0), MAX_DELAY_MS))
    return { cancel: () => clearTimeout(handle) }
  },
}

/**
 * Waits for a delay.
 * @throws the signal's reason as soon as it is aborted.
 */
export function pause(clock: Clock, delayMs: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = clock.schedule(delayMs, () => {
      signal?.removeEventListener('abort', abort)
      resolve()
    })
    const abort = (): void => {
      timer.cancel()
      reject(signal?.reason)
    }
    if (signal?.aborted === true) abort()
    else signal?.addEventListener('abort', abort, { once: true })
  })
}
