import type { Clock } from '../core/clock.ts'
import { endOfTurn } from '../core/end-of-turn.ts'
import { GatewayError } from '../core/errors.ts'
import type { Ids } from '../core/ids.ts'
import { checkGivenMembers, checkMembers, type MemberNames } from '../core/known-members.ts'
import { createApiKey, hashApiKey } from '../stores/api-key.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import { findKey, type KeyChange, type KeyRecord, type KeysQuery, keyPage } from '../stores/key-store.ts'
import { KEY_SCOPES_MEMBERS, type KeyScopes, SPENDING_CAP_MEMBERS, type SpendingCap } from '../stores/principal.ts'
import { RATE_LIMITS_MEMBERS, type RateLimits } from '../stores/rate-limiter.ts'
import { tagsOf } from '../usage/usage-record.ts'
import { administer, checkOverlap, checkSpendingCap, noSuchAccount } from './administer.ts'
import type { FixedKey } from './gateway-options.ts'
import { type ScopeNames, storedScopes } from './key-scopes.ts'
import { badLimitOf } from './limit-options.ts'
import { checkPageSize, MAX_PAGE_SIZE, pageOf, partsOfPlace, placeOf } from './page-cursor.ts'

/** What a new key is for. */
export interface NewKey {
  /** The account that pays; must exist. */
  readonly accountId: string
  /** For people; default: empty. */
  readonly label?: string | undefined
  /** Endpoints and models that it may use; default: all. */
  readonly scopes?: KeyScopes | undefined
  /** Default: those of the account's plan, then of the gateway, each by itself. */
  readonly limits?: RateLimits | undefined
  /** Most that may be spent with it in a day or month; default: none. Needs billing. */
  readonly spendingCap?: SpendingCap | undefined
  /** May requests with this key name their end user, for limits per end user? Default false. */
  readonly namesEndUsers?: boolean | undefined
  /** Tags of every call, for records of usage: at most 8 of 1 to 64 letters, digits or `._:/-`. A caller may add others. */
  readonly tags?: readonly string[] | undefined
  /** Unix milliseconds from which it is refused; default: never. */
  readonly expiresAtMs?: number | undefined
}

const NEW_KEY_MEMBERS = {
  accountId: true,
  label: true,
  scopes: true,
  limits: true,
  spendingCap: true,
  namesEndUsers: true,
  tags: true,
  expiresAtMs: true,
} satisfies MemberNames<NewKey>

/** What `update` may change. */
type KeyUpdate = Pick<KeyChange, 'limits' | 'spendingCap' | 'namesEndUsers'>

/** A page of keys. */
export interface KeysPageOptions {
  /** Of this account only. */
  readonly accountId?: string | undefined
  /** `next` of the page before. */
  readonly cursor?: string | undefined
  /** 1 to 1,000; default 100. */
  readonly limit?: number | undefined
}

const KEYS_PAGE_OPTIONS = {
  accountId: true,
  cursor: true,
  limit: true,
} satisfies MemberNames<KeysPageOptions>

/** Keys, oldest first. */
export interface KeysPage {
  /** Expired and revoked ones too. */
  readonly keys: readonly KeyRecord[]
  /** Undefined: there are no more. */
  readonly next: string | undefined
}

/** Administration of API keys, for the host's own code. Every method throws a GatewayError, or a TypeError for an unknown member. */
export interface Keys {
  /**
   * Makes a key. `key` is shown this once; the store keeps its SHA-256 only.
   * @throws GatewayError `invalid_request` when the account does not exist, the scopes name an endpoint that there is not, a limit
   *   is no positive number, the expiry no time to come, or no store can keep the cap.
   */
  create(key: NewKey): Promise<{ readonly key: string; readonly record: KeyRecord }>
  /**
   * Changes limits, cap and trust of a key; `null` takes limits or cap away. In force everywhere within 5 seconds, and what the
   * key has spent counts against a new cap. False when there is no such key.
   * @throws GatewayError `invalid_request` when a limit is no positive number, or no store can keep the cap.
   */
  update(keyId: string, change: KeyUpdate): Promise<boolean>
  /** Keys of one account, or of all. Reads them all: of many keys take pages. */
  list(accountId?: string): Promise<readonly KeyRecord[]>
  /**
   * A page of the keys of one account, or of all, oldest first.
   * @throws GatewayError `invalid_request` for a bad limit or cursor.
   */
  page(options?: KeysPageOptions): Promise<KeysPage>
  /** One key by its id; undefined: there is none. */
  find(keyId: string): Promise<KeyRecord | undefined>
  /** Ends a key; every process refuses it within 5 seconds. False when there is no such key. */
  revoke(keyId: string): Promise<boolean>
  /**
   * Makes a new key with the facts of an old one, which ends after `overlapMs` (default one day), so that callers can
   * change over without a gap.
   * @throws GatewayError `invalid_request` when there is no such key, it was revoked, or `overlapMs` is negative.
   */
  rotate(
    keyId: string,
    options?: { readonly overlapMs?: number },
  ): Promise<{ readonly key: string; readonly record: KeyRecord }>
}

/** How long an old key stays valid beside the one that replaces it. */
const DEFAULT_OVERLAP_MS = 24 * 60 * 60 * 1000

/**
 * Makes the administration of a store's keys.
 * @param ready resolves once the store can be used.
 * @param names what scopes may name; undefined: unknown here, so that all are accepted.
 */
export function keysOf(
  store: GatewayStore,
  clock: Clock,
  ids: Ids,
  ready: () => Promise<void>,
  names?: ScopeNames,
): Keys {
  return {
    async create(wanted) {
      checkNewKey(wanted, 'keys.create')
      return administer(ready, async () => {
        checkSpendingCap(wanted.spendingCap)
        checkLimits(wanted.limits)
        checkExpiry(wanted.expiresAtMs, clock.now())
        checkTags(wanted.tags)
        const given = wanted.scopes ?? {}
        const scopes = names === undefined ? given : storedScopes(given, names)
        const account = await store.ledger.account(wanted.accountId)
        if (account === undefined) throw noSuchAccount(wanted.accountId)
        const key = createApiKey()
        const record = newKeyRecord(key, { ...wanted, scopes, id: ids.next('key'), createdAtMs: clock.now() })
        await store.keys.insert(record)
        return { key, record }
      })
    },
    async update(keyId, change) {
      checkGivenMembers(change, KEY_CHANGE_MEMBERS, 'keys.update')
      checkParts(change, 'keys.update')
      const { limits, spendingCap, namesEndUsers } = change
      return administer(ready, () => {
        checkSpendingCap(spendingCap)
        checkLimits(limits)
        return store.keys.update(keyId, { limits, spendingCap, namesEndUsers })
      })
    },
    list: (accountId) => administer(ready, () => allKeys(store, accountId)),
    async page(options = {}) {
      checkMembers(options, KEYS_PAGE_OPTIONS, 'keys.page')
      const { accountId, cursor, limit = 100 } = options
      return administer(ready, async () => {
        checkPageSize(limit)
        const rows = await readPage(store, { accountId, after: placeOf(cursor), limit: limit + 1 })
        const page = pageOf(rows, limit, partsOfPlace)
        return { keys: page.rows, next: page.next }
      })
    },
    find: (keyId) => administer(ready, () => findKey(store.keys, keyId)),
    revoke: (keyId) => administer(ready, () => store.keys.revoke(keyId, clock.now())),
    async rotate(keyId, options = {}) {
      checkMembers(options, ROTATE_OPTIONS, 'keys.rotate')
      const { overlapMs = DEFAULT_OVERLAP_MS } = options
      return administer(ready, async () => {
        checkOverlap(overlapMs)
        const old = await findKey(store.keys, keyId)
        if (old === undefined || old.revokedAtMs !== undefined) {
          const message = `there is no valid key ${JSON.stringify(keyId)}`
          throw new GatewayError('invalid_request', { message, param: 'keyId' })
        }
        const nowMs = clock.now()
        const key = createApiKey()
        const record: KeyRecord = {
          ...old,
          id: ids.next('key'),
          hash: hashApiKey(key),
          createdAtMs: nowMs,
          // One that was rotated has an end. All keys are read only then.
          expiresAtMs: old.expiresAtMs === undefined ? undefined : lifetimeOf(old, await allKeys(store)),
          replaces: old.id,
        }
        await store.keys.insert(record)
        await store.keys.expire(keyId, nowMs + overlapMs)
        return { key, record }
      })
    },
  }
}

const KEY_CHANGE_MEMBERS = { limits: true, spendingCap: true, namesEndUsers: true } satisfies MemberNames<KeyUpdate>
const ROTATE_OPTIONS = { overlapMs: true } as const

function checkNewKey(key: NewKey, owner: string): void {
  checkGivenMembers(key, NEW_KEY_MEMBERS, owner)
  checkMembers(key.scopes, KEY_SCOPES_MEMBERS, owner, 'scopes')
  checkParts(key, owner)
}

function checkParts({ limits, spendingCap, namesEndUsers }: KeyUpdate, owner: string): void {
  // `'false'` would be true.
  if ((namesEndUsers ?? undefined) !== undefined && typeof namesEndUsers !== 'boolean')
    throw new TypeError(`${owner}: namesEndUsers must be true or false`)
  checkMembers(limits, RATE_LIMITS_MEMBERS, owner, 'limits')
  checkMembers(spendingCap, SPENDING_CAP_MEMBERS, owner, 'spendingCap')
}

/** @throws GatewayError `invalid_request` naming the limit that is no positive number. */
function checkLimits(limits: RateLimits | null | undefined): void {
  const bad = badLimitOf(limits)
  if (bad === undefined) return
  throw new GatewayError('invalid_request', { message: `limits.${bad} must be a positive number`, param: 'limits' })
}

/**
 * @throws GatewayError `invalid_request` for what is no time: a key with it would never end; and for what is past, such as seconds
 *   given as milliseconds: nobody could use the key.
 */
function checkExpiry(expiresAtMs: number | undefined, nowMs: number): void {
  if (expiresAtMs === undefined || (Number.isFinite(expiresAtMs) && expiresAtMs > nowMs)) return
  const message = `expiresAtMs must be Unix milliseconds in the future, not ${expiresAtMs}`
  throw new GatewayError('invalid_request', { message, param: 'expiresAtMs' })
}

/** @throws GatewayError `invalid_request` for what no record keeps. */
function checkTags(tags: readonly string[] = []): void {
  if (Array.isArray(tags) && tagsOf(tags, undefined).length === new Set(tags).size) return
  const message = 'tags must be at most 8, each of 1 to 64 letters, digits or ._:/-'
  throw new GatewayError('invalid_request', { message, param: 'tags' })
}

type ConfiguredKey = Pick<FixedKey, 'key' | 'account' | 'namesEndUsers'> & { readonly limits: RateLimits | undefined }

/**
 * Until when a key was to live before it was rotated. Rotation shortens the expiry of the old key only, so that the newest key of
 * its line still has it: a key may be rotated twice, or again while it overlaps with its successor.
 */
function lifetimeOf(key: KeyRecord, all: readonly KeyRecord[]): number | undefined {
  let newest = key
  for (;;) {
    const { id } = newest
    const successor = all.find(({ replaces }) => replaces === id)
    if (successor === undefined) return newest.expiresAtMs
    newest = successor
  }
}

/**
 * Makes a key of the configuration known to a store. One that was configured before for another account is moved to this one,
 * with these limits.
 * @throws TypeError when the store has this key as one that was made there for another account.
 */
export async function configureKey(
  store: GatewayStore,
  { key, account, limits, namesEndUsers = false }: ConfiguredKey,
  nowMs: number,
): Promise<void> {
  const id = `key_${hashApiKey(key).slice(0, 24)}`
  const facts = { id, accountId: account, label: 'configured', createdAtMs: nowMs, namesEndUsers }
  await store.keys.insert(newKeyRecord(key, limits === undefined ? facts : { ...facts, limits }))
  if (await store.keys.update(id, { accountId: account, limits: limits ?? null, namesEndUsers })) return
  // The store has it by another id, so it was not made by a configuration.
  const stored = await store.keys.findByHash(hashApiKey(key))
  if (stored === undefined || stored.accountId === account) return
  throw new TypeError(
    `createGateway: a key of the account ${JSON.stringify(account)} is the key ${JSON.stringify(stored.id)} of the account ${JSON.stringify(stored.accountId)} in the store`,
  )
}

async function readPage({ keys }: GatewayStore, query: KeysQuery): Promise<readonly KeyRecord[]> {
  return keys.page === undefined ? keyPage(await keys.list(query.accountId), query) : keys.page(query)
}

/** Keys of one account, or of all. In pages where the store has them, so that other work runs in between. */
async function allKeys(store: GatewayStore, accountId?: string): Promise<readonly KeyRecord[]> {
  if (store.keys.page === undefined) return store.keys.list(accountId)
  const all: KeyRecord[] = []
  for (;;) {
    const page = await store.keys.page({ accountId, after: all.at(-1), limit: MAX_PAGE_SIZE })
    all.push(...page)
    if (page.length < MAX_PAGE_SIZE) return all
    await endOfTurn()
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
    spendingCap: facts.spendingCap,
    ...(facts.namesEndUsers === true ? { namesEndUsers: true } : {}),
    ...(facts.tags === undefined || facts.tags.length === 0 ? {} : { tags: [...new Set(facts.tags)] }),
    createdAtMs: facts.createdAtMs,
    expiresAtMs: facts.expiresAtMs,
    revokedAtMs: undefined,
  }
}
