import { describe, expect, test } from 'vitest'
import { fakeClock, sandboxVendors } from '../../../src/testing/index.ts'
import { eventData, runningSandbox } from './support/running-sandbox.ts'

const vendor = runningSandbox()

interface Dialect {
  readonly vendor: string
  readonly path: string
  readonly streamPath: string
  body(text: string, stream: boolean): object
}

const openAiLike = (name: string, path: string, model: string): Dialect => ({
  vendor: name,
  path,
  streamPath: path,
  body: (text, stream) => ({ model, stream, messages: [{ role: 'user', content: text }] }),
})

const DIALECTS: readonly Dialect[] = [
  openAiLike('openai', '/v1/chat/completions', 'gpt-4o'),
  openAiLike('dashscope', '/compatible-mode/v1/chat/completions', 'qwen-plus'),
  {
    vendor: 'anthropic',
    path: '/v1/messages',
    streamPath: '/v1/messages',
    body: (text, stream) => ({
      model: 'claude-sonnet-4-6',
      max_tokens: 100,
      stream,
      messages: [{ role: 'user', content: text }],
    }),
  },
  {
    vendor: 'gemini',
    path: '/v1beta/models/gemini-2.5-flash:generateContent',
    streamPath: '/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse',
    body: (text) => ({ contents: [{ role: 'user', parts: [{ text }] }] }),
  },
]

describe.each(DIALECTS)('the stand-in for $vendor', (dialect) => {
  const whole = (text: string) => vendor.post(dialect.path, dialect.body(text, false))
  const stream = (text: string) => vendor.post(dialect.streamPath, dialect.body(text, true))
  const open = (text: string) => vendor.send(dialect.streamPath, dialect.body(text, true))

  test('a mark is not echoed, and without one nothing goes wrong', async () => {
    const answer = await whole('hello [[fault:delay=1]]')

    expect(answer.status).toBe(200)
    expect(answer.text).toContain('You said: hello"')
  })

  test('answers with the status asked for, in its own words', async () => {
    const statuses = await Promise.all(
      [400, 401, 403, 404, 429, 500, 503].map((status) => whole(`x [[fault:status=${status}]]`)),
    )

    expect(statuses.map((answer) => answer.status)).toEqual([400, 401, 403, 404, 429, 500, 503])
    for (const { json } of statuses) expect(json.error.message).toEqual(expect.any(String))
  })

  test('says how long to wait', async () => {
    const answer = await stream('x [[fault:status=429,retry-after=7]]')

    const inBody = answer.json.error.details?.[0].retryDelay
    expect(answer.status).toBe(429)
    expect(inBody ?? `${answer.headers.get('retry-after')}s`).toBe('7s')
  })

  test('has its own answers for an empty account and an unknown key, and can leak a key', async () => {
    const [quota, badKey, leak] = await Promise.all(
      ['quota', 'bad-key', 'leak-key'].map((kind) => whole(`x [[fault:${kind}]]`)),
    )

    expect(
      [quota?.status, badKey?.status].every((status) => status !== undefined && status >= 400 && status < 500),
    ).toBe(true)
    expect(leak?.json.error.message).toContain('sk-test-1234')
  })

  test('a page of HTML and a redirect', async () => {
    const page = await whole('x [[fault:html=502]]')
    const redirect = await whole('x [[fault:redirect=http://127.0.0.1:9/there]]')

    expect([page.status, page.headers.get('content-type')]).toEqual([502, 'text/html'])
    expect([redirect.status, redirect.headers.get('location')]).toEqual([307, 'http://127.0.0.1:9/there'])
  })

  test('breaks the connection before the headers', async () => {
    await expect(open('x [[fault:reset]]')).rejects.toThrow('fetch failed')
  })

  test('breaks the connection after the given number of events, which still arrive', async () => {
    const response = await open('one two three [[fault:reset-mid-stream=3]]')

    const received: string[] = []
    const reading = (async () => {
      for await (const chunk of response.body ?? []) received.push(Buffer.from(chunk as Uint8Array).toString())
    })()
    await expect(reading).rejects.toThrow('terminated')
    expect(received.join('').match(/data: /g)).toHaveLength(3)
  })

  test('breaks the connection in the middle of a whole body', async () => {
    await expect(whole('x [[fault:reset-mid-stream]]')).rejects.toThrow('terminated')
  })

  test('ends early and cleanly, or only without its end mark', async () => {
    const full = await stream('one two three')
    const early = await stream('one two three [[fault:end-early=2]]')
    const unmarked = await stream('one two three [[fault:no-done]]')

    expect(early.events).toHaveLength(2)
    expect(unmarked.events).toHaveLength(full.events.length - 1)
  })

  test('sends an error in the middle of a stream, and 200 with an error in a whole answer', async () => {
    const streamed = await stream('one two three [[fault:error-event=2]]')
    const disguised = await whole('x [[fault:error-event]]')

    const data = eventData(streamed.events)
    expect(data).toHaveLength(3)
    expect(data[2].error).toBeDefined()
    expect([disguised.status, disguised.json.error !== undefined]).toEqual([200, true])
  })

  test('sends garbage, half of the JSON, or nothing', async () => {
    const answers = await Promise.all(
      ['half-json', 'empty'].map((kind) => vendor.send(dialect.path, dialect.body(`x [[fault:${kind}]]`, false))),
    )
    const garbage = await vendor.send(dialect.path, dialect.body('x [[fault:garbage]]', false))
    const halfEvent = await open('x [[fault:half-json]]')

    const [half = '', empty] = await Promise.all(answers.map((response) => response.text()))
    expect(garbage.headers.get('content-type')).toContain('application/json')
    const noise = await garbage.text()
    expect(() => JSON.parse(noise)).toThrow(SyntaxError)
    expect(half.startsWith('{')).toBe(true)
    expect(() => JSON.parse(half)).toThrow(SyntaxError)
    expect(empty).toBe('')
    expect(await halfEvent.text()).not.toMatch(/\n\r?\n$/)
  })

  test('reports nonsense as usage, or none', async () => {
    const usageOf = (json: Record<string, unknown>) => json['usage'] ?? json['usageMetadata']
    const negative = await whole('x [[fault:usage=-1]]')
    const quoted = await whole("x [[fault:usage='12']]")
    const none = await whole('x [[fault:no-usage]]')

    expect(Object.values(usageOf(negative.json) as object)).toContain(-1)
    expect(Object.values(usageOf(quoted.json) as object)).toContain('12')
    expect(usageOf(none.json)).toBeUndefined()
    expect((await stream('x [[fault:no-usage]]')).text).not.toContain('okens":')
  })

  test('cuts the body anywhere without changing a byte', async () => {
    const text = 'größer 世界 🚀'
    const cut = await stream(`${text} [[fault:cut=3]]`)

    expect(cut.text).toContain('🚀')
    expect(cut.events).toHaveLength((await stream(text)).events.length)
  })

  test('continues until the caller disconnects', async () => {
    const leaving = new AbortController()
    const response = await vendor.send(
      dialect.streamPath,
      dialect.body('x [[fault:endless]]', true),
      undefined,
      leaving.signal,
    )
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    let received = ''
    while (received.split(' more').length < 4) received += Buffer.from((await reader.read()).value ?? []).toString()

    leaving.abort()

    await expect(vendor.sandbox.nextAbort()).resolves.toBeGreaterThan(0)
    expect(vendor.sandbox.openCalls).toBe(0)
  })

  test('hangs before or after the headers, and detects that the caller disconnects', async () => {
    const leaving = new AbortController()
    const silent = vendor.send(dialect.path, dialect.body('x [[fault:hang]]', false), undefined, leaving.signal)
    await vendor.sandbox.nextRequest()
    const half = await vendor.send(
      dialect.path,
      dialect.body('x [[fault:hang-body]]', false),
      undefined,
      leaving.signal,
    )
    expect(vendor.sandbox.openCalls).toBe(2)

    const leftAt = Date.now()
    leaving.abort()

    await expect(silent).rejects.toThrow('aborted')
    expect(half.status).toBe(200)
    const seenAt = [await vendor.sandbox.nextAbort(), await vendor.sandbox.nextAbort()]
    expect(Math.max(...seenAt) - leftAt).toBeLessThan(1000)
    expect([vendor.sandbox.aborted, vendor.sandbox.openCalls]).toEqual([2, 0])
  })
})

describe('marks', () => {
  const ask = (text: string) =>
    vendor.post('/v1/chat/completions', { model: 'gpt-4o', messages: [{ role: 'user', content: text }] })

  test('apply as often as their setting times', async () => {
    const statuses = []
    for (let round = 0; round < 3; round++) statuses.push((await ask('x [[fault:status=503,times=2]]')).status)

    expect(statuses).toEqual([503, 503, 200])
  })

  test('are rejected by name if they are malformed, so that no drill passes by mistake', async () => {
    const answers = await Promise.all(
      ['nonsense', 'status=abc', 'delay', 'usage', 'cut=0'].map((mark) => ask(`[[fault:${mark}]]`)),
    )

    for (const answer of answers) {
      expect(answer.status).toBe(400)
      expect(answer.json.error.message).toMatch(/cannot read the fault mark \[\[fault:/)
    }
  })

  test('in earlier turns have no effect', async () => {
    const answer = await vendor.post('/v1/chat/completions', {
      model: 'gpt-4o',
      messages: [
        { role: 'user', content: 'x [[fault:status=503]]' },
        { role: 'assistant', content: 'sorry' },
        { role: 'user', content: 'again' },
      ],
    })

    expect(answer.status).toBe(200)
  })

  test('work in texts to embed', async () => {
    const openai = await vendor.post('/v1/embeddings', {
      model: 'text-embedding-3-small',
      input: ['a', '[[fault:status=500]]'],
    })
    const voyage = await vendor.post('/v1/embeddings', { model: 'voyage-4', input: 'a [[fault:status=429]]' })
    const gemini = await vendor.post('/v1beta/models/gemini-embedding-001:batchEmbedContents', {
      requests: [{ model: 'models/gemini-embedding-001', content: { parts: [{ text: '[[fault:quota]]' }] } }],
    })

    expect([openai.status, voyage.status, gemini.status]).toEqual([500, 429, 429])
    expect(voyage.json.detail).toEqual(expect.any(String))
  })
})

describe('queued faults', () => {
  const ask = (path: string, body: object) => vendor.post(path, body)
  const chat = { model: 'gpt-4o', messages: [{ role: 'user', content: 'x' }] }

  test('strike the calls they are meant for, as often as asked, and reset forgets them', async () => {
    vendor.sandbox.fault({ kind: 'status', status: 503, vendor: 'openai', operation: 'embeddings' })
    vendor.sandbox.fault({ kind: 'status', status: 500, times: 2 })
    const statuses = [
      (await ask('/v1/chat/completions', chat)).status,
      (await ask('/v1/embeddings', { model: 'voyage-4', input: 'x' })).status,
      (await ask('/v1/chat/completions', chat)).status,
      (await ask('/v1/embeddings', { model: 'text-embedding-3-small', input: 'x' })).status,
    ]
    vendor.sandbox.fault({ kind: 'hang' })
    vendor.sandbox.reset()

    expect(statuses).toEqual([500, 500, 200, 503])
    expect((await ask('/v1/chat/completions', chat)).status).toBe(200)
    expect(vendor.sandbox.requests).toHaveLength(1)
  })
})

test('delays, paces and slow bytes follow the clock that was passed in', async () => {
  const clock = fakeClock()
  const sandbox = sandboxVendors({ clock })
  const { origin } = await sandbox.listen()
  const body = {
    model: 'gpt-4o',
    stream: true,
    messages: [{ role: 'user', content: 'x [[fault:delay=300]] [[fault:pace=50]]' }],
  }
  const answer = fetch(`${origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: 'Bearer k' },
    body: JSON.stringify(body),
  })
  await sandbox.nextRequest()

  const pendingAtFirst = clock.pending
  clock.advance(299)
  const openBefore = sandbox.openCalls
  clock.advance(1)
  const response = await answer
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  clock.advance(49)
  const waitingBeforeFirstEvent = clock.pending
  clock.advance(1)
  const first = Buffer.from((await reader.read()).value ?? []).toString()
  clock.advance(50 * 10)
  let rest = ''
  for (let read = await reader.read(); !read.done; read = await reader.read())
    rest += Buffer.from(read.value).toString()

  expect([pendingAtFirst, openBefore, waitingBeforeFirstEvent]).toEqual([1, 1, 1])
  expect(first.match(/data: /g)).toHaveLength(1)
  expect(rest.endsWith('[DONE]\n\n')).toBe(true)
  await sandbox.close()
})

test('slow bytes come a few at a time', async () => {
  const response = await vendor.send('/v1/chat/completions', {
    model: 'gpt-4o',
    messages: [{ role: 'user', content: 'x [[fault:slow=1ms,bytes=64]]' }],
  })

  const sizes: number[] = []
  for await (const chunk of response.body ?? []) sizes.push((chunk as Uint8Array).length)

  expect(sizes.length).toBeGreaterThan(3)
})

test('rejects a fault of an unknown kind, and names the nearest one', () => {
  const sandbox = sandboxVendors()

  expect(() => sandbox.fault({ kind: 'half-jsn' } as never)).toThrow(
    'there is no kind "half-jsn"; did you mean half-json?',
  )
  expect(() => sandbox.fault(undefined as never)).toThrow('there is no kind undefined')
})
