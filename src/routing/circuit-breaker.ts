/**
 * Why a circuit is open: calls keep failing, the vendor is busy, it refuses the operator's key or account, or the operator has
 * opened it by hand.
 */
export type OpenReason = 'failing' | 'busy' | 'refused' | 'operator'

/** The circuit breaker of a vendor key, or of a model behind such a key. Immutable. */
export interface CircuitState {
  /** Failures, and refusals of the model, since the last success. */
  readonly failures: number
  /** How many times in a row it opened for the same reason, except when the vendor set the duration. */
  readonly openings: number
  /** Unix milliseconds at which it was last told how long it is open; a time before it shows that the clock was set back. */
  readonly openedAtMs: number
  /** Unix milliseconds until which it is open; 0: it is closed. */
  readonly openUntilMs: number
  readonly reason: OpenReason | undefined
  /** Is the half-open circuit's single probe in progress? */
  readonly isProbing: boolean
}

/** `open`: no calls. `half-open`: the open time is over, and one call may probe it. */
export type Circuit = 'closed' | 'half-open' | 'open'

/** Consecutive failures that open a circuit. */
export const FAILURES_TO_OPEN = 5
/** Duration of the first opening; it doubles with each further one. */
const OPEN_STEP_MS = 30_000
const LONGEST_OPEN_MS = 300_000
/** For a vendor that reports "too many requests" without a time; doubled each time. */
const BUSY_STEP_MS = 1_000
const LONGEST_BUSY_MS = 30_000
/** Longest open time that a vendor may request; it is probed after that, so callers need not wait longer either. */
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

/** May it be called now? During a probe no other call may. */
export function circuitOf(state: CircuitState, nowMs: number): Circuit {
  if (state.openUntilMs === 0) return 'closed'
  return nowMs < state.openUntilMs || state.isProbing ? 'open' : 'half-open'
}

/** The same circuit by a clock that was set back before its opening: it is open for its whole time again, and no longer. */
export function atTime(state: CircuitState, nowMs: number): CircuitState {
  if (state.openUntilMs === 0 || nowMs >= state.openedAtMs) return state
  return { ...state, openedAtMs: nowMs, openUntilMs: nowMs + (state.openUntilMs - state.openedAtMs) }
}

/** A call begins; on a half-open circuit it is the probe. */
export function afterBegin(state: CircuitState, nowMs: number): CircuitState {
  return circuitOf(state, nowMs) === 'half-open' ? { ...state, isProbing: true } : state
}

/** A call was answered. An opening by the vendor's own response (busy, refused) stays even if an older call succeeds. */
export function afterSuccess(state: CircuitState, nowMs: number): CircuitState {
  if (state === CLOSED) return state
  const isHeldBack = isOpenUnprobed(state, nowMs) && state.reason !== 'failing'
  return isHeldBack ? state : CLOSED
}

/** A call failed by the vendor's fault. `retryAfterMs` is the wait that the vendor requests, if any. */
export function afterFailure(state: CircuitState, nowMs: number, retryAfterMs: number | undefined): CircuitState {
  const failed = { ...state, failures: state.failures + 1 }
  const mayGoOn = state.openUntilMs === 0 && failed.failures < FAILURES_TO_OPEN && retryAfterMs === undefined
  return mayGoOn ? failed : opened(failed, 'failing', nowMs, retryAfterMs)
}

/** The vendor reported "too many requests". */
export function afterBusy(state: CircuitState, nowMs: number, retryAfterMs: number | undefined): CircuitState {
  return opened(state, 'busy', nowMs, retryAfterMs)
}

/** The vendor refused the operator's key, account or quota. */
export function afterRefusal(state: CircuitState, nowMs: number, retryAfterMs: number | undefined): CircuitState {
  return opened(state, 'refused', nowMs, retryAfterMs)
}

/**
 * The vendor refused the operator's model id. Vendors use the same error for names in the caller's input, and repeat
 * callers' text. One request is therefore not enough to open the circuit of a model that answers others; it takes as many
 * in a row as failures do.
 */
export function afterModelRefusal(state: CircuitState, nowMs: number, retryAfterMs: number | undefined): CircuitState {
  const refused = { ...state, failures: state.failures + 1 }
  const mayGoOn = state.openUntilMs === 0 && refused.failures < FAILURES_TO_OPEN
  return mayGoOn ? refused : opened(refused, 'refused', nowMs, retryAfterMs)
}

/** A call ended without information about the vendor, for example because its caller disconnected. */
export function afterIgnored(state: CircuitState): CircuitState {
  return state.isProbing ? { ...state, isProbing: false } : state
}

/** The operator opens it by hand for this long, whatever it was before. */
export function ejected(state: CircuitState, nowMs: number, forMs: number): CircuitState {
  return { ...state, openedAtMs: nowMs, openUntilMs: nowMs + forMs, reason: 'operator', isProbing: false }
}

/** The open time of a circuit that is probed was over once, whatever the clock says since. */
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
