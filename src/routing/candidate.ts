import { createHash } from 'node:crypto'
import { type Catalog, createCatalog } from '../catalog/catalog.ts'
import type { CatalogModel, ModelRoute } from '../catalog/model.ts'
import { type Clock, systemClock } from '../core/clock.ts'
import type { Vendor } from '../vendors/vendor.ts'
import { CredentialCache } from './credential-cache.ts'

/**
 * Classification of a failed call. `failing`: the vendor is at fault. `busy`: it has too many requests for this key. `refused`:
 * it rejects the operator's key or account. `model-refused`: it rejects the operator's model id. `caller-error`: it works, and
 * rejects the caller's input. `ignored`: the gateway aborted the call.
 */
export type CallOutcome = 'failing' | 'busy' | 'refused' | 'model-refused' | 'caller-error' | 'ignored'

/** Half-open circuits that a call probes: that of its key, that of its model at the key, both, or none. */
export type Probed = 'key' | 'model' | 'both' | 'none'

/** Constructor arguments of a candidate. */
export interface CandidateParts {
  readonly model: CatalogModel
  readonly vendor: Vendor
  readonly key: VendorKey
  readonly priority: number
  readonly weight: number
  readonly when: Readonly<Record<string, string>> | undefined
  readonly seed: number
}

/** A model at a vendor, called with one key, with its circuit and latencies. Lives as long as the gateway. */
export class RouteCandidate {
  /** Row of the catalog, with this route's vendor and upstream id. */
  readonly model: CatalogModel
  readonly vendor: Vendor
  readonly apiKey: string
  /** Credential id of its key. */
  readonly credentialId: string
  readonly key: VendorKey
  readonly priority: number
  readonly weight: number
  readonly when: Readonly<Record<string, string>> | undefined
  readonly seed: number
  /** State of {@link pickSmoothly}. */
  credit = 0
  /** Sequence number of its last call. Identifies the least recently used candidate. */
  lastTurn = 0
  readonly #wholeLatency = new LatencyAverage()
  readonly #streamLatency = new LatencyAverage()
  #circuit: CircuitState = CLOSED

  constructor(parts: CandidateParts) {
    this.model = parts.model
    this.vendor = parts.vendor
    this.apiKey = parts.key.apiKey
    this.credentialId = parts.key.credentialId
    this.key = parts.key
    this.priority = parts.priority
    this.weight = parts.weight
    this.when = parts.when
    this.seed = parts.seed
  }

  /** Circuit of this model at this key, as opposed to the key as a whole. */
  get circuit(): CircuitState {
    return this.#circuit
  }

  /** Returns the more open one of the circuits of the key and of the model at this key. */
  circuitAt(nowMs: number): Circuit {
    this.#keepTime(nowMs)
    const ofKey = circuitOf(this.key.circuit, nowMs)
    if (ofKey === 'open') return ofKey
    const ofModel = circuitOf(this.#circuit, nowMs)
    return ofModel === 'closed' ? ofKey : ofModel
  }

  /** Returns the expected milliseconds until the answer, or for streams until their first content; 0 if unknown. */
  expectedMs(isStream: boolean, nowMs: number): number {
    return (isStream ? this.#streamLatency : this.#wholeLatency).expectedMs(nowMs)
  }

  /** Starts a call, which may be a probe. It ends with {@link release}, after its outcome was reported. */
  begin(nowMs: number, turn: number): Probed {
    this.lastTurn = turn
    this.key.inFlight += 1
    this.#keepTime(nowMs)
    const isOfModel = circuitOf(this.#circuit, nowMs) === 'half-open'
    const isOfKey = circuitOf(this.key.circuit, nowMs) === 'half-open'
    this.#circuit = afterBegin(this.#circuit, nowMs)
    this.key.circuit = afterBegin(this.key.circuit, nowMs)
    if (isOfKey) return isOfModel ? 'both' : 'key'
    return isOfModel ? 'model' : 'none'
  }

  /** Notes a JSON response and the time since the start of the call. */
  answered(durationMs: number, nowMs: number): void {
    this.#wholeLatency.add(durationMs, nowMs)
    this.key.latency.add(durationMs, nowMs)
  }

  /** Notes the first content of a stream and the time since the start of the call. */
  opened(durationMs: number, nowMs: number): void {
    this.#streamLatency.add(durationMs, nowMs)
    this.key.latency.add(durationMs, nowMs)
  }

  /** Notes that the call succeeded. */
  succeeded(nowMs: number): void {
    this.#circuit = afterSuccess(this.#circuit, nowMs)
    this.key.circuit = afterSuccess(this.key.circuit, nowMs)
  }

  /**
   * Notes that the call failed. Vendors count requests per model, and overload usually concerns one model too, so a requested
   * wait applies to this model at this key. A rejected key is unusable for every model. A call without information about a
   * circuit allows another probe only if it was the probe.
   */
  failed(outcome: CallOutcome, retryAfterMs: number | undefined, nowMs: number, probed: Probed): void {
    const { key } = this
    switch (outcome) {
      case 'failing':
        this.#circuit = afterFailure(this.#circuit, nowMs, retryAfterMs)
        key.circuit = afterFailure(key.circuit, nowMs, undefined)
        return
      case 'busy':
        this.#circuit = afterBusy(this.#circuit, nowMs, retryAfterMs)
        break
      case 'refused':
        key.circuit = afterRefusal(key.circuit, nowMs, retryAfterMs)
        break
      case 'model-refused':
        this.#circuit = afterModelRefusal(this.#circuit, nowMs, retryAfterMs)
        break
      case 'caller-error':
        this.#circuit = afterSuccess(this.#circuit, nowMs)
        key.circuit = afterSuccess(key.circuit, nowMs)
        return
      case 'ignored':
        break
    }
    if (probed === 'model' || probed === 'both') this.#circuit = afterIgnored(this.#circuit)
    if (probed === 'key' || probed === 'both') key.circuit = afterIgnored(key.circuit)
  }

  /** Closes the circuit of this model at this key. */
  restore(): void {
    this.#circuit = CLOSED
  }

  /** Ends the call, including its stream. */
  release(): void {
    this.key.inFlight -= 1
  }

  #keepTime(nowMs: number): void {
    this.#circuit = atTime(this.#circuit, nowMs)
    this.key.circuit = atTime(this.key.circuit, nowMs)
  }
}

/** Key of the operator at a vendor, with its circuit and its calls in progress. Lives as long as the gateway. */
export class VendorKey {
  readonly vendorId: string
  /** The key; empty if `credentials` provides it. */
  readonly apiKey: string
  /** Cache of expiring credentials, or `undefined` for a fixed key that translators write. */
  readonly credentials: CredentialCache | undefined
  /** Credential id: name of the key in events and reports, which does not reveal it. */
  readonly credentialId: string
  /** Share of the vendor's calls. */
  readonly weight: number
  /** Average for reports over JSON responses and first contents of streams. */
  readonly latency = new LatencyAverage()
  circuit: CircuitState = CLOSED
  /** Calls in progress. */
  inFlight = 0

  /** @param provided Cache of credentials that replaces the key, and the source of its credential id. */
  constructor(vendorId: string, apiKey: string, weight: number, provided?: ProvidedCredentials) {
    this.vendorId = vendorId
    this.apiKey = apiKey
    this.credentials = provided?.cache
    this.credentialId = credentialIdOf(vendorId, provided?.slot ?? apiKey)
    this.weight = weight
  }
}

/** Credentials of a slot whose tokens expire. */
export interface ProvidedCredentials {
  readonly slot: string
  readonly cache: CredentialCache
}

/** Returns the credential id of one of the operator's keys: the vendor's id and 16 hexadecimal digits. Does not reveal the key. */
export function credentialIdOf(vendorId: string, keyOrSlot: string): string {
  return `${vendorId}:${createHash('sha256').update(keyOrSlot).digest('hex').slice(0, 16)}`
}

/** Share of the newest measurement in the average. */
const NEWEST = 0.2
/** Samples decay with this half-life, so that a slow candidate is tried again. */
const HALF_LIFE_MS = 30_000

/** Moving average of the time to an answer. */
export class LatencyAverage {
  // Negative before the first sample. Always a number, so that the engine does not allocate one per sample.
  #averageMs = -1
  #measuredAtMs = 0

  /** Average in milliseconds; undefined before the first measurement. */
  get averageMs(): number | undefined {
    return this.#averageMs < 0 ? undefined : this.#averageMs
  }

  add(durationMs: number, nowMs: number): void {
    this.#averageMs = this.#averageMs < 0 ? durationMs : this.#averageMs + NEWEST * (durationMs - this.#averageMs)
    this.#measuredAtMs = nowMs
  }

  /** Expected latency now, in milliseconds: the average, decaying towards 0 with age; 0 without samples. */
  expectedMs(nowMs: number): number {
    if (this.#averageMs < 0) return 0
    // If the clock was set back, the age restarts now.
    if (nowMs < this.#measuredAtMs) this.#measuredAtMs = nowMs
    return this.#averageMs * 0.5 ** ((nowMs - this.#measuredAtMs) / HALF_LIFE_MS)
  }
}

/**
 * Reason of an open circuit: calls keep failing, the vendor is busy, it rejects the operator's key or account, or the operator
 * has opened it manually.
 */
export type OpenReason = 'failing' | 'busy' | 'refused' | 'operator'

/** Circuit breaker of a vendor key, or of one model of that key. Immutable. */
export interface CircuitState {
  /** Failures, and refusals of the model, since the last success. */
  readonly failures: number
  /** Number of consecutive openings for the same reason, except when the vendor set the duration. */
  readonly openings: number
  /** Unix milliseconds at which its open time was last set. A current time before it shows that the clock was set back. */
  readonly openedAtMs: number
  /** End of the open time in Unix milliseconds; 0 if the circuit is closed. */
  readonly openUntilMs: number
  readonly reason: OpenReason | undefined
  /** Whether the single probe of the half-open circuit is in progress. */
  readonly isProbing: boolean
}

/** `open`: no calls. `half-open`: the open time has expired, and one call may probe the circuit. */
export type Circuit = 'closed' | 'half-open' | 'open'

/** Number of consecutive failures that open a circuit. */
export const FAILURES_TO_OPEN = 5
/** Duration of the first opening. Each additional opening adds the same duration. */
const OPEN_STEP_MS = 30_000
const MAX_OPEN_MS = 300_000
/** Open time if a vendor reports "too many requests" without a time. Doubled each time. */
const BUSY_STEP_MS = 1_000
const MAX_BUSY_MS = 30_000
/** Maximum open time that a vendor may request. The circuit is probed after that, so callers need not wait longer either. */
export const MAX_RETRY_AFTER_MS = 60 * 60_000

/** The initial state: closed. */
export const CLOSED: CircuitState = {
  failures: 0,
  openings: 0,
  openedAtMs: 0,
  openUntilMs: 0,
  reason: undefined,
  isProbing: false,
}

/** Returns the state of the circuit. During a probe, no other call is allowed. */
export function circuitOf(state: CircuitState, nowMs: number): Circuit {
  if (state.openUntilMs === 0) return 'closed'
  return nowMs < state.openUntilMs || state.isProbing ? 'open' : 'half-open'
}

/** Adjusts a circuit to a clock that was set back before its opening: the open time starts again. */
export function atTime(state: CircuitState, nowMs: number): CircuitState {
  if (state.openUntilMs === 0 || nowMs >= state.openedAtMs) return state
  return { ...state, openedAtMs: nowMs, openUntilMs: nowMs + (state.openUntilMs - state.openedAtMs) }
}

/** Starts a call; on a half-open circuit it is the probe. */
export function afterBegin(state: CircuitState, nowMs: number): CircuitState {
  return circuitOf(state, nowMs) === 'half-open' ? { ...state, isProbing: true } : state
}

/** Notes a success. An opening by the vendor's own response (busy, refused) stays even if an older call succeeds. */
export function afterSuccess(state: CircuitState, nowMs: number): CircuitState {
  if (state === CLOSED) return state
  const isHeldBack = isOpenUnprobed(state, nowMs) && state.reason !== 'failing'
  return isHeldBack ? state : CLOSED
}

/** Notes a failure that the vendor caused. `retryAfterMs` is the wait that the vendor requests, if any. */
export function afterFailure(state: CircuitState, nowMs: number, retryAfterMs: number | undefined): CircuitState {
  const failed = { ...state, failures: state.failures + 1 }
  const mayGoOn = state.openUntilMs === 0 && failed.failures < FAILURES_TO_OPEN && retryAfterMs === undefined
  return mayGoOn ? failed : opened(failed, 'failing', nowMs, retryAfterMs)
}

/** Notes that the vendor reported "too many requests". */
export function afterBusy(state: CircuitState, nowMs: number, retryAfterMs: number | undefined): CircuitState {
  return opened(state, 'busy', nowMs, retryAfterMs)
}

/** Notes that the vendor rejected the operator's key, account or quota. */
export function afterRefusal(state: CircuitState, nowMs: number, retryAfterMs: number | undefined): CircuitState {
  return opened(state, 'refused', nowMs, retryAfterMs)
}

/**
 * Notes that the vendor rejected the operator's model id. Vendors use the same error for names in the caller's input, and repeat
 * callers' text. So one request is not enough to open the circuit of a model that answers others; it takes as many consecutive
 * ones as for failures.
 */
export function afterModelRefusal(state: CircuitState, nowMs: number, retryAfterMs: number | undefined): CircuitState {
  const refused = { ...state, failures: state.failures + 1 }
  const mayGoOn = state.openUntilMs === 0 && refused.failures < FAILURES_TO_OPEN
  return mayGoOn ? refused : opened(refused, 'refused', nowMs, retryAfterMs)
}

/** Notes a call without information about the vendor, for example because its caller disconnected. */
export function afterIgnored(state: CircuitState): CircuitState {
  return state.isProbing ? { ...state, isProbing: false } : state
}

/** Opens the circuit for the operator for this duration, whatever its state. */
export function ejected(state: CircuitState, nowMs: number, forMs: number): CircuitState {
  return { ...state, openedAtMs: nowMs, openUntilMs: nowMs + forMs, reason: 'operator', isProbing: false }
}

/** A probe proves that the open time has expired once, even if the clock was set back since. */
function isOpenUnprobed(state: CircuitState, nowMs: number): boolean {
  return nowMs < state.openUntilMs && !state.isProbing
}

function opened(
  state: CircuitState,
  reason: OpenReason,
  nowMs: number,
  retryAfterMs: number | undefined,
): CircuitState {
  const askedMs = Math.min(retryAfterMs ?? 0, MAX_RETRY_AFTER_MS)
  // Calls that began before the opening do not extend it when they fail, unless the vendor requests a longer wait.
  if (isOpenUnprobed(state, nowMs)) {
    const untilMs = nowMs + askedMs
    return untilMs > state.openUntilMs ? { ...state, reason, openedAtMs: nowMs, openUntilMs: untilMs } : state
  }
  // A wait requested by the vendor is used, until it has failed too often.
  const mayBeBrief = reason === 'busy' || (reason === 'failing' && state.failures < FAILURES_TO_OPEN)
  const isBelieved = retryAfterMs !== undefined && mayBeBrief
  const turns = state.reason === reason ? state.openings : 0
  const openings = isBelieved ? turns : turns + 1
  const lengthMs = isBelieved ? askedMs : Math.max(askedMs, ownLengthMs(reason, openings))
  const openUntilMs = nowMs + Math.max(1, lengthMs)
  return { failures: state.failures, openings, openedAtMs: nowMs, openUntilMs, reason, isProbing: false }
}

function ownLengthMs(reason: OpenReason, openings: number): number {
  return reason === 'busy'
    ? Math.min(MAX_BUSY_MS, BUSY_STEP_MS * 2 ** (openings - 1))
    : Math.min(MAX_OPEN_MS, OPEN_STEP_MS * openings)
}

/** Configured vendor with its keys. */
export interface RoutedVendor {
  readonly vendor: Vendor
  readonly keys: readonly VendorKey[]
}

/** Returns the number of calls of a vendor in progress, over all its keys. */
export function callsInFlight({ keys }: RoutedVendor): number {
  return keys.reduce((total, { inFlight }) => total + inFlight, 0)
}

/** Failed refresh of a credential. */
export interface CredentialFailure {
  readonly vendor: string
  readonly credentialId: string
  /** Error message of the provider. */
  readonly message: string
  /** Unix milliseconds of the next attempt to refresh. */
  readonly retryAtMs: number
}

/** Settings of credentials that expire. */
export interface CredentialOptions {
  readonly clock?: Clock
  readonly onFailure?: (failure: CredentialFailure) => void
}

/** Routes of a model. */
interface ModelCandidates {
  /** Routes by priority; equal ones in their given order. */
  readonly all: readonly RouteCandidate[]
  /** Whether some routes serve only certain calls. */
  readonly isConditional: boolean
}

/** Maximum number of models outside the catalog whose routes are cached. */
export const MAX_OPEN_MODELS = 1_000

/** All vendors and keys of the gateway, and the routes of each model. One per gateway. */
export class RouteTable {
  readonly #vendors = new Map<string, RoutedVendor>()
  readonly #byModel = new Map<CatalogModel, ModelCandidates>()
  /** Models outside the catalog, which callers can name in any number, oldest first. */
  readonly #open = new Set<CatalogModel>()
  #turns = 0

  constructor(vendors: Iterable<Vendor>, credentials: CredentialOptions = {}) {
    for (const vendor of vendors) {
      const keys = vendor.apiKeys.map((apiKey, index) => {
        const provided = providedCredentials(vendor, index, credentials)
        return new VendorKey(vendor.id, apiKey, vendor.keyWeights?.[index] ?? 1, provided)
      })
      this.#vendors.set(vendor.id, { vendor, keys })
    }
  }

  /** Vendors in the given order. */
  get vendors(): Iterable<RoutedVendor> {
    return this.#vendors.values()
  }

  /** Returns a vendor by its id; undefined if it is not configured. */
  vendor(id: string): RoutedVendor | undefined {
    return this.#vendors.get(id)
  }

  /** Returns every candidate that a request has used so far. */
  *candidates(): Iterable<RouteCandidate> {
    for (const { all } of this.#byModel.values()) yield* all
  }

  /** Returns the sequence number of the next call. */
  nextTurn(): number {
    this.#turns += 1
    return this.#turns
  }

  /** Returns the candidates for a call of this kind with these billing fields, smallest priority first. */
  candidatesOf(
    model: CatalogModel,
    kind: string,
    billingFields: Readonly<Record<string, string>>,
  ): readonly RouteCandidate[] {
    const known = this.#byModel.get(model) ?? this.#add(model)
    return known.isConditional ? known.all.filter(({ when }) => fits(when, kind, billingFields)) : known.all
  }

  #add(model: CatalogModel): ModelCandidates {
    const routes: readonly ModelRoute[] = model.routes ?? [{ vendor: model.vendor }]
    const all = routes.flatMap((route) => this.#candidatesOn(route, model))
    const candidates = {
      all: all.sort((one, other) => one.priority - other.priority),
      isConditional: all.some(({ when }) => when !== undefined),
    }
    this.#byModel.set(model, candidates)
    if (model.isOpen === true) this.#keepOpen(model)
    return candidates
  }

  #keepOpen(model: CatalogModel): void {
    this.#open.add(model)
    if (this.#open.size <= MAX_OPEN_MODELS) return
    const [oldest] = this.#open
    this.#open.delete(oldest!)
    this.#byModel.delete(oldest!)
  }

  #candidatesOn(route: ModelRoute, model: CatalogModel): RouteCandidate[] {
    const routed = this.#vendors.get(route.vendor)
    if (routed === undefined) return []
    const { vendor, keys } = routed
    const upstream = route.upstream ?? model.upstream
    const isOwn = vendor.id === model.vendor && upstream === model.upstream
    const row = isOwn ? model : { ...model, vendor: vendor.id, upstream, efforts: undefined }
    const sum = keys.reduce((total, { weight }) => total + weight, 0)
    return keys.map(
      (key) =>
        new RouteCandidate({
          model: row,
          vendor,
          key,
          priority: route.priority ?? 0,
          weight: ((route.weight ?? 1) * key.weight) / sum,
          when: route.when,
          seed: hashOfText(`${key.credentialId} ${upstream}`),
        }),
    )
  }
}

function providedCredentials(
  { id, credentialProviders }: Vendor,
  index: number,
  { clock = systemClock, onFailure }: CredentialOptions,
): ProvidedCredentials | undefined {
  const provider = credentialProviders?.[index]
  if (provider === undefined) return undefined
  const slot = `slot ${provider.slot ?? index}`
  return {
    slot,
    cache: new CredentialCache(provider, {
      clock,
      onFailure: (failure) => onFailure?.({ ...failure, vendor: id, credentialId: credentialIdOf(id, slot) }),
    }),
  }
}

function fits(
  when: Readonly<Record<string, string>> | undefined,
  kind: string,
  billingFields: Readonly<Record<string, string>>,
): boolean {
  for (const name in when) {
    const value = name === 'kind' ? kind : Object.hasOwn(billingFields, name) ? billingFields[name] : undefined
    if (value !== when[name]) return false
  }
  return true
}

/**
 * Returns the catalog under the routing policy and the configured vendors. A model whose routes lead to vendors other than its own is
 * served by the first of them with a key. Under the policy `never` no model has fallbacks, so no money is reserved for them.
 */
export function catalogForRoutes(
  catalog: Catalog,
  vendors: ReadonlyMap<string, Vendor>,
  fallback: FallbackPolicy,
): Catalog {
  const { rows } = catalog
  const fitted = rows.map((model) => {
    const served = servedBy(model, vendors)
    return fallback === 'never' && served.fallbacks.length > 0 ? { ...served, fallbacks: [] } : served
  })
  return fitted.every((model, index) => model === rows[index]) ? catalog : createCatalog(fitted, catalog.source)
}

function servedBy(model: CatalogModel, vendors: ReadonlyMap<string, Vendor>): CatalogModel {
  const { routes } = model
  if (routes === undefined) return model
  const isConfigured = (vendorId: string): boolean => (vendors.get(vendorId)?.apiKeys.length ?? 0) > 0
  const usable = routes.filter(({ vendor }) => isConfigured(vendor))
  const first = usable[0] ?? routes[0]
  const isRight = first === undefined || usable.some(({ vendor }) => vendor === model.vendor)
  return isRight ? model : { ...model, vendor: first.vendor }
}

/** Entry that receives a share of the keys by weight. */
export interface RendezvousEntry {
  /** Stable identifier. */
  readonly seed: number
  /** Positive weight. */
  readonly weight: number
}

/** Returns a 32-bit hash of a text (FNV-1a). Not for secrets. */
function hashOfText(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  return hash >>> 0
}

/**
 * Picks the same entry for the same key as long as it is among the entries. If one is removed, only its keys move, and they
 * spread over the others by weight (highest random weight hashing).
 */
export function pickByKey<Entry extends RendezvousEntry>(entries: readonly [Entry, ...Entry[]], key: string): Entry {
  const hash = hashOfText(key)
  let picked: Entry = entries[0]
  let highest = Number.NEGATIVE_INFINITY
  for (const entry of entries) {
    const score = -entry.weight / Math.log(fractionOf(hash ^ entry.seed))
    if (score > highest) {
      highest = score
      picked = entry
    }
  }
  return picked
}

/** Maps a hash to the open interval from 0 to 1 (the finalizer of MurmurHash3). */
function fractionOf(hash: number): number {
  let mixed = hash
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  mixed ^= mixed >>> 16
  return ((mixed >>> 0) + 0.5) / 2 ** 32
}

/**
 * Strategy that chooses among healthy candidates of equal priority. `weighted`: by weight. `latency`: the faster one of two that
 * are drawn by weight, considering its calls in progress. `cost`: the cheapest for the estimated request, by the price list's
 * rows for `vendor/upstream`.
 */
export type RoutingStrategy = 'weighted' | 'latency' | 'cost'

/** All strategies. */
export const ROUTING_STRATEGIES = ['weighted', 'latency', 'cost'] as const satisfies readonly RoutingStrategy[]

/**
 * Condition for answers of fallbacks. `on-failure`: whenever the model itself cannot answer. `never`: not at all. `statuses`:
 * only if the caller would otherwise get one of these HTTP statuses; a model whose circuits are all open counts as 503.
 */
export type FallbackPolicy = 'on-failure' | 'never' | { readonly statuses: readonly number[] }

/** Settings for choosing a vendor. */
export interface RoutingOptions {
  /** Strategy. Default `weighted`. */
  readonly strategy?: RoutingStrategy
  /** Fallback policy. Default `on-failure`. */
  readonly fallback?: FallbackPolicy
  /**
   * Whether to retry a complete answer that has not begun within `timeouts.firstByteMs` at another candidate. The first call may
   * continue at its vendor and be billed; no account is charged for it. Default false: a complete answer may use the whole time,
   * and no other candidate is called after a timeout.
   */
  readonly retryAfterTimeout?: boolean
}

/** Routing settings of a host for requests in its own process. Not available to callers over HTTP. */
export interface RouteOverride {
  /** Vendor to which the candidates are limited. */
  readonly vendor?: string
  /** Strategy. Defaults to the gateway's. */
  readonly strategy?: RoutingStrategy
  /** Fallback policy. Defaults to the gateway's, and cannot override the gateway's `never`. */
  readonly fallback?: FallbackPolicy
}
