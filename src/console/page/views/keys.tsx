import { useState } from 'preact/hooks'
import type { Key, List, MadeKey, Session, Spending } from '../answers.ts'
import { changesOf, queryOf } from '../api.ts'
import { money, time } from '../format.ts'
import {
  Badge,
  ConfirmButton,
  choices,
  Disclosure,
  Empty,
  Fault,
  Field,
  Form,
  Loaded,
  Pager,
  Section,
  Table,
  type Values,
} from '../parts.tsx'
import { may } from '../session.ts'
import { useChange, useData } from '../use-data.ts'

interface KeysProps {
  readonly account: string
  readonly session: Session
  /** Spending; `undefined` until it has been read. */
  readonly spending: Spending | undefined
  /** Called when a cap was changed. */
  onChange(): void
}

/** Keys of an account. */
export function Keys({ account, session, spending, onChange }: KeysProps) {
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
  return (
    <Section title="Keys">
      {made?.key == null ? null : (
        <p class="made" role="status">
          The new key <code>{made.key}</code> is shown this once. Copy it now.{' '}
          <button type="button" class="small" onClick={() => setMade(undefined)}>
            Done
          </button>
        </p>
      )}
      {mayMake ? (
        <Disclosure summary="New key">
          <Form
            name="New key"
            button="Create key"
            isRunning={creation.isRunning}
            error={creation.error}
            made={creation.made}
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
          isRunning={limiting.isRunning}
          error={limiting.error}
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
      <Loaded of={keys}>
        {({ data, next }) =>
          data.length === 0 ? (
            <Empty>No keys. {mayMake ? 'Create one above; callers send it as bearer token.' : ''}</Empty>
          ) : (
            <>
              <Table name="Keys" head={['label', 'key', 'scope', 'limits', 'spent', 'created', 'state', 'action']}>
                {data.map((key) => (
                  <tr key={key.id}>
                    <td>{key.label}</td>
                    <td>
                      <code>{key.id}</code>
                    </td>
                    <td>{scopeText(key)}</td>
                    <td>{limitsText(key)}</td>
                    <td>{spentText(key, spent.get(key.id))}</td>
                    <td>{time(key.created_at_ms)}</td>
                    <td>
                      <KeyState of={key} />
                    </td>
                    <td>
                      {mayChange && key.revoked_at_ms === null ? (
                        <>
                          <button type="button" class="small" onClick={() => setLimited(key)}>
                            Limits
                          </button>{' '}
                          {mayMake ? (
                            <ConfirmButton
                              label="Rotate"
                              question="Make a new key? This one ends in a day."
                              onConfirm={() => rotation.run('POST', `keys/${encodeURIComponent(key.id)}/rotate`)}
                            />
                          ) : null}{' '}
                          <ConfirmButton
                            label="Revoke"
                            question="End this key for good?"
                            onConfirm={() => revocation.run('POST', `keys/${encodeURIComponent(key.id)}/revoke`)}
                          />
                        </>
                      ) : null}
                    </td>
                  </tr>
                ))}
              </Table>
              <Pager after={after} next={next} labels={['Oldest', 'Newer']} onPage={setAfter} />
            </>
          )
        }
      </Loaded>
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

/** Fields of limits and cap, filled with those of a key. */
function LimitFields({ of }: { of?: Key }) {
  const { limits, spending_cap: cap } = of ?? { limits: null, spending_cap: null }
  const text = (limit: number | null | undefined): string => (limit == null ? '' : String(limit))
  return (
    <>
      <Field name="rpm" label="Requests per minute" type="number" value={text(limits?.requests_per_minute)} />
      <Field name="tpm" label="Tokens per minute" type="number" value={text(limits?.tokens_per_minute)} />
      <Field name="concurrency" label="At once" type="number" value={text(limits?.concurrency)} />
      <Field name="cap" label="Spending cap, dollars" value={cap?.amount ?? ''} />
      <Field name="period" label="Cap period" value={cap?.period ?? 'month'} options={choices('month', 'day')} />
    </>
  )
}

/** Spending of a key, and its cap if there is one. */
function spentText({ spending_cap: cap }: Key, spent: Spending['keys'][number] | undefined): string {
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
  if (limits === null) return ''
  const texts = [
    limits.requests_per_minute == null ? '' : `${limits.requests_per_minute} requests/min`,
    limits.tokens_per_minute == null ? '' : `${limits.tokens_per_minute} tokens/min`,
    limits.concurrency == null ? '' : `${limits.concurrency} at once`,
  ]
  return texts.filter((text) => text !== '').join(', ')
}

function limitsOf({ rpm, tpm, concurrency }: Values): object | undefined {
  const limits = {
    ...(rpm === undefined ? {} : { requests_per_minute: Number(rpm) }),
    ...(tpm === undefined ? {} : { tokens_per_minute: Number(tpm) }),
    ...(concurrency === undefined ? {} : { concurrency: Number(concurrency) }),
  }
  return Object.keys(limits).length === 0 ? undefined : limits
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
