import type { GatewayEvent } from '../core/events.ts'
import { checkMembers, type MemberNames } from '../core/known-members.ts'
import type {
  AttemptEnd,
  AttemptFacts,
  GatewayState,
  Observer,
  RequestEnd,
  RequestFacts,
  StoreFacts,
} from '../core/observer.ts'
import type { Usage } from '../core/usage.ts'
import {
  type HistogramSeries,
  MAX_SERIES,
  type MetricFamily,
  type MoneySeries,
  type NumberSeries,
  OTHER,
} from './metric-family.ts'
import { MetricSet } from './metric-set.ts'
import { EndpointSeries, type RouteSeries, SeriesHandle } from './route-series.ts'
import { VERSION } from './version.ts'

/** Maximum number of accounts with their own series. */
const MAX_ACCOUNTS = 500

/** Options of {@link prometheus}. */
export interface PrometheusOptions {
  /**
   * Whether `signalbox_requests_total` and `signalbox_cost_dollars_total` have the label `account`. The first 500 accounts have their
   * own value; the others share `other`. Default false.
   */
  readonly accountLabel?: boolean
}

const PROMETHEUS_OPTIONS = {
  accountLabel: true,
} satisfies MemberNames<PrometheusOptions>

const GIVEN_UP_REASONS = {
  expired: true,
  'too-many': true,
  closing: true,
  'hold-ended': true,
} satisfies Record<Extract<GatewayEvent, { type: 'settlement-given-up' }>['reason'], true>

const WEBHOOK_STATES = {
  pending: true,
  delivered: true,
  failed: true,
  disabled: true,
} satisfies Record<Extract<GatewayEvent, { type: 'webhook-attempted' }>['state'], true>

/**
 * Counts the activity of observed gateways. Pass it to `createGateway({ observe: [metrics] })`, and to `metricsHandler`. It stores
 * nothing about single requests, callers or keys.
 */
export class GatewayMetrics implements Observer {
  readonly set: MetricSet
  /** Time at which the counters began at 0, in Unix milliseconds. */
  readonly startedAtMs = Date.now()
  /** OpenTelemetry's name of each vendor that was called. */
  readonly providers = new Map<string, string>()
  /** Kind of models of each endpoint whose vendors were called. */
  readonly kinds = new Map<string, string>()
  readonly #hasAccounts: boolean
  readonly #accounts = new Set<string>()
  readonly #endpoints = new Map<string, EndpointSeries>()
  readonly #stores: { readonly [Operation in StoreFacts['operation']]: StoreSeries }
  readonly #states = new Set<() => GatewayState>()

  constructor(options: PrometheusOptions = {}) {
    checkMembers(options, PROMETHEUS_OPTIONS, 'prometheus')
    const { accountLabel = false } = options
    this.#hasAccounts = accountLabel
    this.set = new MetricSet(accountLabel)
    this.set.buildInfo.at(VERSION).value = 1
    // Prometheus misses the first step of a counter that begins above 0, and alerts wait for that step.
    for (const reason of Object.keys(GIVEN_UP_REASONS)) this.set.settlementsGivenUp.at(reason)
    for (const state of Object.keys(WEBHOOK_STATES)) this.set.webhooks.at(state)
    this.#stores = { reserve: storeSeries(this.set, 'reserve'), settle: storeSeries(this.set, 'settle') }
  }

  attached(state: () => GatewayState): void {
    this.#states.add(state)
  }

  detached(state: () => GatewayState): void {
    this.#states.delete(state)
  }

  requestStarted({ endpoint }: RequestFacts): EndpointSeries {
    const series = this.#endpoint(endpoint)
    series.inFlight.value += 1
    return series
  }

  requestEnded(request: unknown, end: RequestEnd): void {
    const series = request as EndpointSeries
    series.inFlight.value -= 1
    // An event counts rejections, because requests of other routes have it too.
    if (end.outcome === 'refused') return
    const { model = '', vendor = '', durationMs, firstByteMs, usage } = end
    const route = series.route(model, vendor)
    const account = this.#accountOf(end.accountId)
    this.#requests(route, end, account).value += 1
    route.duration.series.record(durationMs / 1000)
    series.overhead.record(end.overheadMs / 1000)
    if (firstByteMs !== undefined) {
      route.firstByte.series.record(firstByteMs / 1000)
      const further = (usage?.outputTokens ?? 0) - 1
      if (end.isStream && further > 0)
        route.perToken.series.record(Math.max(0, durationMs - firstByteMs) / 1000 / further)
    }
    if (usage !== undefined) this.#use(route, usage)
    if (end.costNanoDollars !== 0n) this.#cost(route, end.endpoint, account).nanoDollars += end.costNanoDollars
  }

  attemptStarted(request: unknown, { endpoint, model, vendor, provider, kind }: AttemptFacts): RouteSeries {
    const series = (request as EndpointSeries | undefined) ?? this.#endpoint(endpoint)
    const route = series.route(model, vendor)
    if (!route.isTold) {
      route.isTold = true
      this.providers.set(vendor, provider)
      this.kinds.set(series.endpoint, kind)
      // Begins at 0, like the counters in the constructor.
      this.set.unbilled.within(MAX_SERIES, vendor, model)
      this.set.silentCalls.within(MAX_SERIES, vendor, model)
    }
    return route
  }

  attemptEnded(attempt: unknown, { outcome }: AttemptEnd): void {
    const { answered, vendor, model } = attempt as RouteSeries
    const series = outcome === 'ok' ? answered.series : this.set.attempts.at(vendor, model, outcome)
    series.value += 1
  }

  store(_request: unknown, { operation, isOk, durationMs }: StoreFacts): void {
    const { series } = this.#stores[operation][isOk ? 'ok' : 'failed']
    series.record(durationMs / 1000)
  }

  /** Counts an event. Also accepts events from outside a gateway: `redisLimits({ onEvent: (event) => metrics.event(event) })`. */
  event(event: GatewayEvent): void {
    const { set } = this
    switch (event.type) {
      case 'request-refused':
        set.refusals.at(event.endpoint ?? '', event.code).value += 1
        return
      case 'cache-hit':
        set.cacheHits.at(event.endpoint, event.model, event.isStale ? 'stale' : 'fresh').value += 1
        return
      case 'cache-write-failed':
        set.cacheWriteFailures.only.value += 1
        return
      case 'settlement-given-up':
        set.settlementsGivenUp.at(event.reason).value += 1
        return
      case 'unbilled-usage':
        set.unbilled.at(event.vendor, event.model).value += 1
        return
      case 'vendor-silent':
        set.silentCalls.at(event.vendor, event.model).value += 1
        return
      case 'hook-bypassed':
        set.hookBypasses.only.value += 1
        return
      case 'internal-error':
        set.internalErrors.only.value += 1
        return
      case 'usage-dropped':
        set.usageDropped.only.value += event.records
        return
      case 'store-unavailable':
        set.storeUnavailable.only.value = 1
        return
      case 'store-recovered':
        set.storeUnavailable.only.value = 0
        return
      case 'limits-degraded':
        set.limitsDegraded.only.value = 1
        return
      case 'limits-recovered':
        set.limitsDegraded.only.value = 0
        return
      case 'webhook-attempted':
        set.webhooks.at(event.state).value += 1
        return
      case 'task-ended': {
        const { model, vendor, accountId, usage, costNanoDollars } = event
        set.tasks.at(model, event.state).record(event.durationMs / 1000)
        const route = this.#endpoint(event.endpoint).route(model, vendor)
        if (usage !== undefined) this.#use(route, usage)
        if (costNanoDollars !== 0n)
          this.#cost(route, event.endpoint, this.#accountOf(accountId)).nanoDollars += costNanoDollars
      }
    }
  }

  /** Reads the gauges from the gateways again. */
  refresh(): void {
    const { vendorInFlight, vendorLimit, vendorKeys, vendorKeyUp, retriesLeft, settlementsWaiting, rollUpAge } =
      this.set
    const states = [...this.#states].map((state) => state())
    for (const family of [vendorInFlight, vendorLimit, vendorKeys, vendorKeyUp]) family.clear()
    for (const { vendors } of states)
      for (const { vendor, inFlight, limit, keys } of vendors) {
        vendorInFlight.at(vendor).value += inFlight
        vendorLimit.at(vendor).value += limit
        vendorKeys.at(vendor).value += keys.length
        for (const { credentialId, isUp } of keys) vendorKeyUp.at(vendor, credentialId).value = isUp ? 1 : 0
      }
    retriesLeft.only.value = sum(states.map((state) => state.retriesLeft))
    settlementsWaiting.only.value = sum(states.map((state) => state.settlementsWaiting))
    rollUpAge.only.value = Math.max(0, ...states.map((state) => state.rollUpAgeMs)) / 1000
  }

  #endpoint(endpoint: string): EndpointSeries {
    const known = this.#endpoints.get(endpoint)
    if (known !== undefined) return known
    const series = new EndpointSeries(this.set, endpoint)
    this.#endpoints.set(endpoint, series)
    return series
  }

  #requests(route: RouteSeries, end: RequestEnd, account: string | undefined): NumberSeries {
    const { endpoint, outcome, code = '' } = end
    if (account !== undefined)
      return ofAccount(this.set.requests, account, [endpoint, route.model, route.vendor, outcome, code])
    return outcome === 'completed' && code === ''
      ? route.completed.series
      : this.set.requests.at(endpoint, route.model, route.vendor, outcome, code)
  }

  #cost(route: RouteSeries, endpoint: string, account: string | undefined): MoneySeries {
    if (account === undefined) return route.cost.series
    return ofAccount(this.set.cost, account, [route.model, route.vendor, endpoint])
  }

  /** Totals include their parts. Each count is written out, because a loop over names costs more than everything else. */
  #use({ model, vendor, input, output }: RouteSeries, usage: Usage): void {
    const { inputTokens = 0, outputTokens = 0 } = usage
    if (inputTokens > 0) input.series.value += inputTokens
    if (outputTokens > 0) output.series.value += outputTokens
    const { tokens, units } = this.set
    add(tokens, usage.cachedInputTokens, model, vendor, 'cached_input')
    add(tokens, usage.cacheWriteTokens, model, vendor, 'cache_write')
    add(tokens, usage.cacheWrite1hTokens, model, vendor, 'cache_write_1h')
    add(tokens, usage.reasoningTokens, model, vendor, 'reasoning')
    add(tokens, usage.inputImageTokens, model, vendor, 'input_image')
    add(tokens, usage.inputAudioTokens, model, vendor, 'input_audio')
    add(tokens, usage.outputImageTokens, model, vendor, 'output_image')
    add(units, usage.images, model, vendor, 'image')
    add(units, usage.videoSeconds, model, vendor, 'video_second')
    add(units, usage.characters, model, vendor, 'character')
    add(units, usage.webSearches, model, vendor, 'web_search')
    add(units, usage.audioSeconds, model, vendor, 'audio_second')
    add(units, usage.searchUnits, model, vendor, 'search_unit')
    add(units, usage.hookUnits, model, vendor, 'hook_unit')
  }

  /** Returns the value of the label, or `undefined` if there is none. */
  #accountOf(accountId: string | undefined): string | undefined {
    if (!this.#hasAccounts) return undefined
    if (accountId === undefined || this.#accounts.has(accountId)) return accountId ?? ''
    if (this.#accounts.size >= MAX_ACCOUNTS) return OTHER
    this.#accounts.add(accountId)
    return accountId
  }
}

/** Operations of the store, by success. */
interface StoreSeries {
  readonly ok: SeriesHandle<HistogramSeries>
  readonly failed: SeriesHandle<HistogramSeries>
}

function storeSeries({ store }: MetricSet, operation: string): StoreSeries {
  return { ok: new SeriesHandle(store, operation, 'ok'), failed: new SeriesHandle(store, operation, 'failed') }
}

/**
 * Returns the series of an account, whose label is the last one. Once half of all series exist, further accounts share one series, so
 * that vendors and codes stay distinguished.
 */
function ofAccount<Series extends object>(
  family: MetricFamily<Series>,
  account: string,
  labels: readonly string[],
): Series {
  return family.within(MAX_SERIES / 2, ...labels, account) ?? family.at(...labels, OTHER)
}

function add(
  family: MetricFamily<NumberSeries>,
  count: number | undefined,
  model: string,
  vendor: string,
  kind: string,
): void {
  if (count !== undefined && count > 0) family.at(model, vendor, kind).value += count
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
