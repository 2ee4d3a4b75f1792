import { HistogramSeries, MetricFamily, MoneySeries, NumberSeries } from './metric-family.ts'

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
export class MetricSet {
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
    'state',
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
  readonly vendorLimit = this.#gauges('vendor_limit', 'Adaptive concurrency limit of a vendor.', ['vendor'])
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
