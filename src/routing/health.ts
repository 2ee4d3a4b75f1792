/** Why something is left alone: it keeps failing, it has too much to do, or it refuses the operator's key or account. */
export type EjectionReason = 'failing' | 'busy' | 'refused'

/** What the calls so far say about a key at a vendor, or about a model behind such a key. Never written to. */
export interface Health {
  /** Failures, and refusals of the model, since the last success. */
  readonly failures: number
  /** How many times running it was ejected for the same reason, save those whose length the vendor itself chose. */
  readonly ejections: number
  /** Unix milliseconds until which it is left alone; 0: it is not ejected. */
  readonly ejectedUntilMs: number
  readonly reason: EjectionReason | undefined
  /** Is the one call under way that finds out whether it is well again? */
  readonly isProbing: boolean
}

/** May it be asked? `probe`: its time is over, and one call may find out. */
export type Standing = 'ready' | 'probe' | 'ejected'

/** Consecutive failures after which it is left alone. */
export const FAILURES_TO_EJECT = 5
/** The first ejection lasts so long, the second twice as long, and so on. */
const EJECTION_STEP_MS = 30_000
const LONGEST_EJECTION_MS = 300_000
/** For a vendor that says "too many requests" without saying when to come back; doubled each time. */
const BUSY_STEP_MS = 1_000
const LONGEST_BUSY_MS = 30_000
/** A vendor that asks for more patience than this is asked all the same after it. */
const LONGEST_RETRY_AFTER_MS = 60 * 60_000

/** Nothing is known against it. */
export const HEALTHY: Health = {
  failures: 0,
  ejections: 0,
  ejectedUntilMs: 0,
  reason: undefined,
  isProbing: false,
}

/** May it be asked at this moment? While a probe is under way nobody else may. */
export function standingOf(health: Health, nowMs: number): Standing {
  if (health.ejectedUntilMs === 0) return 'ready'
  return nowMs < health.ejectedUntilMs || health.isProbing ? 'ejected' : 'probe'
}

/** A call begins; after an ejection it is the probe. */
export function afterBegin(health: Health, nowMs: number): Health {
  return standingOf(health, nowMs) === 'probe' ? { ...health, isProbing: true } : health
}

/**
 * A call was answered. A key that is to be left alone by its vendor's word stays so: the call may have begun before that
 * word.
 */
export function afterSuccess(health: Health, nowMs: number): Health {
  if (health === HEALTHY) return health
  const isHeldBack = nowMs < health.ejectedUntilMs && health.reason !== 'failing'
  return isHeldBack ? health : HEALTHY
}

/** A call failed by the vendor's fault. `retryAfterMs` is how long the vendor wants to be left alone, where it says so. */
export function afterFailure(health: Health, nowMs: number, retryAfterMs: number | undefined): Health {
  const failed = { ...health, failures: health.failures + 1 }
  const mayGoOn = health.ejectedUntilMs === 0 && failed.failures < FAILURES_TO_EJECT && retryAfterMs === undefined
  return mayGoOn ? failed : ejected(failed, 'failing', nowMs, retryAfterMs)
}

/** The vendor said "too many requests". */
export function afterBusy(health: Health, nowMs: number, retryAfterMs: number | undefined): Health {
  return ejected(health, 'busy', nowMs, retryAfterMs)
}

/** The vendor refused the operator's key, account or quota. */
export function afterRefusal(health: Health, nowMs: number, retryAfterMs: number | undefined): Health {
  return ejected(health, 'refused', nowMs, retryAfterMs)
}

/**
 * The vendor refused the operator's model id. Vendors use the same words for things that a caller names, and repeat what
 * callers wrote: one caller's request is no proof against a model that answers others, so it takes as many in a row as
 * failures do.
 */
export function afterModelRefusal(health: Health, nowMs: number, retryAfterMs: number | undefined): Health {
  const refused = { ...health, failures: health.failures + 1 }
  const mayGoOn = health.ejectedUntilMs === 0 && refused.failures < FAILURES_TO_EJECT
  return mayGoOn ? refused : ejected(refused, 'refused', nowMs, retryAfterMs)
}

/** A call ended without saying anything about the vendor: its caller left, for one. */
export function afterNothing(health: Health): Health {
  return health.isProbing ? { ...health, isProbing: false } : health
}

function ejected(health: Health, reason: EjectionReason, nowMs: number, retryAfterMs: number | undefined): Health {
  const askedMs = Math.min(retryAfterMs ?? 0, LONGEST_RETRY_AFTER_MS)
  // Calls that were under way when it was ejected bring no news when they fail too, save a longer wait that is asked for.
  if (nowMs < health.ejectedUntilMs) {
    const untilMs = nowMs + askedMs
    return untilMs > health.ejectedUntilMs ? { ...health, reason, ejectedUntilMs: untilMs } : health
  }
  // Whoever says when to come back is believed, until it has failed too often.
  const mayBeBrief = reason === 'busy' || (reason === 'failing' && health.failures < FAILURES_TO_EJECT)
  const isBelieved = retryAfterMs !== undefined && mayBeBrief
  const turns = health.reason === reason ? health.ejections : 0
  const ejections = isBelieved ? turns : turns + 1
  const lengthMs = isBelieved ? askedMs : Math.max(askedMs, ownLengthMs(reason, ejections))
  const ejectedUntilMs = nowMs + Math.max(1, lengthMs)
  return { failures: health.failures, ejections, ejectedUntilMs, reason, isProbing: false }
}

function ownLengthMs(reason: EjectionReason, ejections: number): number {
  return reason === 'busy'
    ? Math.min(LONGEST_BUSY_MS, BUSY_STEP_MS * 2 ** (ejections - 1))
    : Math.min(LONGEST_EJECTION_MS, EJECTION_STEP_MS * ejections)
}
