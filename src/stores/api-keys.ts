import { hash } from 'node:crypto'
import { secretBytes, toBase62 } from '../core/ids.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { KeyScopes, SpendingCap } from './principal.ts'
import type { RateLimits } from './rate-limiter.ts'
import { byAge, type ListPlace } from './resolution.ts'

const PREFIX = 'sk-'
const SECRET_BYTES = 32
const SECRET_CHARACTERS = 43
const CHECK_BYTES = 4
const CHECK_CHARACTERS = 6

/**
 * Creates an API key: `sk-`, 32 random bytes in base62 (43 characters), and 6 check characters, with which a secret scanner or a
 * form can detect a mistyped key.
 *
 * @param random Returns this many random bytes. Defaults to the system's source.
 */
export function createApiKey(random: (length: number) => Uint8Array = secretBytes): string {
  const secret = toBase62(random(SECRET_BYTES), SECRET_CHARACTERS)
  const digest = Buffer.from(hash('sha256', secret), 'hex')
  return `${PREFIX}${secret}${toBase62(digest.subarray(0, CHECK_BYTES), CHECK_CHARACTERS)}`
}

/** Returns the stored form of a key: the SHA-256 of its UTF-8 bytes in lower-case hexadecimal. */
export function hashApiKey(text: string): string {
  return hash('sha256', text)
}

/** Stored key: only its SHA-256, never the key itself. */
export interface KeyRecord {
  /** Id `key_…` that names the key without revealing it. */
  readonly id: string
  /** Account that pays. */
  readonly accountId: string
  /** SHA-256 of the whole key, lower-case hexadecimal. */
  readonly hash: string
  /** Display name; may be empty. */
  readonly label: string
  /** Endpoints and models that it may use. */
  readonly scopes: KeyScopes
  /** Limits of the key. If `undefined`, those of the plan apply, then those of the gateway. */
  readonly limits: RateLimits | undefined
  /** Maximum spending of the key per day or month, or `undefined` for no cap. */
  readonly spendingCap: SpendingCap | undefined
  /** Whether requests with this key may name their end user, for limits per end user. Default false. */
  readonly namesEndUsers?: boolean | undefined
  /** Tags of every call, for usage records. Default none. */
  readonly tags?: readonly string[] | undefined
  /** Unix milliseconds. */
  readonly createdAtMs: number
  /** Time of expiry in Unix milliseconds, or `undefined` if the key does not expire. */
  readonly expiresAtMs: number | undefined
  /** Time of revocation in Unix milliseconds; `undefined` while the key is not revoked. */
  readonly revokedAtMs: number | undefined
  /** Id of the key that it replaced by rotation, or `undefined` if it replaced none. */
  readonly replaces?: string | undefined
}

/** Changes of a key. Omitted fields stay; `null` removes limits or cap. */
export interface KeyChange {
  readonly accountId?: string | undefined
  readonly limits?: RateLimits | null | undefined
  readonly spendingCap?: SpendingCap | null | undefined
  readonly namesEndUsers?: boolean | undefined
}

/** Query for keys. */
export interface KeysQuery {
  /** Account of the keys. If omitted, keys of all accounts are listed. */
  readonly accountId?: string | undefined
  /** Cursor: lists the keys after this one. */
  readonly after?: ListPlace | undefined
  /** Maximum number of keys. */
  readonly limit: number
}

/** API keys. */
export interface KeyStore {
  /** Returns a key by its hash, even if it is revoked or expired; the caller must check that. */
  findByHash(hash: string): MaybePromise<KeyRecord | undefined>
  /** Returns a key by its id, like {@link findByHash}. If omitted, the gateway reads all keys instead. */
  find?(keyId: string): MaybePromise<KeyRecord | undefined>
  /** Inserts a key. Idempotent by hash: an existing record stays unchanged. */
  insert(record: KeyRecord): MaybePromise<void>
  /** Changes a key; its scopes and times stay. Returns false if there is no such key. */
  update(keyId: string, change: KeyChange): MaybePromise<boolean>
  /** Returns the keys of one account, or of all, oldest first. */
  list(accountId?: string): MaybePromise<readonly KeyRecord[]>
  /** Returns a page of keys, oldest first, then by id. If omitted, the gateway reads all keys instead. */
  page?(query: KeysQuery): MaybePromise<readonly KeyRecord[]>
  /** Revokes a key. Returns false if there is no such key. Revoking twice keeps the first time. */
  revoke(keyId: string, nowMs: number): MaybePromise<boolean>
  /** Sets the expiry of a key; an earlier expiry stays. Returns false if there is no such key. */
  expire(keyId: string, expiresAtMs: number): MaybePromise<boolean>
}

/** Finds a key by its id, even if it is revoked or expired. */
export async function findKey(keys: KeyStore, keyId: string): Promise<KeyRecord | undefined> {
  return keys.find === undefined ? (await keys.list()).find(({ id }) => id === keyId) : keys.find(keyId)
}

/** Whether a key is neither revoked nor expired. */
export function isUsable({ revokedAtMs, expiresAtMs }: KeyRecord, nowMs: number): boolean {
  return revokedAtMs === undefined && (expiresAtMs === undefined || expiresAtMs > nowMs)
}

/** Returns a page from a list of all keys. */
export function keyPage(
  keys: readonly KeyRecord[],
  { after, limit }: Omit<KeysQuery, 'accountId'>,
): readonly KeyRecord[] {
  return keys
    .filter((key) => after === undefined || byAge(key, after) > 0)
    .sort(byAge)
    .slice(0, Math.max(0, limit))
}
