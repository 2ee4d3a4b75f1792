import { http } from 'msw'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { ClientError, createClient, type GatewayClient, type ResponseStream } from '../../src/client/index.ts'
import { type StartedGateway, startGateway, TEST_ACCOUNT, TEST_KEY } from '../support/start-gateway.ts'
import { answering, BASE_URL, collected, events, json, type StandIn, startStandIn } from './stand-in.ts'

describe('against a gateway', () => {
  let started: StartedGateway

  beforeAll(async () => {
    started = await startGateway()
  })
  afterEach(() => started.sandbox.reset())
  afterAll(() => started.close())

  const overHttp = (): GatewayClient => createClient({ baseURL: `${started.url}/v1`, apiKey: TEST_KEY })
  const inProcess = (): GatewayClient =>
    started.gateway.client({ accountId: TEST_ACCOUNT, keyId: 'key_host', tier: 'paid' })

  describe.each([
    ['over HTTP', overHttp],
    ['in process', inProcess],
  ])('%s', (_name, open) => {
    test.each(['cl-sonnet-4-6', 'chat-relayed'])('%s answers, and continues its answer', async (model) => {
      const { responses } = open()
      const first = await responses.create({ model, input: 'good morning' })
      const second = await responses.create({ model, previous_response_id: first.id, input: 'and good night' })

      expect(first).toMatchObject({ status: 'completed', output: [{ content: [{ text: 'You said: good morning' }] }] })
      expect(second).toMatchObject({ previous_response_id: first.id, status: 'completed' })
      expect(second.usage?.total_tokens).toBeGreaterThan(0)
    })

    test('a kept answer is read, replayed from any event, and deleted once', async () => {
      const { responses } = open()
      const answer = await responses.create({ model: 'cl-sonnet-4-6', input: 'good morning' })
      const replayed = await collected(await responses.replay(answer))
      const rest = await collected(await responses.replay(answer.id, 3))

      expect(await responses.retrieve(answer)).toEqual(answer)
      expect(replayed.at(-1)).toMatchObject({ type: 'response.completed', response: answer })
      expect(rest).toEqual(replayed.filter((event) => event.sequence_number > 3))
      expect(await responses.delete(answer)).toMatchObject({ id: answer.id, deleted: true })
      await expect(responses.retrieve(answer)).rejects.toMatchObject({ code: 'response_not_found', status: 404 })
      await expect(responses.delete(answer.id)).rejects.toMatchObject({ code: 'response_not_found' })
    })

    test('an answer in the background is read by its id, and cancelled', async () => {
      const { responses } = open()
      started.sandbox.fault({ kind: 'hang' })
      const begun = await responses.create({ model: 'cl-sonnet-4-6', input: 'hi', background: true })
      expect(begun).toMatchObject({ status: 'queued', background: true })
      await started.sandbox.nextRequest()
      expect(await responses.retrieve(begun)).toMatchObject({ id: begun.id, status: 'in_progress' })
      expect(await responses.cancel(begun)).toMatchObject({ id: begun.id, status: 'cancelled' })
      const whole = await responses.create({ model: 'cl-sonnet-4-6', input: 'hi' })
      await expect(responses.cancel(whole)).rejects.toMatchObject({ status: 400 })
    })

    test('what the model read comes in pages', async () => {
      const { responses } = open()
      const input = ['one', 'two', 'three'].map((content) => ({ role: 'user' as const, content }))
      const { id } = await responses.create({ model: 'gmn-2.5-flash', input })
      const page = await responses.inputItems(id, { limit: 2, order: 'asc' })
      const next = await responses.inputItems(id, { limit: 2, order: 'asc', after: page.data[1]!.id })

      expect(JSON.stringify(page.data)).toMatch(/one.*two/)
      expect([page.has_more, next.data.length, next.has_more]).toEqual([true, 1, false])
      expect(JSON.stringify(next.data)).toContain('three')
      await expect(responses.inputItems(id, { limit: 0 })).rejects.toMatchObject({ status: 400, param: 'limit' })
    })

    test('streams to the whole answer, which is then kept', async () => {
      const { responses } = open()
      const stream = await responses.stream({ model: 'cl-sonnet-4-6', input: 'good morning to you' })
      const seen = await collected(stream)
      const text = seen.map((event) => (event.type === 'response.output_text.delta' ? event.delta : '')).join('')
      const last = seen.at(-1)

      expect(stream.requestId).toMatch(/^req_/)
      expect(text).toBe('You said: good morning to you')
      if (last?.type !== 'response.completed') throw new TypeError(`it ended with ${last?.type}`)
      expect(await responses.retrieve(last.response)).toEqual(last.response)
    })

    test('counts a prompt without a charge', async () => {
      const client = open()
      const before = await client.account.balance()
      const { input_tokens: tokens } = await client.responses.countTokens({ model: 'cl-sonnet-4-6', input: 'hello' })

      expect(tokens).toBeGreaterThan(0)
      expect(await client.account.balance()).toEqual(before)
    })

    test('an answer that ran into its bound is not complete', async () => {
      const request = { model: 'cl-sonnet-4-6', input: `say ${'word '.repeat(200)}`, max_output_tokens: 16 }
      const { responses } = open()
      const whole = await responses.create(request)
      const seen = await collected(await responses.stream(request))

      expect(whole).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } })
      expect(seen.at(-1)?.type).toBe('response.incomplete')
    })

    test('a vendor that fails in mid-stream is an error', async () => {
      const input = '[[fault:reset-mid-stream=6]] one two three four five six seven eight'
      const stream = await open().responses.stream({ model: 'chat-qwen', input })

      await expect(collected(stream)).rejects.toSatisfy(
        (error) => ClientError.isInstance(error) && error.requestId === stream.requestId,
      )
    })

    test('leaving the loop stops the vendor', async () => {
      const input = `[[fault:pace=10]] ${'word '.repeat(200)}`
      for await (const event of await open().responses.stream({ model: 'cl-sonnet-4-6', input }))
        if (event.type === 'response.output_text.delta') break
      await started.sandbox.nextAbort()

      expect(started.sandbox.aborted).toBe(1)
    })

    test('an invalid field is named', async () => {
      const failure = open().responses.create({ model: 'cl-sonnet-4-6', input: 'hello', max_output_tokens: 1 })

      await expect(failure).rejects.toMatchObject({ code: 'invalid_request', param: 'max_output_tokens' })
    })
  })
})

describe('against a stand-in', () => {
  const event = (type: string, rest = ''): string => `event: ${type}\ndata: {"type":"${type}"${rest}}\n\n`
  const delta = event('response.output_text.delta', ',"delta":"one"')
  let standIn: StandIn

  beforeAll(() => {
    standIn = startStandIn()
  })
  afterEach(() => standIn.server.resetHandlers())
  afterAll(() => standIn.server.close())

  const streamed = (...pieces: string[]): Promise<ResponseStream> => {
    standIn.server.use(answering('/responses', events(pieces)))
    return standIn.client.responses.stream({ model: 'cl-opus-4-7', input: 'hello' })
  }

  test.each(['completed', 'incomplete'])('a stream may end after response.%s', async (status) => {
    const seen = await collected(await streamed(delta, event(`response.${status}`, ',"response":{"id":"resp_1"}')))

    expect(seen.map(({ type }) => type)).toEqual(['response.output_text.delta', `response.${status}`])
  })

  test('a stream without its last event fails', async () => {
    await expect(collected(await streamed(delta))).rejects.toMatchObject({
      code: 'upstream_invalid_response',
      message: 'The stream ended before the answer was complete.',
    })
  })

  test.each([
    ['error', ',"code":"rate_limited","message":"Slow down.","param":null'],
    ['response.failed', ',"response":{"status":"failed","error":{"code":"rate_limited","message":"Slow down."}}'],
  ])('the event %s throws its error', async (type, rest) => {
    await expect(collected(await streamed(delta, event(type, rest)))).rejects.toMatchObject({
      code: 'rate_limited',
      type: 'rate_limit_error',
      message: 'Slow down.',
      requestId: 'req_stream',
    })
  })

  test('a failure without a reason is an error of the vendor', async () => {
    const failed = await streamed(event('response.failed', ',"response":{"status":"failed","error":null}'))

    await expect(collected(failed)).rejects.toMatchObject({ code: 'upstream_invalid_response', status: 502 })
  })

  test('an id is one segment of the path, whatever it holds', async () => {
    let answered: string | undefined
    standIn.server.use(
      http.delete(`${BASE_URL}/responses/:id`, ({ request }) => {
        answered = new URL(request.url).pathname
        return json({ id: 'a/../b', deleted: true })()
      }),
    )
    await standIn.client.responses.delete('a/../b')

    expect(answered).toBe('/v1/responses/a%2F..%2Fb')
  })
})
