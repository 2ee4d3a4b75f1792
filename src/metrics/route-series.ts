import {
  type HistogramSeries,
  MAX_SERIES,
  type MetricFamily,
  type MoneySeries,
  type NumberSeries,
} from './metric-family.ts'
import type { MetricSet } from './metric-set.ts'

/** Series of a metric, looked up once. The overflow series is looked up each time, so that each update is reported as an overflow. */
export class SeriesHandle<Series extends object> {
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
export class RouteSeries {
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
export class EndpointSeries {
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
