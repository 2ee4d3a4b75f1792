import { type Account, type AuditEntry, type List, queryOf, type Session, useChange, useData } from '../api.ts'
import { hrefOf, may, type Place, time } from '../format.ts'
import {
  Amount,
  Badge,
  type Column,
  choices,
  Disclosure,
  Field,
  Form,
  ListTable,
  NoMatch,
  openView,
} from '../parts.tsx'

const ACCOUNT_COLUMNS: readonly Column<Account>[] = [
  ['account', ({ id }) => <a href={hrefOf(['accounts', id])}>{id}</a>],
  ['name', ({ name }) => name],
  ['balance', ({ balance }) => <Amount of={balance} />, 'number'],
  ['held', ({ held }) => <Amount of={held} />, 'number'],
  ['owed', ({ owed }) => <Amount of={owed} />, 'number'],
  ['plan', ({ plan }) => plan],
  [
    'state',
    ({ frozen }) =>
      frozen === null ? <Badge kind="good">active</Badge> : <Badge kind="bad">frozen: {frozen.reason}</Badge>,
  ],
  ['created', (account) => time(account.created_at_ms)],
]

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
      <Form name="Search" button="Search" onSubmit={openView('accounts')}>
        <Field key={search} name="search" label="Id contains" value={search} />
      </Form>
      {may(session, 'write') ? (
        <Disclosure summary="New account">
          <Form
            name="New account"
            button="Create account"
            change={creation}
            onSubmit={(values) => creation.run('POST', 'accounts', values)}
          >
            <Field name="id" label="Id" hint="made up when empty" />
            <Field name="name" label="Name" />
            <Field name="tier" label="Tier" options={choices('paid', 'free')} />
          </Form>
        </Disclosure>
      ) : null}
      <ListTable
        name="Accounts"
        of={page}
        columns={ACCOUNT_COLUMNS}
        empty={
          search === undefined ? (
            'No accounts yet. Create one above.'
          ) : (
            <NoMatch view="accounts">No id contains this text.</NoMatch>
          )
        }
        pages={{ after, labels: ['First', 'More'], href: (after) => hrefOf(['accounts'], { search, after }) }}
      />
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
      <Form name="Filters" button="Show" onSubmit={openView('audit')}>
        <Field key={subject} name="subject" label="Subject" hint="id of an account, key or hold" value={subject} />
      </Form>
      <ListTable
        name="Changes"
        of={page}
        columns={AUDIT_COLUMNS}
        empty={
          subject === undefined ? (
            'No changes in the last 365 days.'
          ) : (
            <NoMatch view="audit">No change of this subject here.</NoMatch>
          )
        }
        pages={{ after, labels: ['Newest', 'Older'], href: (after) => hrefOf(['audit'], { subject, after }) }}
      />
    </>
  )
}

const AUDIT_COLUMNS: readonly Column<AuditEntry>[] = [
  ['time', (entry) => time(entry.created_at_ms)],
  ['operator', ({ operator }) => operator],
  ['address', ({ address }) => address ?? 'command line'],
  [
    'action',
    ({ action, code }) => (
      <>
        {action} {code === null ? null : <Badge kind="bad">{code}</Badge>}
      </>
    ),
  ],
  ['subject', ({ subject }) => (subject === null ? '–' : <a href={hrefOf(['audit'], { subject })}>{subject}</a>)],
  [
    'change',
    ({ input, before, after }) => (
      <Disclosure summary="Details">
        <pre>{JSON.stringify({ input, before, after }, null, 2)}</pre>
      </Disclosure>
    ),
  ],
]
