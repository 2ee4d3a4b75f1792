import { endOfTurn } from '../core/calls-in-flight.ts'
import type { Clock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { Ids } from '../core/ids.ts'
import { checkGivenMembers, checkMembers, memberNames } from '../core/known-members.ts'
import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import type { PrincipalFaults } from '../pipeline/notices.ts'
import {
  createApiKey,
  findKey,
  hashApiKey,
  type KeyChange,
  type KeyRecord,
  type KeysQuery,
  keyPage,
} from '../stores/api-keys.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import {
  type Authenticate,
  type Credentials,
  KEY_SCOPES_MEMBERS,
  type KeyScopes,
  type Principal,
  SPENDING_CAP_MEMBERS,
  type SpendingCap,
} from '../stores/principal.ts'
import { RATE_LIMITS_MEMBERS, type RateLimits } from '../stores/rate-limiter.ts'
import { tagsOf } from '../usage/usage-record.ts'
import { administer, checkOverlap, checkSpendingCap, noSuchAccount } from './audit.ts'
import { badLimitOf } from './catalog-options.ts'
import { checkPrincipal, type ScopeNames, storedScopes } from './check-principal.ts'
import type { FixedKey } from './options.ts'
import { checkPageSize, MAX_PAGE_SIZE, type PageOptions, pageOf, partsOfPlace, placeOf } from './page-cursor.ts'

/** Properties of a new key. */
export interface NewKey {
  /** Account that pays. It must exist. */
  readonly accountId: string
  /** Display name. Empty by default. */
  readonly label?: string | undefined
  /** Endpoints and models that the key may use. Default: all. */
  readonly scopes?: KeyScopes | undefined
  /** Limits of the key. Each defaults to that of the account's plan, then of the gateway. */
  readonly limits?: RateLimits | undefined
  /** Maximum amount that may be spent with the key per day or month, if any. Requires billing. */
  readonly spendingCap?: SpendingCap | undefined
  /** Whether requests with this key may name their end user, for limits per end user. Default false. */
  readonly namesEndUsers?: boolean | undefined
  /** Tags of every call, for records of usage: at most 8 of 1 to 64 letters, digits or `._:/-`. A caller may add others. */
  readonly tags?: readonly string[] | undefined
  /** Expiry in Unix milliseconds. By default the key does not expire. */
  readonly expiresAtMs?: number | undefined
}

const NEW_KEY_MEMBERS = memberNames<NewKey>()(
  'accountId label scopes limits spendingCap namesEndUsers tags expiresAtMs',
)

/** Members that `update` can change. */
type KeyUpdate = Pick<KeyChange, 'limits' | 'spendingCap' | 'namesEndUsers'>

/** Selects a page of keys. */
export interface KeysPageOptions extends PageOptions {
  /** Account whose keys are listed. */
  readonly accountId?: string | undefined
}

const KEYS_PAGE_OPTIONS = memberNames<KeysPageOptions>()('accountId cursor limit')

/** Page of keys. */
export interface KeysPage {
  /** Keys, oldest first, including expired and revoked ones. */
  readonly keys: readonly KeyRecord[]
  /** Cursor of the next page, or `undefined` if there is none. */
  readonly next: string | undefined
}

/** Administration of API keys, for the host's own code. Every method throws a GatewayError, or a TypeError for an unknown member. */
export interface Keys {
  /**
   * Creates a key. `key` is shown only this once; the store keeps only its SHA-256.
   * @throws GatewayError `invalid_request` if the account does not exist, the scopes name an unknown endpoint, a limit is not a
   *   positive number, the expiry is not in the future, or no store can store the cap.
   */
  create(key: NewKey): Promise<{ readonly key: string; readonly record: KeyRecord }>
  /**
   * Changes limits, cap and trust of a key; `null` removes limits or cap. Takes effect everywhere within 5 seconds, and earlier
   * spending of the key counts against a new cap. Returns false if there is no such key.
   * @throws GatewayError `invalid_request` if a limit is not a positive number, or no store can store the cap.
   */
  update(keyId: string, change: KeyUpdate): Promise<boolean>
  /** Returns all keys of one account, or of all. For many keys use `page`. */
  list(accountId?: string): Promise<readonly KeyRecord[]>
  /**
   * Lists a page of the keys of one account, or of all, oldest first.
   * @throws GatewayError `invalid_request` for an invalid limit or cursor.
   */
  page(options?: KeysPageOptions): Promise<KeysPage>
  /** Returns a key by its id, or `undefined` if there is none. */
  find(keyId: string): Promise<KeyRecord | undefined>
  /** Revokes a key; every process rejects it within 5 seconds. Returns false if there is no such key. */
  revoke(keyId: string): Promise<boolean>
  /**
   * Creates a key with the properties of an old one, which expires after `overlapMs` (default one day), so that callers can switch
   * without a gap.
   * @throws GatewayError `invalid_request` if there is no such key, it was revoked, or `overlapMs` is negative.
   */
  rotate(
    keyId: string,
    options?: { readonly overlapMs?: number | undefined },
  ): Promise<{ readonly key: string; readonly record: KeyRecord }>
}

/** How long an old key stays valid alongside its replacement, in milliseconds. */
const DEFAULT_OVERLAP_MS = 24 * 60 * 60 * 1000

/**
 * Creates the administration of a store's keys.
 * @param ready Resolves once the store can be used.
 * @param names Names that scopes may contain. If omitted, all names are accepted.
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
          // A rotated key has an expiry. All keys are read only then.
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

const KEY_CHANGE_MEMBERS = memberNames<KeyUpdate>()('limits spendingCap namesEndUsers')
const ROTATE_OPTIONS = { overlapMs: true } as const

function checkNewKey(key: NewKey, owner: string): void {
  checkGivenMembers(key, NEW_KEY_MEMBERS, owner)
  checkMembers(key.scopes, KEY_SCOPES_MEMBERS, owner, 'scopes')
  checkParts(key, owner)
}

function checkParts({ limits, spendingCap, namesEndUsers }: KeyUpdate, owner: string): void {
  // The string `'false'` would count as true.
  if ((namesEndUsers ?? undefined) !== undefined && typeof namesEndUsers !== 'boolean')
    throw new TypeError(`${owner}: namesEndUsers must be true or false`)
  checkMembers(limits, RATE_LIMITS_MEMBERS, owner, 'limits')
  checkMembers(spendingCap, SPENDING_CAP_MEMBERS, owner, 'spendingCap')
}

/** @throws GatewayError `invalid_request` naming a limit that is not a positive number. */
function checkLimits(limits: RateLimits | null | undefined): void {
  const bad = badLimitOf(limits)
  if (bad === undefined) return
  throw new GatewayError('invalid_request', { message: `limits.${bad} must be a positive number`, param: 'limits' })
}

/**
 * @throws GatewayError `invalid_request` for an invalid time, with which a key would never expire, or for a past time, such as
 *   seconds given as milliseconds, with which nobody could use the key.
 */
function checkExpiry(expiresAtMs: number | undefined, nowMs: number): void {
  if (expiresAtMs === undefined || (Number.isFinite(expiresAtMs) && expiresAtMs > nowMs)) return
  const message = `expiresAtMs must be Unix milliseconds in the future, not ${expiresAtMs}`
  throw new GatewayError('invalid_request', { message, param: 'expiresAtMs' })
}

/** @throws GatewayError `invalid_request` for tags that records do not accept. */
function checkTags(tags: readonly string[] = []): void {
  if (Array.isArray(tags) && tagsOf(tags, undefined).length === new Set(tags).size) return
  const message = 'tags must be at most 8, each of 1 to 64 letters, digits or ._:/-'
  throw new GatewayError('invalid_request', { message, param: 'tags' })
}

type ConfiguredKey = Pick<FixedKey, 'key' | 'account' | 'namesEndUsers'> & { readonly limits: RateLimits | undefined }

/**
 * Returns the expiry of a key before its rotation. Rotation shortens the expiry of only the old key, so the newest key of its line
 * still has it: a key may be rotated twice, or again while it overlaps with its successor.
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
 * Adds a key of the configuration to a store. If the key was configured for another account before, it moves to this account, with
 * these limits.
 * @throws TypeError if the key was created in the store for another account.
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
  // The store has the key under another id, so a configuration did not create it.
  const stored = await store.keys.findByHash(hashApiKey(key))
  if (stored === undefined || stored.accountId === account) return
  throw new TypeError(
    `createGateway: a key of the account ${JSON.stringify(account)} is the key ${JSON.stringify(stored.id)} of the account ${JSON.stringify(stored.accountId)} in the store`,
  )
}

async function readPage({ keys }: GatewayStore, query: KeysQuery): Promise<readonly KeyRecord[]> {
  return keys.page === undefined ? keyPage(await keys.list(query.accountId), query) : keys.page(query)
}

/** Returns the keys of one account, or of all, in pages if the store supports them, so that other work runs in between. */
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

/** Builds the record of a key, which contains only the key's digest. */
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

type Found = Principal | null | undefined

/**
 * Member of credentials by which `gatewayKeys()` calls the gateway that received the request. A registered symbol, because a host may
 * load the ESM and the CommonJS copy of the package.
 */
const GATEWAY_KEYS = Symbol.for('signalbox.gatewayKeys')
/** Marks authentication functions that check the gateway's keys. */
const ASKS_KEYS = Symbol.for('signalbox.asksGatewayKeys')

interface GatewayCredentials extends Credentials {
  readonly [GATEWAY_KEYS]?: Authenticate
}

/**
 * Tries several authentication functions in order, until one knows the caller: `authenticate: firstOf(sessionCookie, gatewayKeys())`.
 * If one returns undefined or null, the next is tried; an error ends the search. No promise is created if all results are
 * synchronous.
 * @throws TypeError without any function, or if an argument is not a function.
 */
export function firstOf(...ways: readonly Authenticate[]): Authenticate {
  if (ways.length === 0) throw new TypeError('firstOf: give at least one way to sign in')
  for (const [index, way] of ways.entries())
    if (typeof way !== 'function') throw new TypeError(`firstOf: argument ${index + 1} must be a function`)
  const ask = (credentials: Credentials, from: number): MaybePromise<Found> => {
    for (let index = from; index < ways.length; index++) {
      const found = ways[index]!(credentials)
      if (isPending(found)) return found.then((principal) => principal ?? ask(credentials, index + 1))
      if (found !== undefined && found !== null) return found
    }
    return undefined
  }
  const authenticate: Authenticate = (credentials) => ask(credentials, 0)
  return ways.some(asksGatewayKeys) ? Object.assign(authenticate, { [ASKS_KEYS]: true }) : authenticate
}

/**
 * Authenticates by the keys of `gateway.keys` and of the option `keys`, which an `authenticate` of the host otherwise replaces. It
 * uses the gateway of each request, so one value serves several gateways, and a function of the host may call it and change its
 * result.
 * @throws TypeError when called with credentials that no gateway has created.
 */
export function gatewayKeys(): Authenticate {
  const authenticate: Authenticate = (credentials: GatewayCredentials) => {
    const keys = credentials[GATEWAY_KEYS]
    if (keys === undefined)
      throw new TypeError('gatewayKeys: pass the credentials with which the gateway called authenticate')
    return keys(credentials)
  }
  return Object.assign(authenticate, { [ASKS_KEYS]: true })
}

/** Whether an authentication function is known to check the gateway's keys. */
export function asksGatewayKeys(authenticate: Authenticate): boolean {
  return (authenticate as { readonly [ASKS_KEYS]?: true })[ASKS_KEYS] === true
}

/**
 * Wraps the host's authentication and checks its result. Principals of the gateway's own keys need no check.
 * @returns a function that throws GatewayError `invalid_principal`, and the errors of the host's function.
 */
export function signIn(host: Authenticate, keys: Authenticate, faults: PrincipalFaults): Authenticate {
  const ofKeys = new WeakSet<Principal>()
  const note = (found: Found): Found => {
    if (found !== undefined && found !== null) ofKeys.add(found)
    return found
  }
  const ownKeys: Authenticate = (credentials) => {
    const found = keys(credentials)
    return isPending(found) ? found.then(note) : note(found)
  }
  const checked = (found: Found): Found => {
    if (found === undefined || found === null || ofKeys.has(found)) return found
    try {
      checkPrincipal(found, 'authenticate')
    } catch (error) {
      throw faults.error((error as Error).message)
    }
    return found
  }
  return ({ apiKey, header, request }) => {
    const credentials: GatewayCredentials = { apiKey, header, request, [GATEWAY_KEYS]: ownKeys }
    const found = host(credentials)
    return isPending(found) ? found.then(checked) : checked(found)
  }
}
