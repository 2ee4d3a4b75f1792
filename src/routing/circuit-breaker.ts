/**
 * Reason of an open circuit: calls keep failing, the vendor is busy, it rejects the operator's key or account, or the operator
 * has opened it manually.
 */
export type OpenReason = 'failing' | 'busy' | 'refused' | 'operator'

/** Circuit breaker of a vendor key, or of one model of that key. Immutable. */
export interface CircuitState {
  /** Failures, and refusals of the model, since the last success. */
  readonly failures: number
  /** Number of consecutive openings for the same reason, except when the vendor set the duration. */
  readonly openings: number
  /** Unix milliseconds at which its open time was last set. A current time before it shows that the clock was set back. */
  readonly openedAtMs: number
  /** End of the open time in Unix milliseconds; 0 if the circuit is closed. */
  readonly openUntilMs: number
  readonly reason: OpenReason | undefined
  /** Whether the single probe of the half-open circuit is in progress. */
  readonly isProbing: boolean
}

/** `open`: no calls. `half-open`: the open time has expired, and one call may probe the circuit. */
export type Circuit = 'closed' | 'half-open' | 'open'

/** Number of consecutive failures that open a circuit. */
export const FAILURES_TO_OPEN = 5
/** Duration of the first opening. Each additional opening adds the same duration. */
const OPEN_STEP_MS = 30_000
const LONGEST_OPEN_MS = 300_000
/** Open time if a vendor reports "too many requests" without a time. Doubled each time. */
const BUSY_STEP_MS = 1_000
const LONGEST_BUSY_MS = 30_000
/** Maximum open time that a vendor may request. The circuit is probed after that, so callers need not wait longer either. */
export const LONGEST_RETRY_AFTER_MS = 60 * 60_000

/** The initial state: closed. */
export const CLOSED: CircuitState = {
  failures: 0,
  openings: 0,
  openedAtMs: 0,
  openUntilMs: 0,
  reason: undefined,
  isProbing: false,
}

/** Returns the state of the circuit. During a probe, no other call is allowed. */
export function circuitOf(state: CircuitState, nowMs: number): Circuit {
  if (state.openUntilMs === 0) return 'closed'
  return nowMs < state.openUntilMs || state.isProbing ? 'open' : 'half-open'
}

/** Adjusts a circuit to a clock that was set back before its opening: the open time starts again. */
export function atTime(state: CircuitState, nowMs: number): CircuitState {
  if (state.openUntilMs === 0 || nowMs >= state.openedAtMs) return state
  return { ...state, openedAtMs: nowMs, openUntilMs: nowMs + (state.openUntilMs - state.openedAtMs) }
}

/** Starts a call; on a half-open circuit it is the probe. */
export function afterBegin(state: CircuitState, nowMs: number): CircuitState {
  return circuitOf(state, nowMs) === 'half-open' ? { ...state, isProbing: true } : state
}

/** Notes a success. An opening by the vendor's own response (busy, refused) stays even if an older call succeeds. */
export function afterSuccess(state: CircuitState, nowMs: number): CircuitState {
  if (state === CLOSED) return state
  const isHeldBack = isOpenUnprobed(state, nowMs) && state.reason !== 'failing'
  return isHeldBack ? state : CLOSED
}

/** Notes a failure that the vendor caused. `retryAfterMs` is the wait that the vendor requests, if any. */
export function afterFailure(state: CircuitState, nowMs: number, retryAfterMs: number | undefined): CircuitState {
  const failed = { ...state, failures: state.failures + 1 }
  const mayGoOn = state.openUntilMs === 0 && failed.failures < FAILURES_TO_OPEN && retryAfterMs === undefined
  return mayGoOn ? failed : opened(failed, 'failing', nowMs, retryAfterMs)
}

/** Notes that the vendor reported "too many requests". */
export function afterBusy(state: CircuitState, nowMs: number, retryAfterMs: number | undefined): CircuitState {
  return opened(state, 'busy', nowMs, retryAfterMs)
}

/** Notes that the vendor rejected the operator's key, account or quota. */
export function afterRefusal(state: CircuitState, nowMs: number, retryAfterMs: number | undefined): CircuitState {
  return opened(state, 'refused', nowMs, retryAfterMs)
}

/**
 * Notes that the vendor rejected the operator's model id. Vendors use the same error for names in the caller's input, and repeat
 * callers' text. So one request is not enough to open the circuit of a model that answers others; it takes as many consecutive
 * ones as for failures.
 */
export function afterModelRefusal(state: CircuitState, nowMs: number, retryAfterMs: number | undefined): CircuitState {
  const refused = { ...state, failures: state.failures + 1 }
  const mayGoOn = state.openUntilMs === 0 && refused.failures < FAILURES_TO_OPEN
  return mayGoOn ? refused : opened(refused, 'refused', nowMs, retryAfterMs)
}

/** Notes a call without information about the vendor, for example because its caller disconnected. */
export function afterIgnored(state: CircuitState): CircuitState {
  return state.isProbing ? { ...state, isProbing: false } : state
}

/** Opens the circuit for the operator for this duration, whatever its state. */
export function ejected(state: CircuitState, nowMs: number, forMs: number): CircuitState {
  return { ...state, openedAtMs: nowMs, openUntilMs: nowMs + forMs, reason: 'operator', isProbing: false }
}

/** A probe proves that the open time has expired once, even if the clock was set back since. */
function isOpenUnprobed(state: CircuitState, nowMs: number): boolean {
  return nowMs < state.openUntilMs && !state.isProbing
}

function opened(
  state: CircuitState,
  reason: OpenReason,
  nowMs: number,
  retryAfterMs: number | undefined,
): CircuitState {
  const askedMs = Math.min(retryAfterMs ?? 0, LONGEST_RETRY_AFTER_MS)
  // Calls that began before the opening do not extend it when they fail, unless the vendor requests a longer wait.
  if (isOpenUnprobed(state, nowMs)) {
    const untilMs = nowMs + askedMs
    return untilMs > state.openUntilMs ? { ...state, reason, openedAtMs: nowMs, openUntilMs: untilMs } : state
  }
  // A wait requested by the vendor is used, until it has failed too often.
  const mayBeBrief = reason === 'busy' || (reason === 'failing' && state.failures < FAILURES_TO_OPEN)
  const isBelieved = retryAfterMs !== undefined && mayBeBrief
  const turns = state.reason === reason ? state.openings : 0
  const openings = isBelieved ? turns : turns + 1
  const lengthMs = isBelieved ? askedMs : Math.max(askedMs, ownLengthMs(reason, openings))
  const openUntilMs = nowMs + Math.max(1, lengthMs)
  return { failures: state.failures, openings, openedAtMs: nowMs, openUntilMs, reason, isProbing: false }
}

function ownLengthMs(reason: OpenReason, openings: number): number {
  return reason === 'busy'
    ? Math.min(LONGEST_BUSY_MS, BUSY_STEP_MS * 2 ** (openings - 1))
    : Math.min(LONGEST_OPEN_MS, OPEN_STEP_MS * openings)
}
