import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../src/core/clock.ts'
import { accountStorageOf } from '../../src/gateway/accounts.ts'
import { webhooksOf } from '../../src/gateway/webhooks.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { StoredBounds } from '../../src/stores/stored-bounds.ts'
import { ACCOUNT, GATEWAY_SECRET, TASK, type WebhookBench, webhookBench } from './support/webhook-bench.ts'
import { startReceiver, verify, type WebhookReceiver } from './support/webhook-receiver.ts'

let bench: WebhookBench
let receiver: WebhookReceiver

beforeEach(async () => {
  bench = webhookBench()
  receiver = await startReceiver(bench.clock.now)
})
afterEach(async () => {
  await bench.close()
  await receiver.close()
})

const hook = (): string => `${receiver.origin}/hook?video=1`
const storedBounds = new StoredBounds(memoryStore(), systemClock, accountStorageOf(undefined))
const ready = async (): Promise<void> => undefined

/** Queues a message and delivers until so many attempts were recorded. */
async function deliver(attempts = 1) {
  bench.queue('msg_one', hook())
  bench.deliverer().start()
  return (await bench.recorded(attempts)).at(-1)
}

describe('a message', () => {
  test('is posted with its own bytes and headers, and verified by the public package', async () => {
    await deliver()

    const [message] = await receiver.received(1)
    const { body } = await bench.delivery('msg_one')
    expect(message).toMatchObject({ id: 'msg_one', path: '/hook?video=1', body })
    expect(message?.headers).toMatchObject({ 'content-type': 'application/json', 'user-agent': 'signalbox' })
    expect(message?.headers).not.toHaveProperty('authorization')
    expect(verify(GATEWAY_SECRET, message!)).toEqual(JSON.parse(body))
  })

  test('is delivered by any status of 2xx, and not sent again', async () => {
    receiver.answerBy((response) => void response.writeHead(299).end('taken'))

    const attempt = await deliver()

    expect(attempt).toEqual({ atMs: bench.clock.now(), durationMs: 0, status: 299 })
    expect(await bench.delivery('msg_one')).toMatchObject({ state: 'delivered', attempts: [attempt] })
    expect(bench.webhooks.leaseDue({ nowMs: Number.MAX_SAFE_INTEGER, leaseUntilMs: 0, limit: 1 })).toEqual([])
  })

  test('is found without a wake within 5 seconds when another process queued it', async () => {
    const deliverer = bench.deliverer()
    deliverer.start()
    bench.queue('msg_first', hook())
    deliverer.wake()
    await bench.recorded(1)
    bench.queue('msg_second', hook())

    bench.clock.advance(5_000)

    expect((await receiver.received(2)).map(({ id }) => id)).toEqual(['msg_first', 'msg_second'])
  })
})

describe('secrets', () => {
  const webhooks = () =>
    webhooksOf({ ...memoryStore(), webhooks: bench.webhooks }, bench.clock, ready, { storedBounds })

  test('prefer the secrets of the account to those of the gateway', async () => {
    const own = await webhooks().rotateSecret(ACCOUNT)

    await deliver()

    const [message] = receiver.messages
    expect(verify(own, message!)).toBeDefined()
    expect(() => verify(GATEWAY_SECRET, message!)).toThrow('No matching signature')
  })

  test('count as failures of their messages if they cannot sign, with a limited number of tries', async () => {
    await bench.webhooks.replaceSecret(ACCOUNT, 'whsec_too-short', bench.clock.now(), bench.clock.now())
    bench.queue('msg_one', hook())
    bench.deliverer().start()
    await bench.recorded(1)

    const delivery = await bench.delivery('msg_one')
    expect(receiver.messages).toEqual([])
    expect([delivery.state, delivery.nextAttemptAtMs - bench.clock.now()]).toEqual(['pending', 5_000])
    expect(delivery.attempts[0]?.error).toMatch(/^a webhook secret must be whsec_ and/)
    expect(delivery.attempts[0]?.error).not.toContain('too-short')
  })

  test('sign side by side for the overlap of a rotation, and then the new one alone', async () => {
    const older = await webhooks().rotateSecret(ACCOUNT)
    const newer = await webhooks().rotateSecret(ACCOUNT, { overlapMs: 60_000 })
    receiver.answerBy((response) => void response.writeHead(500).end())
    const deliverer = bench.deliverer()
    deliverer.start()
    bench.queue('msg_one', hook())
    deliverer.wake()
    await bench.recorded(1)

    bench.clock.advance(60_000)
    deliverer.wake()
    await bench.recorded(2)

    const [during, after] = receiver.messages
    for (const secret of [older, newer]) expect(verify(secret, during!)).toBeDefined()
    expect(verify(newer, after!)).toBeDefined()
    expect(() => verify(older, after!)).toThrow('No matching signature')
  })

  test('are made for an account that has none when the gateway has none either, and stay', async () => {
    bench.queue('msg_one', hook())
    bench.deliverer({ hasSecret: false }).start()
    await bench.recorded(1)
    bench.clock.advance(1)

    const secret = await webhooks().secret(ACCOUNT)

    expect(verify(secret, receiver.messages[0]!)).toBeDefined()
    expect(await webhooks().secret(ACCOUNT)).toBe(secret)
    expect(await webhooks().secret('acct_other')).not.toBe(secret)
  })

  test('are those of the gateway until the account has its own', async () => {
    const store = { ...memoryStore(), webhooks: bench.webhooks }
    const general = webhooksOf(store, bench.clock, ready, { storedBounds, webhookSecret: GATEWAY_SECRET })

    const before = await general.secret(ACCOUNT)
    const own = await general.rotateSecret(ACCOUNT)

    expect([before, await general.secret(ACCOUNT)]).toEqual([GATEWAY_SECRET, own])
  })

  test('sign for both the gateway and the account during the overlap', async () => {
    const store = { ...memoryStore(), webhooks: bench.webhooks }
    const general = webhooksOf(store, bench.clock, ready, { storedBounds, webhookSecret: GATEWAY_SECRET })
    const own = await general.rotateSecret(ACCOUNT, { overlapMs: 60_000 })
    const atOnce = await general.rotateSecret('acct_leaked', { overlapMs: 0 })

    await deliver()

    const [message] = receiver.messages
    for (const secret of [own, GATEWAY_SECRET]) expect(verify(secret, message!)).toBeDefined()
    const secretsOf = async (accountId: string) =>
      (await bench.webhooks.secrets(accountId, bench.clock.now())).map(({ secret }) => secret)
    expect(await secretsOf('acct_leaked')).toEqual([atOnce])
    bench.clock.advance(60_000)
    expect(await secretsOf(ACCOUNT)).toEqual([own])
  })
})

describe('a receiver that fails', () => {
  const HOUR_MS = 3_600_000
  const waitsMs = [5_000, 300_000, 1_800_000, ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR_MS)]

  test('is tried ten times over three days with the same id and fresh signatures, and then no more', async () => {
    receiver.answerBy((response) => void response.writeHead(500).end('no'))
    const startMs = bench.clock.now()
    const deliverer = bench.deliverer()
    bench.queue('msg_one', hook())
    deliverer.start()
    for (const [index, waitMs] of waitsMs.entries()) {
      await bench.recorded(index + 1)
      // A moment too early there is nothing to do.
      bench.clock.advance(waitMs - 1)
      deliverer.wake()
      bench.clock.advance(1)
      deliverer.wake()
    }

    await bench.recorded(10)
    bench.clock.advance(30 * 24 * HOUR_MS)
    deliverer.wake()

    const { state, attempts } = await bench.delivery('msg_one')
    let dueMs = startMs
    expect(receiver.messages.map(({ atMs }) => atMs)).toEqual([
      startMs,
      ...waitsMs.map((waitMs) => {
        dueMs += waitMs
        return dueMs
      }),
    ])
    expect(state).toBe('failed')
    expect(attempts.map(({ error }) => error)).toEqual(Array(10).fill('answered with status 500'))
    expect(new Set(receiver.messages.map(({ id }) => id))).toEqual(new Set(['msg_one']))
    expect(new Set(receiver.messages.map(({ headers }) => headers['webhook-timestamp'])).size).toBe(10)
  })

  test('is tried again 5 seconds after its first failure without anybody’s wake', async () => {
    receiver.answerBy((response) => void response.writeHead(500).end())
    await deliver()
    receiver.answerBy((response) => void response.writeHead(204).end())

    bench.clock.advance(5_000)

    await bench.recorded(2)
    expect((await bench.delivery('msg_one')).state).toBe('delivered')
  })

  test.each([
    [429, () => '600', 600_000],
    [503, (nowMs: number) => new Date(nowMs + 600_000).toUTCString(), 600_000],
    [503, () => 'soon', 5_000],
  ])('may ask for time: status %i and retry-after %s', async (status, value, waitMs) => {
    receiver.answerBy((response) => void response.writeHead(status, { 'retry-after': value(bench.clock.now()) }).end())

    await deliver()

    const { nextAttemptAtMs } = await bench.delivery('msg_one')
    // A date has whole seconds only.
    expect(nextAttemptAtMs - bench.clock.now()).toBeGreaterThan(waitMs - 1_000)
    expect(nextAttemptAtMs - bench.clock.now()).toBeLessThanOrEqual(waitMs)
  })

  test('gets no more of a message that it answers with 410', async () => {
    receiver.answerBy((response) => void response.writeHead(410).end())

    const attempt = await deliver()

    expect(attempt).toMatchObject({ status: 410, error: 'answered with status 410' })
    expect((await bench.delivery('msg_one')).state).toBe('disabled')
    expect(bench.events).toEqual([
      {
        ...{ type: 'webhook-attempted', deliveryId: 'msg_one', taskId: TASK, accountId: ACCOUNT, state: 'disabled' },
        ...{ status: 410, error: 'answered with status 410', attempts: 1 },
      },
    ])
    expect(bench.webhooks.leaseDue({ nowMs: Number.MAX_SAFE_INTEGER, leaseUntilMs: 0, limit: 1 })).toEqual([])
  })

  test.each([301, 302, 303, 307, 308])('is not followed by a redirect of status %i', async (status) => {
    receiver.answerBy((response) => void response.writeHead(status, { location: '/elsewhere' }).end())

    const attempt = await deliver()

    expect(attempt).toMatchObject({
      status,
      error: `answered with status ${status}; redirects are not followed`,
    })
    expect(receiver.messages.map(({ path }) => path)).toEqual(['/hook?video=1'])
    expect((await bench.delivery('msg_one')).state).toBe('pending')
  })

  test('is given up after 15 seconds of silence', async () => {
    receiver.answerBy(() => undefined)
    bench.queue('msg_one', hook())
    bench.deliverer().start()
    await receiver.received(1)

    bench.clock.advance(15_000)

    const [attempt] = await bench.recorded(1)
    expect(attempt).toEqual({
      atMs: receiver.messages[0]?.atMs,
      durationMs: 15_000,
      error: 'no whole answer within 15 s',
    })
    expect((await bench.delivery('msg_one')).state).toBe('pending')
  })

  test('is given up after 15 seconds when its answer begins and does not end', async () => {
    const begun = new Promise<void>((resolve) => {
      receiver.answerBy((response) => {
        response.writeHead(200)
        response.write('a', () => resolve())
      })
    })
    bench.queue('msg_one', hook())
    bench.deliverer().start()
    await begun

    bench.clock.advance(15_000)

    const [attempt] = await bench.recorded(1)
    expect(attempt).toMatchObject({ durationMs: 15_000, error: 'no whole answer within 15 s' })
    expect((await bench.delivery('msg_one')).state).toBe('pending')
  })

  test('is given up when its answer breaks off', async () => {
    receiver.answerBy((response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('a', () => response.destroy())
    })

    const attempt = await deliver()

    expect(attempt?.error).toMatch(/^(?:the answer broke off|no answer) /)
    expect((await bench.delivery('msg_one')).state).toBe('pending')
  })

  test('is notified when it refuses the connection', async () => {
    await receiver.close()

    const attempt = await deliver()

    expect(attempt?.error).toMatch(/^no connection \(refused\): .*ECONNREFUSED/)
  })
})

test.each([
  [200, 'delivered'],
  [500, 'pending'],
] as const)('an answer of status %i without end is cut after 64 KiB, and its status counts', async (status, state) => {
  const left = new Promise<number>((resolve) => {
    receiver.answerBy((response) => {
      let sentBytes = 0
      const chunk = Buffer.alloc(16 * 1024)
      const send = (): void => {
        while (!response.destroyed && response.write(chunk)) sentBytes += chunk.byteLength
      }
      response.on('drain', send).on('close', () => resolve(sentBytes))
      response.writeHead(status)
      send()
    })
  })

  const attempt = await deliver()

  expect(attempt?.status).toBe(status)
  expect((await bench.delivery('msg_one')).state).toBe(state)
  // The buffers of the sockets between them add to it.
  expect(await left).toBeLessThan(16 * 1024 * 1024)
})

test('a message that was delivered can be sent again with its id, at once', async () => {
  const deliverer = bench.deliverer()
  deliverer.start()
  bench.queue('msg_one', hook())
  deliverer.wake()
  await bench.recorded(1)
  const webhooks = webhooksOf({ ...memoryStore(), webhooks: bench.webhooks }, bench.clock, ready, {
    storedBounds,
    wake: () => deliverer.wake(),
  })

  const answers = [await webhooks.resend('acct_two', 'msg_one'), await webhooks.resend(ACCOUNT, 'msg_one')]

  expect(answers).toEqual([false, true])
  await bench.recorded(2)
  expect((await receiver.received(2)).map(({ id }) => id)).toEqual(['msg_one', 'msg_one'])
  expect((await webhooks.deliveries(ACCOUNT, TASK)).map(({ state }) => state)).toEqual(['delivered'])
})

test('a message that was given up has its whole schedule before it once it is sent again', async () => {
  const failed = { error: 'answered with status 500', status: 500, durationMs: 1 }
  bench.queue('msg_one', hook())
  for (let count = 0; count < 10; count++) {
    const attempt = { ...failed, atMs: bench.clock.now() - 1_000 + count }
    bench.webhooks.record('msg_one', { attempt, state: 'failed', nextAttemptAtMs: bench.clock.now() })
  }
  const deliverer = bench.deliverer()
  deliverer.start()
  receiver.answerBy((response) => void response.writeHead(500).end())
  const webhooks = webhooksOf({ ...memoryStore(), webhooks: bench.webhooks }, bench.clock, ready, {
    storedBounds,
    wake: () => deliverer.wake(),
  })

  await webhooks.resend(ACCOUNT, 'msg_one')
  await bench.recorded(1)

  const again = await bench.delivery('msg_one')
  expect(again.attempts.length).toBe(11)
  expect([again.state, again.nextAttemptAtMs - bench.clock.now()]).toEqual(['pending', 5_000])
})

test('an account’s first secret needs no predecessor, and a bad overlap is refused', async () => {
  const webhooks = webhooksOf({ ...memoryStore(), webhooks: bench.webhooks }, bench.clock, ready, { storedBounds })
  const first = await webhooks.rotateSecret(ACCOUNT)

  const refused = { code: 'invalid_request', param: 'overlapMs' }
  await expect(webhooks.rotateSecret(ACCOUNT, { overlapMs: -1 })).rejects.toMatchObject(refused)
  await expect(webhooks.rotateSecret(ACCOUNT, { overlapMs: Number.NaN })).rejects.toMatchObject(refused)

  expect(await bench.webhooks.secrets(ACCOUNT, bench.clock.now())).toEqual([{ secret: first, expiresAtMs: undefined }])
  const second = await webhooks.rotateSecret(ACCOUNT, { overlapMs: 0 })
  expect(second).not.toBe(first)
  expect((await bench.webhooks.secrets(ACCOUNT, bench.clock.now())).map(({ secret }) => secret)).toEqual([second])
})
