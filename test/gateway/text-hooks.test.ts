import { afterEach, describe, expect, test, vi } from 'vitest'
import type { AnyHook, TextHook, TextWindow } from '../../src/hooks/hook.ts'
import { redact } from '../../src/hooks/redact.ts'
import { pii } from '../../src/hooks/redaction-rules.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'
import type { Transport } from '../../src/transport/transport.ts'
import { readEvents } from '../support/read-events.ts'
import { chatBody } from '../support/start-gateway.ts'
import { eventStream } from './answering-vendor.ts'
import { chunk, events, type HookedGateway, hookedGateway, type Script, spoken, USAGE } from './hooked-gateway.ts'

const CHAT = '/v1/chat/completions'
const SECRET = 'jane.doe@example.com'

let gateway: HookedGateway | undefined

afterEach(async () => {
  await gateway?.close()
  gateway = undefined
})

async function start(...parameters: Parameters<typeof hookedGateway>): Promise<HookedGateway> {
  gateway = await hookedGateway(...parameters)
  return gateway
}

type Json = Record<string, unknown>

/** The members of a kind of text in the events of a stream, joined. */
function joined(list: readonly string[], find: (event: Json) => unknown): string {
  return list
    .filter((event) => event !== '[DONE]')
    .map((event) => find(JSON.parse(event) as Json) ?? '')
    .join('')
}

type Choices = { choices?: { index: number; delta?: Json }[] }

const chatText =
  (member: string, index = 0) =>
  (event: Json): unknown =>
    (event as Choices).choices?.find((choice) => choice.index === index)?.delta?.[member]

const chatArguments = (event: Json): unknown => {
  const calls = (event as Choices).choices?.[0]?.delta?.['tool_calls'] as { function?: Json }[] | undefined
  return calls?.[0]?.function?.['arguments']
}

/** The events of a stream of each dialect that says two texts, reasons and calls a tool, cut into such pieces. */
const STREAMS: Record<
  string,
  { path: string; body: Json; events: (pieces: readonly string[]) => Script; texts: ((event: Json) => unknown)[] }
> = {
  chat: {
    path: CHAT,
    body: chatBody('chat-relayed', 'hi', { stream: true, n: 2 }),
    events: (pieces) =>
      events([
        chunk({ role: 'assistant', content: '' }, null, 0),
        chunk({ role: 'assistant', content: '' }, null, 1),
        ...pieces.map((text) => chunk({ reasoning_content: text })),
        // Choices take turns.
        ...pieces.flatMap((text) => [chunk({ content: text }, null, 0), chunk({ content: text }, null, 1)]),
        chunk({ tool_calls: [{ index: 0, id: 't1', type: 'function', function: { name: 'look', arguments: '' } }] }),
        ...jsonPieces(pieces).map((text) => chunk({ tool_calls: [{ index: 0, function: { arguments: text } }] })),
        chunk({}, 'stop', 0),
        chunk({}, 'stop', 1),
        { id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'x', choices: [], usage: USAGE },
      ]),
    texts: [chatText('reasoning_content'), chatText('content', 0), chatText('content', 1), chatArguments],
  },
  messages: {
    path: '/v1/messages',
    body: { ...chatBody('cl-sonnet-4-6', 'hi', { stream: true }), max_tokens: 50 },
    events: (pieces) => events(messageEvents(pieces), ''),
    texts: ['thinking', 'text', 'partial_json'].map(
      (member) => (event) => (event['delta'] as Json | undefined)?.[member],
    ),
  },
  'chat by translation': {
    path: CHAT,
    body: chatBody('cl-sonnet-4-6', 'hi', { stream: true }),
    events: (pieces) => events(messageEvents(pieces), ''),
    texts: [chatText('reasoning_content'), chatText('content'), chatArguments],
  },
  responses: {
    path: '/v1/responses',
    body: { model: 'chat-relayed', input: 'hi', stream: true },
    events: (pieces) => events(responseEvents(pieces), ''),
    texts: ['reasoning_summary_text', 'output_text', 'function_call_arguments'].map(
      (name) => (event) => (event['type'] === `response.${name}.delta` ? event['delta'] : undefined),
    ),
  },
}

function jsonPieces(pieces: readonly string[]): string[] {
  return ['{"to":"', ...pieces, '"}']
}

function messageEvents(pieces: readonly string[]): Json[] {
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'x', content: [], stop_reason: null }
  const usage = { input_tokens: 7, output_tokens: 1 }
  const block = (index: number, start: Json, deltas: Json[]): Json[] => [
    { type: 'content_block_start', index, content_block: start },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ]
  return [
    { type: 'message_start', message: { ...message, stop_sequence: null, usage } },
    ...block(0, { type: 'thinking', thinking: '', signature: '' }, [
      ...pieces.map((thinking) => ({ type: 'thinking_delta', thinking })),
      { type: 'signature_delta', signature: 'sig' },
    ]),
    ...block(
      1,
      { type: 'text', text: '' },
      pieces.map((text) => ({ type: 'text_delta', text })),
    ),
    ...block(
      2,
      { type: 'tool_use', id: 't1', name: 'look', input: {} },
      jsonPieces(pieces).map((text) => ({ type: 'input_json_delta', partial_json: text })),
    ),
    { type: 'message_delta', delta: { stop_reason: 'tool_use', stop_sequence: null }, usage: { output_tokens: 5 } },
    { type: 'message_stop' },
  ]
}

function responseEvents(pieces: readonly string[]): Json[] {
  const text = pieces.join('')
  const json = jsonPieces(pieces).join('')
  const base = { id: 'resp_1', object: 'response', created_at: 1, model: 'gpt-5.4', output: [] as Json[] }
  const reasoning = { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text }] }
  const message = { type: 'message', id: 'm1', role: 'assistant', status: 'completed' }
  const said = { ...message, content: [{ type: 'output_text', text, annotations: [] }] }
  const call = { type: 'function_call', id: 'f1', call_id: 'c1', name: 'look', status: 'completed', arguments: json }
  const usage = {
    input_tokens: 7,
    input_tokens_details: {},
    output_tokens: 5,
    output_tokens_details: {},
    total_tokens: 12,
  }
  const summary = { item_id: 'rs_1', output_index: 0, summary_index: 0 }
  const content = { item_id: 'm1', output_index: 1, content_index: 0 }
  const list: Json[] = [
    { type: 'response.created', response: { ...base, status: 'in_progress', usage: null } },
    { type: 'response.output_item.added', output_index: 0, item: { ...reasoning, summary: [] } },
    ...pieces.map((delta) => ({ type: 'response.reasoning_summary_text.delta', ...summary, delta })),
    { type: 'response.reasoning_summary_text.done', ...summary, text },
    { type: 'response.output_item.done', output_index: 0, item: reasoning },
    { type: 'response.output_item.added', output_index: 1, item: { ...message, content: [] } },
    ...pieces.map((delta) => ({ type: 'response.output_text.delta', ...content, delta, logprobs: [] })),
    { type: 'response.output_text.done', ...content, text, logprobs: [] },
    { type: 'response.output_item.done', output_index: 1, item: said },
    { type: 'response.output_item.added', output_index: 2, item: { ...call, arguments: '' } },
    ...jsonPieces(pieces).map((delta) => ({
      type: 'response.function_call_arguments.delta',
      item_id: 'f1',
      output_index: 2,
      delta,
    })),
    { type: 'response.function_call_arguments.done', item_id: 'f1', output_index: 2, arguments: json },
    { type: 'response.output_item.done', output_index: 2, item: call },
    { type: 'response.completed', response: { ...base, status: 'completed', output: [reasoning, said, call], usage } },
  ]
  return list.map((event, number) => ({ ...event, sequence_number: number }))
}

describe.each(Object.entries(STREAMS))('a redacted stream of %s', (_name, { path, body, events: script, texts }) => {
  const told = `Write to ${SECRET} today.`
  const cuts = Array.from({ length: told.length - 1 }, (_, cut) => [told.slice(0, cut + 1), told.slice(cut + 1)])

  test('never lets a secret out, wherever it is cut', async () => {
    let pieces: readonly string[] = []
    const { post, eventsOf } = await start([redact([pii.email])], (response, asked) => script(pieces)(response, asked))
    for (pieces of [...cuts, [...told]]) {
      const list = await readEvents(await post(path, body))
      const all = list.join('\n')

      expect(all).not.toContain(SECRET)
      expect(all).not.toContain('doe@')
      for (const find of texts) {
        const text = joined(list, find)
        expect([`Write to [EMAIL] today.`, '{"to":"Write to [EMAIL] today."}', '']).toContain(text)
      }
      expect(joined(list, texts[1]!)).toBe('Write to [EMAIL] today.')
    }
    expect(eventsOf('internal-error')).toEqual([])
    expect(
      eventsOf('request-ended').every(({ ending, usage }) => ending === 'completed' && usage?.outputTokens === 5),
    ).toBe(true)
  })
})

const detail = (members: Json): Json => ({ reasoning_details: [{ index: 0, ...members }] })

describe.each<[string, (text: string) => Json, unknown]>([
  ['the transcript of sound', (transcript) => ({ audio: { transcript } }), { audio: { transcript: 'now' } }],
  [
    'the arguments of a function in the old form',
    (text) => ({ function_call: { arguments: text } }),
    { function_call: { arguments: 'Write to [EMAIL] now' } },
  ],
  [
    'a detail of reasoning',
    (text) => detail({ type: 'reasoning.text', text }),
    detail({ type: 'reasoning.text', text: 'now' }),
  ],
  [
    'a summary of reasoning',
    (summary) => detail({ type: 'reasoning.summary', summary }),
    detail({ type: 'reasoning.summary', summary: 'now' }),
  ],
])('%s in a redacted stream of chat', (_name, delta, last) => {
  test('loses its secret, and what was held back comes in the form in which the rest came', async () => {
    const pieces = ['Write to jane.doe@exa', 'mple.com ', 'now'].map((text) => chunk(delta(text)))
    const begin = chunk({ role: 'assistant', content: '' })
    const { post } = await start([redact([pii.email])], events([begin, ...pieces, chunk({}, 'stop')]))
    const list = await readEvents(await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true })))
    const deltas = list.slice(0, -1).map((event) => (JSON.parse(event) as Choices).choices?.[0]?.delta)

    expect(list.join('\n')).toContain('[EMAIL]')
    expect(list.join('\n')).not.toContain('jane')
    expect(deltas.at(-2)).toEqual(last)
  })
})

test('the details of reasoning in a redacted stream of chat keep their texts, each before its signature', async () => {
  const said = (text: string, index: number): Json =>
    chunk({ content: '', reasoning: text, reasoning_details: [{ type: 'reasoning.text', text, signature: '', index }] })
  const signed = (index: number): Json =>
    chunk({ reasoning_details: [{ type: 'reasoning.text', signature: `signature ${index}`, index }] })
  const list = [
    ...['First ', 'thought.'].map((text) => said(text, 0)),
    signed(0),
    ...['Mail jane.doe@exa', 'mple.com', ' next.'].map((text) => said(text, 1)),
    ...['Unsigned', '.'].map((text) => said(text, 2)),
    chunk({ reasoning_details: [{ type: 'reasoning.encrypted', data: 'c2VhbGVk', index: 3 }] }),
    chunk({}, 'stop'),
  ]
  const { post } = await start([redact([pii.email])], events(list))
  const got = await readEvents(await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true })))
  const told = new Map<unknown, string>()
  for (const event of got.slice(0, -1)) {
    const details = (JSON.parse(event) as Choices).choices?.[0]?.delta?.['reasoning_details'] as Json[] | undefined
    for (const { index, text, signature, data } of details ?? [])
      told.set(index, `${told.get(index) ?? ''}${text ?? signature ?? data}`)
  }

  expect([...told]).toEqual([
    [0, 'First thought.signature 0'],
    [1, 'Mail [EMAIL] next.'],
    [2, 'Unsigned.'],
    [3, 'c2VhbGVk'],
  ])
  expect(joined(got, chatText('reasoning'))).toBe('First thought.Mail [EMAIL] next.Unsigned.')
})

test.each([
  ['an answer', [{ content: 'It is ' }, { content: 'four.' }]],
  ['a call', [{ tool_calls: [{ index: 0, id: 'c1', type: 'function', function: { name: 'f', arguments: '' } }] }]],
])('the reasoning of a redacted stream of chat is whole before %s begins', async (_what, answer) => {
  const thoughts = ['I think of jane.doe@exa', 'mple.com ', 'and so'].map((text) => ({ reasoning_content: text }))
  const list = [{ role: 'assistant', content: '' }, ...thoughts, ...answer].map((delta) => chunk(delta))
  // Each event in a network read of its own.
  const { post } = await start([redact([pii.email])], async (response) => {
    eventStream(response)
    for (const event of [...list, chunk({}, 'stop')]) {
      response.write(`data: ${JSON.stringify(event)}\n\n`)
      await new Promise((resolve) => setImmediate(resolve))
    }
    response.end('data: [DONE]\n\n')
  })
  const got = await readEvents(await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true })))
  const deltas = got.slice(0, -1).map((event) => (JSON.parse(event) as Choices).choices?.[0]?.delta)
  const lastThought = deltas.findLastIndex((delta) => delta?.['reasoning_content'] !== undefined)
  const firstAnswer = deltas.findIndex((delta) => delta?.['content'] || delta?.['tool_calls'])

  expect(joined(got, chatText('reasoning_content'))).toBe('I think of [EMAIL] and so')
  expect(lastThought).toBeLessThan(firstAnswer)
})

test.each([
  ['annotations', { content: '', annotations: [{ type: 'url_citation', url_citation: { title: 'A page' } }] }],
  ['a list of no calls', { content: '', tool_calls: [] }],
  ['a member that only its vendor knows', { provider_specific_fields: { citation: { title: 'A page' } } }],
])('reasoning goes on behind %s, and a secret that is cut there does not get out', async (_what, between) => {
  const thoughts = ['I think of jane.doe@exa', 'mple.com and so'].map((text) => ({ reasoning_content: text }))
  const list = [thoughts[0]!, between, thoughts[1]!, { content: 'Four.' }].map((delta) => chunk(delta))
  const { post } = await start([redact([pii.email])], events([...list, chunk({}, 'stop')]))
  const got = await readEvents(await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true })))

  expect(joined(got, chatText('reasoning_content'))).toBe('I think of [EMAIL] and so')
  expect(joined(got, chatText('content'))).toBe('Four.')
})

test('what a chunk says beside its difference does not pass a redacted stream of chat', async () => {
  const said = { role: 'assistant', content: `Write to ${SECRET}` }
  const first = { ...chunk({}), choices: [{ index: 0, delta: said, message: said, text: SECRET, finish_reason: null }] }
  const { post } = await start([redact([pii.email])], events([first, chunk({}, 'stop')]))
  const list = await readEvents(await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true })))

  expect(list.join('\n')).not.toContain('jane')
  expect(joined(list, chatText('content'))).toBe('Write to [EMAIL]')
})

test.each([
  ['as it comes', redact([pii.email])],
  ['at its end', { ...redact([pii.email]), text: undefined } as unknown as AnyHook],
])('the annotations of a stream of chat stay whole, and are redacted %s', async (_when, hook) => {
  const cited = (title: string): Json => ({
    annotations: [{ type: 'url_citation', url_citation: { title, url: 'https://a.example' } }],
  })
  const begin = chunk({ role: 'assistant', content: 'See ' })
  const pieces = [cited(`Mail to ${SECRET}`), cited('Another')].map((delta) => chunk(delta))
  const { post } = await start([hook], events([begin, ...pieces, chunk({ content: 'both' }), chunk({}, 'stop')]))
  const list = await readEvents(await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true })))
  const deltas = list.slice(0, -1).map((event) => (JSON.parse(event) as Choices).choices?.[0]?.delta)

  expect(deltas.filter((delta) => delta?.['annotations'] !== undefined)).toEqual([
    cited('Mail to [EMAIL]'),
    cited('Another'),
  ])
  expect(joined(list, chatText('content'))).toBe('See both')
})

const SOURCES = {
  citations: ['https://a.example/jane.doe@example.com', 'https://b.example'],
  search_results: [{ title: `Mail to ${SECRET}`, url: 'https://a.example', snippet: `at ${SECRET}` }, { title: 'Two' }],
  related_questions: [`Who is ${SECRET}?`],
}

test.each([
  ['as it comes', redact([pii.email])],
  ['at its end', { ...redact([pii.email]), text: undefined } as unknown as AnyHook],
])('the sources that stand beside the choices of each chunk of a chat are redacted %s', async (_when, hook) => {
  const pieces = ['Mail jane', '.doe@exam', 'ple.com.']
  const list = [
    chunk({ role: 'assistant', content: '' }),
    ...pieces.map((content, number) => ({ ...chunk({ content }), ...(number > 0 && SOURCES) })),
    { ...chunk({}, 'stop'), ...SOURCES, usage: USAGE },
  ]
  const checked: string[] = []
  const watch: AnyHook = {
    name: 'watch',
    text: { holdBack: { chars: 0 }, check: ({ id, isLast }) => void (isLast && checked.push(id)) },
  }
  const { post } = await start([watch, hook], events(list))
  const got = await readEvents(await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true })))
  const chunks = got.slice(0, -1).map((event) => JSON.parse(event) as Json)

  expect(got.join()).not.toContain('jane')
  expect(joined(got, chatText('content'))).toBe('Mail [EMAIL].')
  expect(chunks.at(-1)).toMatchObject({
    citations: ['https://a.example/[EMAIL]', 'https://b.example'],
    search_results: [{ title: 'Mail to [EMAIL]', url: 'https://a.example', snippet: 'at [EMAIL]' }, { title: 'Two' }],
    related_questions: ['Who is [EMAIL]?'],
  })
  // Each source once, however often it is repeated.
  expect(checked.filter((id) => id.startsWith('search_results'))).toHaveLength(3)
})

test.each([
  ['as it comes', redact([pii.email])],
  ['at its end', { ...redact([pii.email]), text: undefined } as unknown as AnyHook],
])('the sources of a stream of Responses stay whole, and are redacted %s', async (_when, hook) => {
  const source = {
    type: 'url_citation',
    title: `Mail to ${SECRET}`,
    url: 'https://a.example',
    start_index: 0,
    end_index: 3,
  }
  const place = { item_id: 'm1', output_index: 1, content_index: 0 }
  const list = responseEvents(['See ', 'both'])
  const closing = list.findIndex(({ type }) => type === 'response.output_text.done')
  list.splice(closing, 0, {
    type: 'response.output_text.annotation.added',
    ...place,
    annotation_index: 0,
    annotation: source,
  })
  const script = JSON.parse(
    JSON.stringify(list).replaceAll('"annotations":[]', `"annotations":${JSON.stringify([source])}`),
  ) as Json[]
  const { post } = await start([hook], events(script.map((event, number) => ({ ...event, sequence_number: number }))))
  const got = await readEvents(await post('/v1/responses', { model: 'chat-relayed', input: 'hi', stream: true }))
  const all = got.join('\n')

  expect(all).not.toContain('jane')
  expect(all.match(/"title":"Mail to \[EMAIL\]","url":"https:\/\/a.example"/g)).toHaveLength(3)
  expect(got.map((event) => (JSON.parse(event) as { type: string }).type)).toContain(
    'response.output_text.annotation.added',
  )
})

test('details of reasoning stay as they are where reasoning is not redacted', async () => {
  const details = detail({ type: 'reasoning.text', text: `Write to ${SECRET}`, signature: 'signed' })
  const hook = redact([pii.email], { kinds: ['text', 'tool_arguments', 'transcript'] })
  const { post } = await start([hook], events([chunk(details), chunk({}, 'stop')]))
  const list = await readEvents(await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true })))

  expect((JSON.parse(list[0]!) as Choices).choices?.[0]?.delta).toMatchObject(details)
})

test('the diff of a patch in a stream of Responses is redacted as what a tool is given, wherever it is cut', async () => {
  const diff = `+Write to ${SECRET} today`
  const place = { item_id: 'p1', output_index: 0 }
  const patch = (text: string, status: string): Json => {
    const operation = { type: 'update_file', path: 'a.txt', diff: text }
    return { type: 'apply_patch_call', id: 'p1', call_id: 'c1', status, operation }
  }
  const base = { id: 'resp_1', object: 'response', created_at: 1, model: 'gpt-5.4', output: [] as Json[] }
  const of = (pieces: readonly string[]): Json[] => [
    { type: 'response.created', response: { ...base, status: 'in_progress' } },
    { type: 'response.output_item.added', output_index: 0, item: patch('', 'in_progress') },
    ...pieces.map((delta) => ({ type: 'response.apply_patch_call_operation_diff.delta', ...place, delta })),
    { type: 'response.apply_patch_call_operation_diff.done', ...place, diff },
    { type: 'response.output_item.done', output_index: 0, item: patch(diff, 'completed') },
    { type: 'response.completed', response: { ...base, status: 'completed', output: [patch(diff, 'completed')] } },
  ]
  let pieces: readonly string[] = []
  const hook = redact([pii.email], { kinds: ['tool_arguments'] })
  const { post } = await start([hook], (response, asked) => events(of(pieces), '')(response, asked))
  for (pieces of [[diff], [...diff], [diff.slice(0, 14), diff.slice(14)]]) {
    const list = await readEvents(await post('/v1/responses', { model: 'chat-relayed', input: 'hi', stream: true }))

    expect(list.join('\n')).not.toContain('doe@')
    expect(
      joined(list, ({ type, delta }) => (type === 'response.apply_patch_call_operation_diff.delta' ? delta : '')),
    ).toBe('+Write to [EMAIL] today')
    expect(list.join('\n').match(/"diff":"\+Write to \[EMAIL\] today"/g)).toHaveLength(3)
  }
})

/** Texts of the windows that a hook was shown. */
function watching(options: Partial<TextHook> = {}): { hook: AnyHook; windows: string[] } {
  const windows: string[] = []
  const check = ({ held, fresh, isLast }: TextWindow): undefined => void windows.push(`${held}${fresh}|${isLast}`)
  return { hook: { name: 'watch', text: { holdBack: { chars: 4 }, check, ...options } }, windows }
}

describe('a text hook', () => {
  test('is shown what is held and what is new, and holds so many characters back', async () => {
    const { hook, windows } = watching()
    const release: (() => void)[] = []
    const { post } = await start([hook], (response) => {
      eventStream(response)
      const pieces = ['abcdef', 'gh', 'i']
      const next = (): void => {
        const text = pieces.shift()
        if (text === undefined) response.end(`data: ${JSON.stringify(chunk({}, 'stop'))}\n\ndata: [DONE]\n\n`)
        else response.write(`data: ${JSON.stringify(chunk({ content: text }))}\n\n`)
      }
      next()
      release.push(next)
    })
    const reply = await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true }))
    const reader = reply.body!.getReader()
    const read = async (): Promise<string> => new TextDecoder().decode((await reader.read()).value)

    expect(joined(dataOf(await read()), chatText('content'))).toBe('ab')
    release[0]!()
    expect(joined(dataOf(await read()), chatText('content'))).toBe('cd')
    release[0]!()
    expect(joined(dataOf(await read()), chatText('content'))).toBe('e')
    release[0]!()
    expect(joined(dataOf(await read()), chatText('content'))).toBe('fghi')
    expect(windows).toEqual(['abcdef|false', 'cdefgh|false', 'efghi|false', 'fghi|true'])
  })

  test('that holds all back is shown each text once, whole', async () => {
    const { hook, windows } = watching({ holdBack: 'all' })
    const { post } = await start([hook], spoken(['a', 'b', 'c']))
    const list = await readEvents(await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true })))

    expect(windows).toEqual(['abc|true'])
    expect(joined(list, chatText('content'))).toBe('abc')
  })

  test('that changes nothing and holds nothing leaves the bytes as they are', async () => {
    const { hook } = watching({ holdBack: { chars: 0 } })
    const list = ['a', 'b'].map((content) => chunk({ content, extra: 1 }))
    const script = events([...list, chunk({}, 'stop')])
    const plain = await start([], script)
    const expected = await (await plain.post(CHAT, chatBody('chat-relayed', 'hi', { stream: true }))).text()
    await plain.close()
    const { post } = await start([hook], script)

    expect(await (await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true }))).text()).toBe(expected)
  })

  test('may take its time: the texts keep their order', async () => {
    const check = async ({ held, fresh }: TextWindow): Promise<{ replace: string }> => {
      await new Promise((resolve) => setImmediate(resolve))
      return { replace: (held + fresh).toUpperCase() }
    }
    const { post } = await start([{ name: 'slow', text: { holdBack: { chars: 0 }, check } }], spoken([...'in order']))
    const list = await readEvents(await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true })))

    expect(joined(list, chatText('content'))).toBe('IN ORDER')
    expect(list.at(-1)).toBe('[DONE]')
  })

  test('follows the one behind it in the list', async () => {
    const add = (name: string): AnyHook => ({
      name,
      text: { holdBack: 'all', check: ({ held, fresh }) => ({ replace: `${held}${fresh}${name}` }) },
    })
    const { post } = await start([add('1'), add('2')], spoken(['a']))
    const list = await readEvents(await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true })))

    expect(joined(list, chatText('content'))).toBe('a21')
  })
})

/**
 * A vendor whose stream comes in these reads: the next one, or with the last one also the end, as soon as it is read on. All of that
 * happens inside of `resume`, as it does where the bytes wait in the socket.
 */
function waitingVendor(reads: readonly string[]): Transport {
  return {
    send(_request, handler) {
      let next = 0
      let isPaused = false
      const readOn = (): void => {
        while (!isPaused && next < reads.length) handler.onData(Buffer.from(reads[next++]!))
        if (isPaused || next > reads.length) return
        next += 1
        handler.onEnd()
      }
      setImmediate(() => {
        handler.onHead(200, { 'content-type': 'text/event-stream' })
        handler.onData(Buffer.from(reads[next++]!))
        // Later, so that the first read has reached the hook.
        setImmediate(readOn)
      })
      return {
        abort: () => undefined,
        pause: () => {
          isPaused = true
        },
        resume: () => {
          isPaused = false
          readOn()
        },
      }
    },
    close: () => Promise.resolve(),
  }
}

const later = async (): Promise<undefined> => {
  await new Promise((resolve) => setImmediate(resolve))
  return undefined
}

describe.each<[string, TextHook['check']]>([
  ['always', later],
  ['where there is text', ({ fresh }) => (fresh === '' ? undefined : later())],
  ['about the first text', ({ fresh }) => (fresh.startsWith('one') ? later() : undefined)],
])('a text hook that takes its time %s', (_name, check) => {
  // Much text makes the reader slower than the vendor.
  test.each([1, 100_000])(
    'loses and moves nothing of what the vendor says meanwhile (words times %i)',
    async (times) => {
      const usage = {
        id: 'c1',
        object: 'chat.completion.chunk',
        created: 1,
        model: 'gpt-5.4',
        choices: [],
        usage: USAGE,
      }
      const words = ['one ', 'two ', 'three ', 'four'].map((word) => word.repeat(times))
      const list = [...words.map((content) => chunk({ content })), chunk({}, 'stop'), usage]
      const reads = list.map((event) => `data: ${JSON.stringify(event)}\n\n`)
      const options = { transport: waitingVendor([...reads, 'data: [DONE]\n\n']) }
      const { post, ended, account } = await start(
        [{ name: 'slow', text: { holdBack: { chars: 0 }, check } }],
        undefined,
        options,
      )
      const response = await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true }))
      const told = await readEvents(response)

      expect(joined(told, chatText('content')) === words.join('')).toBe(true)
      expect(told.at(-1)).toBe('[DONE]')
      expect(await ended(response)).toMatchObject({ status: 200, usage: { inputTokens: 7, outputTokens: 5 } })
      expect((await account()).held).toBe(0n)
    },
  )
})

function dataOf(text: string): string[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('data: ') && !line.endsWith('[DONE]'))
    .map((line) => line.slice('data: '.length))
}

/** A vendor that says one piece, another one when it is told to, and then nothing, with the connection open. */
function hangingVendor(): { script: Script; goOn: () => void } {
  let goOn = (): void => undefined
  const script: Script = (response) => {
    eventStream(response)
    response.write(`data: ${JSON.stringify(chunk({ role: 'assistant', content: 'fine ' }))}\n\n`)
    goOn = () => response.write(`data: ${JSON.stringify(chunk({ content: 'forbidden' }))}\n\n`)
  }
  return { script, goOn: () => goOn() }
}

const forbidding = (deny: object): AnyHook => ({
  name: 'forbid',
  text: {
    holdBack: { chars: 0 },
    check: ({ held, fresh }) => ((held + fresh).includes('forbidden') ? { deny } : undefined),
  },
})

describe('a stream that is denied', () => {
  test('ends by a refusal, closes the connection to the vendor, and is charged for what came', async () => {
    const { script, goOn } = hangingVendor()
    const { post, ended, vendor, account } = await start([forbidding({ message: 'No.' })], script)
    const before = await account()
    const reply = await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true }))
    goOn()
    const list = await readEvents(reply)
    const event = await ended(reply)

    expect(joined(list, chatText('content'))).toBe('fine ')
    expect(joined(list, chatText('refusal'))).toBe('No.')
    expect(JSON.parse(list.at(-2)!)).toMatchObject({ choices: [{ finish_reason: 'content_filter' }] })
    expect(list.at(-1)).toBe('[DONE]')
    expect(event).toMatchObject({ ending: 'failed', code: 'answer_denied' })
    expect(event.usage?.outputTokens).toBeGreaterThan(0)
    expect((await account()).balance).toBe(before.balance - event.costNanoDollars)
    expect((await account()).held).toBe(0n)
    await vi.waitFor(() => expect(vendor.aborted).toBe(1))
  })

  test('as an error ends by an error event, without an end mark', async () => {
    const { script, goOn } = hangingVendor()
    const { post } = await start([forbidding({ as: 'error', message: 'No.' })], script)
    const reply = await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true }))
    goOn()
    const list = await readEvents(reply)

    expect(list).not.toContain('[DONE]')
    expect(JSON.parse(list.at(-1)!)).toMatchObject({ error: { message: 'No.', code: 'answer_denied' } })
  })

  test('of Messages and of Responses ends as these dialects refuse', async () => {
    const { post } = await start([forbidding({ message: 'No.' })], (response, asked) =>
      (asked['messages'] === undefined
        ? events(responseEvents(['fine ', 'forbidden']), '')
        : events(messageEvents(['fine ', 'forbidden']), ''))(response, asked),
    )
    const messages = await readEvents(await post('/v1/messages', STREAMS['messages']!.body))
    const responses = await readEvents(await post('/v1/responses', STREAMS['responses']!.body))
    const types = messages.map((event) => JSON.parse(event).type)

    expect(messages.join() + responses.join()).not.toContain('forbidden')
    expect(JSON.parse(messages.at(-2)!)).toMatchObject({ type: 'message_delta', delta: { stop_reason: 'refusal' } })
    expect(types.at(-1)).toBe('message_stop')
    expect(types.filter((type) => type === 'content_block_start')).toHaveLength(
      types.filter((type) => type === 'content_block_stop').length,
    )
    expect(JSON.parse(responses.at(-1)!)).toMatchObject({
      type: 'response.incomplete',
      response: { status: 'incomplete', incomplete_details: { reason: 'content_filter' } },
    })
  })

  test('is free where the operator chooses to take the loss', async () => {
    const { script, goOn } = hangingVendor()
    const { post, ended, account } = await start([{ ...forbidding({}), chargeDenied: false }], script)
    const before = await account()
    const reply = await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true }))
    goOn()
    await readEvents(reply)

    expect((await ended(reply)).costNanoDollars).toBe(0n)
    expect(await account()).toEqual(before)
  })
})

const FAULTS: Record<string, (window: TextWindow) => unknown> = {
  throws: () => {
    throw new Error('secret')
  },
  rejects: () => Promise.reject(new Error('secret')),
  hangs: () => new Promise(() => undefined),
  'returns nonsense': () => ({ replaced: 'x' }),
  'holds what is not there': () => ({ replace: '', hold: 'other' }),
}

describe.each(Object.entries(FAULTS))('a text hook that %s', (_name, check) => {
  const hook = (onFailure: 'deny' | 'allow'): AnyHook => ({
    name: 'bad',
    timeoutMs: 20,
    onFailure,
    text: { holdBack: { chars: 0 }, check: check as never },
  })

  test('is 503 before anything was sent, and charges nothing', async () => {
    const { post, ended, account, eventsOf } = await start([hook('deny')], spoken(['a', 'b']))
    const before = await account()
    const reply = await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true }))
    await ended(reply)

    expect(reply.status).toBe(503)
    expect(await reply.text()).not.toContain('secret')
    expect(await account()).toEqual(before)
    expect(eventsOf('internal-error')).toHaveLength(1)
  })

  test("is passed over where it says `onFailure: 'allow'`, with one event", async () => {
    const { post, eventsOf } = await start([hook('allow')], spoken(['a', 'b']))
    const list = await readEvents(await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true })))

    expect(joined(list, chatText('content'))).toBe('ab')
    expect(eventsOf('hook-bypassed')).toMatchObject([{ hook: 'bad', point: 'text' }])
  })
})

test('more than a mebibyte is not held back', async () => {
  const long = 'x'.repeat(300_000)
  const { hook } = watching({ holdBack: 'all' })
  // One piece after the other has left, so that they are read one by one.
  const script: Script = (response) => {
    eventStream(response)
    const say = (left: number): void => {
      if (left === 0) response.end(`data: ${JSON.stringify(chunk({}, 'stop'))}\n\ndata: [DONE]\n\n`)
      else response.write(`data: ${JSON.stringify(chunk({ content: long }))}\n\n`, () => setImmediate(say, left - 1))
    }
    say(8)
  }
  const closed = await start([hook], script)
  const refused = await closed.post(CHAT, chatBody('chat-relayed', 'hi', { stream: true }))
  expect(refused.status).toBe(503)
  await refused.text()
  await closed.close()

  const open = await start([{ ...hook, onFailure: 'allow' }], script)
  const list = await readEvents(await open.post(CHAT, chatBody('chat-relayed', 'hi', { stream: true })))
  expect(joined(list, chatText('content'))).toHaveLength(2_400_000)
  expect(open.eventsOf('hook-bypassed')).toMatchObject([{ reason: 'too-large' }])
})

test('headers do not wait longer than 15 seconds for a text that is held back', async () => {
  const clock = fakeClock({ startMs: Date.now() })
  const { hook } = watching({ holdBack: 'all' })
  let finish = (): void => undefined
  const script: Script = (response) => {
    eventStream(response)
    response.write(`data: ${JSON.stringify(chunk({ role: 'assistant', content: 'a' }))}\n\n`)
    finish = () => response.end(`data: ${JSON.stringify(chunk({}, 'stop'))}\n\ndata: [DONE]\n\n`)
  }
  const { post, vendor } = await start([hook], script, { clock })
  const asked = post(CHAT, chatBody('chat-relayed', 'hi', { stream: true }))
  await vi.waitFor(() => expect(vendor.calls).toBe(1))
  await vi.waitFor(async () => {
    clock.advance(15_000)
    await expect(Promise.race([asked, new Promise((_, reject) => setTimeout(reject, 50))])).resolves.toBeDefined()
  })
  const reply = await asked
  finish()
  const text = await reply.text()

  expect(reply.status).toBe(200)
  expect(text).toContain('"content":"a"')
})
