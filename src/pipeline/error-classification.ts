import { DetailedError } from '../core/detailed-error.ts'
import { type ErrorCode, GatewayError, textOfError } from '../core/errors.ts'
import type { Usage } from '../core/usage.ts'
import type { StreamTransform, VendorFailure } from '../endpoints/stream-transform.ts'
import { type CallOutcome, MAX_RETRY_AFTER_MS } from '../routing/candidate.ts'
import type { TransportFailure } from '../transport/transport.ts'

/** Failure of one attempt at one vendor. */
export interface AttemptFailure {
  /** Error for the caller if no other candidate answers. */
  readonly error: GatewayError
  /** Reason for events: `rate_limited`, `connect timeout`, … */
  readonly reason: string
  /** HTTP status of the vendor, or undefined if it sent none. */
  readonly status: number | undefined
  /** Report of the vendor or the network, for the operator. */
  readonly report: FailureReport
  /** Whether another candidate may answer instead. */
  readonly mayFallBack: boolean
  /** Whether the request exceeds the model's context window, so that only a model with a larger one may answer. */
  readonly isOversized?: boolean
  /** Whether the same candidate may be retried. */
  readonly mayRetry: boolean
  /** Whether any part of the request was sent, so that the vendor may have started to work, and to charge. */
  readonly wasSent: boolean
  /** Whether the vendor has received the request and did not reject it. It may be working, even after the call was cancelled. */
  readonly mayHaveBegun: boolean
  /** Problem of the operator's account at the vendor: key, quota, arrears, retired model. */
  readonly operatorProblem: VendorFailure | undefined
  /** Effect on the circuits of the vendor and the key. */
  readonly outcome: CallOutcome
  /** Wait that the vendor requests, in milliseconds, or `undefined` for none. */
  readonly retryAfterMs: number | undefined
  /**
   * Bytes that a 2xx response announced or sent, if the answer broke after its start or cannot be read. 0 for a stream without
   * content. Omitted if there was no 2xx response, or if it reports a failure of the vendor.
   */
  readonly answerBytes?: number
  /** Bytes of generated text, if the vendor bills what it refuses. */
  readonly refusedBytes?: number
  /** Usage that the vendor has reported, and so bills, despite the failure. */
  readonly billedUsage?: Usage | undefined
  /** Whether `billedUsage` is a count of what was sent, so that the vendor may bill it. By default it is a report. */
  readonly isBillCounted?: boolean
  /** Whether `billedUsage` is that of some answered calls while another call of the same answer failed. */
  readonly isPartDone?: boolean
  /**
   * Share of a split call's parts that the vendor has received, and neither rejected nor answered. Omitted if not split, or zero.
   */
  readonly begunShare?: number
}

/** Report about a failed attempt for the operator. */
export interface FailureReport {
  /** Error code of the vendor (or its error type), or of the network: `ECONNREFUSED`. */
  readonly code: string | undefined
  /**
   * Text of the vendor without credentials, or of the network, with at most {@link MAX_REPORTED_CHARACTERS} characters. Undefined
   * if the vendor blames the request, because such texts quote prompts and the caller reads them.
   */
  readonly message: string | undefined
  /** Whether `message` is the vendor's own text, which may quote the prompt. If omitted, it is of the gateway or the network. */
  readonly isVendorText?: true | undefined
  /** The vendor's own id of the request. */
  readonly vendorRequestId: string | undefined
}

/** Maximum length of a vendor's text in an event or a log line. */
const MAX_REPORTED_CHARACTERS = 500

/** Whether a call that timed out may still run at its vendor, and be billed. */
export function mayStillRun({ error, mayHaveBegun }: AttemptFailure): boolean {
  return error.code === 'upstream_timeout' && mayHaveBegun
}

/** Reason in events and usage records for a request that a model could not accept. */
export const OVERSIZED = 'context_length_exceeded'

/** Classifies a vendor's error. */
export function failureOfVendor(failure: VendorFailure): AttemptFailure {
  const retryAfterSeconds = askedSeconds(failure)
  const base = {
    reason: failure.kind,
    status: failure.status === 0 ? undefined : failure.status,
    report: reportOfVendor(failure),
    wasSent: true,
    mayHaveBegun: isOutcomeUnknown(failure),
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

/** Some clients wait as long as requested, and a vendor's date may be years away. */
function askedSeconds({ retryAfterSeconds }: VendorFailure): number | undefined {
  return retryAfterSeconds === undefined ? undefined : Math.min(retryAfterSeconds, MAX_RETRY_AFTER_MS / 1000)
}

function reportOfVendor({ kind, message, code, type, requestId }: VendorFailure): FailureReport {
  return {
    code: code ?? type,
    message: kind === 'caller' ? undefined : message.slice(0, MAX_REPORTED_CHARACTERS),
    isVendorText: true,
    vendorRequestId: requestId,
  }
}

/** Vendors report overload by a status of their own, by a type or code, or only in the text. */
function isOverload({ status, type, code, message }: VendorFailure): boolean {
  return status === 529 || /overloaded/i.test(`${type} ${code} ${message}`)
}

/**
 * Whether the vendor may be working despite an error. An explicit rejection means that it is not, and so does a 409 or a 503 from
 * any sender. An unreadable success response, an error inside a started answer, a timeout and an error page of an intermediary
 * leave it open.
 */
function isOutcomeUnknown({ kind, status, code, type }: VendorFailure): boolean {
  if (status === 0 || kind === 'timeout') return true
  if (kind === 'invalid_response') return status < 300
  return kind === 'unavailable' && status !== 503 && status !== 409 && code === undefined && type === undefined
}

/**
 * Statuses with which vendors reject a key, its account or its quota, unless the error has other details. Other operator problems
 * concern one model.
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
 * Classifies an answer that its vendor generated and bills, but that is unusable for its caller. If it is too long for one model,
 * another may answer. A failure of the vendor itself is retried like any other.
 */
export function failureOfAnswer(failure: VendorFailure, usage: Usage | undefined, answerBytes: number): AttemptFailure {
  if (failure.kind !== 'caller') {
    // A failure that the vendor itself reports does not count as a broken answer.
    const isBroken = failure.kind === 'invalid_response'
    // Vendors classify it by their rules for streams, which have no status of their own.
    const status = failure.status === 0 ? 200 : failure.status
    return { ...failureOfVendor({ ...failure, status }), billedUsage: usage, ...(isBroken ? { answerBytes } : {}) }
  }
  const { concerns, ...told } = failure
  return { ...failureOfVendor(told), mayFallBack: concerns === 'size', billedUsage: usage, answerBytes }
}

/** Returns the failure of a stream, with the usage that the vendor bills or may bill. */
export function withBillOf(
  failure: AttemptFailure,
  { usage, countsUsage = false }: Pick<StreamTransform, 'usage' | 'countsUsage'>,
): AttemptFailure {
  return usage === undefined ? failure : { ...failure, billedUsage: usage, isBillCounted: countsUsage }
}

/**
 * Statuses of failures of kind `caller` that are returned unchanged. 502 comes only from the gateway's own checks of an answer,
 * if the vendor ignored a member of the request. Readers of vendors' errors never classify a 502 as `caller`.
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

/** Errors by kind. Calls aborted for a disconnected caller or a timeout have other errors, so `aborted` means a closing gateway. */
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

/** Returns the problem that the operator must fix if the vendor cannot be reached: a host name, a certificate, or a proxy. */
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

/** Classifies an unusable response: a redirect, truncated JSON, the wrong type, too large. */
export function unusableResponse(why: string, status: number | undefined): AttemptFailure {
  const failure = failureOfVendor({ kind: 'invalid_response', status: status ?? 0, message: why })
  return { ...failure, report: { ...failure.report, isVendorText: undefined } }
}
