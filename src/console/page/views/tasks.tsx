import { useState } from 'preact/hooks'
import { type Delivery, type List, queryOf, type Session, type Task, useChange, useData } from '../api.ts'
import { hrefOf, may, type Place, time } from '../format.ts'
import { Amount, Badge, type Column, choices, Fault, Field, Form, ListTable, Section, SmallButton } from '../parts.tsx'

const KINDS = { completed: 'good', failed: 'bad', cancelled: 'warn', unknown: 'bad' } as const
const DELIVERY_KINDS = { pending: 'warn', delivered: 'good', failed: 'bad', disabled: 'bad' } as const

/** States in which a task has a usage record. */
const ENDED: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled'])

const ANY = ['', 'any'] as const
const STATES = choices('submitting', 'unknown', 'queued', 'in_progress', 'completed', 'failed', 'cancelled')
const MESSAGE_STATES = choices('pending', 'delivered', 'failed', 'disabled')

/** Long jobs of all accounts or of one, newest first, and the messages about them; filters and pages are in the URL. */
export function Tasks({ account, place, session }: { account: string | undefined; place: Place; session: Session }) {
  const of = (name: string): string | undefined => place.query.get(name) ?? undefined
  const [state, messages, after, behind] = [of('state'), of('messages'), of('after'), of('messages_after')]
  const steps = account === undefined ? ['tasks'] : ['tasks', account]
  const [shown, setShown] = useState<Pick<Task, 'id' | 'account'>>()
  const tasks = useData<List<Task>>(`tasks${queryOf({ account, state, after, limit: 50 })}`, true)
  const messagesButton = (task: Task) =>
    task.has_webhook ? (
      <SmallButton onClick={() => setShown(task)}>
        Messages<span class="hidden"> about {task.id}</span>
      </SmallButton>
    ) : (
      'none'
    )
  return (
    <>
      <Form
        name="Filters"
        button="Show"
        onSubmit={({ account: name, ...states }) => {
          setShown(undefined)
          location.hash = hrefOf(name === undefined ? ['tasks'] : ['tasks', name], states)
        }}
      >
        <Field key={`account ${account ?? ''}`} name="account" label="Account" value={account} />
        <Field key={`state ${state ?? ''}`} name="state" label="Tasks" value={state} options={[ANY, ...STATES]} />
        <Field
          key={`messages ${messages ?? ''}`}
          name="messages"
          label="Messages"
          value={messages}
          options={[ANY, ...MESSAGE_STATES]}
        />
      </Form>
      <ListTable
        name="Tasks"
        of={tasks}
        columns={[...TASK_COLUMNS, ['webhook', messagesButton]]}
        empty={
          account === undefined && state === undefined
            ? 'No tasks yet. A call of /v1/videos/generations makes one.'
            : 'No task fits these filters.'
        }
        pages={{
          after,
          labels: ['Newest tasks', 'Older tasks'],
          href: (after) => hrefOf(steps, { state, messages, after }),
        }}
      />
      {shown === undefined ? (
        <Messages
          title="Webhook messages"
          path={`deliveries${queryOf({ account, state: messages, after: behind, limit: 50 })}`}
          empty="No messages here. A task with a webhook_url causes one when it ends."
          pages={{
            after: behind,
            labels: ['Newest messages', 'Older messages'],
            href: (behind) => hrefOf(steps, { state, messages, after, messages_after: behind }),
          }}
          session={session}
        />
      ) : (
        <>
          <Messages
            title={`Messages about ${shown.id}`}
            path={`accounts/${encodeURIComponent(shown.account)}/tasks/${encodeURIComponent(shown.id)}/deliveries`}
            empty="No message yet: one is sent when the task ends."
            session={session}
          />
          <SmallButton onClick={() => setShown(undefined)}>All messages</SmallButton>
        </>
      )}
    </>
  )
}

const TASK_COLUMNS: readonly Column<Task>[] = [
  [
    'task',
    ({ id, state, request, updated_at_ms: endedAt }) =>
      ENDED.has(state) ? (
        <a href={hrefOf(['requests', request], { ended_at: endedAt })}>
          <code>{id}</code>
        </a>
      ) : (
        <code>{id}</code>
      ),
  ],
  ['account', ({ account }) => <a href={hrefOf(['accounts', account])}>{account}</a>],
  [
    'state',
    ({ state, error }) => (
      <>
        <Badge kind={KINDS[state as keyof typeof KINDS] ?? 'plain'}>{state}</Badge>{' '}
        {error === null ? null : [error.code, error.message].filter(Boolean).join(': ')}
      </>
    ),
  ],
  ['model', ({ model }) => model],
  ['vendor', ({ vendor }) => vendor],
  ['cost', ({ cost }) => (cost === null ? '–' : <Amount of={cost} />), 'number'],
  ['created', (task) => time(task.created_at_ms)],
  ['changed', (task) => time(task.updated_at_ms)],
]

interface MessagesProps {
  readonly title: string
  readonly path: string
  readonly empty: string
  readonly session: Session
  readonly pages?: Parameters<typeof ListTable>[0]['pages']
}

function Messages({ title, path, empty, session, pages }: MessagesProps) {
  const deliveries = useData<List<Delivery>>(path, true)
  const resend = useChange(() => deliveries.reload())
  const resendOf = ({ account, id }: Delivery): void =>
    resend.run('POST', `accounts/${encodeURIComponent(account)}/deliveries/${encodeURIComponent(id)}/resend`)
  const columns: readonly Column<Delivery>[] = [
    ...DELIVERY_COLUMNS,
    [
      'action',
      (delivery) =>
        may(session, 'write') ? (
          <SmallButton isDisabled={resend.isRunning} onClick={() => resendOf(delivery)}>
            Send again
          </SmallButton>
        ) : null,
    ],
  ]
  return (
    <Section title={title}>
      <Fault text={resend.error} />
      <ListTable name={title} of={deliveries} columns={columns} empty={empty} pages={pages} />
    </Section>
  )
}

const DELIVERY_COLUMNS: readonly Column<Delivery>[] = [
  ['message', ({ id }) => <code>{id}</code>],
  ['account', ({ account }) => <a href={hrefOf(['accounts', account])}>{account}</a>],
  ['task', ({ task }) => <code>{task}</code>],
  ['to', ({ url }) => url],
  ['state', ({ state }) => <Badge kind={DELIVERY_KINDS[state]}>{state}</Badge>],
  ['attempts', ({ attempts }) => attempts.length, 'number'],
  [
    'last attempt',
    ({ attempts }) => {
      const last = attempts.at(-1)
      return last === undefined ? '–' : `${time(last.at_ms)}: ${last.status ?? ''} ${last.error ?? ''}`
    },
  ],
]
