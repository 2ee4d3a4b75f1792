import type { Account, List, Session } from '../answers.ts'
import { queryOf } from '../api.ts'
import { time } from '../format.ts'
import { hrefOf, type Place } from '../location.ts'
import { AmountCell, Badge, Disclosure, Empty, Field, Form, Loaded, Table } from '../parts.tsx'
import { may } from '../session.ts'
import { useChange, useData } from '../use-data.ts'

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
