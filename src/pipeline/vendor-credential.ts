import type { Credential } from '../core/credential.ts'
import { GatewayError } from '../core/errors.ts'
import type { VendorFailure } from '../endpoints/stream-transform.ts'
import { type CredentialCache, CredentialError } from '../routing/credential-cache.ts'
import type { Vendor } from '../vendors/vendor.ts'
import type { AbortScope } from './abort-scope.ts'
import { type AttemptFailure, failureOfTransport } from './error-classification.ts'

/** How a call is sent with a credential that may expire. */
export interface CredentialedCall<Result> {
  readonly credentials: CredentialCache
  readonly scope: AbortScope
  send(credential: Credential): Promise<Result>
  /** Why it failed; undefined: it did not. */
  failureOf(result: Result): AttemptFailure | undefined
  /** The result of a call that failed so: there is no credential for it, or it is not sent again. */
  failed(failure: AttemptFailure): Result
}

/**
 * Sends a call with a credential, and once more when the vendor refuses it: with another one where it has expired, with the vendor's
 * time where this machine's clock is wrong. Such a refusal counts neither for nor against the vendor's health, also where its caller
 * has left meanwhile and the call is not sent again.
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
  // A caller who has left is not charged for a refused call, and would be for another one.
  if (scope.isReadOn) return call.failed({ ...failure, operatorProblem: undefined, outcome: 'ignored' })
  if (corrected !== undefined) return call.send(corrected)
  const second = await obtain(credentials, scope)
  if ('error' in second) return scope.isAborted ? result : call.failed(second)
  return second.token === first.token ? result : call.send(second)
}

/** The words by which vendors tell an expired token from one that lacks a permission, where both are 403. */
const EXPIRED =
  /expired|invalid[ _-]?(?:token|signature|authentication)|unrecognizedclient|token.{0,40}(?:is )?invalid/i

/** Does a vendor refuse what the call proved itself with? */
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
 * Returns the failure without the token and without the values of the operator's own `headers` and `query`, which vendors repeat in
 * their texts.
 */
export function withoutSecrets(
  failure: VendorFailure,
  { headers = [], query }: Vendor,
  credential?: Credential,
): VendorFailure {
  const values = [...headers.filter((_, place) => place % 2 === 1), ...new URLSearchParams(query).values()]
  const secrets = values.flatMap((value) => [value, value.replace(/^\w+ /, ''), encodeURIComponent(value)])
  if (credential !== undefined) secrets.push(credential.token)
  const clean = (text: string): string =>
    secrets.reduce(
      (shown, secret) => (secret.length < MIN_SECRET_LENGTH ? shown : shown.replaceAll(secret, '[redacted]')),
      text,
    )
  const { message, details } = failure
  return {
    ...failure,
    message: clean(message),
    ...(details === undefined ? {} : { details: JSON.parse(clean(JSON.stringify(details))) }),
  }
}

/** A credential, or why there is none; ends with the scope. */
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

/** The caller gets 503, as of any other problem of the operator's account: the credential is not the caller's. */
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
