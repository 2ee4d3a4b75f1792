import { memberNames } from '../core/known-members.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { RateLimits } from './rate-limiter.ts'

/**
 * Billing mode of an account. `prepaid`: money is reserved before a call, which requires it. `metered`: charges are made without
 * a balance check and owed, up to the account's credit limit.
 */
export type BillingMode = 'prepaid' | 'metered'

/** Service tier of an account; decides how long stored conversations are kept. */
export type Tier = 'free' | 'paid'

/** Maximum spending in a calendar period (UTC), in nano-dollars. */
export interface SpendingCap {
  /** Amount in nano-dollars, above zero. */
  readonly amount: bigint
  /** UTC day or calendar month. */
  readonly period: 'day' | 'month'
}

/** Scopes of a key. An omitted list allows everything. */
export interface KeyScopes {
  /** Allowed endpoint ids, such as `chat` or `embeddings`. */
  readonly endpoints?: readonly string[]
  /** Allowed public model ids. */
  readonly models?: readonly string[]
}

/** Authenticated caller. */
export interface Principal {
  /** Account that pays. */
  readonly accountId: string
  /** Key or identity of the caller; rate limits count per key. */
  readonly keyId: string
  /** Tier, which determines how long stored conversations are kept. */
  readonly tier: Tier
  /** Tags of every call for usage records: at most 8, of 1 to 64 letters, digits or `._:/-`. Callers may add others. */
  readonly tags?: readonly string[] | undefined
  /** Endpoints and models that the caller may use. Default: all. */
  readonly scopes?: KeyScopes | undefined
  /** Limits of this key. Omitted ones default to those of the plan, then to those of the gateway. */
  readonly limits?: RateLimits | undefined
  /** Plan of the account; null for none. If omitted, the gateway reads it from the store, provided that `createGateway` has plans. */
  readonly plan?: string | null | undefined
  /** End user of the call, unique within the account, for limits and usage records. Overrides the one that the caller names. */
  readonly endUser?: string | undefined
  /** Whether requests may name their end user (`safety_identifier`, `user`, `metadata.user_id`). Default false. */
  readonly namesEndUsers?: boolean | undefined
  /** Whether to reject every call to a model. With billing on, the store also knows it. */
  readonly isFrozen?: boolean | undefined
  /** Cap of the account as a whole, in addition to the one in the store. */
  readonly accountSpendingCap?: SpendingCap | undefined
  /** Cap of this key only, in addition to the one in the store. */
  readonly keySpendingCap?: SpendingCap | undefined
}

export const PRINCIPAL_MEMBERS = memberNames<Principal>()(
  'accountId keyId tier tags scopes limits plan endUser namesEndUsers isFrozen accountSpendingCap keySpendingCap',
)

export const KEY_SCOPES_MEMBERS = memberNames<KeyScopes>()('endpoints models')

export const SPENDING_CAP_MEMBERS = memberNames<SpendingCap>()('amount period')

/** Credentials of a request. */
export interface Credentials {
  /** Bearer token, or `x-api-key` on routes that accept it; undefined if neither was sent. */
  readonly apiKey: string | undefined
  /** Returns any header, given its lower-case name, for hosts with their own sessions or mutual TLS. */
  header(name: string): string | undefined
  /**
   * Request object of the framework, including changes by middleware: Express's and Node's `req`, Fastify's `request`, a web
   * `Request`. Undefined if the adapter has none.
   */
  readonly request: unknown
}

/**
 * Authentication by the host: returns the sender of a request, or undefined or null for an unknown sender. The caller then gets 401,
 * or the next function of `firstOf` is called. A GatewayError is sent to the caller; for every other error the caller gets 500.
 */
export type Authenticate = (credentials: Credentials) => MaybePromise<Principal | null | undefined>

/**
 * Returns the end user of a request, or `undefined` for none. The principal names it, or the body (`safety_identifier`, `user`,
 * `metadata.user_id`) if the key is trusted to do so. Otherwise a caller could invent a user for each request.
 */
export function endUserOf({ endUser, namesEndUsers }: Principal, body: object): string | undefined {
  if (endUser !== undefined) return endUser
  if (namesEndUsers !== true) return undefined
  const { safety_identifier: identifier, user, metadata } = body as Readonly<Record<string, unknown>>
  const userId = (metadata as { readonly user_id?: unknown } | null | undefined)?.user_id
  return [identifier, user, userId].find((name): name is string => typeof name === 'string' && name !== '')
}
