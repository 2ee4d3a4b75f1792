import { describe, expect, test } from 'vitest'
import type { GatewayError } from '../../../src/core/errors.ts'
import { chatRequestFromResponses } from '../../../src/endpoints/responses/chat-request-from-responses.ts'
import { sealReasoning } from '../../../src/endpoints/responses/reasoning-envelope.ts'
import type { ResponsesItem, ResponsesRequest } from '../../../src/endpoints/responses/responses-request.ts'

const OWNER = { vendor: 'some-vendor', secret: 's'.repeat(24) }

function translated(
  rest: Partial<ResponsesRequest>,
  facts: { maxOutputTokens?: number; vendor?: string; secret?: string | undefined } = {},
) {
  return chatRequestFromResponses({ model: 'm1', input: 'hi', ...rest }, { ...OWNER, ...facts })
}

const messagesOf = (input: ResponsesItem[]) => translated({ input }).request.messages

function refusal(rest: Partial<ResponsesRequest>): Pick<GatewayError, 'code' | 'param'> {
  try {
    translated(rest)
  } catch (error) {
    const { code, param } = error as GatewayError
    return { code, param }
  }
  throw new Error('nothing was refused')
}

const user = (text: string): ResponsesItem => ({ role: 'user', content: [{ type: 'input_text', text }] })
const call = (id: string, name = 'look'): ResponsesItem => ({
  type: 'function_call',
  call_id: id,
  name,
  arguments: '{}',
})
const output = (id: string, text: unknown = 'ok'): ResponsesItem => ({
  type: 'function_call_output',
  call_id: id,
  output: text,
})

test('text is one user message, after the instructions', () => {
  const { request, dropped } = translated({ instructions: 'Be brief.', input: 'hi' })
  expect(request).toEqual({
    model: 'm1',
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'hi' },
    ],
  })
  expect(dropped).toEqual([])
})

test('arguments that together have more values than a request may have are refused', () => {
  const half = { ...call('a'), arguments: `{"a":[${'0,'.repeat(251_000)}0]}` }

  expect(messagesOf([user('hi'), half, output('a')])).toHaveLength(3)
  expect(refusal({ input: [user('hi'), half, { ...half, call_id: 'b' }] })).toMatchObject({ code: 'invalid_request' })
})

test('the settings of an answer have their names in chat', () => {
  const { request } = translated(
    {
      max_output_tokens: 500,
      temperature: 0.5,
      top_p: 0.9,
      reasoning: { effort: 'high' },
      text: { format: { type: 'json_schema', name: 'n', schema: { type: 'object' }, strict: true }, verbosity: 'low' },
      parallel_tool_calls: false,
      tools: [{ type: 'function', name: 'look', parameters: { type: 'object' }, strict: false }],
      tool_choice: { type: 'function', name: 'look' },
      stream: true,
    },
    { maxOutputTokens: 400 },
  )
  expect(request).toEqual({
    model: 'm1',
    messages: [{ role: 'user', content: 'hi' }],
    max_tokens: 400,
    temperature: 0.5,
    top_p: 0.9,
    reasoning_effort: 'high',
    verbosity: 'low',
    response_format: { type: 'json_schema', json_schema: { name: 'n', schema: { type: 'object' }, strict: true } },
    parallel_tool_calls: false,
    tools: [{ type: 'function', function: { name: 'look', parameters: { type: 'object' }, strict: false } }],
    tool_choice: { type: 'function', function: { name: 'look' } },
    stream: true,
  })
})

test('converts images and files of a message to parts of a chat message', () => {
  const [message] = messagesOf([
    {
      role: 'user',
      content: [
        { type: 'input_text', text: 'see' },
        { type: 'input_image', image_url: 'https://a.example/b.png', detail: 'low' },
        { type: 'input_file', file_data: 'data:application/pdf;base64,AA', filename: 'a.pdf' },
      ],
    },
  ])
  expect(message?.content).toEqual([
    { type: 'text', text: 'see' },
    { type: 'image_url', image_url: { url: 'https://a.example/b.png', detail: 'low' } },
    { type: 'file', file: { file_data: 'data:application/pdf;base64,AA', filename: 'a.pdf' } },
  ])
})

describe('cache breakpoints', () => {
  const mark = { prompt_cache_breakpoint: { mode: 'explicit' } }
  const text = (words: string, rest = {}) => ({ type: 'input_text', text: words, ...rest })
  const input: ResponsesItem[] = [
    { role: 'developer', content: [text('Rules.', mark)] },
    { role: 'user', content: [text('A'), text('B', mark)] },
    call('c1'),
    output('c1', [text('found', mark)]),
    user('go on'),
  ]

  test('stay at texts where they are understood', () => {
    const { request, dropped } = chatRequestFromResponses({ model: 'm1', input }, { ...OWNER, keepsBreakpoints: true })

    const [system, question, , result, last] = request.messages
    expect(system).toEqual({ role: 'system', content: [{ type: 'text', text: 'Rules.', ...mark }] })
    expect(question?.content).toEqual([
      { type: 'text', text: 'A' },
      { type: 'text', text: 'B', ...mark },
    ])
    expect(result).toEqual({
      role: 'tool',
      tool_call_id: 'c1',
      content: [{ type: 'text', text: 'found', ...mark }],
    })
    expect(last?.content).toBe('go on')
    expect(dropped).toEqual([])
  })

  test('are reported elsewhere, and texts are one text', () => {
    const { request, dropped } = translated({ input })

    expect(request.messages.map(({ content }) => content)).toEqual(['Rules.', 'A\nB', null, 'found', 'go on'])
    expect(dropped).toEqual(['input.prompt_cache_breakpoint'])
  })
})

test('a run of reasoning, text and calls is one assistant turn, and outputs follow it', () => {
  const messages = messagesOf([
    user('hi'),
    { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'hm' }] },
    { role: 'assistant', content: [{ type: 'output_text', text: 'I look.' }] },
    call('c1'),
    call('c2'),
    output('c1', 'one'),
    output('c2', [
      { type: 'input_text', text: 'two' },
      { type: 'input_image', image_url: 'data:image/png;base64,AA' },
    ]),
    user('thanks'),
  ])
  expect(messages).toEqual([
    { role: 'user', content: 'hi' },
    {
      role: 'assistant',
      content: 'I look.',
      reasoning_content: 'hm',
      tool_calls: [
        { id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } },
        { id: 'c2', type: 'function', function: { name: 'look', arguments: '{}' } },
      ],
    },
    { role: 'tool', tool_call_id: 'c1', content: 'one' },
    { role: 'tool', tool_call_id: 'c2', content: 'two' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Result of tool call c2:' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } },
      ],
    },
    { role: 'user', content: 'thanks' },
  ])
})

test('sorts outputs of a run by their calls, and names the item of the caller in errors', () => {
  const input = [user('hi'), call('c1'), call('c2'), output('c2', 'two'), output('c1', 'one'), user('more'), call('c3')]
  const later = [output('c3', 'three'), output('c1', 'again')]
  const { request, paths } = translated({ input: [...input, ...later] })
  const results = request.messages.flatMap(({ role, content }, index) =>
    role === 'tool' ? [[content, paths[index]]] : [],
  )

  expect(results).toEqual([
    ['one\nagain', 'input[4]'],
    ['two', 'input[3]'],
    ['three', 'input[7]'],
  ])
})

test('an output that is given again is one output, and calls of one id have one each', () => {
  const again = [
    output('c1', 'one'),
    output('c1', 'one'),
    output('c2', 'two'),
    output('c2', 'two'),
    output('c1', 'one'),
  ]
  const messages = messagesOf([user('hi'), call('c1'), call('c2'), call('c2'), ...again, user('more')])

  expect(messages.slice(2).map(({ role, content }) => [role, content])).toEqual([
    ['tool', 'one'],
    ['tool', 'two'],
    ['tool', 'two'],
    ['user', 'more'],
  ])
})

test('moves an output that follows other messages to its call, where chat vendors require it', () => {
  const late = [output('c2', 'two'), { role: 'developer', content: 'Be brief.' }, output('c1', 'one')]
  const { request, paths } = translated({ input: [user('hi'), call('c1'), call('c2'), user('hurry'), ...late] })

  expect(request.messages.map(({ role, content }) => [role, content])).toEqual([
    ['user', 'hi'],
    ['assistant', null],
    ['tool', 'one'],
    ['tool', 'two'],
    ['user', 'hurry'],
    ['system', 'Be brief.'],
  ])
  expect(paths).toEqual(['input[0]', 'input[1]', 'input[6]', 'input[4]', 'input[3]', 'input[5]'])
})

test('very many outputs in the reverse order of their calls are put in order like a few', () => {
  const ids = Array.from({ length: 60_000 }, (_, index) => `c${index}`)
  const outputs = ids.map((id) => output(id)).reverse()
  const messages = messagesOf([user('hi'), ...ids.map((id) => call(id)), ...outputs])

  expect(messages.slice(2).map((message) => message.tool_call_id)).toEqual(ids)
})

test('wraps arguments that are not an object, such as those of cut answers, in later turns', () => {
  const calls = ['{"at":', '[1]', '', ' {"at": "x"} '].map((text, index) => ({ ...call(`c${index}`), arguments: text }))
  const [, turn] = messagesOf([user('hi'), ...calls, user('go on')])

  expect(turn?.tool_calls?.map((one) => one.function.arguments)).toEqual([
    '{"arguments":"{\\"at\\":"}',
    '{"arguments":"[1]"}',
    '',
    ' {"at": "x"} ',
  ])
})

describe('state of a vendor', () => {
  const block = { type: 'thinking', thinking: 'hm', signature: 'sig' } as const
  const extra = { google: { thought_signature: 'abc' } }
  const content = sealReasoning({ blocks: [block], calls: { c1: extra } }, OWNER)!
  const input = (encrypted: string): ResponsesItem[] => [
    user('hi'),
    { type: 'reasoning', summary: [], encrypted_content: encrypted },
    call('c1'),
    output('c1'),
  ]

  test('returns to its turn and its call', () => {
    expect(messagesOf(input(content))[1]).toMatchObject({
      thinking_blocks: [block],
      tool_calls: [{ id: 'c1', extra_content: extra }],
    })
  })

  test('is dropped and reported if it is of another vendor or not written by the gateway', () => {
    for (const encrypted of [sealReasoning({ blocks: [block] }, { ...OWNER, vendor: 'another' })!, 'gAAAA-of-openai']) {
      const { request, dropped } = translated({ input: input(encrypted) })
      expect(request.messages[1]?.thinking_blocks).toBe(undefined)
      expect(dropped).toEqual(['input.encrypted_content'])
    }
  })

  test('is not reported if it is of another vendor and the caller has its reasoning as a summary', () => {
    const sealed = sealReasoning({ text: '' }, { ...OWNER, vendor: 'another' })!
    const item = { type: 'reasoning', summary: [{ type: 'summary_text', text: 'hm' }], encrypted_content: sealed }
    const { request, dropped } = translated({ input: [user('hi'), item, call('c1'), output('c1')] })

    expect(request.messages[1]).toMatchObject({ reasoning_content: 'hm' })
    expect(dropped).toEqual([])
  })

  test('without a configured secret is dropped and reported if it is forged, or signed by another process', () => {
    const owner = { vendor: OWNER.vendor, secret: undefined }
    const own = sealReasoning({ blocks: [block] }, owner)!
    expect(translated({ input: input(own) }, owner).request.messages[1]?.thinking_blocks).toEqual([block])

    const { dropped, request } = translated(
      { input: input(sealReasoning({ text: 'forged' }, { ...owner, secret: '' })!) },
      owner,
    )
    expect(JSON.stringify(request)).not.toContain('forged')
    expect(dropped).toEqual(['input.encrypted_content'])
  })

  test('is rejected if it was changed', () => {
    const forged = sealReasoning({ blocks: [block] }, { ...OWNER, secret: 'x'.repeat(24) })!
    for (const encrypted of [`${content}x`, content.slice(0, -30), forged, 'signalbox:'])
      expect(refusal({ input: input(encrypted) })).toEqual({
        code: 'invalid_request',
        param: 'input[1].encrypted_content',
      })
  })
})

describe('tools', () => {
  const codex: Partial<ResponsesRequest> = {
    input: [
      {
        type: 'additional_tools',
        role: 'developer',
        tools: [
          {
            type: 'namespace',
            name: 'functions',
            tools: [{ type: 'custom', name: 'exec', description: 'Runs.', format: { type: 'text' } }],
          },
        ],
      },
      user('list the files'),
      { type: 'custom_tool_call', call_id: 'c1', name: 'exec', namespace: 'functions', input: 'ls' },
      { type: 'custom_tool_call_output', call_id: 'c1', output: 'a.txt' },
      { type: 'tool_search_call', call_id: 'c2', execution: 'client', arguments: { query: 'x' } },
      { type: 'tool_search_output', call_id: 'c2', tools: [{ type: 'function', name: 'found', parameters: null }] },
    ],
    tools: [
      { type: 'function', name: 'exec_command', parameters: {}, strict: false },
      { type: 'tool_search', execution: 'client', parameters: { type: 'object' } },
      { type: 'web_search', external_web_access: false },
    ],
  }

  test('are functions if they are of namespaces, items or searches, and calls of the history use their names', () => {
    const { request, dropped, names } = translated(codex)
    expect(request.tools?.map((tool) => tool.function.name)).toEqual([
      'exec_command',
      'tool_search',
      'functions__exec',
      'found',
    ])
    expect(names.toolOf('functions__exec')).toEqual({ kind: 'custom', name: 'exec', namespace: 'functions' })
    expect(dropped).toEqual(['tools.web_search'])
    expect(request.messages.slice(1)).toMatchObject([
      { tool_calls: [{ id: 'c1', function: { name: 'functions__exec', arguments: '{"input":"ls"}' } }] },
      { role: 'tool', tool_call_id: 'c1', content: 'a.txt' },
      { tool_calls: [{ id: 'c2', function: { name: 'tool_search', arguments: '{"query":"x"}' } }] },
      { role: 'tool', tool_call_id: 'c2', content: '{"tools":["found"]}' },
    ])
  })

  test('are distinguished if a name is in two namespaces or too long', () => {
    const tool = { type: 'function', name: 'n'.repeat(60), parameters: {} }
    const { request, names } = translated({
      tools: [
        { type: 'namespace', name: 'a', tools: [{ ...tool, name: 'b__c' }] },
        { type: 'namespace', name: 'a__b', tools: [{ ...tool, name: 'c' }] },
        { type: 'namespace', name: 'one', tools: [tool] },
        { type: 'namespace', name: 'two', tools: [tool] },
      ],
    })
    const chatNames = request.tools?.map((one) => one.function.name) ?? []
    expect(new Set(chatNames).size).toBe(4)
    expect(chatNames.every((name) => name.length <= 64)).toBe(true)
    expect(chatNames.map((name) => names.toolOf(name).namespace)).toEqual(['a', 'a__b', 'one', 'two'])
  })

  test('are limited to the callable ones if the choice names them', () => {
    const { request } = translated({
      tools: ['a', 'b'].map((name) => ({ type: 'function', name, parameters: {} })),
      tool_choice: { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'b' }] },
    })
    expect(request.tools?.map((tool) => tool.function.name)).toEqual(['b'])
    expect(request.tool_choice).toBe('required')
  })

  test('a search of the web among those that may be called is left out like the tool', () => {
    const look: ResponsesRequest['tools'] = [{ type: 'function', name: 'look' }, { type: 'web_search' }]
    const choice = (mode: string, ...tools: object[]) => ({ type: 'allowed_tools', mode, tools })
    const { request, dropped } = translated({
      tools: look,
      tool_choice: choice('auto', { type: 'web_search' }, { type: 'function', name: 'look' }),
    })
    expect(request.tools?.map((tool) => tool.function.name)).toEqual(['look'])
    expect(dropped).toEqual(['tools.web_search'])

    const forced = translated({ tools: look, tool_choice: choice('required', { type: 'web_search' }) })
    expect(forced.request).not.toHaveProperty('tools')
    expect(forced.dropped).toEqual(['tools.web_search', 'tool_choice'])
  })

  test('have a grammar only in words', () => {
    const format = { type: 'grammar', syntax: 'lark', definition: 'start: "x"' }
    const { request, dropped } = translated({
      tools: [{ type: 'custom', name: 'patch', description: 'Patches.', format }],
    })
    expect(request.tools?.[0]?.function.description).toBe(
      'Patches.\n\nThe input must follow this lark grammar:\nstart: "x"',
    )
    expect(dropped).toEqual(['tools.format'])
  })
})

test.each<[string, Partial<ResponsesRequest>, string]>([
  ['an unknown item', { input: [{ type: 'surprise' }] }, 'input[0]'],
  ['an output without its call', { input: [user('hi'), output('c9')] }, 'input[1].call_id'],
  ['an output before its call', { input: [output('c1'), call('c1')] }, 'input[0].call_id'],
  ['a reference', { input: [{ type: 'item_reference', id: 'msg_1' }] }, 'input[0].id'],
  ['an earlier answer', { previous_response_id: 'resp_1' }, 'previous_response_id'],
  ['a conversation', { conversation: 'conv_1' }, 'conversation'],
  ['background work', { background: true }, 'background'],
  ['a template', { prompt: { id: 'pmpt_1' } }, 'prompt'],
  ['a compaction', { context_management: [{ type: 'compaction' }] }, 'context_management'],
  ['a hosted tool', { tools: [{ type: 'file_search', vector_store_ids: ['vs_1'] }] }, 'tools[0]'],
  ['a choice of no tool', { tool_choice: { type: 'function', name: 'x' } }, 'tool_choice'],
  ['a choice of a hosted tool', { tool_choice: { type: 'web_search' } }, 'tool_choice'],
  [
    'a stored picture',
    { input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'f' }] }] },
    'input[0].content[0].file_id',
  ],
  [
    'a file by its URL',
    { input: [{ role: 'user', content: [{ type: 'input_file', file_url: 'https://a.example' }] }] },
    'input[0].content[0].file_url',
  ],
  ['an unknown format', { text: { format: { type: 'xml' } } }, 'text.format'],
  ['nothing to answer', { input: [] }, 'input'],
])('%s is refused by the name of its field', (_what, rest, param) => {
  expect(refusal(rest).param).toBe(param)
})

test('fields without a place in chat are reported', () => {
  const { dropped } = translated({
    include: ['message.output_text.logprobs', 'reasoning.encrypted_content'],
    max_tool_calls: 3,
    client_metadata: { a: 'b' },
    top_logprobs: 0,
    input: [
      { ...user('hi'), phase: 'commentary' },
      { type: 'web_search_call', id: 'ws_1' },
    ],
  })
  expect(dropped).toEqual([
    'max_tool_calls',
    'client_metadata',
    'include.message.output_text.logprobs',
    'input.phase',
    'input.web_search_call',
  ])
})

test('members of reasoning and of functions without a place in chat are reported, and so is a choice of unknown tools', () => {
  const { dropped } = translated({
    reasoning: { effort: 'low', summary: 'auto', mode: 'pro', context: 'auto', of_the_future: 1 },
    tools: [{ type: 'function', name: 'look', parameters: {}, strict: null, defer_loading: true, async: false }],
    tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'other' }] },
  })
  expect(dropped).toEqual(['reasoning.mode', 'reasoning.of_the_future', 'tools.defer_loading', 'tool_choice'])
})

test('the latest update of the configuration decides', () => {
  const { request } = translated({
    reasoning: { effort: 'low' },
    input: [user('hi'), { type: 'configuration_update', reasoning: { effort: 'high' } }, user('go on')],
  })
  expect(request.reasoning_effort).toBe('high')
})
