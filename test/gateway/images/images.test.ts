import { afterEach, describe, expect, test } from 'vitest'
import { gemini } from '../../../src/vendors/gemini/gemini.ts'
import { type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'
import { scriptedVendor } from './image-vendor.ts'

let started: StartedGateway

afterEach(() => started.close())

const PATH = '/v1/images/generations'

function multimodal(model: string, content: unknown[], parameters?: Record<string, unknown>): Record<string, unknown> {
  return {
    model,
    input: { messages: [{ role: 'user', content }] },
    ...(parameters === undefined ? {} : { parameters }),
  }
}

interface MultimodalAnswer {
  readonly output: {
    readonly choices: readonly { readonly message: { readonly content: readonly { image: string }[] } }[]
  }
}

interface InteractionAnswer {
  readonly id: string
  readonly status: string
  readonly model: string
  readonly steps: readonly { readonly type: string }[]
}

describe('the multimodal shape', () => {
  test('creates an image, passes its signed URL unchanged, and charges it by its size', async () => {
    started = await startGateway()

    const answer = await started.post(
      PATH,
      multimodal('qw-image-2.0', [{ text: 'a paper boat' }], { size: '1664*928' }),
    )
    const body = (await answer.json()) as MultimodalAnswer

    expect(answer.status).toBe(200)
    expect(answer.headers.get('x-signalbox-cost')).toBe('0.08')
    const url = body.output.choices[0]?.message.content[0]?.image ?? ''
    const picture = await fetch(url)
    expect(picture.headers.get('content-type')).toBe('image/png')
    expect((await picture.arrayBuffer()).byteLength).toBeGreaterThan(100)
    expect(await started.account()).toMatchObject({ balance: 99_920_000_000n, held: 0n })
  })

  test('the size that is billed is the size that is drawn when the caller names none', async () => {
    started = await startGateway()

    const answer = await started.post(PATH, multimodal('qw-image-2.0', [{ text: 'a paper boat' }]))

    expect(((await answer.json()) as { usage: unknown }).usage).toMatchObject({ width: 1024, height: 1024 })
    expect(answer.headers.get('x-signalbox-cost')).toBe('0.05')
  })

  test.each([
    ['an edit without a reference picture', multimodal('qw-image-edit', [{ text: 'more sky' }]), /1 to 3/],
    ['a size nobody offers', multimodal('qw-image-2.0', [{ text: 'x' }], { size: '7*7' }), /size/],
    ['a model that does not exist', multimodal('qw-image-9', [{ text: 'x' }]), /no model/],
    [
      'a private picture URL',
      multimodal('qw-image-edit', [{ text: 'x' }, { image: 'https://10.0.0.1/a.png' }]),
      /private/,
    ],
  ])('%s is refused with InvalidParameter, and nothing is sent or held', async (_name, body, message) => {
    started = await startGateway({ allowPrivateUrls: false })

    const answer = await started.post(PATH, body)
    const error = (await answer.json()) as {
      code: string
      message: string
      request_id: string
      error: { message: string }
    }

    expect(answer.status).toBe(400)
    expect(error.code).toBe('InvalidParameter')
    expect(error.message).toMatch(message)
    expect(error.request_id).toBe(answer.headers.get('x-request-id'))
    expect(error.error.message).toBe(error.message)
    expect(started.sandbox.requests).toEqual([])
    expect(await started.account()).toMatchObject({ held: 0n, balance: 100_000_000_000n })
  })

  test("a vendor's refusal comes through with code, message and its own request id, and is not charged", async () => {
    started = await startGateway()

    const answer = await started.post(PATH, multimodal('qw-image-2.0', [{ text: 'a boat [[fault:blocked]]' }]))
    const error = (await answer.json()) as { code: string; message: string; request_id: string }

    expect(answer.status).toBe(400)
    expect(error.code).toBe('DataInspectionFailed')
    expect(error.request_id).not.toBe(answer.headers.get('x-request-id'))
    expect(await started.account()).toMatchObject({ balance: 100_000_000_000n, held: 0n })
  })
})

describe('before the model is known, an error carries the shapes of all', () => {
  test.each([
    ['without a key', {}, { authorization: 'Bearer sk-nobody' }, 401],
    ['without a model', { prompt: 'x' }, {}, 400],
    ['with another content type', {}, { 'content-type': 'text/plain' }, 415],
    ['with an unknown model', { model: 'nope' }, {}, 400],
    ['with a model for chat', { model: 'cl-sonnet-4-6' }, {}, 400],
  ])('%s', async (_name, body, headers, status) => {
    started = await startGateway()

    const answer = await started.post(PATH, body, headers as Record<string, string>)
    const error = (await answer.json()) as Record<string, unknown> & { error: Record<string, unknown> }

    expect(answer.status).toBe(status)
    expect(Object.keys(error).sort()).toEqual(['code', 'error', 'message', 'request_id'])
    expect(Object.keys(error.error).sort()).toEqual(['code', 'message', 'param', 'type'])
  })

  test('a missing price refuses the call before it is sent', async () => {
    started = await startGateway({ prices: { currency: 'USD', prices: [] } })

    const answer = await started.post(PATH, multimodal('qw-image-2.0', [{ text: 'x' }]))

    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({ code: 'model_not_priced' })
    expect(started.sandbox.requests).toEqual([])
  })
})

describe('the interactions shape', () => {
  const FLASH = 'gmn-3.1-flash-image-preview'

  test('a conversation is continued by its owner, at the vendor key that began it', async () => {
    started = await startGateway()

    const first = (await (await started.post(PATH, { model: FLASH, input: 'a mug' })).json()) as InteractionAnswer
    const second = await started.post(PATH, { model: FLASH, input: 'make it green', previous_interaction_id: first.id })

    expect(first.id).toMatch(/^v1_/)
    expect(first.model).toBe(FLASH)
    expect(second.status).toBe(200)
    expect(started.sandbox.requests.at(-1)?.body).toMatchObject({ previous_interaction_id: first.id })
  })

  test('answers a foreign interaction id in the body with 404 and the same bytes as an unknown one', async () => {
    started = await startGateway({
      keys: [
        { key: TEST_KEY, account: 'acct_test' },
        { key: 'sk-other-0123456789', account: 'acct_other' },
      ],
    })
    await started.gateway.accounts.credit('acct_other', '5')
    const first = (await (await started.post(PATH, { model: FLASH, input: 'a mug' })).json()) as InteractionAnswer
    const asOther = { authorization: 'Bearer sk-other-0123456789' }
    const body = (id: string): unknown => ({ model: FLASH, input: 'x', previous_interaction_id: id })

    const foreign = await started.post(PATH, body(first.id), asOther)
    const unknown = await started.post(PATH, body('v1_nobody'), asOther)

    expect([foreign.status, unknown.status]).toEqual([404, 404])
    expect(await foreign.text()).toBe(await unknown.text())
    expect(started.sandbox.requests).toHaveLength(1)
  })

  test('an answer that is not stored has a fresh id that cannot be continued', async () => {
    started = await startGateway()

    const answer = await started.post(PATH, { model: FLASH, input: 'a mug', store: false })
    const { id } = (await answer.json()) as InteractionAnswer
    const next = await started.post(PATH, { model: FLASH, input: 'x', previous_interaction_id: id })

    expect(id).toMatch(/^v1_/)
    expect(next.status).toBe(404)
  })

  test('answers a refused image with 200, failed, without steps and without a charge', async () => {
    started = await startGateway()

    const answer = await started.post(PATH, { model: FLASH, input: 'a mug [[fault:blocked]]' })

    expect(answer.status).toBe(200)
    expect(await answer.json()).toMatchObject({ status: 'failed', steps: [] })
    expect(await started.account()).toMatchObject({ balance: 100_000_000_000n, held: 0n })
  })

  test.each([
    ['usage', { total_input_tokens: 30, total_output_tokens: 0, total_thought_tokens: 200 }, {}, 1],
    ['usage', { total_input_tokens: 30, total_output_tokens: 0, total_thought_tokens: 200 }, { stream: true }, 1],
    ['no usage', undefined, {}, 0],
    ['no usage', undefined, { stream: true }, 0],
  ])('reports %s that the vendor counts for a refused image to the operator', async (_what, usage, fields, told) => {
    const interaction = { id: 'v1_a', object: 'interaction', status: 'failed', usage }
    const ended = JSON.stringify({ event_type: 'interaction.completed', interaction })
    const vendor = await ('stream' in fields
      ? scriptedVendor('text/event-stream', [`event: interaction.completed\ndata: ${ended}\n\ndata: [DONE]\n\n`])
      : scriptedVendor('application/json', [JSON.stringify(interaction)]))
    started = await startGateway({ vendors: [gemini({ apiKey: 'key', baseURL: vendor.origin })] })

    const answer = await started.post(PATH, { model: FLASH, input: 'a mug', ...fields })
    await answer.text()
    await started.ended(answer)
    await vendor.close()

    const unbilled = { isEstimated: false, usage: { inputTokens: 30, outputTokens: 200 } }
    expect(answer.status).toBe(200)
    expect(started.events.filter(({ type }) => type === 'unbilled-usage')).toMatchObject(Array(told).fill(unbilled))
    expect(await started.account()).toEqual({ balance: 100_000_000_000n, held: 0n })
  })

  test('web-search tools are taken out and named', async () => {
    started = await startGateway()

    const answer = await started.post(PATH, { model: FLASH, input: 'a mug', tools: [{ type: 'google_search' }] })

    expect(answer.status).toBe(200)
    expect(answer.headers.get('x-signalbox-dropped')).toContain('tools')
    expect(started.sandbox.requests[0]?.body).not.toHaveProperty('tools.0')
  })

  test("a stream passes the vendor's events, and its answer can be continued", async () => {
    started = await startGateway()

    const answer = await started.post(PATH, { model: FLASH, input: 'a mug', stream: true })
    const text = await answer.text()
    const id = /"id":"(v1_[^"]+)"/.exec(text)?.[1] ?? ''
    const next = await started.post(PATH, { model: FLASH, input: 'x', previous_interaction_id: id })

    expect(answer.headers.get('content-type')).toContain('text/event-stream')
    expect(text).toContain('event: interaction.created')
    expect(text).toContain('event: step.delta')
    expect(text).toContain('event: interaction.completed')
    expect(next.status).toBe(200)
    const ended = await started.ended(answer)
    expect(ended.costNanoDollars).toBeGreaterThan(0n)
  })
})
