import { createServer, type IncomingMessage, type Server } from 'node:http'
import { Webhook } from 'standardwebhooks'
import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import type { SandboxOptions } from '../../../src/testing/index.ts'
import type { Transport } from '../../../src/transport/transport.ts'
import { undiciTransport } from '../../../src/transport/undici.ts'
import { VIDEO_BODIES, videoBody } from '../../drills/support/video-bodies.ts'
import { listen } from '../../support/listen.ts'
import { type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'

const PATH = '/v1/videos/generations'
const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

let started: StartedGateway
let receiver: Receiver | undefined

afterEach(async () => {
  await started.close()
  await receiver?.close()
  receiver = undefined
})

/** Stand-ins render in a few milliseconds, and the gateway asks as often. */
/** How long a stand-in makes a video. */
const SHORT_VIDEOS: SandboxOptions = { videoPendingMs: 20, videoRunningMs: 20 }

function startVideos(
  options: Partial<GatewayOptions> = {},
  sandboxOptions: SandboxOptions = {},
): Promise<StartedGateway> {
  return startGateway(
    { taskPollIntervalMs: 20, webhookSecret: SECRET, ...options },
    { ...SHORT_VIDEOS, ...sandboxOptions },
  )
}

interface VideoRecord {
  readonly task_id: string
  readonly id: string
  readonly status: string
  readonly model: string
  readonly output: { readonly task_id: string; readonly task_status: string }
  readonly content?: { readonly video_url: string }
  readonly error?: { readonly code: string; readonly message: string }
}

async function submit(body: Record<string, unknown>, headers?: Record<string, string>): Promise<VideoRecord> {
  const answer = await started.post(PATH, body, headers)
  expect(answer.status).toBe(202)
  return (await answer.json()) as VideoRecord
}

function get(path: string, key = TEST_KEY, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${started.url}${path}`, { headers: { authorization: `Bearer ${key}`, ...headers } })
}

async function record(id: string): Promise<VideoRecord> {
  return (await (await get(`${PATH}/${id}`)).json()) as VideoRecord
}

function prompted(prompt: string, rest: Record<string, unknown> = {}): Record<string, unknown> {
  return videoBody('wv2.7-t2v', { input: { prompt }, ...rest })
}

/** The network, but for its first call, whose connection does not come about. */
function refusingOnce(): Transport {
  const network = undiciTransport()
  let isFirst = true
  return {
    send(request, handler) {
      if (!isFirst) return network.send(request, handler)
      isFirst = false
      const error = new Error('connection refused')
      queueMicrotask(() => handler.onFailure({ phase: 'connect', kind: 'refused', error }))
      return { abort() {}, pause() {}, resume() {} }
    },
    close: () => network.close(),
  }
}

interface Receiver {
  readonly url: string
  /** The next message that arrives. */
  next(): Promise<{ readonly headers: Record<string, string>; readonly body: string }>
  close(): Promise<void>
}

async function startReceiver(): Promise<Receiver> {
  const arrived: { headers: Record<string, string>; body: string }[] = []
  const waiting: ((message: { headers: Record<string, string>; body: string }) => void)[] = []
  const server: Server = createServer((request: IncomingMessage, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const message = { headers: request.headers as Record<string, string>, body: Buffer.concat(chunks).toString() }
      response.end()
      const next = waiting.shift()
      if (next === undefined) arrived.push(message)
      else next(message)
    })
  })
  const { origin, close } = await listen(server)
  return {
    url: `${origin}/hook`,
    next: () =>
      new Promise((resolve) => {
        const message = arrived.shift()
        if (message === undefined) waiting.push(resolve)
        else resolve(message)
      }),
    close,
  }
}

describe('a task of each kind runs to its end, is charged once and sends a signed webhook', () => {
  test.each(Object.keys(VIDEO_BODIES))('%s', async (model) => {
    started = await startVideos()
    receiver = await startReceiver()

    const receipt = await submit(videoBody(model, { webhook_url: receiver.url }))
    const held = await started.account()
    const message = await receiver.next()
    const verified = new Webhook(SECRET).verify(message.body, message.headers) as { type: string; data: VideoRecord }
    const final = await record(receipt.task_id)

    expect(receipt).toMatchObject({
      object: 'video.generation',
      model,
      status: 'queued',
      output: { task_status: 'PENDING' },
    })
    expect(receipt.id).toBe(receipt.task_id)
    expect(receipt.id).toMatch(/^task_/)
    expect(held).toEqual({ balance: 99_600_000_000n, held: 400_000_000n })
    expect(verified.type).toBe('video.generation.completed')
    expect(verified.data).toEqual(final)
    expect(final).toMatchObject({ status: 'completed', output: { task_status: 'SUCCEEDED' }, seed: null })
    expect(final.content?.video_url).toMatch(/^http/)
    expect(await started.account()).toEqual({ balance: 99_600_000_000n, held: 0n })
  })
})

describe('what goes to the vendor', () => {
  test('input and parameters go unchanged, and nothing of the gateway goes with them', async () => {
    started = await startVideos()
    const sent = videoBody('wv2.6-t2v', {
      parameters: { size: '1280*720', duration: 4, shot_type: 'multi', extra: [1] },
    })

    await submit(sent)

    expect(started.sandbox.requests[0]?.body).toEqual({
      model: 'wan2.6-t2v',
      input: sent['input'],
      parameters: sent['parameters'],
    })
  })

  test('fills in a billed tier that was not requested, so that the vendor does not render a more expensive one', async () => {
    started = await startVideos()

    await submit({ model: 'wv2.7-t2v', input: { prompt: 'a boat' } })

    expect(started.sandbox.requests[0]?.body).toMatchObject({ parameters: { resolution: '720P', duration: 5 } })
  })
})

describe('refusals', () => {
  test.each([
    ['a 2.6 body for a 2.7 model', { ...videoBody('wv2.6-i2v'), model: 'wv2.7-i2v' }, /media/],
    ['a 2.7 body for a 2.6 model', { ...videoBody('wv2.7-i2v'), model: 'wv2.6-i2v' }, /img_url/],
    ['a duration out of range', prompted('x', { duration: 99, parameters: { duration: 99 } }), /duration/],
    ['a duration in quotes', prompted('x', { duration: '8' }), /duration/],
    ['a tier that is not offered', prompted('x', { resolution: '480p', parameters: {} }), /resolution/],
    ['a billing field that parameters contradict', prompted('x', { parameters: { duration: 9 } }), /duration/],
    ['a webhook to a private address', prompted('x', { webhook_url: 'http://169.254.169.254/hook' }), /webhook_url/],
    ['a malformed webhook address', prompted('x', { webhook_url: 'not a url' }), /webhook_url/],
    [
      'media at a private address',
      videoBody('wv2.6-i2v', { input: { prompt: 'x', img_url: 'http://10.1.2.3/a.png' } }),
      /img_url/,
    ],
  ])('%s: 400 naming the field, and nothing is sent or held', async (_name, sent, message) => {
    started = await startVideos({ allowPrivateUrls: false })

    const answer = await started.post(PATH, sent)
    const { error } = (await answer.json()) as { error: { message: string } }

    expect(answer.status).toBe(400)
    expect(error.message).toMatch(message)
    expect(started.sandbox.requests).toEqual([])
    expect(await started.account()).toEqual({ balance: 100_000_000_000n, held: 0n })
    expect(((await (await get(PATH)).json()) as { data: unknown[] }).data).toEqual([])
  })

  test('the first webhook of an account makes its secret, which the host can read at once', async () => {
    started = await startGateway({ taskPollIntervalMs: 20 }, SHORT_VIDEOS)
    receiver = await startReceiver()

    const answer = await started.post(PATH, prompted('x', { webhook_url: receiver.url }))
    const secret = await started.gateway.webhooks.secret('acct_test')
    const { body, headers } = await receiver.next()

    expect(answer.status).toBe(202)
    expect(new Webhook(secret).verify(body, headers)).toMatchObject({ type: 'video.generation.completed' })
  })

  test("a vendor's refusal comes back, and the task, its money and its key are gone", async () => {
    started = await startVideos()

    const answer = await started.post(PATH, prompted('x [[fault:blocked]]'), { 'idempotency-key': 'v1' })

    expect(answer.status).toBe(400)
    expect(await started.account()).toEqual({ balance: 100_000_000_000n, held: 0n })
    expect(((await (await get(PATH)).json()) as { data: unknown[] }).data).toEqual([])
    expect((await started.post(PATH, prompted('y'), { 'idempotency-key': 'v1' })).status).toBe(202)
  })
})

describe('money', () => {
  test('a failed video costs nothing and says why', async () => {
    started = await startVideos()

    const { task_id: id } = await submit(prompted('x [[video:fail]]'))
    await started.taskEnded(id)

    expect(await record(id)).toMatchObject({ status: 'failed', error: { code: 'DataInspectionFailed' } })
    expect(await started.account()).toEqual({ balance: 100_000_000_000n, held: 0n })
  })

  test('ten seconds rendered are charged, though four were held', async () => {
    started = await startVideos()

    const { task_id: id } = await submit(prompted('x [[video:seconds=10]]'))
    const ended = await started.taskEnded(id)

    expect(ended).toMatchObject({ state: 'completed', costNanoDollars: 1_000_000_000n, usage: { videoSeconds: 10 } })
    expect(await started.account()).toEqual({ balance: 99_000_000_000n, held: 0n })
    expect(await record(id)).toMatchObject({ cost: '1' })
  })

  test('too little money refuses the submission before it is sent', async () => {
    started = await startVideos({
      keys: [
        { key: TEST_KEY, account: 'acct_test' },
        { key: 'sk-poor-0123456789', account: 'acct_poor' },
      ],
    })

    const answer = await started.post(PATH, prompted('x'), { authorization: 'Bearer sk-poor-0123456789' })

    expect(answer.status).toBe(402)
    expect(started.sandbox.requests).toEqual([])
  })

  test('an Idempotency-Key gives the same task again, also after the task has ended', async () => {
    started = await startVideos()
    const headers = { 'idempotency-key': 'video-1' }

    const first = await submit(prompted('x'), headers)
    await started.taskEnded(first.task_id)
    const second = await submit(prompted('x'), headers)

    expect(second).toEqual(first)
    expect(await started.account()).toEqual({ balance: 99_600_000_000n, held: 0n })
  })
})

describe('a submission whose outcome is not known', () => {
  test('bytes that left are not sent again: the caller gets the id of a task in state unknown, and its money stays held', async () => {
    started = await startVideos()

    const receipt = await submit(prompted('x [[fault:reset]]'))

    expect(receipt.status).toBe('unknown')
    expect(started.sandbox.requests).toHaveLength(1)
    expect(await started.account()).toEqual({ balance: 99_600_000_000n, held: 400_000_000n })
    expect((await record(receipt.task_id)).status).toBe('unknown')
  })

  test.each([
    ['a time-out in front of the vendor', { kind: 'status', status: 504 }],
    ['an error page of a proxy', { kind: 'html', status: 502 }],
    ['a success that cannot be read', { kind: 'half-json' }],
  ] as const)('%s leaves open whether the vendor has the task, so it is not submitted again', async (_name, fault) => {
    started = await startVideos()
    started.sandbox.fault({ ...fault, operation: 'videos' })

    const receipt = await submit(prompted('x'))

    expect(receipt.status).toBe('unknown')
    expect(started.sandbox.requests.filter(({ method }) => method === 'POST')).toHaveLength(1)
  })

  test("the vendor's own word for a fault means that it has no task", async () => {
    started = await startVideos()

    const answer = await started.post(PATH, prompted('x [[fault:status=503]]'))

    expect(answer.status).toBe(503)
    expect(await started.account()).toEqual({ balance: 100_000_000_000n, held: 0n })
  })

  test('a connection that never came about is tried again', async () => {
    started = await startVideos({ transport: refusingOnce() })

    const receipt = await submit(prompted('x'))

    expect(receipt.status).toBe('queued')
    expect(started.sandbox.requests.filter(({ method }) => method === 'POST')).toHaveLength(1)
  })
})

describe('reading, listing, cancelling', () => {
  test('both ids find a task, and an answer of the vendor that is due is fetched', async () => {
    started = await startVideos()

    const receipt = await submit(prompted('x'))
    await started.taskEnded(receipt.task_id)

    expect(await record(receipt.output.task_id)).toEqual(await record(receipt.task_id))
  })

  test.each(['', '/cancel', '/content', '/webhooks', '/webhooks/resend'])(
    'another account gets the bytes of an unknown id from %s',
    async (action) => {
      started = await startVideos({
        keys: [
          { key: TEST_KEY, account: 'acct_test' },
          { key: 'sk-other-0123456789', account: 'acct_other' },
        ],
      })
      const { task_id: id } = await submit(prompted('x'))
      const method = action === '/cancel' || action.endsWith('resend') ? 'POST' : 'GET'
      const ask = (taskId: string): Promise<Response> =>
        fetch(`${started.url}${PATH}/${taskId}${action}`, {
          method,
          headers: { authorization: 'Bearer sk-other-0123456789' },
        })

      const foreign = await ask(id)
      const unknown = await ask('task_nobody')

      expect([foreign.status, unknown.status]).toEqual([404, 404])
      expect(await foreign.text()).toBe(await unknown.text())
    },
  )

  test.each(['..%2f..%2fetc%2fpasswd', '%00', 'a'.repeat(10_000), 'task_1%27--'])('%s is an unknown id', async (id) => {
    started = await startVideos()

    const answer = await get(`${PATH}/${id}`)

    expect(answer.status).toBe(404)
    expect(await answer.json()).toMatchObject({ error: { code: 'task_not_found' } })
  })

  test("the list holds the caller's own tasks, newest first, in pages", async () => {
    started = await startVideos()
    const ids: string[] = []
    for (const text of ['one', 'two', 'three']) ids.unshift((await submit(prompted(text))).task_id)

    const first = (await (await get(`${PATH}?limit=2`)).json()) as {
      data: VideoRecord[]
      has_more: boolean
      last_id: string
    }
    const rest = (await (await get(`${PATH}?limit=2&after=${first.last_id}`)).json()) as typeof first

    expect([...first.data, ...rest.data].map(({ id }) => id)).toEqual(ids)
    expect([first.has_more, rest.has_more]).toEqual([true, false])
    expect((await get(`${PATH}?limit=0`)).status).toBe(400)
  })

  test('cancels a queued task at the vendor without a charge; a second time gets 409', async () => {
    started = await startVideos({ taskPollIntervalMs: 60_000 }, { videoPendingMs: 60_000 })
    const { task_id: id } = await submit(prompted('x'))
    const cancel = (): Promise<Response> => started.post(`${PATH}/${id}/cancel`, {})

    const answer = await cancel()
    const again = await cancel()

    expect(answer.status).toBe(200)
    expect(await answer.json()).toMatchObject({ status: 'cancelled', error: null })
    expect(again.status).toBe(409)
    expect(await again.json()).toMatchObject({ error: { code: 'task_not_cancellable' } })
    expect(await started.account()).toEqual({ balance: 100_000_000_000n, held: 0n })
  })

  test('a task that runs cannot be cancelled', async () => {
    started = await startVideos({}, { videoPendingMs: 0, videoRunningMs: 60_000 })
    const { task_id: id } = await submit(prompted('x'))

    const answer = await started.post(`${PATH}/${id}/cancel`, {})

    expect(answer.status).toBe(409)
  })
})

describe('content', () => {
  test('the file comes through, also in part, and not before it is there', async () => {
    started = await startVideos({}, { videoPendingMs: 200 })
    const { task_id: id } = await submit(prompted('x'))

    const early = await get(`${PATH}/${id}/content`)
    await started.taskEnded(id)
    const whole = await get(`${PATH}/${id}/content`)
    const bytes = Buffer.from(await whole.arrayBuffer())
    const part = await get(`${PATH}/${id}/content`, TEST_KEY, { range: 'bytes=4-7' })

    expect(early.status).toBe(409)
    expect(await early.json()).toMatchObject({ error: { code: 'task_not_finished' } })
    expect(whole.headers.get('content-type')).toBe('video/mp4')
    expect(bytes.subarray(4, 8).toString('latin1')).toBe('ftyp')
    expect(part.status).toBe(206)
    expect(await part.text()).toBe('ftyp')
  })

  test('an address of the vendor that is private is not fetched', async () => {
    started = await startVideos({ allowPrivateUrls: false })
    const { task_id: id } = await submit(prompted('x'))
    await started.taskEnded(id)
    const calls = started.sandbox.requests.length

    const answer = await get(`${PATH}/${id}/content`)

    expect(answer.status).toBe(502)
    expect(started.sandbox.requests).toHaveLength(calls)
  })
})

describe('webhooks', () => {
  test('the deliveries of a task can be read, and sent once more', async () => {
    started = await startVideos()
    receiver = await startReceiver()
    const { task_id: id } = await submit(prompted('x', { webhook_url: receiver.url }))
    const first = await receiver.next()

    await started.post(`${PATH}/${id}/webhooks/resend`, {})
    const second = await receiver.next()
    const log = (await (await get(`${PATH}/${id}/webhooks`)).json()) as { data: { id: string; url: string }[] }

    expect(second.headers['webhook-id']).toBe(first.headers['webhook-id'])
    expect(second.body).toBe(first.body)
    expect(log.data).toMatchObject([{ id: first.headers['webhook-id'], url: receiver.url, task_id: id }])
  })
})
