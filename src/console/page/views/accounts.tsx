import { type Account, type AuditEntry, type List, queryOf, type Session, useChange, useData } from '../api.ts'
import { hrefOf, may, type Place, time } from '../format.ts'
import { AmountCell, Badge, Disclosure, Empty, Field, Form, Loaded, Table } from '../parts.tsx'

const TIERS = [
  ['paid', 'paid'],
  ['free', 'free'],
] as const

/** Accounts by id. */
export function Accounts({ place, session }: { place: Place; session: Session }) {
  const search = place.query.get('search') ?? undefined
  const after = place.query.get('after') ?? undefined
  const page = useData<List<Account>>(`accounts${queryOf({ search, after, limit: 100 })}`)
  const creation = useChange<Account>(({ id }) => {
    location.hash = hrefOf(['accounts', id])
  })
  return (
    <>
      <Form
        name="Search"
        button="Search"
        onSubmit={(values) => {
          location.hash = hrefOf(['accounts'], values)
        }}
      >
        <Field key={search} name="search" label="Id contains" value={search} />
      </Form>
      {may(session, 'write') ? (
        <Disclosure summary="New account">
          <Form
            name="New account"
            button="Create account"
            isRunning={creation.isRunning}
            error={creation.error}
            onSubmit={(values) => creation.run('POST', 'accounts', values)}
          >
            <Field name="id" label="Id" hint="made up when empty" />
            <Field name="name" label="Name" />
            <Field name="tier" label="Tier" options={TIERS} />
          </Form>
        </Disclosure>
      ) : null}
      <Loaded of={page}>
        {({ data, next }) =>
          data.length === 0 ? (
            <Empty>
              {search === undefined ? 'No accounts yet. Create one above.' : 'No id contains this text. '}
              {search === undefined ? null : <a href={hrefOf(['accounts'])}>Show all</a>}
            </Empty>
          ) : (
            <>
              <Table
                name="Accounts"
                head={['account', 'name', ['balance'], ['held'], ['owed'], 'plan', 'state', 'created']}
              >
                {data.map((account) => (
                  <tr key={account.id}>
                    <td>
                      <a href={hrefOf(['accounts', account.id])}>{account.id}</a>
                    </td>
                    <td>{account.name}</td>
                    <AmountCell of={account.balance} />
                    <AmountCell of={account.held} />
                    <AmountCell of={account.owed} />
                    <td>{account.plan}</td>
                    <td>
                      {account.frozen === null ? (
                        <Badge kind="good">active</Badge>
                      ) : (
                        <Badge kind="bad">frozen: {account.frozen.reason}</Badge>
                      )}
                    </td>
                    <td>{time(account.created_at_ms)}</td>
                  </tr>
                ))}
              </Table>
              {next === null ? null : <a href={hrefOf(['accounts'], { search, after: next })}>More</a>}
            </>
          )
        }
      </Loaded>
    </>
  )
}

/** Changes by operators, newest first; the subject and the page are in the URL. */
export function Audit({ place }: { place: Place }) {
  const subject = place.query.get('subject') ?? undefined
  const after = place.query.get('after') ?? undefined
  const page = useData<List<AuditEntry>>(`audit${queryOf({ subject, after, limit: 50 })}`)
  return (
    <>
      <Form
        name="Filters"
        button="Show"
        onSubmit={(values) => {
          location.hash = hrefOf(['audit'], values)
        }}
      >
        <Field key={subject} name="subject" label="Subject" hint="id of an account, key or hold" value={subject} />
      </Form>
      <Loaded of={page}>
        {({ data, next }) => (
          <>
            {data.length > 0 ? (
              <AuditTable entries={data} />
            ) : (
              <Empty>
                {subject === undefined ? 'No changes in the last 365 days.' : 'No change of this subject here. '}
                {subject === undefined ? null : <a href={hrefOf(['audit'])}>Show all</a>}
              </Empty>
            )}
            <p class="pager">
              {after === undefined ? null : <a href={hrefOf(['audit'], { subject })}>Newest</a>}{' '}
              {next === null ? null : <a href={hrefOf(['audit'], { subject, after: next })}>Older</a>}
            </p>
          </>
        )}
      </Loaded>
    </>
  )
}

function AuditTable({ entries }: { entries: readonly AuditEntry[] }) {
  return (
    <Table name="Changes" head={['time', 'operator', 'address', 'action', 'subject', 'change']}>
      {entries.map((entry) => (
        <tr key={entry.id}>
          <td>{time(entry.created_at_ms)}</td>
          <td>{entry.operator}</td>
          <td>{entry.address ?? 'command line'}</td>
          <td>
            {entry.action} {entry.code === null ? null : <Badge kind="bad">{entry.code}</Badge>}
          </td>
          <td>
            {entry.subject === null ? '–' : <a href={hrefOf(['audit'], { subject: entry.subject })}>{entry.subject}</a>}
          </td>
          <td>
            <Disclosure summary="Details">
              <pre>{JSON.stringify({ input: entry.input, before: entry.before, after: entry.after }, null, 2)}</pre>
            </Disclosure>
          </td>
        </tr>
      ))}
    </Table>
  )
}
