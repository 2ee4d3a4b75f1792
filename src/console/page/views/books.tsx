import { useState } from 'preact/hooks'
import type { Entry, Hold, List, Session, Statement } from '../answers.ts'
import { download, queryOf } from '../api.ts'
import { exactMoney, money, time } from '../format.ts'
import { hrefOf } from '../location.ts'
import { AmountCell, ConfirmButton, Empty, Fault, Field, Form, Loaded, Pager, Section, Table } from '../parts.tsx'
import { may } from '../session.ts'
import { textOf, useChange, useData } from '../use-data.ts'

interface BooksProps {
  readonly account: string
  readonly session: Session
  onChange(): void
}

/** Journal, statement and open holds of an account. */
export function Books(props: BooksProps) {
  return (
    <>
      <Journal {...props} />
      <MonthStatement account={props.account} />
      <Holds {...props} />
    </>
  )
}

function Journal({ account, session, onChange }: BooksProps) {
  const path = `accounts/${encodeURIComponent(account)}`
  const [after, setAfter] = useState<string>()
  const [fault, setFault] = useState<string>()
  const journal = useData<List<Entry>>(`${path}/journal${queryOf({ after, limit: 25 })}`)
  const refund = useChange(() => {
    journal.reload()
    onChange()
  })
  const csv = (
    <button
      type="button"
      class="small"
      onClick={() => {
        setFault(undefined)
        download(`${path}/journal.csv`, `journal-${account}.csv`).catch((error: unknown) => setFault(textOf(error)))
      }}
    >
      CSV<span class="hidden"> of the journal</span>
    </button>
  )
  return (
    <Section title="Journal" actions={csv}>
      <Fault text={fault ?? refund.error} />
      <Loaded of={journal}>
        {({ data, next }) =>
          data.length === 0 ? (
            <Empty>Nothing was credited or charged yet. Calls need credit first, unless the account is metered.</Empty>
          ) : (
            <>
              <Table name="Journal" head={['time', 'kind', ['amount'], ['owed'], ['left'], 'description', 'action']}>
                {data.map((entry) => (
                  <tr key={entry.id}>
                    <td>{time(entry.created_at_ms)}</td>
                    <td>{entry.kind}</td>
                    <td class="number">{exactMoney(entry.amount)}</td>
                    <td class="number">{exactMoney(entry.owed)}</td>
                    <td class="number">{entry.balance_after === null ? '–' : exactMoney(entry.balance_after)}</td>
                    <td>
                      {entry.kind === 'charge' && entry.hold !== null ? (
                        <a href={hrefOf(['requests', entry.hold], { ended_at: entry.created_at_ms })}>
                          {entry.description}
                        </a>
                      ) : (
                        entry.description
                      )}
                    </td>
                    <td>
                      {entry.kind === 'charge' && may(session, 'money') ? (
                        <ConfirmButton
                          label="Refund"
                          question={`Give what is left of ${money(entry.due ?? entry.amount)} back?`}
                          onConfirm={() =>
                            refund.run('POST', 'refunds', { charge: entry.id, reason: 'by the console' })
                          }
                        />
                      ) : null}
                    </td>
                  </tr>
                ))}
              </Table>
              <Pager after={after} next={next} labels={['Newest', 'Older']} onPage={setAfter} />
            </>
          )
        }
      </Loaded>
    </Section>
  )
}

function MonthStatement({ account }: { account: string }) {
  const [month, setMonth] = useState(new Date().toISOString().slice(0, 7))
  const statement = useData<Statement>(
    `accounts/${encodeURIComponent(account)}/statements/${encodeURIComponent(month)}`,
  )
  return (
    <Section title={`Statement of ${month}`}>
      <Form name="Month" button="Show" onSubmit={(values) => setMonth(values['month'] ?? month)}>
        <Field name="month" label="Month, UTC" type="month" value={month} isRequired />
      </Form>
      <Loaded of={statement}>
        {({ opening_balance, opening_owed, sums, closing_balance, closing_owed }) => (
          <Table name={`Statement of ${month}`} head={['kind', ['lines'], ['balance'], ['owed']]}>
            <tr>
              <th scope="row">opening</th>
              <td />
              <AmountCell of={opening_balance} />
              <AmountCell of={opening_owed} />
            </tr>
            {sums.map((sum) => (
              <tr key={sum.kind}>
                <th scope="row">{sum.kind}</th>
                <td class="number">{sum.lines}</td>
                <AmountCell of={sum.amount} />
                <AmountCell of={sum.owed} />
              </tr>
            ))}
            <tr>
              <th scope="row">closing</th>
              <td />
              <AmountCell of={closing_balance} />
              <AmountCell of={closing_owed} />
            </tr>
          </Table>
        )}
      </Loaded>
    </Section>
  )
}

function Holds({ account, session, onChange }: BooksProps) {
  const holds = useData<List<Hold>>(`holds${queryOf({ account, limit: 100 })}`)
  const ending = useChange(() => {
    holds.reload()
    onChange()
  })
  return (
    <Section title="Open holds">
      <Fault text={ending.error} />
      <Loaded of={holds}>
        {({ data, has_more: hasMore }) =>
          data.length === 0 ? (
            <Empty>No call in progress holds money.</Empty>
          ) : (
            <>
              {hasMore ? <p class="note">The oldest {data.length}; there are more.</p> : null}
              <Table name="Open holds" head={['hold', ['amount'], 'since', 'expires', 'action']}>
                {data.map((hold) => (
                  <tr key={hold.id}>
                    <td>
                      <code>{hold.id}</code>
                    </td>
                    <AmountCell of={hold.amount} />
                    <td>{time(hold.created_at_ms)}</td>
                    <td>{time(hold.expires_at_ms)}</td>
                    <td>
                      {may(session, 'money') ? (
                        <ConfirmButton
                          label="Void"
                          question="Give it back without a charge?"
                          onConfirm={() => ending.run('POST', `holds/${encodeURIComponent(hold.id)}/void`)}
                        />
                      ) : null}
                    </td>
                  </tr>
                ))}
              </Table>
            </>
          )
        }
      </Loaded>
    </Section>
  )
}
