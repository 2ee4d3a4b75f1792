import type { MemberNames } from '../core/known-members.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { RateLimits } from './rate-limiter.ts'

/**
 * When an account pays. `prepaid`: money is held before a call, and a call needs it. `metered`: charges are written without a
 * balance check and owed, up to the account's credit limit.
 */
export type BillingMode = 'prepaid' | 'metered'

/** Service tier of an account; decides how long stored conversations are kept. */
export type Tier = 'free' | 'paid'

/** Most that may be spent in a calendar period (UTC), in nano-dollars. */
export interface SpendingCap {
  /** Nano-dollars, above zero. */
  readonly amount: bigint
  /** UTC day or calendar month. */
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
  /** Decides how long stored conversations are kept. */
  readonly tier: Tier
  /** Tags of every call, for records of usage: at most 8 of 1 to 64 letters, digits or `._:/-`. A caller may add others. */
  readonly tags?: readonly string[] | undefined
  /** What the caller may use; everything when absent. */
  readonly scopes?: KeyScopes | undefined
  /** Limits of this key; those of the plan, then the gateway's own, for each that is absent. */
  readonly limits?: RateLimits | undefined
  /** The account's plan; null: none. Looked up in the store when absent, if `createGateway` has plans. */
  readonly plan?: string | null | undefined
  /** Whom the caller serves, unique within the account; for limits per end user, and for records of usage, whatever a caller says. */
  readonly endUser?: string | undefined
  /** May requests name their end user (`safety_identifier`, `user`, `metadata.user_id`)? Default false. */
  readonly namesEndUsers?: boolean | undefined
  /** Refuses every call that a model would answer. With billing on, the store knows it too. */
  readonly isFrozen?: boolean | undefined
  /** Cap of the account as a whole, in addition to the one in the store. */
  readonly accountSpendingCap?: SpendingCap | undefined
  /** Cap of this key only, in addition to the one in the store. */
  readonly keySpendingCap?: SpendingCap | undefined
}

export const PRINCIPAL_MEMBERS = {
  accountId: true,
  keyId: true,
  tier: true,
  tags: true,
  scopes: true,
  limits: true,
  plan: true,
  endUser: true,
  namesEndUsers: true,
  isFrozen: true,
  accountSpendingCap: true,
  keySpendingCap: true,
} satisfies MemberNames<Principal>

export const KEY_SCOPES_MEMBERS = { endpoints: true, models: true } satisfies MemberNames<KeyScopes>

export const SPENDING_CAP_MEMBERS = { amount: true, period: true } satisfies MemberNames<SpendingCap>

/** The credentials of a request. */
export interface Credentials {
  /** The bearer token, or `x-api-key` on the routes that take it; undefined when neither was sent. */
  readonly apiKey: string | undefined
  /** Any header by lower-case name, for hosts with their own sessions or mutual TLS. */
  header(name: string): string | undefined
  /**
   * The framework's own request, with what middlewares have put on it: Express's and Node's `req`, Fastify's `request`, a web
   * `Request`. Undefined for adapters that do not give it.
   */
  readonly request: unknown
}

/**
 * A host's own authentication: who sent a request. Undefined or null means that it does not know: the caller gets a 401, or the next
 * one is asked where it stands in `firstOf`. A GatewayError that it throws is the answer; every other error is a 500.
 */
export type Authenticate = (credentials: Credentials) => MaybePromise<Principal | null | undefined>
