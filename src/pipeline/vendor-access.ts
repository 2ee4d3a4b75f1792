import type { Credential } from '../core/credential.ts'
import { GatewayError } from '../core/errors.ts'
import type { ChunkedAnswer, Operation, WireRequest } from '../endpoints/operation.ts'
import type { VendorFailure } from '../endpoints/stream-transform.ts'
import { type CredentialCache, CredentialError } from '../routing/credential-cache.ts'
import {
  isStreamedBody,
  type Transport,
  type TransportControl,
  type TransportFailure,
  type TransportHandler,
  type TransportRequest,
} from '../transport/transport.ts'
import type { Vendor } from '../vendors/vendor.ts'
import { firstHeader, type HeaderMap, NO_HEADERS } from '../wire/headers.ts'
import type { AbortScope } from './abort-scope.ts'
import type { VendorActivity } from './call-timers.ts'
import { type AttemptFailure, failureOfTransport } from './error-classification.ts'
import type { PipelineContext } from './pipeline-context.ts'

/** Returns the path of a call, including the operator's query for all calls of the vendor. */
export function pathAt({ query }: Vendor, path: string): string {
  return query === undefined ? path : `${path}${path.includes('?') ? '&' : '?'}${query}`
}

/** Returns the headers of a call. The operator's headers for all calls of the vendor replace others of the same name. */
export function headersAt({ headers: own }: Vendor, headers: readonly string[]): readonly string[] {
  if (own === undefined) return headers
  const names = new Set(own.filter((_, place) => place % 2 === 0))
  const kept = headers.filter((_, place) => !names.has(headers[place - (place % 2)]!.toLowerCase()))
  return [...kept, ...own]
}

/**
 * Adds an expiring credential to a request, which contains its own otherwise.
 * @throws TypeError for a body that is read while it is sent, if the credential signs requests.
 */
export function withCredential(
  request: TransportRequest,
  credential: Credential | undefined,
  nowMs: number,
): TransportRequest {
  if (credential === undefined) return request
  const { header, token, sign, clockOffsetMs = 0 } = credential
  if (sign !== undefined) {
    const { method, origin, path, headers, body } = request
    if (isStreamedBody(body)) throw new TypeError('a body that is read while it is sent cannot be signed')
    const proof = sign({ method, origin, path, headers, body, nowMs: nowMs + clockOffsetMs })
    return { ...request, headers: [...headers, ...proof] }
  }
  const added = header === undefined ? ['authorization', `Bearer ${token}`] : [header, token]
  return { ...request, headers: [...request.headers, ...added] }
}

/** Creates the request of one call. @param firstByteMs Timeout for the response headers, in milliseconds. */
export function transportRequest(
  context: PipelineContext,
  vendor: Vendor,
  wire: WireRequest,
  operation: Operation,
  firstByteMs = context.timeouts.firstByteMs,
): TransportRequest {
  const { idleMs, totalMs } = context.timeouts
  return {
    origin: vendor.origin,
    path: pathAt(vendor, wire.path),
    method: 'POST',
    headers: headersAt(vendor, wire.headers),
    body: wire.body,
    firstByteTimeoutMs: firstByteMs,
    idleTimeoutMs: isPatient(vendor, operation) ? totalMs : idleMs,
    egress: vendor.egress,
  }
}

/** Whether a call may be silent for a long time: a model that hides its reasoning sends nothing meanwhile. */
export function isPatient(vendor: Vendor, { hasHiddenReasoning }: Operation): boolean {
  return hasHiddenReasoning === true || vendor.hasLongSilences === true
}

/** Call with a credential that may expire. */
export interface CredentialedCall<Result> {
  readonly credentials: CredentialCache
  readonly scope: AbortScope
  send(credential: Credential): Promise<Result>
  /** Returns the failure of a result, or `undefined` if it succeeded. */
  failureOf(result: Result): AttemptFailure | undefined
  /** Returns the result of a call that has no credential, or is not repeated. */
  failed(failure: AttemptFailure): Result
}

/**
 * Sends a call with a credential, and once more if the vendor rejects it: with another credential if it has expired, or with the
 * vendor's time if this machine's clock is wrong. Such a rejection counts neither for nor against the vendor's health, even if
 * its caller has disconnected meanwhile and the call is not repeated.
 */
export async function sendWithCredential<Result>(call: CredentialedCall<Result>): Promise<Result> {
  const { credentials, scope } = call
  const first = await obtain(credentials, scope)
  if ('error' in first) return call.failed(first)
  const result = await call.send(first)
  const failure = call.failureOf(result)
  if (failure === undefined) return result
  const offsetMs = failure.operatorProblem?.clockOffsetMs
  const corrected = offsetMs === undefined ? undefined : credentials.correctClock(first, offsetMs)
  if (corrected === undefined && !(refusesCredential(failure) && credentials.invalidate(first))) return result
  // A disconnected caller is not charged for a rejected call, but would be charged for another one.
  if (scope.isReadOn) return call.failed({ ...failure, operatorProblem: undefined, outcome: 'ignored' })
  if (corrected !== undefined) return call.send(corrected)
  const second = await obtain(credentials, scope)
  if ('error' in second) return scope.isAborted ? result : call.failed(second)
  return second.token === first.token ? result : call.send(second)
}

/** Words by which vendors distinguish an expired token from a missing permission, if both get 403. */
const EXPIRED =
  /expired|invalid[ _-]?(?:token|signature|authentication)|unrecognizedclient|token.{0,40}(?:is )?invalid/i

/** Whether a vendor rejects the credential of a call. */
export function refusesCredential({ status, operatorProblem: problem }: AttemptFailure): boolean {
  if (status === 401) return true
  return status === 403 && problem !== undefined && isExpiry(problem)
}

function isExpiry({ code, type, message }: VendorFailure): boolean {
  return EXPIRED.test(`${code} ${type} ${message}`)
}

/** Shorter values would also remove ordinary words. */
const MIN_SECRET_LENGTH = 8

/**
 * Returns the failure without the keys, the token and the values of the operator's `headers` and `query`, which vendors repeat in
 * their messages, codes and names of members.
 */
export function withoutSecrets(
  failure: VendorFailure,
  { apiKeys, headers = [], query }: Vendor,
  credential?: Credential,
): VendorFailure {
  const values = [...apiKeys, ...headers.filter((_, place) => place % 2 === 1), ...new URLSearchParams(query).values()]
  const secrets = values.flatMap((value) => [value, value.replace(/^\w+ /, ''), encodeURIComponent(value)])
  if (credential !== undefined) secrets.push(credential.token)
  const clean = (text: string): string =>
    secrets.reduce(
      (shown, secret) => (secret.length < MIN_SECRET_LENGTH ? shown : shown.replaceAll(secret, '[redacted]')),
      text,
    )
  const cleaned: Record<string, unknown> = { ...failure }
  for (const name of ['message', 'code', 'type', 'param', 'requestId'] as const)
    if (failure[name] !== undefined) cleaned[name] = clean(failure[name])
  if (failure.details !== undefined) cleaned['details'] = JSON.parse(clean(JSON.stringify(failure.details)))
  return cleaned as unknown as VendorFailure
}

/** Returns a credential, or the reason for its absence. Ends with the scope. */
function obtain(credentials: CredentialCache, scope: AbortScope): Promise<Credential | AttemptFailure> {
  const taken = credentials.take()
  if (!(taken instanceof Promise)) return Promise.resolve(taken)
  return new Promise((resolve) => {
    const waiting = { abort: () => resolve(ABORTED), isUnsent: true }
    if (!scope.add(waiting)) waiting.abort()
    taken.then(
      (credential) => {
        scope.delete(waiting)
        resolve(credential)
      },
      (cause: unknown) => {
        scope.delete(waiting)
        resolve(unobtainable(cause))
      },
    )
  })
}

const ABORTED = failureOfTransport({
  phase: 'connect',
  kind: 'aborted',
  error: new Error('aborted while it waited for a credential'),
})

/** The caller gets 503, as for other problems of the operator's account, because the credential is not the caller's. */
function unobtainable(cause: unknown): AttemptFailure {
  const { message, retryAfterMs } =
    cause instanceof CredentialError ? cause : new CredentialError('the credential provider failed', 0, cause)
  return {
    error: new GatewayError('upstream_unavailable', { retryAfterSeconds: Math.max(1, Math.ceil(retryAfterMs / 1000)) }),
    reason: 'no credential',
    status: undefined,
    report: { code: 'no_credential', message, vendorRequestId: undefined },
    mayFallBack: true,
    mayRetry: false,
    wasSent: false,
    mayHaveBegun: false,
    operatorProblem: { kind: 'operator', concerns: 'key', status: 0, code: 'no_credential', message },
    outcome: 'refused',
    retryAfterMs,
  }
}

/** Maximum size of a response that is buffered for a caller, in bytes. */
export const MAX_ANSWER_BYTES = 128 * 1024 * 1024

/** Outcome of one call: the buffered response with any status, or the reason for its absence. */
export type BufferedOutcome =
  | { readonly answer: ChunkedAnswer }
  | { readonly failure: TransportFailure }
  | { readonly oversize: true }

/** Buffers one response. */
export class BufferedCall implements TransportHandler {
  readonly result: Promise<BufferedOutcome>
  #end!: (outcome: BufferedOutcome) => void
  #control: TransportControl | undefined
  #status = 0
  #headers = NO_HEADERS
  #byteLength = 0
  #chunks: readonly Uint8Array[] = NO_CHUNKS
  readonly #activity: VendorActivity | undefined
  readonly #maxBytes: number

  /** @param activity Updated when bytes arrive, or undefined if nobody watches the call. */
  constructor(maxBytes = MAX_ANSWER_BYTES, activity?: VendorActivity) {
    this.#activity = activity
    this.#maxBytes = maxBytes
    this.result = new Promise((resolve) => {
      this.#end = resolve
    })
  }

  /** Bytes of the body that a 2xx response has announced, or sent so far; undefined without such a response. */
  get answerBytes(): number | undefined {
    if (this.#status < 200 || this.#status >= 300) return undefined
    const announced = Number(firstHeader(this.#headers, 'content-length'))
    return Math.max(this.#byteLength, announced >= 0 && announced <= MAX_ANSWER_BYTES ? announced : 0)
  }

  /** Chunks of the body so far. */
  get chunks(): readonly Uint8Array[] {
    return this.#chunks
  }

  begin(transport: Transport, request: TransportRequest): void {
    this.#control = transport.send(request, this)
  }

  abort(): void {
    this.#control?.abort()
  }

  onHead(status: number, headers: HeaderMap): void {
    if (this.#activity !== undefined) this.#activity.hasBytes = true
    this.#status = status
    this.#headers = headers
  }

  onData(chunk: Uint8Array): void {
    if (this.#activity !== undefined) this.#activity.hasBytes = true
    this.#byteLength += chunk.byteLength
    if (this.#byteLength > this.#maxBytes) {
      this.#end({ oversize: true })
      this.abort()
      return
    }
    // Most answers arrive in one chunk, and V8 allocates 17 entries for a growing list.
    if (this.#chunks === NO_CHUNKS) this.#chunks = [chunk]
    else (this.#chunks as Uint8Array[]).push(chunk)
  }

  onEnd(): void {
    const isRequestSent = this.#control?.isBodySent === true
    this.#end({ answer: { status: this.#status, headers: this.#headers, chunks: this.#chunks, isRequestSent } })
  }

  onFailure(failure: TransportFailure): void {
    this.#end({ failure })
  }
}

const NO_CHUNKS: readonly Uint8Array[] = []
