import { afterEach, describe, expect, test } from 'vitest'
import { rawPost } from '../support/raw-caller.ts'
import { type StartedGateway, startGateway } from '../support/start-gateway.ts'
import { messagesBody } from './messages-requests.ts'

const PATH = '/v1/messages'
const WORDS = Array.from({ length: 200 }, (_, number) => `word${number}`).join(' ')

let started: StartedGateway

afterEach(() => started.close())

describe.each(['cl-sonnet-4-6', 'gmn-2.5-flash', 'chat-relayed'])('a caller of %s who leaves', (model) => {
  test('after some events is charged once, for what came, and the vendor is stopped', async () => {
    started = await startGateway({ drainMs: 200 })
    const caller = rawPost(started.url, PATH, messagesBody(model, `[[fault:pace=5]] ${WORDS}`, { stream: true }))
    await caller.received('word3')
    const ending = started.nextEnded()
    caller.leave()
    await started.sandbox.nextAbort()
    const ended = await ending

    expect(ended).toMatchObject({ ending: 'abandoned', endpoint: 'messages' })
    expect(ended.costNanoDollars).toBeGreaterThan(0n)
    expect(ended.usage?.outputTokens).toBeGreaterThan(0)
    expect(await started.account()).toEqual({ held: 0n, balance: 100_000_000_000n - ended.costNanoDollars })
    expect(started.events.filter((event) => event.type === 'request-ended')).toHaveLength(1)
  })

  test('before the answer pays for the prompt, once', async () => {
    started = await startGateway({ disconnect: 'cancel', drainMs: 200 })
    const caller = rawPost(started.url, PATH, messagesBody(model, '[[fault:hang]] a prompt'))
    await started.sandbox.nextRequest()
    const ending = started.nextEnded()
    caller.leave()
    await started.sandbox.nextAbort()
    const ended = await ending

    expect(ended.ending).toBe('abandoned')
    expect(ended.costNanoDollars).toBeGreaterThan(0n)
    expect((await started.account()).held).toBe(0n)
  })
})

test('the same Idempotency-Key gets the same message again, charged once', async () => {
  started = await startGateway({ drainMs: 200 })
  const send = (): Promise<Response> =>
    started.post(PATH, messagesBody('gmn-2.5-flash', 'hello'), { 'idempotency-key': 'once' })
  const first = await send()
  const [answer, { balance }] = [await first.text(), await started.account()]
  const second = await send()

  expect(await second.text()).toBe(answer)
  expect(second.headers.get('idempotent-replayed')).toBe('true')
  expect(second.headers.get('request-id')).toBe(second.headers.get('x-request-id'))
  expect((await started.account()).balance).toBe(balance)
})
