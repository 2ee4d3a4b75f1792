import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createClient, type ReceivedWebhook, verifyWebhook } from '../../src/client/index.ts'
import { newWebhookSecret, webhookHeaders } from '../../src/tasks/webhook-payload.ts'
import { chatBody, type StartedGateway, startGateway } from '../support/start-gateway.ts'

const SECRET = newWebhookSecret()
const OTHER = newWebhookSecret()
const NOW_SECONDS = 1_790_000_000
const BODY = '{"type":"response.completed","timestamp":"2026-09-21T13:33:20.000Z","data":{"id":"resp_ü"}}'

describe('client.webhooks.verify', () => {
  const client = createClient({ baseURL: 'http://gateway.example/v1', apiKey: 'sk-any' })

  const received = (changes: Partial<ReceivedWebhook> = {}, secrets = [SECRET], body = BODY): ReceivedWebhook => {
    const list = webhookHeaders({ secrets, id: 'msg_1', timestampSeconds: NOW_SECONDS, body })
    const headers = Object.fromEntries([0, 2, 4].map((index) => [list[index]!, list[index + 1]!]))
    return { body, headers, secret: SECRET, ...changes }
  }

  beforeEach(() => {
    vi.useFakeTimers({ now: NOW_SECONDS * 1000, toFake: ['Date'] })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  const MESSAGE = {
    id: 'msg_1',
    type: 'response.completed',
    timestamp: '2026-09-21T13:33:20.000Z',
    data: { id: 'resp_ü' },
  }

  test.each<[string, ReceivedWebhook]>([
    ['a text', received()],
    ['bytes', received({ body: Buffer.from(BODY) })],
    ['headers of fetch', received({ headers: new Headers(received().headers as Record<string, string>) })],
    [
      'headers in capitals',
      received({
        headers: Object.fromEntries(
          Object.entries(received().headers).map(([name, value]) => [name.toUpperCase(), value]),
        ),
      }),
    ],
    ['one of several secrets', received({ secret: [OTHER, SECRET] })],
    ['a message that several secrets signed', received({}, [OTHER, SECRET])],
  ])('gives the message of %s', async (_title, webhook) => {
    expect(await client.webhooks.verify(webhook)).toEqual(MESSAGE)
  })

  test('gives the end of a batch, whose type tells what its data is', async () => {
    const body = '{"type":"batch.expired","timestamp":"2026-09-21T13:33:20.000Z","data":{"id":"batch_1"}}'

    const message = await verifyWebhook(received({}, [SECRET], body))

    expect(message.type === 'batch.expired' && message.data.id).toBe('batch_1')
  })

  const headers = received().headers as Record<string, string>
  test.each<[string, ReceivedWebhook, string]>([
    ['another secret', received({ secret: OTHER }), 'no signature is by this secret'],
    ['a changed body', received({ body: BODY.replace('completed', 'failed') }), 'no signature'],
    ['another id', received({ headers: { ...headers, 'webhook-id': 'msg_2' } }), 'no signature'],
    [
      'a signature of another version',
      received({ headers: { ...headers, 'webhook-signature': 'v2,AAAA' } }),
      'no signature',
    ],
    ['a broken signature', received({ headers: { ...headers, 'webhook-signature': 'v1,%' } }), 'no signature'],
    ['no signature', received({ headers: { ...headers, 'webhook-signature': undefined } }), 'a header is missing'],
    [
      'a time that is none',
      received({ headers: { ...headers, 'webhook-timestamp': 'now' } }),
      'its timestamp is too far',
    ],
    ['no JSON', received({}, [SECRET], 'hello'), 'its body is not JSON'],
  ])('refuses %s', async (_title, webhook, message) => {
    await expect(client.webhooks.verify(webhook)).rejects.toMatchObject({
      name: 'GatewayError',
      code: 'invalid_request',
      message: expect.stringContaining(message),
    })
  })

  test('refuses messages that are more than five minutes old or ahead, or as told', async () => {
    vi.setSystemTime((NOW_SECONDS + 300) * 1000)
    expect(await verifyWebhook(received())).toEqual(MESSAGE)
    await expect(verifyWebhook(received({ toleranceSeconds: 299 }))).rejects.toThrow('its timestamp is too far')
    vi.setSystemTime((NOW_SECONDS - 301) * 1000)
    await expect(verifyWebhook(received())).rejects.toThrow('its timestamp is too far')
  })

  test.each([['sk-any'], ['whsec_%'], ['whsec_'], [[]]])('rejects %j as a secret', async (secret) => {
    await expect(verifyWebhook(received({ secret }))).rejects.toThrow(TypeError)
  })

  test.each([[Number.NaN], [-1], [Number('five minutes')]])(
    'rejects a tolerance of %d seconds, which would accept messages of any age',
    async (toleranceSeconds) => {
      await expect(verifyWebhook(received({ toleranceSeconds }))).rejects.toThrow(/toleranceSeconds: must be 0 or more/)
    },
  )

  test('says that a secret is missing', async () => {
    const { secret: _, ...webhook } = received()

    await expect(verifyWebhook(webhook as ReceivedWebhook)).rejects.toThrow('webhooks: secret: give at least one')
  })
})

describe('the stand-in', () => {
  let started: StartedGateway
  afterEach(() => started.close())

  test('receives webhooks, refuses one when told to, and the client verifies them', async () => {
    started = await startGateway({ taskPollIntervalMs: 20 }, { videoPendingMs: 5, videoRunningMs: 5 })
    const { gateway, sandbox } = started
    await started.post('/v1/chat/completions', chatBody('cl-sonnet-4-6', 'hello'))
    const origin = `http://${sandbox.requests[0]?.headers['host']}`
    sandbox.fault({ kind: 'status', status: 410, vendor: 'receiver' })
    const order = () =>
      started.post('/v1/videos/generations', {
        ...{ model: 'wv2.6-t2v', duration: 5, resolution: '720p', input: { prompt: 'x' } },
        webhook_url: `${origin}/webhooks/videos`,
      })

    await order()
    const gone = await sandbox.nextWebhook()
    const { task_id: taskId } = (await (await order()).json()) as { task_id: string }
    const arrived = await sandbox.nextWebhook()

    const secret = await gateway.webhooks.secret('acct_test')
    const message = await verifyWebhook({ body: arrived.bytes, headers: arrived.headers, secret })
    expect(message).toMatchObject({ type: 'video.generation.completed', data: { id: taskId, status: 'completed' } })
    expect([gone.path, gone.operation, sandbox.webhooks.length]).toEqual(['/webhooks/videos', 'webhook', 2])
  })
})
