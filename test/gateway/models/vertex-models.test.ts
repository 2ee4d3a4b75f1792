import { afterEach, expect, test } from 'vitest'
import { listPrices } from '../../../src/catalog/prices/list-prices.ts'
import { sandboxVendors } from '../../../src/testing/index.ts'
import { anthropicVertex } from '../../../src/vendors/anthropic/anthropic.ts'
import { vertex } from '../../../src/vendors/gemini/gemini.ts'
import { chatBody, type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { wavFile } from '../../wire/audio/written-files.ts'
import { postForm, transcriptionForm } from '../audio/transcription-gateway.ts'

const sandbox = sandboxVendors()
let started: StartedGateway

afterEach(async () => {
  await started.close()
  await sandbox.close()
})

async function start(location: string): Promise<void> {
  const { origin: baseURL } = await sandbox.listen()
  const place = { project: 'our-project', location, baseURL, apiKey: () => ({ token: 'any-token' }) }
  started = await startGateway({
    vendors: [vertex(place), anthropicVertex(place)],
    models: [],
    prices: listPrices({ markup: '2' }),
  })
}

test.each([
  ['gemini-3.5-flash', 'vertex', '0.00006'],
  ['vertex/gemini-3.5-flash', 'vertex', '0.00006'],
  ['claude-haiku-4-5@20251001', 'anthropic-vertex', '0.000034'],
  ['claude-opus-4-8', 'anthropic-vertex', '0.00017'],
  ['anthropic-vertex/claude-opus-4-8', 'anthropic-vertex', '0.00017'],
  ['gemini-2.5-flash', 'vertex', '0.0000162'],
  ['vertex/gemini-2.5-flash', 'vertex', '0.0000162'],
  ['openai/gpt-oss-120b-maas', 'vertex', '0.00000252'],
])('%s is answered without a row, by %s at its list price', async (model, vendor, cost) => {
  await start('global')
  const answer = await started.post('/v1/chat/completions', chatBody(model, 'Hello'))

  expect(answer.status, await answer.clone().text()).toBe(200)
  expect(await answer.json()).toMatchObject({ choices: [{ message: { content: 'You said: Hello' } }] })
  expect(answer.headers.get('x-signalbox-vendor')).toBe(vendor)
  expect(answer.headers.get('x-signalbox-cost')).toBe(cost)
})

test.each(['gemini-embedding-001', 'vertex/gemini-embedding-001'])(
  'embeddings of %s are those of Vertex',
  async (model) => {
    await start('global')
    const answer = await started.post('/v1/embeddings', { model, input: 'Hello' })

    expect(answer.status, await answer.clone().text()).toBe(200)
    expect((await answer.json()).data[0].embedding).toHaveLength(3072)
  },
)

test('a recording is transcribed by a model of a row, and charged once in each format', async () => {
  const { origin: baseURL } = await sandbox.listen()
  const models = [{ id: 'ears', kind: ['transcription'] as const, upstream: 'gemini-2.5-flash' }]
  const prices = [
    { model: 'ears', meter: 'input_token' as const, amount: '2', per: 1_000_000 },
    { model: 'ears', meter: 'output_token' as const, amount: '5', per: 1_000_000 },
  ]
  started = await startGateway({
    vendors: [
      vertex({ project: 'our-project', location: 'global', baseURL, apiKey: () => ({ token: 'any-token' }), models }),
    ],
    models: [],
    prices: { currency: 'USD', prices },
  })
  const talk = wavFile({ seconds: 12.5 })
  const costs: bigint[] = []
  for (const response_format of ['json', 'text']) {
    const before = await started.account()
    const answer = await postForm(started.url, transcriptionForm(talk, { model: 'ears', response_format }))
    expect(await answer.text()).toContain('This recording is 12.5 seconds long.')
    await started.ended(answer)
    const after = await started.account()
    expect(after.held).toBe(0n)
    costs.push(before.balance - after.balance)
  }
  const refused = await postForm(started.url, transcriptionForm(talk, { model: 'ears', response_format: 'srt' }))

  expect(costs[0]).toBeGreaterThan(0n)
  expect(costs[1]).toBe(costs[0])
  expect(refused.status).toBe(400)
  expect((await refused.json()).error.param).toBe('response_format')
})

test('each model is listed for the vendor that serves it, once', async () => {
  await start('global')
  const listed = started.gateway.models().filter(({ owned_by }) => /vertex/.test(owned_by))
  const ofClaude = listed.filter(({ id }) => /claude/.test(id))

  expect(ofClaude.length).toBeGreaterThan(5)
  expect(ofClaude.every(({ owned_by }) => owned_by === 'anthropic-vertex')).toBe(true)
  expect(listed.some(({ owned_by, id }) => owned_by === 'vertex' && id.includes('gemini'))).toBe(true)
  expect(new Set(listed.map(({ id }) => id)).size).toBe(listed.length)
})

test('a region whose price is another one has no list price, and is refused until it has a row', async () => {
  await start('us-east5')
  const refused = await started.post('/v1/chat/completions', chatBody('claude-haiku-4-5@20251001', 'Hello'))
  const older = await started.post('/v1/chat/completions', chatBody('claude-opus-4-1@20250805', 'Hello'))

  expect(refused.status).toBe(400)
  expect(await refused.json()).toMatchObject({ error: { code: 'model_not_priced' } })
  expect(older.status, await older.clone().text()).toBe(200)
})
