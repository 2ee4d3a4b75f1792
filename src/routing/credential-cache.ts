// See docs/decisions/0021-clouds-and-credentials.md.

import { type Clock, isYoungerThan } from '../core/clock.ts'
import type { Credential, CredentialProvider } from '../core/credential.ts'
import { isPending } from '../core/maybe-promise.ts'

/** Maximum time for a provider to return a credential. */
const PROVIDER_TIMEOUT_MS = 10_000

const DEFAULT_AHEAD_MS = 300_000
/** Maximum share of a lifetime by which a credential is renewed early. */
const AHEAD_SHARE = 0.2
/** Share of that time by which processes vary, so that they do not all send requests at the same moment. */
const JITTER_SHARE = 0.1
/** Lifetime of a credential without an expiry time. */
const UNKNOWN_LIFETIME_MS = 3_600_000
/** Some servers return the same token until shortly before its expiry; they are called again after this time. */
const SAME_TOKEN_WAIT_MS = 60_000

/** Minimum age at which a rejected credential is replaced: a new one would be rejected too. */
const YOUNGEST_REPLACED_MS = 5_000

/** Minimum correction of a clock; smaller differences are due to the duration of the call. */
const MIN_CORRECTION_MS = 60_000

const MIN_BACKOFF_MS = 1_000
const MAX_BACKOFF_MS = 60_000

/** Visible ASCII: other characters would break the header, or inject another one. */
const TOKEN = /^[\x21-\x7e]+$/
const HEADER_NAME = /^[a-z0-9!#$%&'*+.^_`|~-]+$/i

/** No credential is available at the moment. The message is the provider's. */
export class CredentialError extends Error {
  override readonly name = 'CredentialError'
  /** Time until the provider is called again, in milliseconds. */
  readonly retryAfterMs: number

  constructor(message: string, retryAfterMs: number, cause?: unknown) {
    super(message, { cause })
    this.retryAfterMs = retryAfterMs
  }
}

/** Dependencies of a cache in addition to its provider. */
export interface CredentialCacheOptions {
  readonly clock: Clock
  /** Called when a refresh fails. The provider is not called again before `retryAtMs`. */
  readonly onFailure?: ((failure: { readonly message: string; readonly retryAtMs: number }) => void) | undefined
  /** Random source from 0 to 1. Default `Math.random`. */
  readonly random?: (() => number) | undefined
}

/** Credential with the times that follow from its lifetime. */
interface Kept {
  readonly credential: Credential
  readonly obtainedAtMs: number
  readonly refreshAtMs: number
  readonly expiresAtMs: number
}

/**
 * Credential of one of a vendor's slots. A fresh credential is returned synchronously. Before it expires, one refresh runs in
 * parallel to the calls, which use the old credential while it is valid; calls wait only if it has expired. At most one refresh
 * runs at a time. After a failed one, the next follows after 1 second, doubling up to 60. The only timer is the time limit of a
 * refresh: without calls nothing is renewed.
 */
export class CredentialCache {
  readonly #provider: CredentialProvider
  readonly #clock: Clock
  readonly #onFailure: CredentialCacheOptions['onFailure']
  readonly #random: () => number
  #kept: Kept | undefined
  /** Latest credential, even if it has expired or was rejected. */
  #latest: Credential | undefined
  #refreshing: Promise<Credential> | undefined
  #failures = 0
  #error: CredentialError | undefined
  #retryAtMs = 0
  #clockOffsetMs = 0

  constructor(provider: CredentialProvider, { clock, onFailure, random = Math.random }: CredentialCacheOptions) {
    this.#provider = provider
    this.#clock = clock
    this.#onFailure = onFailure
    this.#random = random
  }

  /**
   * Returns a credential for a call that is sent now.
   * @throws CredentialError, synchronously or as a rejection, if there is none.
   */
  take(): Credential | Promise<Credential> {
    const kept = this.#kept
    const nowMs = this.#clock.now()
    if (kept === undefined || nowMs >= kept.expiresAtMs) return this.#refresh(nowMs)
    if (nowMs >= kept.refreshAtMs && this.#refreshing === undefined && !this.#mustWait(nowMs)) {
      // `onFailure` reports the error; this call uses the old credential.
      this.#refresh(nowMs).catch(() => undefined)
    }
    return kept.credential
  }

  /** Returns the latest credential, even an expired or rejected one, for a call that cannot wait. Starts a refresh if one is due. */
  now(): Credential | undefined {
    const taken = this.take()
    if (!(taken instanceof Promise)) return taken
    taken.catch(() => undefined)
    return this.#latest
  }

  /**
   * Notes that the vendor rejects this credential as expired or unknown. Returns true if another one may be available, so that a
   * retry makes sense. If many calls are rejected at the same time, only the first one has an effect.
   */
  invalidate(credential: Credential): boolean {
    const kept = this.#kept
    if (kept === undefined || kept.credential !== credential) return true
    if (isYoungerThan(YOUNGEST_REPLACED_MS, kept.obtainedAtMs, this.#clock.now())) return false
    this.#kept = undefined
    return true
  }

  /**
   * Corrects the clock of this credential and later ones for signing. `offsetMs` is how far the vendor's clock is ahead. Returns
   * `undefined` if the correction would change nothing.
   */
  correctClock(credential: Credential, offsetMs: number): Credential | undefined {
    const { sign, clockOffsetMs = 0 } = credential
    if (sign === undefined || Math.abs(offsetMs - clockOffsetMs) < MIN_CORRECTION_MS) return undefined
    this.#clockOffsetMs = offsetMs
    const corrected = { ...credential, clockOffsetMs: offsetMs }
    if (this.#kept?.credential === credential) this.#kept = { ...this.#kept, credential: corrected }
    return corrected
  }

  #refresh(nowMs: number): Promise<Credential> {
    if (this.#refreshing !== undefined) return this.#refreshing
    if (this.#error !== undefined && this.#mustWait(nowMs)) {
      const { message, cause } = this.#error
      return Promise.reject(new CredentialError(message, this.#retryAtMs - nowMs, cause))
    }
    this.#refreshing = this.#ask(nowMs).then(
      (credential) => {
        this.#refreshing = undefined
        return this.#keep(credential)
      },
      (cause: unknown) => {
        this.#refreshing = undefined
        throw this.#failed(cause)
      },
    )
    return this.#refreshing
  }

  /** Whether the retry of a failed refresh must wait. A wait above the maximum shows that the clock was set back. */
  #mustWait(nowMs: number): boolean {
    const waitMs = this.#retryAtMs - nowMs
    return waitMs > 0 && waitMs <= MAX_BACKOFF_MS
  }

  #ask(nowMs: number): Promise<Credential> {
    const controller = new AbortController()
    return new Promise<Credential>((resolve, reject) => {
      const timer = this.#clock.schedule(PROVIDER_TIMEOUT_MS, () => {
        const error = new Error(`no credential was returned within ${PROVIDER_TIMEOUT_MS / 1000} s`)
        controller.abort(error)
        reject(error)
      })
      const settle = (credential: Credential): void => {
        timer.cancel()
        resolve(checked(credential, this.#clock.now()))
      }
      const fail = (cause: unknown): void => {
        timer.cancel()
        reject(cause)
      }
      try {
        const given = this.#provider({ signal: controller.signal, nowMs })
        if (isPending(given)) given.then(settle, fail).then(undefined, fail)
        else settle(given)
      } catch (cause) {
        fail(cause)
      }
    })
  }

  #keep(given: Credential): Credential {
    const credential = this.#clockOffsetMs === 0 ? given : { ...given, clockOffsetMs: this.#clockOffsetMs }
    const obtainedAtMs = this.#clock.now()
    const expiresAtMs = credential.expiresAtMs ?? obtainedAtMs + UNKNOWN_LIFETIME_MS
    const lifetimeMs = expiresAtMs - obtainedAtMs
    const aheadMs = Math.min(this.#provider.refreshAheadMs ?? DEFAULT_AHEAD_MS, lifetimeMs * AHEAD_SHARE)
    const dueMs = expiresAtMs - aheadMs * (1 - JITTER_SHARE * this.#random())
    const isSame = this.#latest?.token === credential.token
    this.#kept = {
      credential,
      obtainedAtMs,
      refreshAtMs: isSame ? Math.max(dueMs, obtainedAtMs + SAME_TOKEN_WAIT_MS) : dueMs,
      expiresAtMs,
    }
    this.#latest = credential
    this.#failures = 0
    this.#error = undefined
    this.#retryAtMs = 0
    return credential
  }

  #failed(cause: unknown): CredentialError {
    const nowMs = this.#clock.now()
    const waitMs = Math.min(MIN_BACKOFF_MS * 2 ** this.#failures, MAX_BACKOFF_MS)
    this.#failures += 1
    this.#retryAtMs = nowMs + waitMs
    const message = cause instanceof Error && cause.message !== '' ? cause.message : 'the credential provider failed'
    this.#error = new CredentialError(message, waitMs, cause)
    this.#onFailure?.({ message, retryAtMs: this.#retryAtMs })
    return this.#error
  }
}

/** Returns the credential if it can be sent. @throws Error that does not repeat it. */
function checked(credential: Credential, nowMs: number): Credential {
  const { token, expiresAtMs, header } = credential
  if (typeof token !== 'string' || !TOKEN.test(token))
    throw new Error('the credential provider returned no token of visible ASCII characters')
  if (header !== undefined && !HEADER_NAME.test(header))
    throw new Error('the credential provider returned a header that is not a header name')
  if (expiresAtMs === undefined) return credential
  if (!Number.isFinite(expiresAtMs))
    throw new Error('the credential provider returned an expiresAtMs that is not a number')
  if (expiresAtMs > nowMs) return credential
  const agoSeconds = Math.round((nowMs - expiresAtMs) / 1000)
  throw new Error(
    `the credential provider returned a token that expired ${agoSeconds} s ago by the clock of this machine: set its clock, or renew what the provider reads`,
  )
}
