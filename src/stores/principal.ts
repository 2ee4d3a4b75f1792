import type { MaybePromise } from '../core/maybe-promise.ts'
import type { RateLimits } from './rate-limiter.ts'

/** Service tier of an account; decides how long stored conversations are kept. */
export type Tier = 'free' | 'paid'

/** Most that may be spent in a calendar period (UTC), in nano-dollars. */
export interface SpendingCap {
  readonly amount: bigint
  readonly period: 'day' | 'month'
}

/** What a key may be used for. An absent list means: everything. */
export interface KeyScopes {
  /** Endpoint ids, such as `chat` or `embeddings`. */
  readonly endpoints?: readonly string[]
  /** Public model ids. */
  readonly models?: readonly string[]
}

/** Who is calling, once the credentials were checked. */
export interface Principal {
  /** The account that pays. */
  readonly accountId: string
  /** The key or identity used; rate limits count per key. */
  readonly keyId: string
  readonly tier: Tier
  /** Whom the call serves, for records of usage; what a caller says about it does not count then. */
  readonly endUser?: string | undefined
  /** Tags of every call, for records of usage: at most 8 of 1 to 64 letters, digits or `._:/-`. A caller may add others. */
  readonly tags?: readonly string[] | undefined
  readonly scopes?: KeyScopes | undefined
  /** Limits of this key; the gateway's own for each that is absent. */
  readonly limits?: RateLimits | undefined
  /** Cap of the account as a whole. */
  readonly accountSpendingCap?: SpendingCap | undefined
  /** Cap of this key only. */
  readonly keySpendingCap?: SpendingCap | undefined
}

/** The credentials of a request. */
export interface Credentials {
  /** The bearer token, or `x-api-key` on the routes that take it; undefined when neither was sent. */
  readonly apiKey: string | undefined
  /** Any header by lower-case name, for hosts with their own sessions or mutual TLS. */
  header(name: string): string | undefined
}

/** A host's own authentication. Undefined means: unknown caller, which becomes a 401. */
export type Authenticate = (credentials: Credentials) => MaybePromise<Principal | undefined>
