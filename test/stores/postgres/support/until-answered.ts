import { setTimeout as delay } from 'node:timers/promises'
import type { MaybePromise } from '../../../../src/core/maybe-promise.ts'

/** SQLSTATE classes of a server that is gone, starting, ending, full or asked to give up: another attempt may succeed. */
const OUTAGE_CLASSES = ['08', '40', '53', '55', '57']
/** The last one: a former primary that only reads. */
const OUTAGE_CODES = ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', '25006']
/** Errors of the client library and of the store that have no code. */
const OUTAGE_TEXT = /Connection terminated|did not answer within|not queryable|could not be undone/
/** Time between two attempts. */
const POLL_MS = 10

/** Repeats a call until the server answers, as the gateway does. Other errors are thrown. */
export async function untilAnswered<Value>(call: () => MaybePromise<Value>, onRepeat: () => void): Promise<Value> {
  for (;;) {
    try {
      return await call()
    } catch (error) {
      if (!isOutage(error)) throw error
      onRepeat()
      await delay(POLL_MS)
    }
  }
}

/** Whether an error says that the server did not answer, rather than that it refused. */
export function isOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = 'code' in error ? String(error.code) : ''
  return OUTAGE_CODES.includes(code) || OUTAGE_CLASSES.includes(code.slice(0, 2)) || OUTAGE_TEXT.test(error.message)
}
