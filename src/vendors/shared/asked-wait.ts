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
