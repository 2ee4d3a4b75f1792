import { type Clock, isYoungerThan } from '../core/clock.ts'
import type { Credential, CredentialProvider } from '../core/credential.ts'
import { isPending } from '../core/maybe-promise.ts'

/** Longest time for a provider to give a credential. */
const PROVIDER_TIMEOUT_MS = 10_000

const DEFAULT_AHEAD_MS = 300_000
/** Largest part of a lifetime that a credential is renewed ahead. */
const AHEAD_SHARE = 0.2
/** Part of that time by which processes differ, so that they do not all ask at the same moment. */
const JITTER_SHARE = 0.1
/** Lifetime of a credential that does not say when it ends. */
const UNKNOWN_LIFETIME_MS = 3_600_000
/** Some servers give the same token until shortly before its end; they are asked again after this time. */
const SAME_TOKEN_WAIT_MS = 60_000

/** A credential as young as this is not replaced when a vendor refuses it: a new one would be refused too. */
const YOUNGEST_REPLACED_MS = 5_000

/** A clock is not corrected for less: what is left is the time of the call. */
const LEAST_CORRECTION_MS = 60_000

const SHORTEST_BACKOFF_MS = 1_000
const LONGEST_BACKOFF_MS = 60_000

/** Visible ASCII: anything else would break the header, or out of it. */
const TOKEN = /^[\x21-\x7e]+$/
const HEADER_NAME = /^[a-z0-9!#$%&'*+.^_`|~-]+$/i

/** No credential can be had at the moment. The message is the provider's. */
export class CredentialError extends Error {
  override readonly name = 'CredentialError'
  /** When the provider is asked again. */
  readonly retryAfterMs: number

  constructor(message: string, retryAfterMs: number, cause?: unknown) {
    super(message, { cause })
    this.retryAfterMs = retryAfterMs
  }
}

/** What a cache needs beside its provider. */
export interface CredentialCacheOptions {
  readonly clock: Clock
  /** A refresh failed. The provider is not asked again before `retryAtMs`. */
  readonly onFailure?: ((failure: { readonly message: string; readonly retryAtMs: number }) => void) | undefined
  /** From 0 to 1; `Math.random` by default. */
  readonly random?: (() => number) | undefined
}

/** A credential with the moments that follow from its lifetime. */
interface Kept {
  readonly credential: Credential
  readonly obtainedAtMs: number
  readonly refreshAtMs: number
  readonly expiresAtMs: number
}

/**
 * The credential of one of a vendor's slots. A fresh one is given synchronously. Ahead of its end one refresh runs beside the
 * calls, which go on with the old one while it holds; only an expired one is waited for. There is never more than one refresh
 * at a time, and after a failed one the next comes after 1 second, doubling up to 60. Uses no timers but the time
 * limit of a refresh: without calls nothing is renewed.
 */
export class CredentialCache {
  readonly #provider: CredentialProvider
  readonly #clock: Clock
  readonly #onFailure: CredentialCacheOptions['onFailure']
  readonly #random: () => number
  #kept: Kept | undefined
  /** Even one that has expired or was refused. */
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
   * A credential for a call that is sent now.
   * @throws CredentialError, at once or later, when there is none.
   */
  take(): Credential | Promise<Credential> {
    const kept = this.#kept
    const nowMs = this.#clock.now()
    if (kept === undefined || nowMs >= kept.expiresAtMs) return this.#refresh(nowMs)
    if (nowMs >= kept.refreshAtMs && this.#refreshing === undefined && !this.#mustWait(nowMs)) {
      // Told by `onFailure`; this call goes on with the old one.
      this.#refresh(nowMs).catch(() => undefined)
    }
    return kept.credential
  }

  /** For a call that cannot wait: the latest credential, even one that has expired or was refused. Begins a refresh where one is due. */
  now(): Credential | undefined {
    const taken = this.take()
    if (!(taken instanceof Promise)) return taken
    taken.catch(() => undefined)
    return this.#latest
  }

  /**
   * The vendor refuses this credential as expired or unknown. True: another one may be had, so the call is worth repeating.
   * Of many calls that are refused at once only the first one has an effect.
   */
  invalidate(credential: Credential): boolean {
    const kept = this.#kept
    if (kept === undefined || kept.credential !== credential) return true
    if (isYoungerThan(YOUNGEST_REPLACED_MS, kept.obtainedAtMs, this.#clock.now())) return false
    this.#kept = undefined
    return true
  }

  /**
   * The vendor's clock is so far ahead of this machine's: this credential and later ones sign by it. Undefined: that would change
   * nothing.
   */
  correctClock(credential: Credential, offsetMs: number): Credential | undefined {
    const { sign, clockOffsetMs = 0 } = credential
    if (sign === undefined || Math.abs(offsetMs - clockOffsetMs) < LEAST_CORRECTION_MS) return undefined
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

  /** Is a refresh that failed not to be repeated yet? Longer than the longest wait shows that the clock was set back. */
  #mustWait(nowMs: number): boolean {
    const waitMs = this.#retryAtMs - nowMs
    return waitMs > 0 && waitMs <= LONGEST_BACKOFF_MS
  }

  #ask(nowMs: number): Promise<Credential> {
    const controller = new AbortController()
    return new Promise<Credential>((resolve, reject) => {
      const timer = this.#clock.schedule(PROVIDER_TIMEOUT_MS, () => {
        const error = new Error(`no credential was given within ${PROVIDER_TIMEOUT_MS / 1000} s`)
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
    const waitMs = Math.min(SHORTEST_BACKOFF_MS * 2 ** this.#failures, LONGEST_BACKOFF_MS)
    this.#failures += 1
    this.#retryAtMs = nowMs + waitMs
    const message = cause instanceof Error && cause.message !== '' ? cause.message : 'the credential provider failed'
    this.#error = new CredentialError(message, waitMs, cause)
    this.#onFailure?.({ message, retryAtMs: this.#retryAtMs })
    return this.#error
  }
}

/** The credential if it can be sent. @throws Error that does not repeat it. */
function checked(credential: Credential, nowMs: number): Credential {
  const { token, expiresAtMs, header } = credential
  if (typeof token !== 'string' || !TOKEN.test(token))
    throw new Error('the credential provider gave no token of visible ASCII characters')
  if (header !== undefined && !HEADER_NAME.test(header))
    throw new Error('the credential provider gave a header that is no header name')
  if (expiresAtMs === undefined) return credential
  if (!Number.isFinite(expiresAtMs)) throw new Error('the credential provider gave an expiresAtMs that is no number')
  if (expiresAtMs > nowMs) return credential
  const agoSeconds = Math.round((nowMs - expiresAtMs) / 1000)
  throw new Error(
    `the credential provider gave a token that expired ${agoSeconds} s ago by the clock of this machine: set its clock, or renew what the provider reads`,
  )
}
