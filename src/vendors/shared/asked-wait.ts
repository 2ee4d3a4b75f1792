import { retryAfterSeconds } from '../../wire/headers.ts'
import type { VendorFailure, WireAnswer } from '../vendor.ts'

const HELPED_BY_WAITING: ReadonlySet<VendorFailure['kind']> = new Set(['rate_limited', 'unavailable', 'timeout'])

/** The wait that a vendor's answer asks for, where waiting helps: not for what the caller or the operator must change. */
export function askedWait(
  { kind }: VendorFailure,
  answer: WireAnswer,
  nowMs: number,
): Pick<VendorFailure, 'retryAfterSeconds'> {
  const seconds = HELPED_BY_WAITING.has(kind) ? retryAfterSeconds(answer.headers, nowMs) : undefined
  return seconds === undefined ? {} : { retryAfterSeconds: seconds }
}

/** "Please try again in 1m2.5s", as OpenAI and Groq write it. */
const WAIT_IN_TEXT = /\btry again in\s+(?:(\d+)\s*h)?(?:(\d+)\s*m(?!s|illi))?(?:(\d+(?:\.\d+)?)\s*(m?s))?/i

/** Limits start again after a day at most: a longer wait is none that a vendor means. */
const LONGEST_TEXT_WAIT_SECONDS = 86_400

/** The wait that an error asks for by its text: inside a stream there are no headers. */
export function waitInText({ kind, message }: VendorFailure): Pick<VendorFailure, 'retryAfterSeconds'> {
  if (!HELPED_BY_WAITING.has(kind)) return {}
  const [, hours = 0, minutes = 0, count = 0, unit = 's'] = WAIT_IN_TEXT.exec(message) ?? []
  const seconds =
    Number(hours) * 3_600 + Number(minutes) * 60 + Number(count) / (unit.toLowerCase() === 'ms' ? 1_000 : 1)
  return seconds === 0 || seconds > LONGEST_TEXT_WAIT_SECONDS ? {} : { retryAfterSeconds: seconds }
}
