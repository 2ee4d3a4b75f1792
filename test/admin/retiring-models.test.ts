import { afterEach, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../src/core/clock.ts'
import { formatDollars, parseDollars } from '../../src/core/money.ts'
import { chatBody, TEST_MODELS } from '../support/start-gateway.ts'
import { ADMIN_STORES, type StartedAdmin, startAdmin } from './support/start-admin.ts'

const DAY_MS = 24 * 60 * 60_000
const dayIn = (days: number): string => new Date(Date.now() + days * DAY_MS).toISOString().slice(0, 10)
const [RELAYED, , QWEN] = TEST_MODELS

let started: StartedAdmin

afterEach(() => started.close())

async function costOf(text: string, model: string): Promise<bigint> {
  const answer = await started.post('/v1/chat/completions', chatBody(model, text))
  await answer.text()
  await started.ended(answer)
  return parseDollars(answer.headers.get('x-signalbox-cost') ?? '')
}

test.each(ADMIN_STORES)('lists called models that retire soon with their spend, on %s', async (_name, store) => {
  let offsetMs = 0
  const clock: Clock = { ...systemClock, now: () => Date.now() + offsetMs }
  const models = [
    { ...RELAYED, retires: dayIn(10) },
    { ...QWEN, retires: dayIn(61) },
    { ...QWEN, id: 'uncalled', retires: dayIn(10) },
  ]
  started = await startAdmin({ store: store(), models, clock }, { clock })
  const cost = (await costOf('hello', 'chat-relayed')) + (await costOf('and again', 'chat-relayed'))
  await costOf('hello', 'chat-qwen')
  await costOf('hello', 'cl-sonnet-4-6')
  const { status, body } = await started.ask('GET', '/models/retiring')
  offsetMs = 40 * DAY_MS
  const later = await started.ask('GET', '/models/retiring')
  const listed = await started.ask('GET', '/models')

  expect(status).toBe(200)
  expect(body['data']).toEqual([
    {
      object: 'retiring_model',
      id: 'chat-relayed',
      vendor: 'openai',
      retires: dayIn(10),
      requests: 2,
      charged: formatDollars(cost),
    },
  ])
  // The calls are more than 30 days old then.
  expect(later.body['data']).toEqual([])
  const days = (listed.body['data'] as { id: string; retires: string | null }[]).map(({ id, retires }) => [id, retires])
  expect(days).toContainEqual(['chat-qwen', dayIn(61)])
  expect(days).toContainEqual(['cl-sonnet-4-6', null])
})

test('says that usage is off instead of an empty list', async () => {
  started = await startAdmin({ usage: 'off' })
  const { status, body } = await started.ask('GET', '/models/retiring')

  expect(status).toBe(400)
  expect(body).toMatchObject({ error: { message: expect.stringContaining('usage is not recorded') } })
})
