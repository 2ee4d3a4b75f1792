import {
  type List,
  queryOf,
  type RequestRow,
  type Usage,
  type UsageRow,
  useData,
  type Vendor,
  type VendorList,
} from '../api.ts'
import { count, duration, hrefOf, money, nanoOf, type Place, percent, time } from '../format.ts'
import { Amount, Badge, Card, Cards, Chart, type Column, Empty, Loaded, Section, type Step, Table } from '../parts.tsx'
import { CatalogAge, CircuitBadge } from './models.tsx'
import { RequestLink } from './requests.tsx'

const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000
/** Number of steps per range: hours or whole days, including the current one. */
const RANGES = { '24h': 24, '7d': 7, '30d': 30 } as const
const TOP = 8

/** Spending, health and the main consumers. */
export function Overview({ place }: { place: Place }) {
  const named = place.query.get('range') ?? '24h'
  const range: keyof typeof RANGES = named === '7d' || named === '30d' ? named : '24h'
  const step = range === '24h' ? 'hour' : 'day'
  const stepMs = step === 'hour' ? HOUR_MS : DAY_MS
  // A new range each minute would be a new path, and discard the displayed data.
  const from = (Math.floor(Date.now() / stepMs) - (RANGES[range] - 1)) * stepMs
  const series = useData<Usage>(`usage${queryOf({ from, group_by: step, percentiles: 'true' })}`, true)
  const whole = useData<Usage>(`usage${queryOf({ from, percentiles: 'true' })}`, true)
  return (
    <>
      <nav class="tabs" aria-label="Range">
        {Object.keys(RANGES).map((name) => (
          <a key={name} href={hrefOf(['overview'], { range: name })} aria-current={name === range ? 'true' : undefined}>
            {name}
          </a>
        ))}
      </nav>
      <Loaded of={series}>
        {(usage) => <Sums usage={usage} whole={whole.data?.data[0]} step={step} from={from} />}
      </Loaded>
      <div class="columns">
        <TopList title="Models" group="model" from={from} />
        <TopList title="Accounts" group="account" from={from} />
        <Failures from={from} />
        <Vendors />
      </div>
    </>
  )
}

interface SumsProps {
  readonly usage: Usage
  /** Row of the whole range: percentiles of steps do not add up. */
  readonly whole: UsageRow | undefined
  readonly step: 'hour' | 'day'
  readonly from: number
}

function Sums({ usage, whole, step, from }: SumsProps) {
  const rows = usage.data
  if (rows.length === 0)
    return (
      <Empty>
        No calls yet. Make one in the <a href={hrefOf(['playground'])}>playground</a>, or create a key under{' '}
        <a href={hrefOf(['accounts'])}>accounts</a> and send it to <code>/v1/chat/completions</code>.
      </Empty>
    )
  const total = totalOf(rows)
  const steps = stepsOf(rows, step, from)
  const latency = whole?.percentiles?.duration
  const first = whole?.percentiles?.first_byte
  return (
    <>
      <Cards>
        <Card
          name="Spend"
          value={<Amount of={total.charged} />}
          note={total.due === total.charged ? undefined : `${money(total.due)} due`}
        />
        <Card name="Requests" value={count(total.requests)} />
        <Card name="Errors" value={percent(total.failed, total.requests)} note={`${count(total.failed)} failed`} />
        <Card
          name="Latency, median"
          value={duration(latency?.p50_ms ?? null)}
          note={`95 % within ${duration(latency?.p95_ms ?? null)}`}
        />
        <Card
          name="First byte, median"
          value={duration(first?.p50_ms ?? null)}
          note={`95 % within ${duration(first?.p95_ms ?? null)}`}
        />
        <Card name="Input tokens" value={count(total.input)} />
        <Card name="Output tokens" value={count(total.output)} />
      </Cards>
      <div class="columns">
        <Chart
          title="Spend"
          series={['charged']}
          steps={steps.spend}
          text={(value) => money(BigInt(Math.round(value)))}
        />
        <Chart title="Requests" series={['completed', 'abandoned', 'failed']} steps={steps.requests} text={count} />
        <Chart title="Latency, 95 %" series={['p95']} steps={steps.latency} text={duration} />
      </div>
      <p class="note">
        Sums up to {time(usage.as_of_ms)}.
        {step === 'hour'
          ? ` Medians and the top lists are of whole days in UTC, from ${new Date(from).toISOString().slice(0, 10)} on.`
          : ''}
      </p>
    </>
  )
}

function totalOf(rows: readonly UsageRow[]) {
  const total = { charged: 0n, due: 0n, requests: 0, failed: 0, input: 0, output: 0 }
  for (const row of rows) {
    total.charged += nanoOf(row.charged)
    total.due += nanoOf(row.due)
    total.requests += row.requests
    total.failed += row.failed
    total.input += row.usage['inputTokens'] ?? 0
    total.output += row.usage['outputTokens'] ?? 0
  }
  return total
}

/** Steps without calls have no row, and are shown as zero. */
function stepsOf(rows: readonly UsageRow[], step: 'hour' | 'day', from: number) {
  const lengthMs = step === 'hour' ? HOUR_MS : DAY_MS
  const byTime = new Map(rows.map((row) => [row.at_ms ?? 0, row]))
  const spend: Step[] = []
  const requests: Step[] = []
  const latency: Step[] = []
  for (let atMs = Math.floor(from / lengthMs) * lengthMs; atMs <= Date.now(); atMs += lengthMs) {
    const row = byTime.get(atMs)
    const iso = new Date(atMs).toISOString()
    const name = step === 'hour' ? `${iso.slice(11, 16)} UTC` : iso.slice(0, 10)
    const { requests: calls = 0, failed = 0, abandoned = 0 } = row ?? {}
    spend.push({ name, values: [row === undefined ? 0 : Number(nanoOf(row.charged))] })
    requests.push({ name, values: [calls - failed - abandoned, abandoned, failed] })
    latency.push({ name, values: [row?.percentiles?.duration?.p95_ms ?? 0] })
  }
  return { spend, requests, latency }
}

function TopList({ title, group, from }: { title: string; group: 'model' | 'account'; from: number }) {
  const usage = useData<Usage>(`usage${queryOf({ from, group_by: group, top: TOP })}`, true)
  return (
    <Section title={`Top ${title.toLowerCase()}`}>
      <Loaded of={usage}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty>Nothing was used in this range.</Empty>
          ) : (
            <Table
              name={`Top ${title.toLowerCase()}`}
              columns={[
                [group, ({ id }) => <a href={hrefOf(['requests'], { [group]: id })}>{id}</a>],
                ['requests', ({ requests }) => count(requests), 'number'],
                ['spend', ({ charged }) => <Amount of={charged} />, 'number'],
              ]}
              rows={data.map((row) => ({ ...row, id: row[group] ?? '' }))}
            />
          )
        }
      </Loaded>
    </Section>
  )
}

function Failures({ from }: { from: number }) {
  // A page may be half full although there are more.
  const failed = useData<List<RequestRow>>(`requests${queryOf({ from, ending: 'failed', limit: 2 * TOP })}`, true)
  return (
    <Section title="Latest errors">
      <Loaded of={failed}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty>No call has failed.</Empty>
          ) : (
            <Table name="Latest errors" columns={FAILURE_COLUMNS} rows={data.slice(0, TOP)} />
          )
        }
      </Loaded>
    </Section>
  )
}

const FAILURE_COLUMNS: readonly Column<RequestRow>[] = [
  ['time', (row) => <RequestLink of={row} />],
  ['model', ({ model }) => model],
  ['error', ({ status, code }) => `${status} ${code ?? ''}`],
]

function Vendors() {
  const vendors = useData<VendorList>('vendors', true)
  return (
    <Section title="Vendor health">
      <CatalogAge catalog={vendors.data?.catalog} />
      <Loaded of={vendors}>
        {({ data }) => (
          <Table
            name="Vendor health"
            columns={[
              ['vendor', ({ id }) => <a href={hrefOf(['vendors'])}>{id}</a>],
              ['keys', KeyCircuits],
              ['in flight', (vendor) => vendor.in_flight, 'number'],
            ]}
            rows={data}
          />
        )}
      </Loaded>
    </Section>
  )
}

function KeyCircuits({ keys }: Pick<Vendor, 'keys'>) {
  if (keys.length === 0) return <Badge kind="plain">no key</Badge>
  return keys.map(({ credential, circuit }) => <CircuitBadge key={credential} circuit={circuit} />)
}
