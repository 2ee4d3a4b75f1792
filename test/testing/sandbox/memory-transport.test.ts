import { describe, expect, test } from 'vitest'
import { fakeClock, type Sandbox, sandboxVendors } from '../../../src/testing/index.ts'
import type {
  TransportControl,
  TransportFailure,
  TransportHandler,
  TransportRequest,
} from '../../../src/transport/transport.ts'
import type { HeaderMap } from '../../../src/wire/headers.ts'

/** Records the events of a call, in their order. */
class Recorder implements TransportHandler {
  readonly seen: string[] = []
  status = 0
  headers: HeaderMap = {}
  readonly chunks: Uint8Array[] = []
  failure: TransportFailure | undefined
  readonly ended: Promise<void>
  onChunk: (() => void) | undefined
  #end: () => void = () => undefined

  constructor() {
    this.ended = new Promise((resolve) => {
      this.#end = resolve
    })
  }

  get text(): string {
    return Buffer.concat(this.chunks).toString()
  }

  onHead(status: number, headers: HeaderMap): void {
    this.seen.push('head')
    this.status = status
    this.headers = headers
  }

  onData(chunk: Uint8Array): void {
    this.seen.push('data')
    this.chunks.push(chunk)
    this.onChunk?.()
  }

  onEnd(): void {
    this.seen.push('end')
    this.#end()
  }

  onFailure(failure: TransportFailure): void {
    this.seen.push('failure')
    this.failure = failure
    this.#end()
  }
}

const chatCall = (text: string, stream = true): TransportRequest => ({
  origin: 'https://vendor.example',
  path: '/v1/chat/completions',
  method: 'POST',
  headers: ['content-type', 'application/json', 'Authorization', 'Bearer k'],
  body: JSON.stringify({ model: 'gpt-4o', stream, messages: [{ role: 'user', content: text }] }),
  firstByteTimeoutMs: 1000,
  idleTimeoutMs: 500,
})

const send = (sandbox: Sandbox, text: string): { recorder: Recorder; control: TransportControl } => {
  const recorder = new Recorder()
  return { recorder, control: sandbox.transport().send(chatCall(text), recorder) }
}

/** Waits for everything that does not need the clock. */
const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
}

const CALLS: readonly [name: string, path: string, headers: readonly string[], body: object][] = [
  [
    'openai',
    '/v1/chat/completions',
    ['authorization', 'Bearer k'],
    { model: 'gpt-4o', stream: true, messages: [{ role: 'user', content: 'hi' }] },
  ],
  [
    'openai embeddings',
    '/v1/embeddings',
    ['authorization', 'Bearer k'],
    { model: 'text-embedding-3-small', input: 'hi' },
  ],
  [
    'anthropic',
    '/v1/messages',
    ['x-api-key', 'k', 'anthropic-version', '2023-06-01'],
    { model: 'claude-sonnet-4-6', max_tokens: 9, stream: true, messages: [{ role: 'user', content: 'hi' }] },
  ],
  [
    'gemini',
    '/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse',
    ['x-goog-api-key', 'k'],
    { contents: [{ parts: [{ text: 'hi' }] }] },
  ],
  [
    'dashscope',
    '/compatible-mode/v1/chat/completions',
    ['authorization', 'Bearer k'],
    { model: 'qwen-plus', messages: [{ role: 'user', content: 'hi' }] },
  ],
  ['voyage', '/v1/embeddings', ['authorization', 'Bearer k'], { model: 'voyage-4', input: 'hi' }],
  ['a refusal', '/v1/messages', [], { model: 'claude-sonnet-4-6' }],
]

test.each(CALLS)('answers the same bytes in process and over a socket: %s', async (_, path, headers, body) => {
  const sandbox = sandboxVendors({ clock: fakeClock() })
  const { origin } = await sandbox.listen()
  const text = JSON.stringify(body)
  const pairs = headers.flatMap((name, index): [string, string][] =>
    index % 2 === 0 ? [[name, headers[index + 1] ?? '']] : [],
  )

  const overSocket = await fetch(origin + path, { method: 'POST', headers: pairs, body: text })
  const recorder = new Recorder()
  sandbox.transport().send({ ...chatCall(''), path, headers: [...headers], body: text }, recorder)
  await recorder.ended

  expect(recorder.text).toBe(await overSocket.text())
  expect(recorder.status).toBe(overSocket.status)
  for (const [name, value] of Object.entries(recorder.headers)) {
    const values = name === 'set-cookie' ? overSocket.headers.getSetCookie() : [overSocket.headers.get(name)]
    expect([name, values]).toEqual([name, [value].flat()])
  }
  expect(sandbox.requests[0]?.body).toEqual(sandbox.requests[1]?.body)
  await sandbox.close()
})

describe('the transport in process', () => {
  test('calls nothing back before send has returned, and gives each event as a chunk', async () => {
    const sandbox = sandboxVendors()

    const { recorder } = send(sandbox, 'hi')
    const seenAtOnce = [...recorder.seen]
    await recorder.ended

    expect(seenAtOnce).toEqual([])
    expect(recorder.seen).toEqual(['head', ...Array(6).fill('data'), 'end'])
    expect([sandbox.openConnections, sandbox.openCalls, sandbox.aborted]).toEqual([0, 0, 0])
  })

  test('holds chunks back while it is paused, and goes on where it stopped', async () => {
    const sandbox = sandboxVendors()
    const { recorder, control } = send(sandbox, 'one two three')
    recorder.onChunk = () => control.pause()

    await settled()
    const heldAt = recorder.chunks.length
    let rounds = 0
    while (!recorder.seen.includes('end')) {
      control.resume()
      await settled()
      rounds++
    }

    expect(heldAt).toBe(1)
    expect(rounds).toBe(8)
    expect(recorder.text.endsWith('[DONE]\n\n')).toBe(true)
  })

  test('an abort ends the call with a failure, and the vendor sees it', async () => {
    const sandbox = sandboxVendors()
    const { recorder, control } = send(sandbox, 'x [[fault:hang-body=2]]')
    await sandbox.nextRequest()

    control.abort()
    control.abort()
    const seenAtOnce = [...recorder.seen]
    await recorder.ended
    await settled()

    expect(seenAtOnce).toEqual(['head', 'data', 'data'])
    expect(recorder.seen).toEqual(['head', 'data', 'data', 'failure'])
    expect(recorder.failure).toMatchObject({ phase: 'body', kind: 'aborted' })
    await expect(sandbox.nextAbort()).resolves.toBeGreaterThan(0)
    expect([sandbox.openCalls, sandbox.openConnections]).toEqual([0, 0])
  })

  test('an abort in the same turn as send never reaches the vendor', async () => {
    const sandbox = sandboxVendors()
    const { recorder, control } = send(sandbox, 'hi')

    control.abort()
    await recorder.ended
    await settled()

    expect(recorder.failure).toMatchObject({ phase: 'sent', kind: 'aborted' })
    expect(sandbox.requests).toEqual([])
  })

  test.each([
    ['refuse', { phase: 'connect', kind: 'refused' }],
    ['reset', { phase: 'sent', kind: 'reset' }],
    ['reset-mid-stream=2', { phase: 'body', kind: 'reset' }],
  ])('%s arrives as a failure of its phase', async (mark, failure) => {
    const sandbox = sandboxVendors()

    const { recorder } = send(sandbox, `x [[fault:${mark}]]`)
    await recorder.ended

    expect(recorder.failure).toMatchObject(failure)
    expect(recorder.failure?.error).toBeInstanceOf(Error)
    expect(sandbox.aborted).toBe(0)
  })

  test('keeps the limit of silence before the headers and the one within the body', async () => {
    const clock = fakeClock()
    const sandbox = sandboxVendors({ clock })
    const silent = send(sandbox, 'x [[fault:hang]]').recorder
    const stalled = send(sandbox, 'x [[fault:hang-body]]').recorder
    await settled()

    clock.advance(500)
    await settled()
    const afterIdleLimit = [silent.failure?.kind, stalled.failure?.kind]
    clock.advance(500)
    await settled()

    expect(afterIdleLimit).toEqual([undefined, 'timeout'])
    expect(stalled.failure).toMatchObject({ phase: 'body', kind: 'timeout' })
    expect(silent.failure).toMatchObject({ phase: 'sent', kind: 'timeout' })
    expect(sandbox.aborted).toBe(2)
    expect(clock.pending).toBe(0)
  })

  test('a pause does not count as the silence of the vendor', async () => {
    const clock = fakeClock()
    const sandbox = sandboxVendors({ clock })
    const { recorder, control } = send(sandbox, 'hi')
    recorder.onChunk = () => control.pause()
    await settled()

    clock.advance(10_000)
    recorder.onChunk = undefined
    control.resume()
    await recorder.ended

    expect(recorder.failure).toBeUndefined()
    expect(recorder.seen.at(-1)).toBe('end')
  })

  test('close waits for calls under way; closing the sandbox breaks them', async () => {
    const sandbox = sandboxVendors()
    const { recorder } = send(sandbox, 'x [[fault:hang]]')
    await sandbox.nextRequest()
    let isClosed = false
    const closing = sandbox
      .transport()
      .close()
      .then(() => {
        isClosed = true
      })
    await settled()
    const closedEarly = isClosed

    await sandbox.close()
    await closing

    expect([closedEarly, isClosed]).toEqual([false, true])
    expect(recorder.failure).toMatchObject({ phase: 'sent', kind: 'reset' })
  })
})
