import { describe, expect, test } from 'vitest'
import type { AnyHook } from '../../../src/hooks/hook.ts'
import { redact } from '../../../src/hooks/redact.ts'
import { pii } from '../../../src/hooks/redaction-rules.ts'
import { readEvents } from '../../support/read-events.ts'
import { chatBody } from '../../support/start-gateway.ts'
import { eventStream } from '../streams/answering-vendor.ts'
import { type Choices, chatText, type Json, joined, responseEvents, STREAMS } from '../streams/text-streams.ts'
import { chunk, closedAfterEach, events, USAGE } from './hooked-gateway.ts'

const CHAT = '/v1/chat/completions'
const SECRET = 'jane.doe@example.com'

const start = closedAfterEach()

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

test('does not pass other members of a chat chunk in a redacted stream', async () => {
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
])('redacts the sources next to the choices of each chat chunk %s', async (_when, hook) => {
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

test('redacts a command of a shell in a stream of Responses, wherever it is cut', async () => {
  const command = `mail ${SECRET} today`
  const place = { output_index: 0, command_index: 1 }
  const call = (text: string, status: string): Json => {
    const action = { commands: ['ls', text], timeout_ms: null, max_output_length: null }
    return { type: 'shell_call', id: 's1', call_id: 'c1', status, action, environment: { type: 'local' } }
  }
  const base = { id: 'resp_1', object: 'response', created_at: 1, model: 'gpt-5.4', output: [] as Json[] }
  const of = (begin: string, pieces: readonly string[]): Json[] => [
    { type: 'response.created', response: { ...base, status: 'in_progress' } },
    { type: 'response.output_item.added', output_index: 0, item: call('', 'in_progress') },
    { type: 'response.shell_call_command.added', ...place, command: begin },
    ...pieces.map((delta) => ({ type: 'response.shell_call_command.delta', ...place, delta })),
    { type: 'response.shell_call_command.done', ...place, command },
    { type: 'response.output_item.done', output_index: 0, item: call(command, 'completed') },
    { type: 'response.completed', response: { ...base, status: 'completed', output: [call(command, 'completed')] } },
  ]
  let script: readonly Json[] = []
  const hook = redact([pii.email], { kinds: ['tool_arguments'] })
  const { post } = await start([hook], (response, asked) => events(script, '')(response, asked))
  for (script of [of('', [command]), of('', [...command]), of(command, [])]) {
    const list = await readEvents(await post('/v1/responses', { model: 'chat-relayed', input: 'hi', stream: true }))

    expect(list.join('\n')).not.toContain('doe@')
    expect(list.join('\n').match(/"mail \[EMAIL\] today"/g)?.length).toBeGreaterThanOrEqual(3)
  }
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
