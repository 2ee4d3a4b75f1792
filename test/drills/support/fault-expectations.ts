import type { ConnectionFault } from './fault-vendor.ts'
import type { CallForm } from './right-answer.ts'
import type { VendorFault } from './vendor-faults.ts'

/** Anything that can go wrong at a vendor. */
export type Fault = VendorFault | ConnectionFault

/** Caller's result. `broken` is a started stream that ends with an error event of this code. */
export type Outcome =
  | { readonly kind: 'whole' }
  | { readonly kind: 'refused'; readonly status: number; readonly code: string; readonly type: string }
  | { readonly kind: 'broken'; readonly code: string; readonly type: string }

const WHOLE: Outcome = { kind: 'whole' }
const UNAVAILABLE = refused(503, 'upstream_unavailable', 'server_error')
const TIMEOUT = refused(504, 'upstream_timeout', 'server_error')
const INVALID = refused(502, 'upstream_invalid_response', 'server_error')
const BUSY = refused(429, 'Throttling.RateQuota', 'rate_limit_error')

/** Rule of a fault (docs/errors.md, "Vendor failures"). */
interface Rule {
  readonly outcome: Outcome
  /** Result of a stream whose content had begun. */
  readonly inStream?: Outcome
  /** Whether another vendor may answer instead. `unless paid` excludes images, because the first vendor may already be generating them. */
  readonly elsewhere: 'always' | 'unless paid' | 'never'
}

const RULES: Readonly<Record<Fault, Rule>> = {
  refused: { outcome: UNAVAILABLE, elsewhere: 'always' },
  'silent TLS': { outcome: TIMEOUT, elsewhere: 'always' },
  'reset in TLS': { outcome: UNAVAILABLE, elsewhere: 'always' },
  'no TLS': { outcome: UNAVAILABLE, elsewhere: 'always' },
  'untrusted certificate': { outcome: UNAVAILABLE, elsewhere: 'always' },
  'hang before the headers': { outcome: TIMEOUT, elsewhere: 'unless paid' },
  'hang after the headers': { outcome: TIMEOUT, elsewhere: 'unless paid' },
  'hang in the body': { outcome: TIMEOUT, inStream: broken(TIMEOUT), elsewhere: 'unless paid' },
  'reset before the headers': { outcome: UNAVAILABLE, elsewhere: 'unless paid' },
  'reset in the body': { outcome: UNAVAILABLE, inStream: broken(UNAVAILABLE), elsewhere: 'unless paid' },
  'close before the headers': { outcome: UNAVAILABLE, elsewhere: 'unless paid' },
  'close in the body': { outcome: UNAVAILABLE, inStream: broken(UNAVAILABLE), elsewhere: 'unless paid' },
  'half an answer': { outcome: INVALID, inStream: broken(INVALID), elsewhere: 'unless paid' },
  'garbage in the body': { outcome: INVALID, elsewhere: 'unless paid' },
  'garbage instead of HTTP': { outcome: INVALID, elsewhere: 'unless paid' },
  'garbage after the answer': { outcome: WHOLE, elsewhere: 'never' },
  'endless headers': { outcome: INVALID, elsewhere: 'unless paid' },
  'endless body': { outcome: INVALID, elsewhere: 'unless paid' },
  'endless page': { outcome: INVALID, elsewhere: 'unless paid' },
  // By then the time for the request as a whole is over.
  'one byte at a time': { outcome: TIMEOUT, elsewhere: 'never' },
  'empty answer': { outcome: INVALID, elsewhere: 'unless paid' },
  'status 400': { outcome: refused(400, 'wrong_size', 'error'), elsewhere: 'never' },
  'status 401': { outcome: UNAVAILABLE, elsewhere: 'always' },
  'status 429': { outcome: BUSY, elsewhere: 'always' },
  'status 500': { outcome: UNAVAILABLE, elsewhere: 'unless paid' },
  'status 503': { outcome: UNAVAILABLE, elsewhere: 'always' },
  'page with status 502': { outcome: UNAVAILABLE, elsewhere: 'unless paid' },
  redirect: { outcome: INVALID, elsewhere: 'unless paid' },
}

/** Returns the expected result of a call with a fault. `hasSecond` means that a healthy vendor follows the faulty one. */
export function expectedOutcome(fault: Fault | undefined, form: CallForm, hasSecond: boolean): Outcome {
  if (fault === undefined) return WHOLE
  const { outcome, inStream, elsewhere } = RULES[fault]
  if (form === 'stream' && inStream !== undefined) return inStream
  const isAnswered = hasSecond && (elsewhere === 'always' || (elsewhere === 'unless paid' && form !== 'image'))
  return isAnswered ? WHOLE : outcome
}

function refused(status: number, code: string, type: string): Outcome & { readonly kind: 'refused' } {
  return { kind: 'refused', status, code, type }
}

function broken({ code, type }: Outcome & { readonly kind: 'refused' }): Outcome {
  return { kind: 'broken', code, type }
}
