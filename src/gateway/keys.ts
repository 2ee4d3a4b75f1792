import type { Clock } from '../core/clock.ts'
import type { Ids } from '../core/ids.ts'
import { createApiKey, hashApiKey } from '../stores/api-key.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import type { KeyRecord } from '../stores/key-store.ts'
import type { KeyScopes } from '../stores/principal.ts'
import type { RateLimits } from '../stores/rate-limiter.ts'

/** What a new key is for. */
export interface NewKey {
  /** The account that pays; must exist. */
  readonly accountId: string
  readonly label?: string
  readonly scopes?: KeyScopes
  readonly limits?: RateLimits
  /** Unix milliseconds. */
  readonly expiresAtMs?: number
}

/** Administration of API keys, for the host's own code. */
export interface Keys {
  /**
   * Makes a key. `key` is shown this once; the store keeps its SHA-256 only.
   * @throws RangeError when the account does not exist.
   */
  create(key: NewKey): Promise<{ readonly key: string; readonly record: KeyRecord }>
  list(accountId: string): Promise<readonly KeyRecord[]>
  /** Ends a key; every process refuses it within 5 seconds. False when there is no such key. */
  revoke(keyId: string): Promise<boolean>
}

/** Makes the administration of a store's keys. `ready` resolves once the store can be used. */
export function keysOf(store: GatewayStore, clock: Clock, ids: Ids, ready: () => Promise<void>): Keys {
  return {
    async create(wanted) {
      await ready()
      const account = await store.ledger.account(wanted.accountId)
      if (account === undefined) throw new RangeError(`there is no account ${JSON.stringify(wanted.accountId)}`)
      const key = createApiKey()
      const record = newKeyRecord(key, { ...wanted, id: ids.next('key'), createdAtMs: clock.now() })
      await store.keys.insert(record)
      return { key, record }
    },
    async list(accountId) {
      await ready()
      return store.keys.list(accountId)
    },
    async revoke(keyId) {
      await ready()
      return store.keys.revoke(keyId, clock.now())
    },
  }
}

/** The record of a key, which holds only the key's digest. */
export function newKeyRecord(
  key: string,
  facts: NewKey & { readonly id: string; readonly createdAtMs: number },
): KeyRecord {
  return {
    id: facts.id,
    accountId: facts.accountId,
    hash: hashApiKey(key),
    label: facts.label ?? '',
    scopes: facts.scopes ?? {},
    limits: facts.limits,
    createdAtMs: facts.createdAtMs,
    expiresAtMs: facts.expiresAtMs,
    revokedAtMs: undefined,
  }
}
