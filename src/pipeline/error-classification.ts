import { GatewayError } from '../core/errors.ts'
import type { Usage } from '../core/usage.ts'
import type { VendorFailure } from '../endpoints/stream-transform.ts'
import type { CallOutcome } from '../routing/route-candidate.ts'
import type { TransportFailure } from '../transport/transport.ts'

/** Why one attempt at one vendor did not answer. */
export interface AttemptFailure {
  /** What the caller sees if nobody else answers. */
  readonly error: GatewayError
  /** For events: `rate_limited`, `connect timeout`, … */
  readonly reason: string
  /** The vendor's status; undefined when it sent none. */
  readonly status: number | undefined
  /** May another candidate answer instead? */
  readonly mayFallBack: boolean
  /** May the same candidate be asked once more? */
  readonly mayRetry: boolean
  /** Have bytes of the request left for the vendor? Then it may have begun to work, and to charge. */
  readonly wasSent: boolean
  /** True when the vendor has the request and did not refuse it: it may be at work, whoever waits. */
  readonly mayHaveBegun: boolean
  /** The operator's own matter at the vendor: key, quota, arrears, retired model. */
  readonly operatorProblem: VendorFailure | undefined
  /** What it says of the vendor and the key. */
  readonly outcome: CallOutcome
  /** How long the vendor asks us to wait; undefined: it does not say. */
  readonly retryAfterMs: number | undefined
  /** What the vendor has reported, and so bills, all the same. */
  readonly billedUsage?: Usage | undefined
  /** True where `billedUsage` is that of some calls that were answered, and another one of the same answer failed. */
  readonly isPartDone?: boolean
}

/** May a call that was given up after some time still be under way, and be billed, at its vendor? */
export function mayStillRun({ error, mayHaveBegun }: AttemptFailure): boolean {
  return error.code === 'upstream_timeout' && mayHaveBegun
}

/** Reads a vendor's complaint. */
export function failureOfVendor(failure: VendorFailure): AttemptFailure {
  const base = {
    reason: failure.kind,
    status: failure.status === 0 ? undefined : failure.status,
    wasSent: true,
    mayHaveBegun: leavesOpen(failure),
    operatorProblem: undefined,
    outcome: outcomeOf(failure),
    retryAfterMs: failure.retryAfterSeconds === undefined ? undefined : failure.retryAfterSeconds * 1000,
  }
  const { retryAfterSeconds } = failure
  switch (failure.kind) {
    case 'caller':
      return { ...base, error: rejected(failure), mayFallBack: false, mayRetry: false }
    case 'rate_limited':
      return {
        ...base,
        error: new GatewayError('rate_limited', {
          message: 'The model vendor is receiving too many requests. Try again later.',
          retryAfterSeconds,
        }),
        mayFallBack: true,
        mayRetry: false,
      }
    case 'operator':
      return {
        ...base,
        error: new GatewayError('upstream_unavailable', { retryAfterSeconds }),
        mayFallBack: true,
        mayRetry: false,
        operatorProblem: failure,
      }
    case 'timeout':
      return { ...base, error: new GatewayError('upstream_timeout'), mayFallBack: true, mayRetry: false }
    case 'unavailable':
      return {
        ...base,
        error: new GatewayError('upstream_unavailable', { retryAfterSeconds, isOverload: isOverload(failure) }),
        mayFallBack: true,
        mayRetry: retryAfterSeconds === undefined,
      }
    case 'invalid_response':
      return { ...base, error: new GatewayError('upstream_invalid_response'), mayFallBack: true, mayRetry: false }
  }
}

/** Vendors say it by the status that only one of them has, by a type or code of their own, or in their text alone. */
function isOverload({ status, type, code, message }: VendorFailure): boolean {
  return status === 529 || /overloaded/i.test(`${type} ${code} ${message}`)
}

/**
 * Does a complaint leave open whether the vendor is at work? Its own words for a refusal mean that it is not. An answer of
 * success that cannot be read, an error inside an answer that had begun, a time-out, and an error page of something on the
 * way mean nothing of the kind; 503 does, whoever writes it.
 */
function leavesOpen({ kind, status, code, type }: VendorFailure): boolean {
  if (status === 0 || kind === 'timeout') return true
  if (kind === 'invalid_response') return status < 300
  return kind === 'unavailable' && status !== 503 && code === undefined && type === undefined
}

/**
 * Statuses by which vendors refuse a key, its account or its quota, unless they say otherwise. Others of the operator's
 * matters are about one model.
 */
const KEY_STATUSES = new Set([401, 402, 403, 429])

function outcomeOf({
  kind,
  status,
  concerns = KEY_STATUSES.has(status) ? 'key' : 'model',
}: VendorFailure): CallOutcome {
  switch (kind) {
    case 'caller':
      return 'caller-error'
    case 'rate_limited':
      return 'busy'
    case 'operator':
      return concerns === 'key' ? 'refused' : 'model-refused'
    default:
      return 'failing'
  }
}

/** The statuses of a vendor that are about the caller's own input; they come back as they are. */
const CALLER_STATUSES = new Set([400, 404, 413, 422])

function rejected(failure: VendorFailure): GatewayError {
  return new GatewayError('upstream_rejected', {
    message: failure.message,
    status: CALLER_STATUSES.has(failure.status) ? failure.status : 400,
    publicCode: failure.code,
    type: failure.type,
    param: failure.param,
    upstreamRequestId: failure.requestId,
  })
}

/** Reads a fault of the network. */
export function failureOfTransport(failure: TransportFailure): AttemptFailure {
  const code =
    failure.kind === 'timeout'
      ? 'upstream_timeout'
      : failure.kind === 'protocol'
        ? 'upstream_invalid_response'
        : 'upstream_unavailable'
  return {
    error: new GatewayError(code, { cause: failure.error }),
    reason: `${failure.phase} ${failure.kind}`,
    status: undefined,
    mayFallBack: true,
    // Before a byte has left, asking again costs nothing; a timeout has already cost the caller's patience.
    mayRetry: failure.kind === 'reset' || (failure.phase === 'connect' && failure.kind !== 'timeout'),
    wasSent: failure.phase !== 'connect',
    mayHaveBegun: failure.phase !== 'connect',
    operatorProblem: undefined,
    outcome: failure.kind === 'aborted' ? 'ignored' : 'failing',
    retryAfterMs: undefined,
  }
}

/** An answer that cannot be used: a redirect, half JSON, the wrong type, too large. */
export function unusableAnswer(why: string, status: number | undefined): AttemptFailure {
  return failureOfVendor({ kind: 'invalid_response', status: status ?? 0, message: why })
}
