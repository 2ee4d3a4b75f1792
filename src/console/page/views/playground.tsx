import { useEffect, useRef, useState } from 'preact/hooks'
import {
  type Account,
  ApiError,
  type List,
  type Model,
  readTexts,
  type Session,
  send,
  textOf,
  useData,
} from '../api.ts'
import { duration, hrefOf, may, money } from '../format.ts'
import { choices, Empty, Fault, Field, Form, Loaded, Section, type Values } from '../parts.tsx'

interface Run {
  readonly text: string
  readonly isRunning: boolean
  readonly error?: string
  readonly requestId?: string | undefined
  readonly cost?: string | undefined
  readonly durationMs?: number
}

/** Form for a call on behalf of an account, which pays for it. */
export function Playground({ session }: { session: Session }) {
  const models = useData<List<Model>>('models')
  const accounts = useData<List<Account>>('accounts?limit=1000')
  const [run, setRun] = useState<Run>()
  const abort = useRef<AbortController>()
  // Leaving the page ends the call and its cost.
  useEffect(() => () => abort.current?.abort(), [])
  if (!may(session, 'play')) return <Empty>You may not make calls: that takes the scope “play”.</Empty>
  const start = (values: Values): void => {
    abort.current?.abort()
    const controller = new AbortController()
    abort.current = controller
    void play(values, controller.signal, setRun)
  }
  return (
    <div class="columns">
      <Section title="Request">
        <Loaded of={models}>
          {({ data }) => {
            const chat = data.filter(({ available, kinds }) => available && kinds.includes('chat')).map(({ id }) => id)
            if (chat.length === 0)
              return <Empty>No chat model is available. Give a vendor a key, or start with npm start.</Empty>
            return (
              <Loaded of={accounts}>
                {(page) =>
                  page.data.length === 0 ? (
                    <Empty>
                      No account could pay. Create one under <a href={hrefOf(['accounts'])}>accounts</a>.
                    </Empty>
                  ) : (
                    <Form
                      name="Playground"
                      button="Send"
                      change={{ isRunning: run?.isRunning === true }}
                      onSubmit={start}
                    >
                      {page.has_more ? (
                        <Field name="account" label="Account that pays" hint="its id" isRequired />
                      ) : (
                        <Field
                          name="account"
                          label="Account that pays"
                          options={choices(...page.data.map(({ id }) => id))}
                        />
                      )}
                      <Field name="model" label="Model" options={choices(...chat)} />
                      <Field name="system" label="System" />
                      <label>
                        <span>Message</span>
                        <textarea name="message" rows={4} required defaultValue="Say hello" />
                      </label>
                      <Field name="stream" label="Answer" options={STREAMS} />
                    </Form>
                  )
                }
              </Loaded>
            )
          }}
        </Loaded>
      </Section>
      <Section title="Answer">
        {run === undefined ? (
          <Empty>The answer will be here.</Empty>
        ) : (
          <Answer run={run} onCancel={() => abort.current?.abort()} />
        )}
      </Section>
    </div>
  )
}

const STREAMS = [
  ['yes', 'as it comes'],
  ['no', 'as a whole'],
] as const

function Answer({ run, onCancel }: { run: Run; onCancel(): void }) {
  const { text, isRunning, error, requestId, cost, durationMs } = run
  return (
    <>
      <pre class="answer" aria-live="polite" aria-busy={isRunning}>
        {text}
      </pre>
      {isRunning ? (
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
      ) : null}
      <Fault text={error} />
      <p class="note">
        {durationMs === undefined ? null : `${duration(durationMs)} `}
        {cost === undefined ? null : `${money(cost)} `}
        {requestId === undefined || isRunning ? null : <a href={hrefOf(['requests', requestId])}>{requestId}</a>}
      </p>
    </>
  )
}

async function play(
  { account, model, system, message = '', stream }: Values,
  signal: AbortSignal,
  show: (run: Run) => void,
): Promise<void> {
  const startedAtMs = performance.now()
  let text = ''
  let facts: Pick<Run, 'requestId' | 'cost'> = {}
  show({ text, isRunning: true })
  try {
    const messages = [
      ...(system === undefined ? [] : [{ role: 'system', content: system }]),
      { role: 'user', content: message },
    ]
    const request = { model, messages, stream: stream !== 'no' }
    const body = { account, path: '/v1/chat/completions', request }
    const response = await send('POST', 'playground', { body, signal })
    const { headers } = response
    facts = { requestId: headers.get('x-request-id') ?? undefined, cost: headers.get('x-signalbox-cost') ?? undefined }
    for await (const piece of readTexts(response)) {
      text += piece
      show({ text, isRunning: true, ...facts })
    }
    show({ text, isRunning: false, ...facts, durationMs: performance.now() - startedAtMs })
  } catch (error) {
    const reason = signal.aborted && !(error instanceof ApiError) ? 'Cancelled.' : textOf(error)
    show({ text, isRunning: false, ...facts, error: reason })
  }
}
