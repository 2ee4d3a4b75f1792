import { type List, queryOf, type RequestDetail, type RequestRow, useData } from '../api.ts'
import { count, duration, exactMoney, hrefOf, money, type Place, time } from '../format.ts'
import { Amount, AmountCell, Badge, Card, Cards, Empty, Field, Form, Loaded, Section, Table } from '../parts.tsx'

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
      <Form
        name="Filters"
        button="Show"
        onSubmit={(values) => {
          location.hash = hrefOf(['requests'], values)
        }}
      >
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
      <Loaded of={page}>
        {({ data, next }) => (
          <>
            {data.length > 0 ? (
              <RequestTable rows={data} />
            ) : (
              <Empty>
                {isFiltered ? 'No call fits these filters here. ' : 'No calls yet. Make one in the '}
                {isFiltered ? (
                  <a href={hrefOf(['requests'])}>Show all</a>
                ) : (
                  <a href={hrefOf(['playground'])}>playground</a>
                )}
                .
              </Empty>
            )}
            <p class="pager">
              {after === undefined ? null : <a href={hrefOf(['requests'], filters)}>Newest</a>}{' '}
              {next === null ? null : <a href={hrefOf(['requests'], { ...filters, after: next })}>Older</a>}
            </p>
          </>
        )}
      </Loaded>
    </>
  )
}

export function endingKind(ending: RequestRow['ending']): 'good' | 'bad' | 'warn' {
  if (ending === 'completed') return 'good'
  return ending === 'failed' ? 'bad' : 'warn'
}

function RequestTable({ rows }: { rows: readonly RequestRow[] }) {
  return (
    <Table
      name="Requests"
      head={['time', 'account', 'model', 'vendor', 'ending', ['duration'], ['first byte'], ['tokens'], ['charged']]}
    >
      {rows.map((row) => (
        <tr key={row.id}>
          <td>
            <a href={hrefOf(['requests', row.id], { ended_at: row.ended_at_ms })}>{time(row.ended_at_ms)}</a>
          </td>
          <td>
            <a href={hrefOf(['accounts', row.account])}>{row.account}</a>
          </td>
          <td>{row.model}</td>
          <td>{row.vendor ?? '–'}</td>
          <td>
            <Badge kind={endingKind(row.ending)}>{row.ending}</Badge> {row.status} {row.code}
          </td>
          <td class="number">{duration(row.duration_ms)}</td>
          <td class="number">{duration(row.first_byte_ms)}</td>
          <td class="number">
            {count(row.usage['inputTokens'] ?? 0)} / {count(row.usage['outputTokens'] ?? 0)}
          </td>
          <AmountCell of={row.charged} />
        </tr>
      ))}
    </Table>
  )
}

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
              <Table name="Journal" head={['line', 'kind', ['amount'], ['owed'], ['left']]}>
                {request.journal.map((entry) => (
                  <tr key={entry.id}>
                    <td>{entry.id}</td>
                    <td>{entry.kind}</td>
                    <td class="number">{exactMoney(entry.amount)}</td>
                    <td class="number">{exactMoney(entry.owed)}</td>
                    <td class="number">{entry.balance_after === null ? '–' : exactMoney(entry.balance_after)}</td>
                  </tr>
                ))}
              </Table>
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
  return (
    <Table name="Usage" head={['meter', [request.is_estimated ? 'units (estimated)' : 'units']]}>
      {units.map(([meter, amount]) => (
        <tr key={meter}>
          <td>{meter}</td>
          <td class="number">{count(amount)}</td>
        </tr>
      ))}
    </Table>
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
  return (
    <Table name="Attempts" head={['vendor', 'key', 'model', 'outcome', ['time'], 'from start to end']}>
      {attempts.map((attempt, index) => (
        // Attempts have no ids, and their order never changes.
        <tr key={`${index} ${attempt.start_ms}`}>
          <td>{attempt.vendor}</td>
          <td>{attempt.credential ?? '–'}</td>
          <td>{attempt.model}</td>
          <td>
            <Badge kind={OUTCOMES[attempt.outcome]}>{attempt.outcome}</Badge> {attempt.status} {attempt.reason}
          </td>
          <td class="number">{duration(attempt.end_ms - attempt.start_ms)}</td>
          <td class="wide">
            <svg
              viewBox={`0 0 ${WIDTH} 16`}
              preserveAspectRatio="none"
              class="waterfall"
              role="img"
              aria-label={`from ${duration(attempt.start_ms)} to ${duration(attempt.end_ms)} of ${duration(wholeMs)}`}
            >
              <rect x="0" y="7" width={WIDTH} height="2" class="track" />
              <rect
                x={(attempt.start_ms / wholeMs) * WIDTH}
                y="2"
                width={Math.max(2, ((attempt.end_ms - attempt.start_ms) / wholeMs) * WIDTH)}
                height="12"
                class={OUTCOMES[attempt.outcome]}
              />
            </svg>
          </td>
        </tr>
      ))}
    </Table>
  )
}
