import { type List, queryOf, type RequestDetail, type RequestRow, useData } from '../api.ts'
import { count, duration, hrefOf, money, type Place, time } from '../format.ts'
import {
  Amount,
  Badge,
  Card,
  Cards,
  type Column,
  Empty,
  Field,
  Form,
  ListTable,
  Loaded,
  NoMatch,
  openView,
  Section,
  Table,
} from '../parts.tsx'
import { JOURNAL_COLUMNS } from './account.tsx'

const FILTERS = [
  'account',
  'key',
  'model',
  'vendor',
  'endpoint',
  'ending',
  'code',
  'user',
  'tag',
  'from',
  'to',
] as const
const HINTS: { readonly [Name in (typeof FILTERS)[number]]?: string } = { from: '2026-11-01T08:00, UTC', to: 'UTC' }
const ENDINGS = ['', 'completed', 'failed', 'abandoned'].map((name) => [name, name === '' ? 'any' : name] as const)

/** Calls, newest first; filters and page are in the URL. */
export function Requests({ place }: { place: Place }) {
  const filters = Object.fromEntries(FILTERS.map((name) => [name, place.query.get(name) ?? undefined]))
  const after = place.query.get('after') ?? undefined
  const page = useData<List<RequestRow>>(`requests${queryOf({ ...filters, after, limit: 50 })}`, after === undefined)
  const isFiltered = Object.values(filters).some((value) => value !== undefined)
  return (
    <>
      <Form
        name="Request id"
        button="Show request"
        onSubmit={({ id = '' }) => {
          location.hash = hrefOf(['requests', id.trim()])
        }}
      >
        <Field name="id" label="Request id" hint="x-request-id of the answer" isRequired />
      </Form>
      <Form name="Filters" button="Show" onSubmit={openView('requests')}>
        {FILTERS.map((name) => (
          // A new URL has new values.
          <Field
            key={`${name} ${filters[name] ?? ''}`}
            name={name}
            label={name}
            value={filters[name]}
            {...(HINTS[name] === undefined ? {} : { hint: HINTS[name] })}
            {...(name === 'ending' ? { options: ENDINGS } : {})}
          />
        ))}
      </Form>
      <ListTable
        name="Requests"
        of={page}
        columns={REQUEST_COLUMNS}
        empty={
          isFiltered ? (
            <NoMatch view="requests">No call fits these filters here.</NoMatch>
          ) : (
            <>
              No calls yet. Make one in the <a href={hrefOf(['playground'])}>playground</a>.
            </>
          )
        }
        pages={{ after, labels: ['Newest', 'Older'], href: (after) => hrefOf(['requests'], { ...filters, after }) }}
      />
    </>
  )
}

function endingKind(ending: RequestRow['ending']): 'good' | 'bad' | 'warn' {
  if (ending === 'completed') return 'good'
  return ending === 'failed' ? 'bad' : 'warn'
}

/** Time of a call, as a link to it. */
export function RequestLink({ of: { id, ended_at_ms: endedAt } }: { of: Pick<RequestRow, 'id' | 'ended_at_ms'> }) {
  return <a href={hrefOf(['requests', id], { ended_at: endedAt })}>{time(endedAt)}</a>
}

const REQUEST_COLUMNS: readonly Column<RequestRow>[] = [
  ['time', (row) => <RequestLink of={row} />],
  ['account', ({ account }) => <a href={hrefOf(['accounts', account])}>{account}</a>],
  ['model', ({ model }) => model],
  ['vendor', ({ vendor }) => vendor ?? '–'],
  [
    'ending',
    ({ ending, status, code }) => (
      <>
        <Badge kind={endingKind(ending)}>{ending}</Badge> {status} {code}
      </>
    ),
  ],
  ['duration', (row) => duration(row.duration_ms), 'number'],
  ['first byte', (row) => duration(row.first_byte_ms), 'number'],
  ['tokens', ({ usage }) => `${count(usage['inputTokens'] ?? 0)} / ${count(usage['outputTokens'] ?? 0)}`, 'number'],
  ['charged', ({ charged }) => <Amount of={charged} />, 'number'],
]

/** Call with its attempts and its charge. */
export function Request({ id, place }: { id: string; place: Place }) {
  const endedAt = place.query.get('ended_at') ?? undefined
  const found = useData<RequestDetail>(`requests/${encodeURIComponent(id)}${queryOf({ ended_at: endedAt })}`)
  return (
    <Loaded of={found}>
      {(request) => (
        <>
          <Cards>
            <Card
              name="Ending"
              value={request.ending}
              note={[request.status, request.code].filter(Boolean).join(' ')}
            />
            <Card
              name="Duration"
              value={duration(request.duration_ms)}
              note={`first byte ${duration(request.first_byte_ms)}`}
            />
            <Card name="Charged" value={<Amount of={request.charged} />} note={`of ${money(request.due)} due`} />
          </Cards>
          <Section title="Attempts">
            <Waterfall request={request} />
          </Section>
          <Section title="Facts">
            <dl class="facts">
              {factsOf(request).map(([name, value]) => (
                <div key={name}>
                  <dt>{name}</dt>
                  <dd>{value}</dd>
                </div>
              ))}
            </dl>
          </Section>
          <Section title="Usage">
            <Units request={request} />
          </Section>
          <Section title="Journal">
            {request.journal.length === 0 ? (
              <Empty>Nothing was charged.</Empty>
            ) : (
              <Table name="Journal" columns={[['line', ({ id }) => id], ...JOURNAL_COLUMNS]} rows={request.journal} />
            )}
          </Section>
        </>
      )}
    </Loaded>
  )
}

function factsOf(request: RequestDetail): readonly (readonly [string, string])[] {
  return [
    ['Ended', time(request.ended_at_ms)],
    ['Account', request.account],
    ['Key', request.key],
    ['End user', request.end_user ?? '–'],
    ['Tags', request.tags.join(', ') || '–'],
    ['Endpoint', `${request.endpoint}${request.is_stream ? ', streamed' : ''}`],
    ['Model', request.model],
    ['Asked for', request.requested_model],
    ['Vendor', request.vendor ?? '–'],
    ['Vendor key', request.credential ?? '–'],
    ['Vendor’s request id', request.vendor_request ?? '–'],
  ]
}

function Units({ request }: { request: RequestDetail }) {
  const units = Object.entries(request.usage)
  if (units.length === 0) return <Empty>Nothing is known to have been used.</Empty>
  const title = request.is_estimated ? 'units (estimated)' : 'units'
  return (
    <Table
      name="Usage"
      columns={[
        ['meter', ({ id }) => id],
        [title, ({ amount }) => count(amount), 'number'],
      ]}
      rows={units.map(([id, amount]) => ({ id, amount }))}
    />
  )
}

const WIDTH = 400
const OUTCOMES = { answered: 'good', failed: 'bad', abandoned: 'warn' } as const

/** Attempts as bars over the duration of the call. */
function Waterfall({ request: { attempts, duration_ms, ending } }: { request: RequestDetail }) {
  if (attempts.length === 0)
    return (
      <Empty>
        {ending === 'completed'
          ? 'No vendor was called: the answer came from the response cache or from a hook.'
          : 'No vendor was called.'}
      </Empty>
    )
  const wholeMs = Math.max(duration_ms, ...attempts.map(({ end_ms }) => end_ms), 1)
  const columns: readonly Column<RequestDetail['attempts'][number]>[] = [
    ['vendor', ({ vendor }) => vendor],
    ['key', ({ credential }) => credential ?? '–'],
    ['model', ({ model }) => model],
    [
      'outcome',
      ({ outcome, status, reason }) => (
        <>
          <Badge kind={OUTCOMES[outcome]}>{outcome}</Badge> {status} {reason}
        </>
      ),
    ],
    ['time', ({ start_ms, end_ms }) => duration(end_ms - start_ms), 'number'],
    [
      'from start to end',
      ({ start_ms, end_ms, outcome }) => (
        <svg
          viewBox={`0 0 ${WIDTH} 16`}
          preserveAspectRatio="none"
          class="waterfall"
          role="img"
          aria-label={`from ${duration(start_ms)} to ${duration(end_ms)} of ${duration(wholeMs)}`}
        >
          <rect x="0" y="7" width={WIDTH} height="2" class="track" />
          <rect
            x={(start_ms / wholeMs) * WIDTH}
            y="2"
            width={Math.max(2, ((end_ms - start_ms) / wholeMs) * WIDTH)}
            height="12"
            class={OUTCOMES[outcome]}
          />
        </svg>
      ),
      'wide',
    ],
  ]
  // Attempts have no ids, and their order never changes.
  const rows = attempts.map((attempt, index) => ({ ...attempt, id: String(index) }))
  return <Table name="Attempts" columns={columns} rows={rows} />
}
