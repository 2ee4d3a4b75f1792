import { DetailedError } from '../core/detailed-error.ts'
import { type ErrorCode, GatewayError, textOfError } from '../core/errors.ts'
import type { Usage } from '../core/usage.ts'
import type { StreamTransform, VendorFailure } from '../endpoints/stream-transform.ts'
import { LONGEST_RETRY_AFTER_MS } from '../routing/circuit-breaker.ts'
import type { CallOutcome } from '../routing/route-candidate.ts'
import type { TransportFailure } from '../transport/transport.ts'

/** Why one attempt at one vendor failed. */
export interface AttemptFailure {
  /** The caller's error if no other candidate answers. */
  readonly error: GatewayError
  /** For events: `rate_limited`, `connect timeout`, … */
  readonly reason: string
  /** The vendor's status; undefined when it sent none. */
  readonly status: number | undefined
  /** What the vendor or the network said, for the operator. */
  readonly report: FailureReport
  /** May another candidate answer instead? */
  readonly mayFallBack: boolean
  /** True where the request is larger than the model's context window: only a model with a larger one may answer instead. */
  readonly isOversized?: boolean
  /** May the same candidate be retried? */
  readonly mayRetry: boolean
  /** Was any part of the request sent? Then the vendor may have begun to work, and to charge. */
  readonly wasSent: boolean
  /** True if the vendor has the request and did not refuse it: it may be working, even after the call was cancelled. */
  readonly mayHaveBegun: boolean
  /** A problem of the operator's account at the vendor: key, quota, arrears, retired model. */
  readonly operatorProblem: VendorFailure | undefined
  /** What it means for the circuits of the vendor and the key. */
  readonly outcome: CallOutcome
  /** How long the vendor asks us to wait; undefined: it does not say. */
  readonly retryAfterMs: number | undefined
  /**
   * Set where an answer had begun and broke, or cannot be read: bytes that a 2xx response announced or sent. 0 for a stream without
   * content. Absent: there was no 2xx response, or the vendor says in it that it failed.
   */
  readonly answerBytes?: number
  /** Set where the vendor bills what it refuses: bytes of text that it had made. */
  readonly refusedBytes?: number
  /** What the vendor has reported, and so bills, all the same. */
  readonly billedUsage?: Usage | undefined
  /** True where `billedUsage` is what was sent, and no report: the vendor may bill it. Absent: it is a report. */
  readonly isBillCounted?: boolean
  /** True where `billedUsage` is that of some calls that were answered, and another one of the same answer failed. */
  readonly isPartDone?: boolean
  /** Of a split call, the share of its parts that the vendor has, and neither refused nor answered. Absent: not split, or none. */
  readonly begunShare?: number
}

/** What is told to the operator about a failed attempt. */
export interface FailureReport {
  /** The vendor's code, or its type where it has none; of the network: `ECONNREFUSED`. */
  readonly code: string | undefined
  /**
   * The vendor's text without credentials, or the network's, cut after {@link MAX_REPORTED_CHARACTERS}. Undefined when the vendor
   * blames the request: such texts quote prompts, and the caller reads them.
   */
  readonly message: string | undefined
  /** True if `message` is the vendor's own text, which may quote the prompt. Absent: the text is the gateway's or the network's. */
  readonly isVendorText?: true | undefined
  /** The vendor's own id of the request. */
  readonly vendorRequestId: string | undefined
}

/** Longest text of a vendor in an event or a log line. */
const MAX_REPORTED_CHARACTERS = 500

/** May a call that was given up after some time still be under way, and be billed, at its vendor? */
export function mayStillRun({ error, mayHaveBegun }: AttemptFailure): boolean {
  return error.code === 'upstream_timeout' && mayHaveBegun
}

/** Why a model could not take a request: events and records of usage say it. */
export const OVERSIZED = 'context_length_exceeded'

/** Classifies a vendor's error. */
export function failureOfVendor(failure: VendorFailure): AttemptFailure {
  const retryAfterSeconds = askedSeconds(failure)
  const base = {
    reason: failure.kind,
    status: failure.status === 0 ? undefined : failure.status,
    report: reportOfVendor(failure),
    wasSent: true,
    mayHaveBegun: leavesOpen(failure),
    ...(failure.billedBytes === undefined ? {} : { refusedBytes: failure.billedBytes }),
    operatorProblem: undefined,
    outcome: outcomeOf(failure),
    retryAfterMs: retryAfterSeconds === undefined ? undefined : retryAfterSeconds * 1000,
  }
  switch (failure.kind) {
    case 'caller':
      return failure.concerns === 'size'
        ? {
            ...base,
            reason: OVERSIZED,
            error: rejected(failure),
            mayFallBack: true,
            isOversized: true,
            mayRetry: false,
          }
        : { ...base, error: rejected(failure), mayFallBack: false, mayRetry: false }
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
      return {
        ...base,
        error: new GatewayError('upstream_timeout', { retryAfterSeconds }),
        mayFallBack: true,
        mayRetry: false,
      }
    case 'unavailable':
      return {
        ...base,
        error: new GatewayError('upstream_unavailable', {
          message: isOverload(failure) ? 'The model vendor is overloaded. Try again later.' : undefined,
          retryAfterSeconds,
          isOverload: isOverload(failure),
        }),
        mayFallBack: true,
        mayRetry: retryAfterSeconds === undefined,
      }
    case 'invalid_response':
      return { ...base, error: new GatewayError('upstream_invalid_response'), mayFallBack: true, mayRetry: false }
  }
}

/** Some clients sleep as long as they are told, and a vendor's date may be years away. */
function askedSeconds({ retryAfterSeconds }: VendorFailure): number | undefined {
  return retryAfterSeconds === undefined ? undefined : Math.min(retryAfterSeconds, LONGEST_RETRY_AFTER_MS / 1000)
}

function reportOfVendor({ kind, message, code, type, requestId }: VendorFailure): FailureReport {
  return {
    code: code ?? type,
    message: kind === 'caller' ? undefined : message.slice(0, MAX_REPORTED_CHARACTERS),
    isVendorText: true,
    vendorRequestId: requestId,
  }
}

/** Vendors report it by a status of their own, by a type or code, or only in the text. */
function isOverload({ status, type, code, message }: VendorFailure): boolean {
  return status === 529 || /overloaded/i.test(`${type} ${code} ${message}`)
}

/**
 * Does an error leave open whether the vendor is working? An explicit refusal means that it is not, and so does a 409 or
 * a 503 from any sender. An unreadable success response, an error inside a started answer, a timeout and an error page of an
 * intermediary leave it open.
 */
function leavesOpen({ kind, status, code, type }: VendorFailure): boolean {
  if (status === 0 || kind === 'timeout') return true
  if (kind === 'invalid_response') return status < 300
  return kind === 'unavailable' && status !== 503 && status !== 409 && code === undefined && type === undefined
}

/**
 * Statuses by which vendors refuse a key, its account or its quota, unless the error says otherwise. Other operator
 * problems concern one model.
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

/**
 * Classifies an answer that its vendor made and bills, and that is none for its caller. Where it is too long for one model, another may
 * give it. One that is the vendor's own failure is asked for again like any other.
 */
export function failureOfAnswer(failure: VendorFailure, usage: Usage | undefined, answerBytes: number): AttemptFailure {
  if (failure.kind !== 'caller') {
    // What a vendor itself calls a failure is no answer that broke.
    const isBroken = failure.kind === 'invalid_response'
    // Vendors read it by their rules for streams, which have no status of their own.
    const status = failure.status === 0 ? 200 : failure.status
    return { ...failureOfVendor({ ...failure, status }), billedUsage: usage, ...(isBroken ? { answerBytes } : {}) }
  }
  const { concerns, ...told } = failure
  return { ...failureOfVendor(told), mayFallBack: concerns === 'size', billedUsage: usage, answerBytes }
}

/** The failure of a stream, with what the vendor bills or may bill for it. */
export function withBillOf(
  failure: AttemptFailure,
  { usage, countsUsage = false }: Pick<StreamTransform, 'usage' | 'countsUsage'>,
): AttemptFailure {
  return usage === undefined ? failure : { ...failure, billedUsage: usage, isBillCounted: countsUsage }
}

/**
 * Statuses of failures of kind `caller` that are returned unchanged. 502 comes only from the gateway's own checks of an answer, if the
 * vendor ignored a member of the request. Readers of vendors' errors never classify a 502 as `caller`.
 */
const CALLER_STATUSES = new Set([400, 404, 413, 422, 502])

function rejected(failure: VendorFailure): GatewayError {
  const details = {
    message: failure.message,
    status: CALLER_STATUSES.has(failure.status) ? failure.status : 400,
    publicCode: failure.code,
    type: failure.type,
    param: failure.param,
    upstreamRequestId: failure.requestId,
  }
  return failure.details === undefined
    ? new GatewayError('upstream_rejected', details)
    : new DetailedError('upstream_rejected', details, failure.details)
}

/** What is aborted for a caller who left, or because its time was over, gets an error of its own. Only a gateway that closes is left. */
const TRANSPORT_CODES: { readonly [Kind in TransportFailure['kind']]?: ErrorCode } = {
  timeout: 'upstream_timeout',
  protocol: 'upstream_invalid_response',
  aborted: 'gateway_closing',
}

/** Classifies a network fault. */
export function failureOfTransport(failure: TransportFailure): AttemptFailure {
  const code = TRANSPORT_CODES[failure.kind] ?? 'upstream_unavailable'
  const operatorProblem = egressProblem(failure)
  return {
    error: new GatewayError(code, { cause: failure.error }),
    reason: `${failure.phase} ${failure.kind}`,
    status: undefined,
    report: {
      code: (failure.error as NodeJS.ErrnoException).code,
      message: (operatorProblem?.message ?? textOfError(failure.error)).slice(0, MAX_REPORTED_CHARACTERS),
      vendorRequestId: undefined,
    },
    mayFallBack: true,
    // Before a byte was sent, a retry is free; after a timeout the caller has already waited.
    mayRetry: failure.kind === 'reset' || (failure.phase === 'connect' && failure.kind !== 'timeout'),
    wasSent: failure.phase !== 'connect',
    mayHaveBegun: failure.phase !== 'connect',
    operatorProblem,
    outcome: failure.kind === 'aborted' ? 'ignored' : 'failing',
    retryAfterMs: undefined,
  }
}

const UNKNOWN_HOST: ReadonlySet<string> = new Set(['ENOTFOUND', 'EAI_AGAIN'])

/** What the operator must mend where there is no way to the vendor: a name of a host, a certificate, or a proxy. */
function egressProblem({ kind, error }: TransportFailure): VendorFailure | undefined {
  if (kind === 'proxy') return { kind: 'operator', status: 0, code: 'proxy', message: error.message }
  const code = String((error as NodeJS.ErrnoException).code)
  if (UNKNOWN_HOST.has(code)) {
    const message = `the host of the vendor is not found (${error.message}): check its address, region or resource, and the DNS`
    return { kind: 'operator', status: 0, code, message }
  }
  if (kind !== 'tls') return undefined
  const message = `TLS failed (${code}: ${error.message}): set tls.ca of the vendor to the authority of its server, or NODE_EXTRA_CA_CERTS; for a client certificate tls.cert and tls.key`
  return { kind: 'operator', status: 0, code, message }
}

/** An unusable response: a redirect, truncated JSON, the wrong type, too large. */
export function unusableResponse(why: string, status: number | undefined): AttemptFailure {
  const failure = failureOfVendor({ kind: 'invalid_response', status: status ?? 0, message: why })
  return { ...failure, report: { ...failure.report, isVendorText: undefined } }
}
