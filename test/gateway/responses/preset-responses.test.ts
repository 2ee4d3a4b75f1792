import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { PriceRow } from '../../../src/catalog/prices/prices.ts'
import { type AzureOpenAIOptions, azureOpenai } from '../../../src/vendors/azure-openai/azure-openai.ts'
import { openaiCompatible, type PresetOptions } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { type Preset, presets } from '../../../src/vendors/presets/presets.ts'
import type { Vendor } from '../../../src/vendors/vendor.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { type ResponsesVendor, responsesVendor, vendorEvents, vendorResponse } from './responses-vendor.ts'

const MODEL = 'served'
const KEY = 'vendor-key-canary-7f3a'
const OFFERING = Object.values<Preset>(presets).filter(({ serves }) => serves.includes('responses'))

let vendor: ResponsesVendor
let started: StartedGateway

const perMillion = (meter: PriceRow['meter'], amount: string): PriceRow => ({
  model: MODEL,
  meter,
  amount,
  per: 1_000_000,
})

async function start(asked: Vendor): Promise<void> {
  started = await startGateway({
    vendors: [asked],
    models: [{ id: MODEL, kind: 'chat', vendor: asked.id, upstream: 'their-model', limits: { maxOutputTokens: 2000 } }],
    prices: {
      currency: 'USD',
      prices: [
        perMillion('input_token', '3.00'),
        perMillion('cached_input_token', '0.30'),
        perMillion('output_token', '15.00'),
      ],
    },
  })
}

const ofPreset = (preset: Preset, options: PresetOptions = {}) =>
  start(openaiCompatible(preset, { apiKey: KEY, baseURL: `${vendor.origin}/base`, account: 'a', ...options }))

const ofAzure = (options: Partial<AzureOpenAIOptions> = {}) =>
  start(azureOpenai({ apiKey: KEY, endpoint: vendor.origin, ...options }))

beforeEach(async () => {
  vendor = await responsesVendor()
})

afterEach(async () => {
  await started.close()
  await vendor.close()
})

const post = (body: object) => started.post('/v1/responses', { model: MODEL, input: 'hi', ...body })
const asBodies = () => vendor.calls.map(({ body }) => JSON.parse(body || 'null') as Record<string, unknown>)
const renamed = (text: string): string => text.replaceAll('"gpt-5.4-2026-03-05"', JSON.stringify(MODEL))
const COST = 15n * 3_000n + 5n * 300n + 7n * 15_000n

test('presets say which servers have Responses', () => {
  expect(OFFERING.map(({ id }) => id).sort()).toEqual([
    'groq',
    'huggingface',
    'lmstudio',
    'openrouter',
    'perplexity',
    'vllm',
    'xai',
  ])
  // Checked here so that every test of this file can end the same way.
  return ofPreset(presets.groq)
})

const SERVERS: readonly (readonly [string, string, () => Promise<void>])[] = [
  ...OFFERING.map((preset) => [preset.id, '/base/responses', () => ofPreset(preset)] as const),
  ['Azure', '/openai/v1/responses', () => ofAzure()],
  [
    'Azure by a dated version',
    '/openai/responses?api-version=2025-04-01-preview',
    () => ofAzure({ apiVersion: '2025-04-01-preview' }),
  ],
]

describe.each(SERVERS)('server %s', (_name, path, begin) => {
  beforeEach(begin)

  test('a whole answer and its request pass byte for byte, but for the model, and are charged by the report', async () => {
    const body = `{ "model" :"${MODEL}", "input":"hi\\u0021", "of_the_future": 1e2, "max_output_tokens":99, "metadata":{} }`
    const before = await started.account()
    const answer = await fetch(`${started.url}/v1/responses`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-test-0123456789', 'content-type': 'application/json' },
      body,
    })

    expect(await answer.text()).toBe(renamed(vendor.answer.whole))
    expect(vendor.calls).toMatchObject([{ path: `POST ${path}`, body: body.replace(MODEL, 'their-model') }])
    expect(before.balance - (await started.account()).balance).toBe(COST)
  })

  test('a stream passes byte for byte, but for the model, wherever its bytes are cut', async () => {
    const all = vendor.answer.events.join('')
    vendor.answer.events = [...all]
    const answer = await post({ stream: true })

    expect(await answer.text()).toBe(renamed(all))
  })

  test('a follow-up at once continues the answer', async () => {
    const first = (await (await post({ store: true })).json()) as { id: string }
    await (await post({ input: 'and now', previous_response_id: first.id })).text()
    const [, second] = asBodies()
    const isKept = second!['previous_response_id'] === first.id

    expect(isKept).toBe(path.includes('/openai/') || _name === 'xai')
    if (isKept) expect(second!['input']).toBe('and now')
    else {
      expect(second).not.toHaveProperty('previous_response_id')
      expect(second!['input']).toMatchObject([
        { role: 'user', content: 'hi' },
        { type: 'reasoning' },
        { role: 'assistant', content: [{ text: 'hello there' }] },
        { role: 'user', content: 'and now' },
      ])
      expect(asBodies()[0]).not.toHaveProperty('store')
    }
  })

  test('an answer is deleted where it is kept', async () => {
    await (await post({})).text()
    const { status } = await fetch(`${started.url}/v1/responses/resp_vendor1`, {
      method: 'DELETE',
      headers: { authorization: 'Bearer sk-test-0123456789' },
    })
    const [bare = '', query] = path.split('?')
    const deletion = `DELETE ${bare}/resp_vendor1${query === undefined ? '' : `?${query}`}`

    expect(status).toBe(200)
    const isKept = path.includes('/openai/') || _name === 'xai'
    expect(vendor.calls.slice(1).map((call) => call.path)).toEqual(isKept ? [deletion] : [])
  })

  test('tokens are estimated, because no such server counts them', async () => {
    const answer = await started.post('/v1/responses/input_tokens', { model: MODEL, input: 'hi' })

    expect(await answer.json()).toMatchObject({ object: 'response.input_tokens', estimated: true })
    expect(vendor.calls).toEqual([])
  })

  test(`sends session_id ${_name === 'openrouter' ? 'as its reference lists it' : 'to no server'}`, async () => {
    const answer = await post({ session_id: 's1' })

    expect([answer.status, asBodies()[0]!['session_id']]).toEqual([200, _name === 'openrouter' ? 's1' : undefined])
  })

  test('objects of the operator are refused', async () => {
    const answer = await post({ tools: [{ type: 'file_search', vector_store_ids: ['vs_1'] }] })

    expect(answer.status).toBe(400)
    expect(vendor.calls).toEqual([])
  })

  test('a caller reads nothing of what the operator pays', async () => {
    const usage = {
      ...vendorResponse()['usage']!,
      cost: 0.42,
      cost_details: { a: 1 },
      cost_in_usd_ticks: 5,
      is_byok: true,
    }
    vendor.answer = {
      whole: JSON.stringify(vendorResponse({ usage })),
      events: vendorEvents(vendorResponse({ usage })),
      end: 'clean',
    }
    const whole = (await (await post({})).json()) as { id: string; usage: object }
    const streamed = await (await post({ stream: true })).text()
    const kept = await fetch(`${started.url}/v1/responses/${whole.id}`, {
      headers: { authorization: 'Bearer sk-test-0123456789' },
    })

    expect(whole.usage).toEqual(vendorResponse()['usage'])
    expect(streamed).toContain('"output_tokens":7')
    expect(streamed).not.toMatch(/cost|byok/)
    expect(await kept.text()).not.toMatch(/cost|byok/)
  })
})

test('Groq gets none of the fields that it refuses, and the caller reads which', async () => {
  await ofPreset(presets.groq)
  const answer = await post({
    store: false,
    include: ['reasoning.encrypted_content'],
    prompt_cache_key: 'k',
    truncation: 'auto',
    max_output_tokens: 99,
  })

  expect(answer.headers.get('x-signalbox-dropped')?.split(', ').sort()).toEqual([
    'include',
    'prompt_cache_key',
    'store',
    'truncation',
  ])
  expect(asBodies()).toEqual([{ model: 'their-model', input: 'hi', max_output_tokens: 99 }])
})

test('passes a promise to store nothing on to a server that stores answers by default', async () => {
  await ofPreset(presets.lmstudio)
  await (await post({ store: false, max_output_tokens: 99 })).text()

  expect(asBodies()).toEqual([{ model: 'their-model', input: 'hi', store: false, max_output_tokens: 99 }])
})

test.each([
  ['a preset that has them', () => ofPreset(presets.vllm, { responses: false }), '/base/chat/completions'],
  ['a preset that has none', () => ofPreset(presets.deepseek), '/base/chat/completions'],
  ['Azure', () => ofAzure({ responses: false }), '/openai/v1/chat/completions'],
  [
    'a version of Azure before them',
    () => ofAzure({ apiVersion: '2024-10-21' }),
    '/openai/deployments/their-model/chat/completions?api-version=2024-10-21',
  ],
])('without Responses a request is translated into chat completions: %s', async (_name, begin, path) => {
  await begin()
  await (await post({})).text()

  expect(vendor.calls[0]?.path).toBe(`POST ${path}`)
})

test('a server whose preset has none gets them where the operator says so', async () => {
  await ofPreset(presets.ollama, { responses: true })
  await (await post({})).text()

  expect(vendor.calls[0]?.path).toBe('POST /base/responses')
})

test('charges reasoning that a server counts separately from its output', async () => {
  await ofPreset(presets.xai)
  const usage = {
    input_tokens: 12,
    output_tokens: 1,
    output_tokens_details: { reasoning_tokens: 290 },
    total_tokens: 303,
  }
  vendor.answer.whole = JSON.stringify(vendorResponse({ usage }))
  const before = await started.account()
  const answer = await post({})

  expect(((await answer.json()) as { usage: object }).usage).toMatchObject({ output_tokens: 291, total_tokens: 303 })
  expect(before.balance - (await started.account()).balance).toBe(12n * 3_000n + 291n * 15_000n)
})

test.each([true, false])(
  'charges tokens that a server read from its cache and counts separately from its input (streamed: %s)',
  async (stream) => {
    await ofPreset(presets.xai)
    const usage = {
      input_tokens: 5,
      input_tokens_details: { cached_tokens: 100 },
      output_tokens: 10,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 115,
    }
    const response = vendorResponse({ usage })
    vendor.answer = { ...vendor.answer, whole: JSON.stringify(response), events: vendorEvents(response) }
    const before = await started.account()
    const answer = await post({ stream })
    const text = await answer.text()
    await started.ended(answer)

    expect(text).toMatch(/"input_tokens":105,.*"total_tokens":115/)
    expect(before.balance - (await started.account()).balance).toBe(5n * 3_000n + 100n * 300n + 10n * 15_000n)
  },
)

test('sends images by URL as bytes to a server that accepts only bytes', async () => {
  await ofPreset(presets.lmstudio)
  const content = [{ type: 'input_image', image_url: `${vendor.origin}/not-there.png` }]
  const answer = await post({ input: [{ role: 'user', content }] })

  // The gateway fetched the URL, and found no image.
  expect(answer.status).toBe(400)
  expect(vendor.calls.map(({ path }) => path)).toEqual(['GET /not-there.png'])
})
