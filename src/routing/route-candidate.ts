import type { CatalogModel } from '../catalog/model.ts'
import type { Vendor } from '../vendors/vendor.ts'
import type { AdaptiveLimit } from './adaptive-limit.ts'
import {
  afterBegin,
  afterBusy,
  afterFailure,
  afterIgnored,
  afterModelRefusal,
  afterRefusal,
  afterSuccess,
  atTime,
  type Circuit,
  type CircuitState,
  CLOSED,
  circuitOf,
} from './circuit-breaker.ts'
import { LatencyAverage } from './latency-average.ts'
import type { VendorKey } from './vendor-key.ts'

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
  readonly load: AdaptiveLimit
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
  readonly load: AdaptiveLimit
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
    this.load = parts.load
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
    this.load.enter()
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
    this.load.grow()
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
        this.load.shrink(nowMs)
        this.#circuit = afterFailure(this.#circuit, nowMs, retryAfterMs)
        key.circuit = afterFailure(key.circuit, nowMs, undefined)
        return
      case 'busy':
        this.load.shrink(nowMs)
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
    this.load.release()
    this.key.inFlight -= 1
  }

  #keepTime(nowMs: number): void {
    this.#circuit = atTime(this.#circuit, nowMs)
    this.key.circuit = atTime(this.key.circuit, nowMs)
  }
}
