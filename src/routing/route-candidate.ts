import type { CatalogModel } from '../catalog/model.ts'
import type { Vendor } from '../vendors/vendor.ts'
import type { AdaptiveLimit } from './adaptive-limit.ts'
import {
  afterBegin,
  afterBusy,
  afterFailure,
  afterModelRefusal,
  afterNothing,
  afterRefusal,
  afterSuccess,
  HEALTHY,
  type Health,
  type Standing,
  standingOf,
} from './health.ts'
import { LatencyAverage } from './latency-average.ts'
import type { VendorKey } from './vendor-key.ts'

/**
 * What a failed call says. `failing`: the vendor is at fault. `busy`: it has too much to do for this key. `refused`: it
 * refuses the operator's key or account. `model-refused`: it refuses the operator's model id. `alive`: it refuses what the
 * caller sent, and is well. `nothing`: the call was given up on this side.
 */
export type Verdict = 'failing' | 'busy' | 'refused' | 'model-refused' | 'alive' | 'nothing'

/** What makes a candidate. */
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

/** One model at one vendor, called with one key, and how it does. Lives as long as the gateway. */
export class RouteCandidate {
  /** The catalog's row, with this route's vendor and upstream id. */
  readonly model: CatalogModel
  readonly vendor: Vendor
  readonly apiKey: string
  /** That of its key. */
  readonly account: string
  readonly key: VendorKey
  readonly load: AdaptiveLimit
  readonly priority: number
  readonly weight: number
  readonly when: Readonly<Record<string, string>> | undefined
  readonly seed: number
  /** For {@link pickSmoothly}. */
  credit = 0
  /** Which call of the gateway it took last; tells who was asked longest ago. */
  lastTurn = 0
  readonly #wholeLatency = new LatencyAverage()
  readonly #streamLatency = new LatencyAverage()
  #health: Health = HEALTHY

  constructor(parts: CandidateParts) {
    this.model = parts.model
    this.vendor = parts.vendor
    this.apiKey = parts.key.apiKey
    this.account = parts.key.account
    this.key = parts.key
    this.load = parts.load
    this.priority = parts.priority
    this.weight = parts.weight
    this.when = parts.when
    this.seed = parts.seed
  }

  /** Of this model behind this key, as opposed to the key as a whole. */
  get health(): Health {
    return this.#health
  }

  /** The worse of what is known of the key and of the model behind it. */
  standing(nowMs: number): Standing {
    const ofKey = standingOf(this.key.health, nowMs)
    if (ofKey === 'ejected') return ofKey
    const ofModel = standingOf(this.#health, nowMs)
    return ofModel === 'ready' ? ofKey : ofModel
  }

  /** What to reckon with, in milliseconds: until the answer, for streams until their first content. 0: unknown. */
  expectedMs(isStream: boolean, nowMs: number): number {
    return (isStream ? this.#streamLatency : this.#wholeLatency).expectedMs(nowMs)
  }

  /** A call begins. Each ends by {@link release}, after what was learned of it. */
  begin(nowMs: number, turn: number): void {
    this.lastTurn = turn
    this.load.enter()
    this.key.inFlight += 1
    this.#health = afterBegin(this.#health, nowMs)
    this.key.health = afterBegin(this.key.health, nowMs)
  }

  /** A whole answer is here, so long after the call began. */
  answered(durationMs: number, nowMs: number): void {
    this.#wholeLatency.add(durationMs, nowMs)
    this.key.latency.add(durationMs, nowMs)
  }

  /** The first content of a stream is here, so long after the call began. */
  opened(durationMs: number, nowMs: number): void {
    this.#streamLatency.add(durationMs, nowMs)
    this.key.latency.add(durationMs, nowMs)
  }

  /** The call came to a good end. */
  succeeded(nowMs: number): void {
    this.load.grow()
    this.#health = afterSuccess(this.#health, nowMs)
    this.key.health = afterSuccess(this.key.health, nowMs)
  }

  /**
   * The call failed. Vendors count requests for each model, and overload is mostly one model's too, so a wait that the vendor
   * asks for holds for this model behind this key; a key that is refused is of no use for any model.
   */
  failed(verdict: Verdict, retryAfterMs: number | undefined, nowMs: number): void {
    const { key } = this
    switch (verdict) {
      case 'failing':
        this.load.shrink(nowMs)
        this.#health = afterFailure(this.#health, nowMs, retryAfterMs)
        key.health = afterFailure(key.health, nowMs, undefined)
        return
      case 'busy':
        this.load.shrink(nowMs)
        this.#health = afterBusy(this.#health, nowMs, retryAfterMs)
        break
      case 'refused':
        key.health = afterRefusal(key.health, nowMs, retryAfterMs)
        break
      case 'model-refused':
        this.#health = afterModelRefusal(this.#health, nowMs, retryAfterMs)
        break
      case 'alive':
        this.#health = afterSuccess(this.#health, nowMs)
        key.health = afterSuccess(key.health, nowMs)
        return
      case 'nothing':
        break
    }
    this.#health = afterNothing(this.#health)
    key.health = afterNothing(key.health)
  }

  /** The call is over, its stream included. */
  release(): void {
    this.load.leave()
    this.key.inFlight -= 1
  }
}
