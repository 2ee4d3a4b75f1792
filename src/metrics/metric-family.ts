/** Maximum number of series per metric. All others are counted in one series whose labels are all `other`. */
export const MAX_SERIES = 2_000

/** Value of every label of the overflow series. */
export const OTHER = 'other'

type MetricKind = 'counter' | 'gauge' | 'histogram'

/** Name, kind, help text and labels of a metric. */
interface MetricDescription {
  /** Name such as `signalbox_requests_total`. */
  readonly name: string
  readonly kind: MetricKind
  readonly help: string
  readonly labels: readonly string[]
}

type Level<Series> = Map<string, Level<Series> | Series>

/** Metric with its series, one per set of label values: at most {@link MAX_SERIES} and the overflow series. */
export class MetricFamily<Series extends object> {
  readonly description: MetricDescription
  readonly #create: (labelText: string, values: readonly string[]) => Series
  /** Nested maps, one level per label: a joined key would need a new string for each look-up. */
  readonly #root: Level<Series> = new Map()
  #series: Series[] = []
  readonly #onOverflow: () => void
  #other: Series | undefined

  constructor(
    description: MetricDescription,
    create: (labelText: string, values: readonly string[]) => Series,
    onOverflow: () => void,
  ) {
    this.description = description
    this.#create = create
    this.#onOverflow = onOverflow
    // A metric without labels has one series from the start, so that it is visible before anything has happened.
    if (description.labels.length === 0) this.#series.push(create('', []))
  }

  get series(): readonly Series[] {
    return this.#series
  }

  /** The only series of a metric without labels. */
  get only(): Series {
    return this.#series[0]!
  }

  /** Whether the series is the overflow series. */
  isOther(series: Series): boolean {
    return series === this.#other
  }

  /** Removes all series of a metric with labels: their objects are counted again, and some may no longer exist. */
  clear(): void {
    this.#root.clear()
    // Another scrape may be writing the old list.
    this.#series = []
    this.#other = undefined
  }

  /** Returns the series with these label values, in the order of the labels. */
  at(...values: readonly string[]): Series {
    let level = this.#root
    const last = values.length - 1
    for (let index = 0; index < last; index++) {
      const next = level.get(values[index]!)
      if (next === undefined) return this.#add(values)
      level = next as Level<Series>
    }
    return (level.get(values[last]!) as Series | undefined) ?? this.#add(values)
  }

  /** Returns the series with these label values if it exists or there are fewer than `mostSeries`, else `undefined`. */
  within(mostSeries: number, ...values: readonly string[]): Series | undefined {
    let level: Level<Series> | undefined = this.#root
    for (const value of values.slice(0, -1)) level = level?.get(value) as Level<Series> | undefined
    const found = level?.get(values.at(-1)!) as Series | undefined
    return found ?? (this.#series.length < mostSeries ? this.#add(values) : undefined)
  }

  #add(values: readonly string[]): Series {
    if (this.#series.length >= MAX_SERIES) {
      this.#onOverflow()
      this.#other ??= this.#made(values.map(() => OTHER))
      return this.#other
    }
    let level = this.#root
    for (const value of values.slice(0, -1)) {
      const next = (level.get(value) as Level<Series> | undefined) ?? new Map()
      level.set(value, next)
      level = next
    }
    const series = this.#made(values)
    level.set(values.at(-1)!, series)
    return series
  }

  #made(values: readonly string[]): Series {
    const series = this.#create(labelTextOf(this.description.labels, values), values)
    this.#series.push(series)
    return series
  }
}

/** Formats labels for the exposition formats: `model="x",vendor="y"`. */
function labelTextOf(labels: readonly string[], values: readonly string[]): string {
  return labels.map((label, index) => `${label}="${escaped(values[index] ?? '')}"`).join(',')
}

function escaped(value: string): string {
  return /[\\"\n]/.test(value) ? value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n') : value
}

/** Series of a metric: its label values, and their text in an exposition. */
class Series {
  readonly labelText: string
  readonly values: readonly string[]

  constructor(labelText: string, values: readonly string[]) {
    this.labelText = labelText
    this.values = values
  }
}

/** Series of one number: a counter, which only rises, or a gauge. */
export class NumberSeries extends Series {
  value = 0
}

/** Counter of money: an exact sum. */
export class MoneySeries extends Series {
  nanoDollars = 0n
}

/** Counts of values by size, and their sum. */
export class HistogramSeries extends Series {
  /** Upper bounds, ascending, each inclusive. */
  readonly bounds: Float64Array
  /** Counts by bucket, not cumulative. The last bucket has no bound. */
  readonly counts: Float64Array
  sum = 0

  constructor(labelText: string, values: readonly string[], bounds: Float64Array) {
    super(labelText, values)
    this.bounds = bounds
    this.counts = new Float64Array(bounds.length + 1)
  }

  record(value: number): void {
    const { bounds } = this
    let index = 0
    while (index < bounds.length && value > bounds[index]!) index++
    this.counts[index]! += 1
    this.sum += value
  }
}

export type AnySeries = NumberSeries | MoneySeries | HistogramSeries

/** Version of the package, which the build inserts. */
declare const SIGNALBOX_VERSION: string | undefined

/** `development` if the source runs without a build. */
export const VERSION = typeof SIGNALBOX_VERSION === 'string' ? SIGNALBOX_VERSION : 'development'
