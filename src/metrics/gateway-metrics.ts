import type { GatewayEvent } from '../core/events.ts'
import { checkMembers, memberNames } from '../core/known-members.ts'
import type {
  AttemptEnd,
  AttemptFacts,
  GatewayState,
  Observer,
  RequestEnd,
  RequestFacts,
  StoreFacts,
} from '../core/observer.ts'
import { METERS_BY_FIELD, type Usage, type UsageField } from '../core/usage.ts'
import {
  HistogramSeries,
  MAX_SERIES,
  MetricFamily,
  MoneySeries,
  NumberSeries,
  OTHER,
  VERSION,
} from './metric-family.ts'

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

const PROMETHEUS_OPTIONS = memberNames<PrometheusOptions>()('accountLabel')

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

const TOKEN_SUFFIX = '_token'

/** Values of the label `kind` by count, without the totals of tokens. */
const DETAIL_KINDS = new Map<string, { readonly name: string; readonly isOfTokens: boolean }>(
  METERS_BY_FIELD.filter(([field]) => field !== 'inputTokens' && field !== 'outputTokens').map(([field, { meter }]) => {
    const isOfTokens = meter.endsWith(TOKEN_SUFFIX)
    return [field, { name: isOfTokens ? meter.slice(0, -TOKEN_SUFFIX.length) : meter, isOfTokens }]
  }),
)

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
        set.cacheHits.at(event.endpoint, event.model).value += 1
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
    const { vendorInFlight, vendorKeys, vendorKeyUp, retriesLeft, settlementsWaiting, rollUpAge } = this.set
    const states = [...this.#states].map((state) => state())
    for (const family of [vendorInFlight, vendorKeys, vendorKeyUp]) family.clear()
    for (const { vendors } of states)
      for (const { vendor, inFlight, keys } of vendors) {
        vendorInFlight.at(vendor).value += inFlight
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

  /** Totals include their parts. */
  #use({ model, vendor, input, output }: RouteSeries, usage: Usage): void {
    const { inputTokens = 0, outputTokens = 0 } = usage
    if (inputTokens > 0) input.series.value += inputTokens
    if (outputTokens > 0) output.series.value += outputTokens
    // Most calls have few of the counts.
    for (const field in usage) {
      const kind = DETAIL_KINDS.get(field)
      const count = kind === undefined ? 0 : (usage[field as UsageField] ?? 0)
      if (kind === undefined || !(count > 0)) continue
      const family = kind.isOfTokens ? this.set.tokens : this.set.units
      family.at(model, vendor, kind.name).value += count
    }
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
 * Returns the series of an account, whose label is the last one. Once half of all series exist, additional accounts share one series, so
 * that vendors and codes stay distinguished.
 */
function ofAccount<Series extends object>(
  family: MetricFamily<Series>,
  account: string,
  labels: readonly string[],
): Series {
  return family.within(MAX_SERIES / 2, ...labels, account) ?? family.at(...labels, OTHER)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

/** Series of a metric, looked up once. The overflow series is looked up each time, so that each update is reported as an overflow. */
class SeriesHandle<Series extends object> {
  readonly #family: MetricFamily<Series>
  readonly #values: readonly string[]
  #series: Series | undefined

  constructor(family: MetricFamily<Series>, ...values: readonly string[]) {
    this.#family = family
    this.#values = values
  }

  /** Series; created on first use. */
  get series(): Series {
    return this.#series ?? this.#find()
  }

  #find(): Series {
    const series = this.#family.at(...this.#values)
    if (!this.#family.isOther(series)) this.#series = series
    return series
  }
}

/** Series that most requests for one model at one vendor update. */
class RouteSeries {
  readonly model: string
  readonly vendor: string
  /** Completed requests without an account. */
  readonly completed: SeriesHandle<NumberSeries>
  readonly duration: SeriesHandle<HistogramSeries>
  readonly firstByte: SeriesHandle<HistogramSeries>
  readonly perToken: SeriesHandle<HistogramSeries>
  readonly answered: SeriesHandle<NumberSeries>
  readonly input: SeriesHandle<NumberSeries>
  readonly output: SeriesHandle<NumberSeries>
  /** Cost without an account. */
  readonly cost: SeriesHandle<MoneySeries>
  /** Whether a call to the vendor has reported the provider. */
  isTold = false

  constructor(set: MetricSet, endpoint: string, model: string, vendor: string) {
    this.model = model
    this.vendor = vendor
    this.completed = new SeriesHandle(set.requests, endpoint, model, vendor, 'completed', '')
    this.duration = new SeriesHandle(set.duration, endpoint, model, vendor)
    this.firstByte = new SeriesHandle(set.firstByte, endpoint, model, vendor)
    this.perToken = new SeriesHandle(set.perToken, model, vendor)
    this.answered = new SeriesHandle(set.attempts, vendor, model, 'ok')
    this.input = new SeriesHandle(set.tokens, model, vendor, 'input')
    this.output = new SeriesHandle(set.tokens, model, vendor, 'output')
    this.cost = new SeriesHandle(set.cost, model, vendor, endpoint)
  }
}

/** Series of one endpoint and of its routes. */
class EndpointSeries {
  readonly endpoint: string
  readonly inFlight: NumberSeries
  readonly overhead: HistogramSeries
  readonly #set: MetricSet
  readonly #routes = new Map<string, Map<string, RouteSeries>>()
  #count = 0

  constructor(set: MetricSet, endpoint: string) {
    this.endpoint = endpoint
    this.inFlight = set.inFlight.at(endpoint)
    this.overhead = set.overhead.at(endpoint)
    this.#set = set
  }

  /** Returns the series of a model at a vendor. At most as many are stored as a metric has series. */
  route(model: string, vendor: string): RouteSeries {
    return this.#routes.get(model)?.get(vendor) ?? this.#add(model, vendor)
  }

  #add(model: string, vendor: string): RouteSeries {
    const added = new RouteSeries(this.#set, this.endpoint, model, vendor)
    if (this.#count >= MAX_SERIES) return added
    this.#count += 1
    const ofModel = this.#routes.get(model) ?? new Map<string, RouteSeries>()
    this.#routes.set(model, ofModel.set(vendor, added))
    return added
  }
}

const PREFIX = 'signalbox_'

const DURATION = Float64Array.of(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 600)
const FIRST_BYTE = Float64Array.of(0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.5, 3, 6, 12, 25, 60)
const PER_TOKEN = Float64Array.of(0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 0.6, 1.2)
const OVERHEAD = Float64Array.of(
  0.000_05,
  0.000_1,
  0.000_25,
  0.000_5,
  0.001,
  0.002_5,
  0.005,
  0.01,
  0.025,
  0.05,
  0.1,
  0.25,
  1,
)
const STORE = Float64Array.of(0.000_1, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)
const TASK = Float64Array.of(5, 10, 20, 40, 80, 160, 320, 640, 1_280, 3_600, 14_400)

/** All metrics of a process. The names, labels and buckets are a public interface. */
class MetricSet {
  readonly overflow: MetricFamily<NumberSeries> = this.#numbers(
    'series_overflow_total',
    'Updates that were counted in the series "other", because a metric has too many series.',
  )
  readonly requests: MetricFamily<NumberSeries>
  readonly refusals = this.#numbers('refusals_total', 'Requests that were rejected before a vendor was called.', [
    'endpoint',
    'code',
  ])
  readonly duration = this.#histogram('request_duration_seconds', 'From the arrival of a request to its end.', DURATION)
  readonly firstByte = this.#histogram(
    'first_byte_seconds',
    'From the arrival of a request to the first content of its answer.',
    FIRST_BYTE,
  )
  readonly perToken = this.#histogram(
    'time_per_output_token_seconds',
    'Time of a stream after its first content, for each further token.',
    PER_TOKEN,
    ['model', 'vendor'],
  )
  readonly overhead = this.#histogram(
    'overhead_seconds',
    'Part of the duration in which neither a body of a caller nor a vendor was awaited.',
    OVERHEAD,
    ['endpoint'],
  )
  readonly attempts = this.#numbers('attempts_total', 'Calls to vendors.', ['vendor', 'model', 'outcome'])
  readonly cacheHits = this.#numbers('cache_hits_total', 'Requests that were answered from the response cache.', [
    'endpoint',
    'model',
  ])
  readonly cacheWriteFailures = this.#numbers(
    'cache_write_failures_total',
    'Answers that the response cache could not take.',
  )
  readonly tokens = this.#numbers(
    'tokens_total',
    'Tokens that were charged for; input and output include their parts.',
    ['model', 'vendor', 'kind'],
  )
  readonly units = this.#numbers('units_total', 'Other units that were charged for.', ['model', 'vendor', 'kind'])
  readonly cost: MetricFamily<MoneySeries>
  readonly inFlight = this.#gauges('in_flight', 'Requests in progress.', ['endpoint'])
  readonly vendorInFlight = this.#gauges('vendor_in_flight', 'Calls to a vendor in progress.', ['vendor'])
  readonly vendorKeys = this.#gauges('vendor_keys', 'Keys of a vendor. 0: no call goes to it.', ['vendor'])
  readonly vendorKeyUp = this.#gauges('vendor_key_up', '1 while the circuit of a vendor key is not open, else 0.', [
    'vendor',
    'fingerprint',
  ])
  readonly store = this.#histogram('store_seconds', 'Steps at the store for a request.', STORE, [
    'operation',
    'outcome',
  ])
  readonly settlementsWaiting = this.#gauges(
    'settlements_waiting',
    'Settlements that the store has not taken yet and that are tried again.',
  )
  readonly settlementsGivenUp = this.#numbers('settlements_given_up_total', 'Settlements that were given up.', [
    'reason',
  ])
  readonly limitsDegraded = this.#gauges(
    'limits_degraded',
    '1 while the shared limits cannot be reached, and each process enforces its own share.',
  )
  readonly storeUnavailable = this.#gauges('store_unavailable', '1 while the store does not answer, else 0.')
  readonly retriesLeft = this.#gauges('retries_left', 'Retries that the retry budget allows now.')
  readonly tasks = this.#histogram('task_seconds', 'From the submission of a task to its end.', TASK, [
    'model',
    'state',
  ])
  readonly webhooks = this.#numbers(
    'webhook_attempts_total',
    'Attempts to deliver webhooks, by the state after them.',
    ['state'],
  )
  readonly unbilled = this.#numbers(
    'unbilled_calls_total',
    'Calls that a vendor may bill and no account is charged for.',
    ['vendor', 'model'],
  )
  readonly silentCalls = this.#numbers('silent_calls_total', 'Calls in which a vendor sent nothing for long.', [
    'vendor',
    'model',
  ])
  readonly hookBypasses = this.#numbers('hook_bypasses_total', 'Checks of hooks that failed and let a call pass.')
  readonly internalErrors = this.#numbers('internal_errors_total', 'Faults of the gateway, its store or its hooks.')
  readonly usageDropped = this.#numbers('usage_dropped_total', 'Records of uncharged calls that were lost.')
  readonly rollUpAge = this.#gauges(
    'usage_rollup_age_seconds',
    'How long the oldest record of a call that is in no sum yet has waited.',
  )
  readonly buildInfo = this.#gauges('build_info', 'Always 1.', ['version'])

  /** @param hasAccounts Whether requests and cost have the label `account`. */
  constructor(hasAccounts: boolean) {
    const account = hasAccounts ? ['account'] : []
    this.requests = this.#numbers('requests_total', 'Requests that passed all checks, when they ended.', [
      ...['endpoint', 'model', 'vendor', 'ending', 'code'],
      ...account,
    ])
    this.cost = new MetricFamily(
      {
        name: `${PREFIX}cost_dollars_total`,
        kind: 'counter',
        help: 'Dollars that were charged.',
        labels: ['model', 'vendor', 'endpoint', ...account],
      },
      (labelText, values) => new MoneySeries(labelText, values),
      this.#onOverflow,
    )
  }

  /** Metrics in the order of the exposition. */
  get families(): readonly MetricFamily<NumberSeries | MoneySeries | HistogramSeries>[] {
    return Object.values(this) as MetricFamily<NumberSeries | MoneySeries | HistogramSeries>[]
  }

  get #onOverflow(): () => void {
    return () => {
      this.overflow.only.value += 1
    }
  }

  #numbers(name: string, help: string, labels: readonly string[] = []): MetricFamily<NumberSeries> {
    return this.#family({ name: PREFIX + name, kind: 'counter', help, labels })
  }

  #gauges(name: string, help: string, labels: readonly string[] = []): MetricFamily<NumberSeries> {
    return this.#family({ name: PREFIX + name, kind: 'gauge', help, labels })
  }

  #family(description: MetricFamily<NumberSeries>['description']): MetricFamily<NumberSeries> {
    return new MetricFamily(description, (labelText, values) => new NumberSeries(labelText, values), this.#onOverflow)
  }

  #histogram(
    name: string,
    help: string,
    bounds: Float64Array,
    labels: readonly string[] = ['endpoint', 'model', 'vendor'],
  ): MetricFamily<HistogramSeries> {
    return new MetricFamily(
      { name: PREFIX + name, kind: 'histogram', help, labels },
      (labelText, values) => new HistogramSeries(labelText, values, bounds),
      this.#onOverflow,
    )
  }
}
