import { useState } from 'preact/hooks'
import { type Delivery, type List, queryOf, type Session, type Task, useChange, useData } from '../api.ts'
import { hrefOf, may, type Place, time } from '../format.ts'
import { Amount, Badge, choices, Empty, Fault, Field, Form, Loaded, Section, Table } from '../parts.tsx'

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
      <TaskList
        path={`tasks${queryOf({ account, state, after, limit: 50 })}`}
        isFiltered={account !== undefined || state !== undefined}
        olderHref={(next) => hrefOf(steps, { state, messages, after: next })}
        onShow={setShown}
      />
      {shown === undefined ? (
        <Messages
          title="Webhook messages"
          path={`deliveries${queryOf({ account, state: messages, after: behind, limit: 50 })}`}
          empty="No messages here. A task with a webhook_url causes one when it ends."
          olderHref={(next) => hrefOf(steps, { state, messages, after, messages_after: next })}
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
          <button type="button" class="small" onClick={() => setShown(undefined)}>
            All messages
          </button>
        </>
      )}
    </>
  )
}

interface TaskListProps {
  readonly path: string
  readonly isFiltered: boolean
  olderHref(next: string): string
  onShow(task: Task): void
}

function TaskList({ path, isFiltered, olderHref, onShow }: TaskListProps) {
  const tasks = useData<List<Task>>(path, true)
  return (
    <Loaded of={tasks}>
      {({ data, next }) =>
        data.length === 0 ? (
          <Empty>
            {isFiltered ? 'No task fits these filters.' : 'No tasks yet. A call of /v1/videos/generations makes one.'}
          </Empty>
        ) : (
          <>
            <Table
              name="Tasks"
              head={['task', 'account', 'state', 'model', 'vendor', ['cost'], 'created', 'changed', 'webhook']}
            >
              {data.map((task) => (
                <tr key={task.id}>
                  <td>
                    {ENDED.has(task.state) ? (
                      <a href={hrefOf(['requests', task.request], { ended_at: task.updated_at_ms })}>
                        <code>{task.id}</code>
                      </a>
                    ) : (
                      <code>{task.id}</code>
                    )}
                  </td>
                  <td>
                    <a href={hrefOf(['accounts', task.account])}>{task.account}</a>
                  </td>
                  <td>
                    <Badge kind={KINDS[task.state as keyof typeof KINDS] ?? 'plain'}>{task.state}</Badge>{' '}
                    {task.error === null ? null : [task.error.code, task.error.message].filter(Boolean).join(': ')}
                  </td>
                  <td>{task.model}</td>
                  <td>{task.vendor}</td>
                  <td class="number">{task.cost === null ? '–' : <Amount of={task.cost} />}</td>
                  <td>{time(task.created_at_ms)}</td>
                  <td>{time(task.updated_at_ms)}</td>
                  <td>
                    {task.has_webhook ? (
                      <button type="button" class="small" onClick={() => onShow(task)}>
                        Messages<span class="hidden"> about {task.id}</span>
                      </button>
                    ) : (
                      'none'
                    )}
                  </td>
                </tr>
              ))}
            </Table>
            {next === null ? null : <a href={olderHref(next)}>Older tasks</a>}
          </>
        )
      }
    </Loaded>
  )
}

interface MessagesProps {
  readonly title: string
  readonly path: string
  readonly empty: string
  readonly session: Session
  olderHref?(next: string): string
}

function Messages({ title, path, empty, session, olderHref }: MessagesProps) {
  const deliveries = useData<List<Delivery>>(path, true)
  const resend = useChange(() => deliveries.reload())
  return (
    <Section title={title}>
      <Fault text={resend.error} />
      <Loaded of={deliveries}>
        {({ data, next }) =>
          data.length === 0 ? (
            <Empty>{empty}</Empty>
          ) : (
            <>
              <Table
                name={title}
                head={['message', 'account', 'task', 'to', 'state', ['attempts'], 'last attempt', 'action']}
              >
                {data.map((delivery) => (
                  <DeliveryRow
                    key={delivery.id}
                    delivery={delivery}
                    isBusy={resend.isRunning}
                    {...(may(session, 'write')
                      ? { onResend: () => resend.run('POST', `${pathOf(delivery)}/resend`) }
                      : {})}
                  />
                ))}
              </Table>
              {next === null || olderHref === undefined ? null : <a href={olderHref(next)}>Older messages</a>}
            </>
          )
        }
      </Loaded>
    </Section>
  )
}

function pathOf({ account, id }: Delivery): string {
  return `accounts/${encodeURIComponent(account)}/deliveries/${encodeURIComponent(id)}`
}

function DeliveryRow({ delivery, isBusy, onResend }: { delivery: Delivery; isBusy: boolean; onResend?: () => void }) {
  const last = delivery.attempts.at(-1)
  return (
    <tr>
      <td>
        <code>{delivery.id}</code>
      </td>
      <td>
        <a href={hrefOf(['accounts', delivery.account])}>{delivery.account}</a>
      </td>
      <td>
        <code>{delivery.task}</code>
      </td>
      <td>{delivery.url}</td>
      <td>
        <Badge kind={DELIVERY_KINDS[delivery.state]}>{delivery.state}</Badge>
      </td>
      <td class="number">{delivery.attempts.length}</td>
      <td>{last === undefined ? '–' : `${time(last.at_ms)}: ${last.status ?? ''} ${last.error ?? ''}`}</td>
      <td>
        {onResend === undefined ? null : (
          <button type="button" class="small" disabled={isBusy} onClick={onResend}>
            Send again
          </button>
        )}
      </td>
    </tr>
  )
}
