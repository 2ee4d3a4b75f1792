import type { MaybePromise } from '../core/maybe-promise.ts'
import type { ListPlace } from './newest-first.ts'
import type { KeyScopes, SpendingCap } from './principal.ts'
import type { RateLimits } from './rate-limiter.ts'

/** A stored key: only its SHA-256, never the key itself. */
export interface KeyRecord {
  /** Names the key without being it: `key_…`. */
  readonly id: string
  /** The account that pays. */
  readonly accountId: string
  /** SHA-256 of the whole key, lower-case hexadecimal. */
  readonly hash: string
  /** For people; may be empty. */
  readonly label: string
  /** What it may be used for. */
  readonly scopes: KeyScopes
  /** Undefined: those of the plan, then of the gateway. */
  readonly limits: RateLimits | undefined
  /** Most that may be spent with it in a day or month. Undefined: no cap. */
  readonly spendingCap: SpendingCap | undefined
  /** May requests with this key name their end user, for limits per end user? Absent: no. */
  readonly namesEndUsers?: boolean | undefined
  /** Tags of every call, for records of usage; absent: none. */
  readonly tags?: readonly string[] | undefined
  /** Unix milliseconds. */
  readonly createdAtMs: number
  /** Unix milliseconds from which it is refused. Undefined: never. */
  readonly expiresAtMs: number | undefined
  /** Unix milliseconds at which it was revoked. Undefined: it was not. */
  readonly revokedAtMs: number | undefined
  /** Id of the key that it was made for by rotation; undefined: it was made anew. */
  readonly replaces?: string | undefined
}

/** What may be changed about a key; absent fields stay. `null` takes limits or cap away. */
export interface KeyChange {
  readonly accountId?: string | undefined
  readonly limits?: RateLimits | null | undefined
  readonly spendingCap?: SpendingCap | null | undefined
  readonly namesEndUsers?: boolean | undefined
}

/** Which keys to list. */
export interface KeysQuery {
  /** Undefined: of all accounts. */
  readonly accountId?: string | undefined
  /** Only keys behind this one. */
  readonly after?: ListPlace | undefined
  /** Most keys. */
  readonly limit: number
}

/** API keys. */
export interface KeyStore {
  /** By hash, revoked and expired ones included; the caller judges. */
  findByHash(hash: string): MaybePromise<KeyRecord | undefined>
  /** By id, as {@link findByHash}. A store without it is asked for all keys instead. */
  find?(keyId: string): MaybePromise<KeyRecord | undefined>
  /** Idempotent by hash: an existing record stays unchanged. */
  insert(record: KeyRecord): MaybePromise<void>
  /** Changes a key; its scopes and times stay. False when there is no such key. */
  update(keyId: string, change: KeyChange): MaybePromise<boolean>
  /** Keys of one account, or of all, oldest first. */
  list(accountId?: string): MaybePromise<readonly KeyRecord[]>
  /** A page of them, oldest first, then by id. A store without it is asked for all keys instead. */
  page?(query: KeysQuery): MaybePromise<readonly KeyRecord[]>
  /** False when there is no such key. Revoking twice keeps the first time. */
  revoke(keyId: string, nowMs: number): MaybePromise<boolean>
  /** Sets the expiry of a key; an earlier expiry stays. False if there is no such key. */
  expire(keyId: string, expiresAtMs: number): MaybePromise<boolean>
}

/** Finds a key by its id, revoked and expired ones included. */
export async function findKey(keys: KeyStore, keyId: string): Promise<KeyRecord | undefined> {
  return keys.find === undefined ? (await keys.list()).find(({ id }) => id === keyId) : keys.find(keyId)
}

/** Whether a key is neither revoked nor expired. */
export function isUsable({ revokedAtMs, expiresAtMs }: KeyRecord, nowMs: number): boolean {
  return revokedAtMs === undefined && (expiresAtMs === undefined || expiresAtMs > nowMs)
}

/** A page of keys that were all read. */
export function keyPage(
  keys: readonly KeyRecord[],
  { after, limit }: Omit<KeysQuery, 'accountId'>,
): readonly KeyRecord[] {
  return keys
    .filter((key) => after === undefined || byAge(key, after) > 0)
    .sort(byAge)
    .slice(0, Math.max(0, limit))
}

/** The older first. */
function byAge(one: ListPlace, other: ListPlace): number {
  return one.createdAtMs - other.createdAtMs || (one.id < other.id ? -1 : one.id > other.id ? 1 : 0)
}
