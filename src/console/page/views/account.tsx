import { useState } from 'preact/hooks'
import {
  type Account as AccountObject,
  changesOf,
  download,
  type Entry,
  type Hold,
  type Key,
  type List,
  type MadeKey,
  type MoneyChange,
  queryOf,
  type Read,
  type Session,
  type Spending,
  type Statement,
  textOf,
  useChange,
  useData,
} from '../api.ts'
import { exactMoney, hrefOf, may, money, time } from '../format.ts'
import {
  Amount,
  Badge,
  Card,
  Cards,
  type Column,
  ConfirmButton,
  choices,
  Disclosure,
  Fault,
  Field,
  Form,
  ListTable,
  Loaded,
  Section,
  SmallButton,
  Table,
  type Values,
} from '../parts.tsx'

/** One account: its money, its settings, its keys and its books. */
export function Account({ id, session }: { id: string; session: Session }) {
  const path = `accounts/${encodeURIComponent(id)}`
  const account = useData<AccountObject>(path)
  const spending = useData<Spending>(`${path}/spending`)
  const reload = (): void => {
    account.reload()
    spending.reload()
  }
  const read = { ...account, reload }
  return (
    <>
      <p class="note">
        <a href={hrefOf(['requests'], { account: id })}>Requests</a> · <a href={hrefOf(['tasks', id])}>Tasks</a>
      </p>
      <Loaded of={read}>
        {(account) => (
          <>
            <Cards>
              <Card name="Balance" value={<Amount of={account.balance} />} />
              <Card name="Held" value={<Amount of={account.held} />} note="by calls in progress" />
              <Card name="Owed" value={<Amount of={account.owed} />} />
              <Card name="Spent today" value={moneyText(spending.data?.spent_day)} note={monthText(spending.data)} />
              <Card name="Cap" value={capText(account)} note={leftText(spending.data)} />
              <Card name="Plan" value={account.plan ?? '–'} note={account.tier} />
              <Card name="Billing" value={account.billing ?? 'as the gateway'} note={limitText(account)} />
            </Cards>
            <FrozenState account={account} path={path} session={session} read={read} />
            {may(session, 'money') ? <Money path={path} read={read} /> : null}
            {may(session, 'write') ? <Settings account={account} path={path} session={session} read={read} /> : null}
          </>
        )}
      </Loaded>
      <Keys account={id} session={session} spending={spending.data} onChange={spending.reload} />
      <Books account={id} session={session} onChange={reload} />
    </>
  )
}

function capText({ spending_cap: cap }: AccountObject): string {
  return cap === null ? 'none' : `${money(cap.amount)} a ${cap.period}`
}

function moneyText(amount: string | undefined): string {
  return amount === undefined ? '…' : money(amount)
}

function monthText(spending: Spending | undefined): string | undefined {
  return spending && `${money(spending.spent_month)} this month`
}

function leftText(spending: Spending | undefined): string | undefined {
  return spending?.left == null ? undefined : `${money(spending.left)} left`
}

function limitText({ credit_limit: limit }: AccountObject): string | undefined {
  return limit === null ? undefined : `may owe ${money(limit)}`
}

interface PartProps {
  readonly path: string
  readonly read: Read<AccountObject>
}

function FrozenState({ account, path, session, read }: PartProps & { account: AccountObject; session: Session }) {
  const change = useChange<AccountObject>(() => read.reload())
  if (account.frozen === null) return null
  return (
    <p class="fault">
      Frozen since {time(account.frozen.at_ms)}: {account.frozen.reason}{' '}
      {may(session, 'write') ? (
        <ConfirmButton
          label="Unfreeze"
          question="Accept calls again?"
          onConfirm={() => change.run('POST', `${path}/unfreeze`)}
        />
      ) : null}
      <Fault text={change.error} />
    </p>
  )
}

function Money({ path, read }: PartProps) {
  const credit = useChange<MoneyChange>(() => read.reload())
  const adjustment = useChange<MoneyChange>(() => read.reload())
  return (
    <Disclosure summary="Credit or correct">
      <Form
        name="Credit"
        button="Add credit"
        change={credit}
        done={doneText(credit.made)}
        onSubmit={(values) => credit.run('POST', `${path}/credits`, values)}
      >
        <Field name="amount" label="Dollars" isRequired />
        <Field name="description" label="Description" />
        <Field name="id" label="Payment id" hint="credited once only" />
      </Form>
      <Form
        name="Correction"
        button="Correct balance"
        change={adjustment}
        done={doneText(adjustment.made)}
        onSubmit={(values) => adjustment.run('POST', `${path}/adjustments`, values)}
      >
        <Field name="amount" label="Dollars" hint="negative takes money" isRequired />
        <Field name="reason" label="Reason" isRequired />
      </Form>
    </Disclosure>
  )
}

/** Message about a change of money. */
function doneText(made: MoneyChange | undefined): string | undefined {
  if (made === undefined) return undefined
  return made.amount === null
    ? 'Nothing was changed: a change of this id was made before.'
    : `Done: ${money(made.amount)}. The balance is ${money(made.balance)}.`
}

function Settings({ account, path, session, read }: PartProps & { account: AccountObject; session: Session }) {
  const change = useChange<AccountObject>(() => read.reload())
  const frost = useChange<AccountObject>(() => read.reload())
  const mayMoney = may(session, 'money')
  return (
    <Disclosure summary="Settings">
      <Form
        name="Settings"
        button="Save settings"
        change={{ ...change, made: undefined }}
        onSubmit={(values) => change.run('PATCH', path, changesOf(settingsOf(values, mayMoney), { ...account }))}
      >
        <Field name="name" label="Name" value={account.name ?? ''} />
        <Field name="tier" label="Tier" value={account.tier} options={choices('paid', 'free')} />
        <Field name="plan" label="Plan" value={account.plan ?? ''} />
        <CapFields cap={account.spending_cap} />
        {mayMoney ? (
          <>
            <Field name="billing" label="Billing" value={account.billing ?? ''} options={BILLING} />
            <Field name="credit_limit" label="Credit limit, dollars" value={account.credit_limit ?? ''} />
          </>
        ) : null}
      </Form>
      {account.frozen === null ? (
        <Form
          name="Freeze"
          button="Freeze account"
          change={frost}
          onSubmit={(values) => frost.run('POST', `${path}/freeze`, values)}
        >
          <Field name="reason" label="Reason to freeze" isRequired />
        </Form>
      ) : null}
    </Disclosure>
  )
}

const BILLING = [
  ['', 'as the gateway'],
  ['prepaid', 'prepaid'],
  ['metered', 'metered'],
] as const

/** An empty field removes the value. */
function settingsOf({ name, tier, plan, cap, period, billing, credit_limit }: Values, mayMoney: boolean) {
  return {
    name: name ?? null,
    tier,
    plan: plan ?? null,
    spending_cap: capOf({ cap, period }) ?? null,
    ...(mayMoney ? { billing: billing ?? null, credit_limit: credit_limit ?? null } : {}),
  }
}

interface BooksProps {
  readonly account: string
  readonly session: Session
  onChange(): void
}

/** Journal, statement and open holds of an account. */
function Books(props: BooksProps) {
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
  const save = (): void => {
    setFault(undefined)
    download(`${path}/journal.csv`, `journal-${account}.csv`).catch((error: unknown) => setFault(textOf(error)))
  }
  const csv = (
    <SmallButton onClick={save}>
      CSV<span class="hidden"> of the journal</span>
    </SmallButton>
  )
  const columns: readonly Column<Entry>[] = [
    ['time', (entry) => time(entry.created_at_ms)],
    ...JOURNAL_COLUMNS,
    [
      'description',
      ({ kind, hold, created_at_ms: endedAt, description }) =>
        kind === 'charge' && hold !== null ? (
          <a href={hrefOf(['requests', hold], { ended_at: endedAt })}>{description}</a>
        ) : (
          description
        ),
    ],
    [
      'action',
      ({ id, kind, due, amount }) =>
        kind === 'charge' && may(session, 'money') ? (
          <ConfirmButton
            label="Refund"
            question={`Give what is left of ${money(due ?? amount)} back?`}
            onConfirm={() => refund.run('POST', 'refunds', { charge: id, reason: 'by the console' })}
          />
        ) : null,
    ],
  ]
  return (
    <Section title="Journal" actions={csv}>
      <Fault text={fault ?? refund.error} />
      <ListTable
        name="Journal"
        of={journal}
        columns={columns}
        empty="Nothing was credited or charged yet. Calls need credit first, unless the account is metered."
        pages={{ after, labels: ['Newest', 'Older'], onPage: setAfter }}
      />
    </Section>
  )
}

/** Columns of every table of journal entries. */
export const JOURNAL_COLUMNS: readonly Column<Entry>[] = [
  ['kind', ({ kind }) => kind],
  ['amount', ({ amount }) => exactMoney(amount), 'number'],
  ['owed', ({ owed }) => exactMoney(owed), 'number'],
  ['left', ({ balance_after: left }) => (left === null ? '–' : exactMoney(left)), 'number'],
]

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
          <Table
            name={`Statement of ${month}`}
            columns={STATEMENT_COLUMNS}
            rows={[
              { id: 'opening', lines: null, amount: opening_balance, owed: opening_owed },
              ...sums.map(({ kind, lines, amount, owed }) => ({ id: kind, lines, amount, owed })),
              { id: 'closing', lines: null, amount: closing_balance, owed: closing_owed },
            ]}
          />
        )}
      </Loaded>
    </Section>
  )
}

type StatementRow = Pick<Statement['sums'][number], 'amount' | 'owed'> & {
  readonly id: string
  readonly lines: number | null
}

const STATEMENT_COLUMNS: readonly Column<StatementRow>[] = [
  ['kind', ({ id }) => id, 'name'],
  ['lines', ({ lines }) => lines, 'number'],
  ['balance', ({ amount }) => <Amount of={amount} />, 'number'],
  ['owed', ({ owed }) => <Amount of={owed} />, 'number'],
]

function Holds({ account, session, onChange }: BooksProps) {
  const holds = useData<List<Hold>>(`holds${queryOf({ account, limit: 100 })}`)
  const ending = useChange(() => {
    holds.reload()
    onChange()
  })
  const columns: readonly Column<Hold>[] = [
    ['hold', ({ id }) => <code>{id}</code>],
    ['amount', ({ amount }) => <Amount of={amount} />, 'number'],
    ['since', (hold) => time(hold.created_at_ms)],
    ['expires', (hold) => time(hold.expires_at_ms)],
    [
      'action',
      ({ id }) =>
        may(session, 'money') ? (
          <ConfirmButton
            label="Void"
            question="Give it back without a charge?"
            onConfirm={() => ending.run('POST', `holds/${encodeURIComponent(id)}/void`)}
          />
        ) : null,
    ],
  ]
  return (
    <Section title="Open holds">
      <Fault text={ending.error} />
      {holds.data?.has_more === true ? <p class="note">The oldest {holds.data.data.length}; there are more.</p> : null}
      <ListTable name="Open holds" of={holds} columns={columns} empty="No call in progress holds money." />
    </Section>
  )
}

interface KeysProps {
  readonly account: string
  readonly session: Session
  /** Spending; `undefined` until it has been read. */
  readonly spending: Spending | undefined
  /** Called when a cap was changed. */
  onChange(): void
}

/** Keys of an account. */
function Keys({ account, session, spending, onChange }: KeysProps) {
  const [after, setAfter] = useState<string>()
  const keys = useData<List<Key>>(`keys${queryOf({ account, after })}`)
  const [made, setMade] = useState<MadeKey>()
  const onMade = (key: MadeKey): void => {
    setMade(key)
    keys.reload()
  }
  const creation = useChange<MadeKey>(onMade)
  const rotation = useChange<MadeKey>(onMade)
  const revocation = useChange<Key>(() => keys.reload())
  const [limited, setLimited] = useState<Key>()
  const limiting = useChange<Key>(() => {
    setLimited(undefined)
    keys.reload()
    onChange()
  })
  const spent = new Map(spending?.keys.map((key) => [key.key, key]))
  const mayChange = may(session, 'write')
  // A key can read the stored data of its account.
  const mayMake = mayChange && may(session, 'content')
  const actionsOf = (key: Key) => {
    const path = `keys/${encodeURIComponent(key.id)}`
    if (!mayChange || key.revoked_at_ms !== null) return null
    return (
      <>
        <SmallButton onClick={() => setLimited(key)}>Limits</SmallButton>{' '}
        {mayMake ? (
          <ConfirmButton
            label="Rotate"
            question="Make a new key? This one ends in a day."
            onConfirm={() => rotation.run('POST', `${path}/rotate`)}
          />
        ) : null}{' '}
        <ConfirmButton
          label="Revoke"
          question="End this key for good?"
          onConfirm={() => revocation.run('POST', `${path}/revoke`)}
        />
      </>
    )
  }
  const columns: readonly Column<Key>[] = [
    ['label', ({ label }) => label],
    ['key', ({ id }) => <code>{id}</code>],
    ['scope', scopeText],
    ['limits', limitsText],
    ['spent', (key) => spentOfCap(key, spent.get(key.id))],
    ['created', (key) => time(key.created_at_ms)],
    ['state', (key) => <KeyState of={key} />],
    ['action', actionsOf],
  ]
  return (
    <Section title="Keys">
      {made?.key == null ? null : (
        <p class="made" role="status">
          The new key <code>{made.key}</code> is shown this once. Copy it now.{' '}
          <SmallButton onClick={() => setMade(undefined)}>Done</SmallButton>
        </p>
      )}
      {mayMake ? (
        <Disclosure summary="New key">
          <Form
            name="New key"
            button="Create key"
            change={creation}
            onSubmit={(values) => creation.run('POST', 'keys', keyOf(account, values))}
          >
            <Field name="label" label="Label" />
            <Field name="endpoints" label="Endpoints" hint="chat,embeddings; all when empty" />
            <Field name="models" label="Models" hint="ids or patterns; all when empty" />
            <LimitFields />
          </Form>
        </Disclosure>
      ) : null}
      {limited === undefined ? null : (
        <Form
          key={limited.id}
          name="Limits"
          button="Save limits"
          change={limiting}
          isEntered
          onSubmit={(values) =>
            limiting.run('PATCH', `keys/${encodeURIComponent(limited.id)}`, changedLimits(values, limited))
          }
        >
          <p>
            Limits of {limited.label === '' ? null : `${limited.label}, `}
            <code>{limited.id}</code>. An empty field takes the limit away.
          </p>
          <LimitFields of={limited} />
        </Form>
      )}
      <Fault text={rotation.error ?? revocation.error} />
      <ListTable
        name="Keys"
        of={keys}
        columns={columns}
        empty={`No keys. ${mayMake ? 'Create one above; callers send it as bearer token.' : ''}`}
        pages={{ after, labels: ['Oldest', 'Newer'], onPage: setAfter }}
      />
    </Section>
  )
}

function KeyState({ of: { revoked_at_ms, expires_at_ms } }: { of: Key }) {
  if (revoked_at_ms !== null) return <Badge kind="bad">revoked</Badge>
  if (expires_at_ms === null) return <Badge kind="good">active</Badge>
  return expires_at_ms <= Date.now() ? (
    <Badge kind="bad">expired</Badge>
  ) : (
    <Badge kind="warn">until {time(expires_at_ms)}</Badge>
  )
}

/** Limits of a key: the field of the form, the member in the API, and the texts of both. */
const LIMITS = [
  { field: 'rpm', name: 'requests_per_minute', label: 'Requests per minute', unit: 'requests/min' },
  { field: 'tpm', name: 'tokens_per_minute', label: 'Tokens per minute', unit: 'tokens/min' },
  { field: 'concurrency', name: 'concurrency', label: 'At once', unit: 'at once' },
] as const

/** Fields of limits and cap, filled with those of a key. */
function LimitFields({ of }: { of?: Key }) {
  return (
    <>
      {LIMITS.map(({ field, name, label }) => (
        <Field key={field} name={field} label={label} type="number" value={String(of?.limits?.[name] ?? '')} />
      ))}
      <CapFields cap={of?.spending_cap ?? null} />
    </>
  )
}

/** Fields of a spending cap. */
function CapFields({ cap }: { cap: AccountObject['spending_cap'] }) {
  return (
    <>
      <Field name="cap" label="Spending cap, dollars" value={cap?.amount ?? ''} />
      <Field name="period" label="Cap period" value={cap?.period ?? 'month'} options={choices('month', 'day')} />
    </>
  )
}

/** Spending of a key, and its cap if there is one. */
function spentOfCap({ spending_cap: cap }: Key, spent: Spending['keys'][number] | undefined): string {
  if (cap === null) return spent === undefined ? '' : `${money(spent.spent_month)} this month`
  const bound = `${money(cap.amount)} a ${cap.period}`
  return spent === undefined
    ? bound
    : `${money(cap.period === 'day' ? spent.spent_day : spent.spent_month)} of ${bound}`
}

function scopeText({ endpoints, models }: Key): string {
  return [...(endpoints ?? []), ...(models ?? [])].join(', ') || 'everything'
}

function limitsText({ limits }: Key): string {
  const texts = LIMITS.map(({ name, unit }) => (limits?.[name] == null ? '' : `${limits[name]} ${unit}`))
  return texts.filter((text) => text !== '').join(', ')
}

function limitsOf(values: Values): object | undefined {
  const given = LIMITS.flatMap(({ field, name }) =>
    values[field] === undefined ? [] : [[name, Number(values[field])] as const],
  )
  return given.length === 0 ? undefined : Object.fromEntries(given)
}

function capOf({ cap, period }: Values): object | undefined {
  return cap === undefined ? undefined : { amount: cap, period }
}

function changedLimits(values: Values, { limits, spending_cap }: Key): object {
  const given = { limits: limitsOf(values) ?? null, spending_cap: capOf(values) ?? null }
  const shown = limits === null ? null : Object.fromEntries(Object.entries(limits).filter(([, limit]) => limit != null))
  return changesOf(given, { limits: shown, spending_cap })
}

function keyOf(account: string, values: Values): object {
  const { label, endpoints, models } = values
  return {
    account,
    label,
    endpoints: namesOf(endpoints),
    models: namesOf(models),
    limits: limitsOf(values),
    spending_cap: capOf(values),
  }
}

function namesOf(text: string | undefined): readonly string[] | undefined {
  return text?.split(',').map((name) => name.trim())
}
