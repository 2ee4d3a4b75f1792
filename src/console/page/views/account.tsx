import type { Account as AccountObject, MoneyChange, Session, Spending } from '../answers.ts'
import { changesOf } from '../api.ts'
import { money, time } from '../format.ts'
import { hrefOf } from '../location.ts'
import {
  Amount,
  Card,
  Cards,
  ConfirmButton,
  choices,
  Disclosure,
  Fault,
  Field,
  Form,
  Loaded,
  type Values,
} from '../parts.tsx'
import { may } from '../session.ts'
import { type Read, useChange, useData } from '../use-data.ts'
import { Books } from './books.tsx'
import { Keys } from './keys.tsx'

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
              <Card name="Spent today" value={spentText(spending.data?.spent_day)} note={monthText(spending.data)} />
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

function spentText(amount: string | undefined): string {
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
        isRunning={credit.isRunning}
        error={credit.error}
        made={credit.made}
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
        isRunning={adjustment.isRunning}
        error={adjustment.error}
        made={adjustment.made}
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
        isRunning={change.isRunning}
        error={change.error}
        onSubmit={(values) => change.run('PATCH', path, changesOf(settingsOf(values, mayMoney), { ...account }))}
      >
        <Field name="name" label="Name" value={account.name ?? ''} />
        <Field name="tier" label="Tier" value={account.tier} options={choices('paid', 'free')} />
        <Field name="plan" label="Plan" value={account.plan ?? ''} />
        <Field name="cap" label="Spending cap, dollars" value={account.spending_cap?.amount ?? ''} />
        <Field
          name="period"
          label="Cap period"
          value={account.spending_cap?.period ?? 'month'}
          options={choices('month', 'day')}
        />
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
          isRunning={frost.isRunning}
          error={frost.error}
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
    spending_cap: cap === undefined ? null : { amount: cap, period },
    ...(mayMoney ? { billing: billing ?? null, credit_limit: credit_limit ?? null } : {}),
  }
}
