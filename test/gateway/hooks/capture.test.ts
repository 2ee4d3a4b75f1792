import { afterEach, describe, expect, test } from 'vitest'
import { silentLogger } from '../../../src/core/logger.ts'
import { type CapturedRecord, type CaptureOptions, capture } from '../../../src/hooks/capture.ts'
import type { AnyHook, TextWindow } from '../../../src/hooks/hook.ts'
import { redact } from '../../../src/hooks/redact.ts'
import { pii } from '../../../src/hooks/redaction-rules.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import { chatBody } from '../../support/start-gateway.ts'
import { eventStream } from '../streams/answering-vendor.ts'
import { chunk, completion, type HookedGateway, hookedGateway, type Script, spoken, USAGE } from './hooked-gateway.ts'

const CHAT = '/v1/chat/completions'
const SECRET = 'jane.doe@example.com'

let gateway: HookedGateway | undefined

afterEach(async () => {
  await gateway?.close()
  gateway = undefined
})

/** A gateway that captures, and what its sink got. */
async function start(
  options: Partial<CaptureOptions> = {},
  script: Script = completion(`write to ${SECRET}`),
  others: readonly AnyHook[] = [],
  gatewayOptions: Parameters<typeof hookedGateway>[2] = {},
): Promise<HookedGateway & { readonly got: CapturedRecord[] }> {
  const got: CapturedRecord[] = []
  const sink = (records: readonly CapturedRecord[]): void => void got.push(...records)
  gateway = await hookedGateway([...others, capture({ sink, ...options })], script, gatewayOptions)
  return { ...gateway, got }
}

/** A piece of a streamed answer, as hooks get it. */
function windowOf(requestId: string, fresh: string): TextWindow {
  const facts = { model: 'm', endpoint: 'chat', vendor: 'v', tags: [], principal: { accountId: 'a', keyId: 'k' } }
  const part = { id: 'choices[0].message.content', kind: 'text', index: 0, before: '', held: '', isLast: false }
  return { requestId, ...facts, ...part, fresh } as unknown as TextWindow
}

const textsOf = (records: readonly CapturedRecord[]): string[] =>
  records.flatMap(({ texts }) => texts.map(({ text }) => text))

describe('capture', () => {
  test('gives request and answer of a call to its sink', async () => {
    const { post, got } = await start()
    const response = await post(CHAT, chatBody('chat-relayed', 'hi'), { 'x-signalbox-tags': 'team-a' })
    await expect.poll(() => got.length).toBe(2)

    const shared = { requestId: response.headers.get('x-request-id'), endpoint: 'chat', model: 'chat-relayed' }
    expect(got).toMatchObject([
      {
        type: 'request',
        ...shared,
        tags: ['team-a'],
        isStream: false,
        texts: [{ role: 'user', kind: 'text', text: 'hi' }],
      },
      {
        type: 'answer',
        ...shared,
        vendor: 'openai',
        accountId: 'acct_test',
        usage: { inputTokens: USAGE.prompt_tokens },
      },
    ])
  })

  test.each([false, true])('says the time of the clock of the gateway (streamed: %s)', async (stream) => {
    const startMs = Date.UTC(2030, 1, 2)
    const clock = fakeClock({ startMs })
    const { got, post } = await start({}, stream ? spoken(['Hello.']) : completion('Hello.'), [], { clock })
    await (await post(CHAT, chatBody('chat-relayed', 'hi', { stream }))).text()
    await expect.poll(() => got.length).toBe(2)

    expect(got.map(({ atMs }) => atMs)).toEqual([startMs, startMs])
  })

  test('captures streams without holding them back', async () => {
    let release = (): void => undefined
    const script: Script = (response) => {
      eventStream(response)
      response.write(`data: ${JSON.stringify(chunk({ role: 'assistant', content: 'Hel' }))}\n\n`)
      release = () => {
        response.write(`data: ${JSON.stringify(chunk({ content: 'lo' }))}\n\n`)
        response.end(`data: ${JSON.stringify(chunk({}, 'stop'))}\n\ndata: [DONE]\n\n`)
      }
    }
    const { post, got } = await start({ on: ['answer'] }, script)
    const response = await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true }))
    const reader = response.body!.getReader()
    const first = Buffer.from((await reader.read()).value ?? []).toString()
    release()
    let rest = ''
    for (let part = await reader.read(); !part.done; part = await reader.read())
      rest += Buffer.from(part.value).toString()
    await expect.poll(() => got.length).toBe(1)

    expect(first).toContain('Hel')
    expect(rest).toContain('[DONE]')
    expect(got).toMatchObject([
      { type: 'answer', isStream: true, isCut: false, texts: [{ kind: 'text', text: 'Hello' }] },
    ])
  })

  test.each([false, true])('takes out what its rules find before anything is kept (streamed: %s)', async (stream) => {
    const script = stream ? spoken(['write to jane', '.doe@exam', 'ple.com']) : completion(`write to ${SECRET}`)
    const { post, got } = await start({ redact: [pii.email] }, script)
    const text = await (await post(CHAT, chatBody('chat-relayed', `I am ${SECRET}`, { stream }))).text()
    await expect.poll(() => got.length).toBe(2)

    expect(textsOf(got)).toEqual(['I am [EMAIL]', 'write to [EMAIL]'])
    // The caller gets the answer as it is.
    if (!stream) expect(text).toContain(SECRET)
  })

  test('captures what vendors read and what callers read, by its place in the list', async () => {
    const sent: string[] = []
    const { post, got } = await start(
      {},
      (response, body) => {
        sent.push(JSON.stringify(body))
        completion(`write to ${SECRET}`)(response, body)
      },
      [redact([pii.email], { on: ['request'] })],
    )
    await (await post(CHAT, chatBody('chat-relayed', `I am ${SECRET}`))).text()
    await expect.poll(() => got.length).toBe(2)

    expect(sent[0]).toContain('[EMAIL]')
    expect(textsOf(got)[0]).toBe('I am [EMAIL]')
  })

  test('captures a share of the calls, each with request and answer or neither', async () => {
    const { post, got, close } = await start({ sample: 0.5 })
    for (let call = 0; call < 40; call++) await (await post(CHAT, chatBody('chat-relayed', 'hi'))).text()
    await close()
    const calls = new Map<string, number>()
    for (const { requestId } of got) calls.set(requestId, (calls.get(requestId) ?? 0) + 1)

    expect(calls.size).toBeGreaterThan(4)
    expect(calls.size).toBeLessThan(36)
    expect([...calls.values()].every((count) => count === 2)).toBe(true)
  })

  test.each<[string, () => never | Promise<never>]>([
    [
      'throws',
      () => {
        throw new Error('the disk is full')
      },
    ],
    ['rejects', () => Promise.reject(new Error('the disk is full'))],
  ])('costs records and no call where its sink %s', async (_name, sink) => {
    const dropped: [number, string][] = []
    const { post, eventsOf } = await start({ sink, onDropped: (...told) => void dropped.push(told) })
    const response = await post(CHAT, chatBody('chat-relayed', 'hi'))

    expect(response.status).toBe(200)
    await expect.poll(() => dropped.reduce((sum, [count]) => sum + count, 0)).toBe(2)
    expect(dropped.every(([, reason]) => reason === 'sink-failed')).toBe(true)
    expect(eventsOf('hook-bypassed')).toEqual([])
  })

  test('keeps no more than maxBytes for a sink that hangs, and delays nobody', async () => {
    const dropped: string[] = []
    const batches: number[] = []
    let release = (): void => undefined
    const hanging = new Promise<void>((resolve) => {
      release = resolve
    })
    const { post } = await start({
      maxBytes: 4_000,
      on: ['request'],
      onDropped: (_count, reason) => void dropped.push(reason),
      sink(records) {
        batches.push(records.length)
        return hanging
      },
    })
    for (let call = 0; call < 20; call++)
      expect((await post(CHAT, chatBody('chat-relayed', 'x'.repeat(500)))).status).toBe(200)
    release()
    await gateway?.close()
    const taken = batches.reduce((sum, count) => sum + count, 0)
    gateway = undefined

    expect(taken).toBeLessThanOrEqual(4)
    expect(taken + dropped.length).toBe(20)
    expect(new Set(dropped)).toEqual(new Set(['full']))
  })

  test('cuts a stream that is longer than there is room for', async () => {
    const pieces = Array.from({ length: 30 }, () => 'x'.repeat(100))
    const { post, got } = await start({ maxBytes: 1_500, on: ['answer'] }, spoken(pieces))
    const text = await (await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true }))).text()
    await expect.poll(() => got.length).toBe(1)

    expect(text.match(/x{100}/g)).toHaveLength(30)
    expect(got[0]).toMatchObject({ isCut: true })
    expect(textsOf(got)[0]?.length).toBeLessThanOrEqual(1_500)
  })

  test('ends a stream that breaks with the text received so far', async () => {
    const broken: Script = (response) => {
      eventStream(response)
      response.write(`data: ${JSON.stringify(chunk({ role: 'assistant', content: 'Hel' }))}\n\n`, () =>
        response.destroy(),
      )
    }
    const { post, got } = await start({ on: ['answer'] }, broken)
    await (await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true }))).text().catch(() => '')
    await expect.poll(() => got.length).toBe(1)

    expect(textsOf(got)).toEqual(['Hel'])
  })

  test('writes what waits when the gateway closes, texts that have not ended as cut', async () => {
    const got: CapturedRecord[] = []
    const hook = capture({ sink: (records) => void got.push(...records) })
    await hook.text?.check(windowOf('r', 'Hel'))
    await hook.close?.()

    expect(got).toMatchObject([{ isCut: true, texts: [{ text: 'Hel' }] }])
  })

  test('drops a stream whose pattern takes too long when the gateway closes, and writes the others', async () => {
    const got: CapturedRecord[] = []
    const dropped: unknown[] = []
    const slow = { name: 'slow', pattern: /^(a+)+$/, maxLength: 100 }
    const sink = (records: readonly CapturedRecord[]): void => void got.push(...records)
    const hook = capture({ sink, redact: [slow], onDropped: (...told) => void dropped.push(told) })
    await hook.text?.check(windowOf('slow', `${'a'.repeat(60)}!`))
    await hook.text?.check(windowOf('other', 'Hel'))
    await hook.close?.()

    expect(textsOf(got)).toEqual(['Hel'])
    expect(dropped).toEqual([[1, 'redaction-failed']])
  })

  test('closes the gateway when sink, onDropped, pattern and logger all throw', async () => {
    const fault = (): never => {
      throw new Error('no')
    }
    const rule = { name: 'faulty', pattern: /x/, maxLength: 9, accept: fault }
    const logger = { debug: fault, info: fault, warn: fault, error: fault }
    const hook = capture({ sink: fault, redact: [rule], onDropped: fault })
    const others = [{ name: 'throws', request: () => undefined, close: fault }]
    const started = await hookedGateway([...others, hook], undefined, { logger })
    await (await started.post(CHAT, chatBody('chat-relayed', 'hi'))).text()
    await hook.text?.check(windowOf('open', 'x'))

    await expect(started.close()).resolves.toBeUndefined()
  })

  test('writes texts that were left, and keeps those that go on, after the clock was set back by an hour', async () => {
    const got: CapturedRecord[] = []
    const hook = capture({ sink: (records) => void got.push(...records) })
    const clock = fakeClock()
    let backMs = 0
    hook.start?.({
      logger: silentLogger,
      clock: { now: () => clock.now() - backMs, schedule: clock.schedule },
    } as never)
    await hook.text?.check(windowOf('left', 'Hel'))
    await hook.text?.check(windowOf('goes on', 'Wor'))
    backMs = 3_600_000
    clock.advance(300_000)
    await hook.text?.check(windowOf('goes on', 'ld'))
    clock.advance(300_000)
    await hook.text?.check(windowOf('goes on', '!'))
    clock.advance(300_000)
    await hook.text?.check(windowOf('another', 'new'))
    await expect.poll(() => got.length).toBe(1)
    await hook.close?.()

    expect(got.map(({ requestId, texts }) => [requestId, texts[0]?.text])).toEqual([
      ['left', 'Hel'],
      ['goes on', 'World!'],
      ['another', 'new'],
    ])
  })

  test.each<[object, RegExp]>([
    [{ sink: 'file' }, /sink must be a function/],
    [{ sample: 0 }, /sample must be above 0/],
    [{ sample: 2 }, /sample must be above 0/],
    [{ maxBytes: 0 }, /maxBytes must be a whole number/],
    [{ on: ['wire'] }, /on must be a list/],
    [{ samples: 1 }, /samples is unknown; did you mean sample/],
  ])('refuses %j', (options, message) => {
    expect(() => capture({ sink: () => undefined, ...options } as CaptureOptions)).toThrow(message)
  })
})

describe('the life of a hook', () => {
  test('begins with the logger of the gateway, and ends with it; a close that throws or hangs holds nothing up', async () => {
    const told: string[] = []
    const lines: string[] = []
    const logger = { debug() {}, info() {}, warn() {}, error: (message: string) => void lines.push(message) }
    const request = (): undefined => undefined
    const started = await hookedGateway(
      [
        {
          name: 'good',
          request,
          start: ({ logger: own }) => void told.push(own === undefined ? '' : 'start'),
          close: () => void told.push('close'),
        },
        { name: 'throws', request, close: () => Promise.reject(new Error('no')) },
        { name: 'hangs', request, close: () => new Promise(() => undefined) },
      ],
      undefined,
      { logger },
    )
    await started.close()

    expect(told).toEqual(['start', 'close'])
    expect(lines).toContain('a hook could not be closed')
  })
})
