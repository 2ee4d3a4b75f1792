/** Why a circuit is open: calls keep failing, the vendor is busy, or it refuses the operator's key or account. */
export type OpenReason = 'failing' | 'busy' | 'refused'

/** The circuit breaker of a key at a vendor, or of a model behind such a key. Never written to. */
export interface CircuitState {
  /** Failures, and refusals of the model, since the last success. */
  readonly failures: number
  /** How many times in a row it was opened for the same reason, except where the vendor itself chose the time. */
  readonly openings: number
  /** Unix milliseconds until which it is open; 0: it is closed. */
  readonly openUntilMs: number
  readonly reason: OpenReason | undefined
  /** Is the one call under way that decides whether a half-open circuit closes? */
  readonly isProbing: boolean
}

/** `open`: no calls. `half-open`: its time is over, and one call may probe it. */
export type Circuit = 'closed' | 'half-open' | 'open'

/** Consecutive failures that open a circuit. */
export const FAILURES_TO_OPEN = 5
/** The first opening lasts so long, the second twice as long, and so on. */
const OPEN_STEP_MS = 30_000
const LONGEST_OPEN_MS = 300_000
/** For a vendor that says "too many requests" without saying when to come back; doubled each time. */
const BUSY_STEP_MS = 1_000
const LONGEST_BUSY_MS = 30_000
/** A vendor that asks for more patience than this is asked all the same after it. */
const LONGEST_RETRY_AFTER_MS = 60 * 60_000

/** Nothing is known against it. */
export const CLOSED: CircuitState = {
  failures: 0,
  openings: 0,
  openUntilMs: 0,
  reason: undefined,
  isProbing: false,
}

/** May it be asked at this moment? While a probe is under way nobody else may. */
export function circuitOf(state: CircuitState, nowMs: number): Circuit {
  if (state.openUntilMs === 0) return 'closed'
  return nowMs < state.openUntilMs || state.isProbing ? 'open' : 'half-open'
}

/** A call begins; on a half-open circuit it is the probe. */
export function afterBegin(state: CircuitState, nowMs: number): CircuitState {
  return circuitOf(state, nowMs) === 'half-open' ? { ...state, isProbing: true } : state
}

/**
 * A call was answered. An opening set by the vendor's own word (busy, refused) is kept even if an older call succeeds.
 */
export function afterSuccess(state: CircuitState, nowMs: number): CircuitState {
  if (state === CLOSED) return state
  const isHeldBack = nowMs < state.openUntilMs && state.reason !== 'failing'
  return isHeldBack ? state : CLOSED
}

/** A call failed by the vendor's fault. `retryAfterMs` is how long the vendor asks us to wait, where it says so. */
export function afterFailure(state: CircuitState, nowMs: number, retryAfterMs: number | undefined): CircuitState {
  const failed = { ...state, failures: state.failures + 1 }
  const mayGoOn = state.openUntilMs === 0 && failed.failures < FAILURES_TO_OPEN && retryAfterMs === undefined
  return mayGoOn ? failed : opened(failed, 'failing', nowMs, retryAfterMs)
}

/** The vendor said "too many requests". */
export function afterBusy(state: CircuitState, nowMs: number, retryAfterMs: number | undefined): CircuitState {
  return opened(state, 'busy', nowMs, retryAfterMs)
}

/** The vendor refused the operator's key, account or quota. */
export function afterRefusal(state: CircuitState, nowMs: number, retryAfterMs: number | undefined): CircuitState {
  return opened(state, 'refused', nowMs, retryAfterMs)
}

/**
 * The vendor refused the operator's model id. Vendors use the same words for things that a caller names, and repeat what
 * callers wrote: one caller's request is no proof against a model that answers others, so it takes as many in a row as
 * failures do.
 */
export function afterModelRefusal(state: CircuitState, nowMs: number, retryAfterMs: number | undefined): CircuitState {
  const refused = { ...state, failures: state.failures + 1 }
  const mayGoOn = state.openUntilMs === 0 && refused.failures < FAILURES_TO_OPEN
  return mayGoOn ? refused : opened(refused, 'refused', nowMs, retryAfterMs)
}

/** A call ended without saying anything about the vendor: its caller left, for one. */
export function afterIgnored(state: CircuitState): CircuitState {
  return state.isProbing ? { ...state, isProbing: false } : state
}

function opened(
  state: CircuitState,
  reason: OpenReason,
  nowMs: number,
  retryAfterMs: number | undefined,
): CircuitState {
  const askedMs = Math.min(retryAfterMs ?? 0, LONGEST_RETRY_AFTER_MS)
  // Calls that were under way when it was opened bring no news when they fail too, save a longer wait that is asked for.
  if (nowMs < state.openUntilMs) {
    const untilMs = nowMs + askedMs
    return untilMs > state.openUntilMs ? { ...state, reason, openUntilMs: untilMs } : state
  }
  // Whoever says when to come back is believed, until it has failed too often.
  const mayBeBrief = reason === 'busy' || (reason === 'failing' && state.failures < FAILURES_TO_OPEN)
  const isBelieved = retryAfterMs !== undefined && mayBeBrief
  const turns = state.reason === reason ? state.openings : 0
  const openings = isBelieved ? turns : turns + 1
  const lengthMs = isBelieved ? askedMs : Math.max(askedMs, ownLengthMs(reason, openings))
  const openUntilMs = nowMs + Math.max(1, lengthMs)
  return { failures: state.failures, openings, openUntilMs, reason, isProbing: false }
}

function ownLengthMs(reason: OpenReason, openings: number): number {
  return reason === 'busy'
    ? Math.min(LONGEST_BUSY_MS, BUSY_STEP_MS * 2 ** (openings - 1))
    : Math.min(LONGEST_OPEN_MS, OPEN_STEP_MS * openings)
}
