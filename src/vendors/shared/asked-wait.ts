import { retryAfterSeconds } from '../../wire/headers.ts'
import type { VendorFailure, WireAnswer } from '../vendor.ts'

const HELPED_BY_WAITING: ReadonlySet<VendorFailure['kind']> = new Set(['rate_limited', 'unavailable', 'timeout'])

/** Returns the wait that a vendor's answer requests, unless the caller or the operator must change something. */
export function askedWait(
  { kind }: VendorFailure,
  answer: WireAnswer,
  nowMs: number,
): Pick<VendorFailure, 'retryAfterSeconds'> {
  const seconds = HELPED_BY_WAITING.has(kind) ? retryAfterSeconds(answer.headers, nowMs) : undefined
  return seconds === undefined ? {} : { retryAfterSeconds: seconds }
}

/** "Please try again in 1m2.5s", as in OpenAI's and Groq's errors. */
const WAIT_IN_TEXT = /\btry again in\s+(?:(\d+)\s*h)?(?:(\d+)\s*m(?!s|illi))?(?:(\d+(?:\.\d+)?)\s*(m?s))?/i

/** Limits reset after a day at most. A longer wait is not plausible. */
const LONGEST_TEXT_WAIT_SECONDS = 86_400

/** Returns the wait that the text of an error requests, because streams have no headers for it. */
export function waitInText({ kind, message }: VendorFailure): Pick<VendorFailure, 'retryAfterSeconds'> {
  if (!HELPED_BY_WAITING.has(kind)) return {}
  const [, hours = 0, minutes = 0, count = 0, unit = 's'] = WAIT_IN_TEXT.exec(message) ?? []
  const seconds =
    Number(hours) * 3_600 + Number(minutes) * 60 + Number(count) / (unit.toLowerCase() === 'ms' ? 1_000 : 1)
  return seconds === 0 || seconds > LONGEST_TEXT_WAIT_SECONDS ? {} : { retryAfterSeconds: seconds }
}
