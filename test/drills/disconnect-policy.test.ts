import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../src/gateway/options.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { type RawCaller, rawPost } from '../support/raw-caller.ts'
import { chatBody, type RequestEnded, type StartedGateway, startGateway } from '../support/start-gateway.ts'

const CHAT = '/v1/chat/completions'
const EMBEDDINGS = '/v1/embeddings'
const CREDIT = 100_000_000_000n
const MAX_DRAINING = 100
const HANGING = '[[fault:hang-body=3]] one two three'

let started: StartedGateway

afterEach(() => started.close())

function endedEvents(): RequestEnded[] {
  return started.events.filter((event) => event.type === 'request-ended')
}

async function allEnded(count: number): Promise<RequestEnded[]> {
  while (endedEvents().length < count) await started.nextEnded()
  return endedEvents()
}

/** Opens streams whose end never comes, one vendor call each. */
async function openHanging(count: number): Promise<RawCaller[]> {
  const body = chatBody('chat-relayed', HANGING, { stream: true, max_tokens: 20 })
  const callers = Array.from({ length: count }, () => rawPost(started.url, CHAT, body))
  await Promise.all(callers.map((caller) => caller.received('You')))
  return callers
}

describe('the policy for disconnected callers', () => {
  type Policy = NonNullable<GatewayOptions['disconnect']>
  type Fate = 'read on' | 'stopped'
  const policies: readonly (readonly [string, Fate, Fate, Policy])[] = [
    ['cancel', 'stopped', 'stopped', 'cancel'],
    ['drain', 'read on', 'read on', 'drain'],
    ['cancel, but drain for chat', 'read on', 'stopped', { default: 'cancel', chat: 'drain' }],
    ['drain, but cancel for chat', 'stopped', 'read on', { default: 'drain', chat: 'cancel' }],
    ['drain for embeddings and nothing else', 'stopped', 'read on', { embeddings: 'drain' }],
  ]

  test.each(policies)('%s: a streamed chat is %s, embeddings are %s', async (_name, chat, embeddings, disconnect) => {
    started = await startGateway({ disconnect })
    const requests = [
      // Only the end of a whole answer tells what it costs, so that it is read on under every policy.
      {
        path: CHAT,
        body: chatBody('chat-relayed', '[[fault:delay=150]] hello', { max_tokens: 20 }),
        fate: 'read on',
      },
      {
        path: CHAT,
        body: chatBody('chat-relayed', '[[fault:delay=150]] hello', { max_tokens: 20, stream: true }),
        fate: chat,
      },
      { path: EMBEDDINGS, body: { model: 'embedding-relayed', input: '[[fault:delay=150]] hello' }, fate: embeddings },
    ]
    for (const { path, body, fate } of requests) {
      const caller = rawPost(started.url, path, body)
      await started.sandbox.nextRequest()
      const ending = started.nextEnded()
      caller.leave()
      const ended = await ending

      expect(ended.ending).toBe(fate === 'read on' ? 'completed' : 'abandoned')
      // Either way the prompt at least is paid for.
      expect(ended.costNanoDollars).toBeGreaterThan(0n)
      if (fate === 'stopped') await started.sandbox.nextAbort()
    }

    expect(started.sandbox.aborted).toBe(requests.filter(({ fate }) => fate === 'stopped').length)
    const charged = endedEvents().reduce((sum, { costNanoDollars }) => sum + costNanoDollars, 0n)
    expect(await started.account()).toEqual({ balance: CREDIT - charged, held: 0n })
  })
})

describe('draining', () => {
  test('holds at most 100 calls open for nobody, and ends them when they have expired', async () => {
    const clock = fakeClock()
    started = await startGateway({ disconnect: { default: 'cancel', chat: 'drain' }, drainMs: 20_000, clock })
    const callers = await openHanging(MAX_DRAINING + 20)
    for (const caller of callers) caller.leave()
    const stopped = await allEnded(20)
    for (let count = 0; count < 20; count++) await started.sandbox.nextAbort()
    const openWhileDraining = started.sandbox.openCalls
    const stoppedAtOnce = stopped.length
    clock.advance(19_999)
    const openAtTheLastMoment = started.sandbox.openCalls
    clock.advance(1)
    const ended = await allEnded(callers.length)

    expect(stoppedAtOnce).toBe(20)
    expect(openWhileDraining).toBe(MAX_DRAINING)
    expect(openAtTheLastMoment).toBe(MAX_DRAINING)
    expect(ended.map(({ ending }) => ending)).toEqual(new Array(callers.length).fill('abandoned'))
    const charged = ended.reduce((sum, { costNanoDollars }) => sum + costNanoDollars, 0n)
    expect(charged).toBeGreaterThan(0n)
    expect(await started.account()).toEqual({ balance: CREDIT - charged, held: 0n })
  })

  test('has room for further calls once earlier ones are over', async () => {
    const clock = fakeClock()
    started = await startGateway({ disconnect: 'drain', drainMs: 20_000, clock })
    for (const caller of await openHanging(MAX_DRAINING)) caller.leave()
    const [full] = await openHanging(1)
    full!.leave()
    await allEnded(1)
    clock.advance(20_000)
    await allEnded(MAX_DRAINING + 1)
    const [fresh] = await openHanging(1)
    fresh!.leave()
    const last = started.nextEnded()
    const other = await started.post(CHAT, chatBody('chat-relayed', 'hello', { max_tokens: 20 }))
    const otherEnded = await last

    // The one that was left is still being read while another request comes and goes.
    expect(other.status).toBe(200)
    expect(otherEnded.ending).toBe('completed')
    expect(started.sandbox.openCalls).toBe(1)
    clock.advance(20_000)
    await allEnded(MAX_DRAINING + 3)
    expect((await started.account()).held).toBe(0n)
  })

  test('gives the place of the caller back only when the vendor call is over', async () => {
    const clock = fakeClock()
    started = await startGateway({ disconnect: 'drain', drainMs: 20_000, clock, limits: { concurrency: 1 } })
    const [caller] = await openHanging(1)
    caller!.leave()
    const during = await started.post(CHAT, chatBody('chat-relayed', 'hello'))
    clock.advance(20_000)
    await allEnded(1)
    const afterwards = await started.post(CHAT, chatBody('chat-relayed', 'hello'))

    expect(during.status).toBe(429)
    expect(afterwards.status).toBe(200)
  })
})
