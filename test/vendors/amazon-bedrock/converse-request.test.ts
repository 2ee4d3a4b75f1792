import { describe, expect, it } from 'vitest'
import type { ChatRequest } from '../../../src/endpoints/chat/chat-request.ts'
import { checkConverse } from '../../../src/testing/sandbox/amazon-bedrock/amazon-bedrock.ts'
import { amazonBedrock } from '../../../src/vendors/amazon-bedrock/amazon-bedrock.ts'
import { bodyOf, callFromRequest } from '../shared/vendor-call.ts'

const vendor = amazonBedrock({ region: 'us-east-1', apiKey: 'bedrock-key-0123456789' })
const CLAUDE = 'us.anthropic.claude-sonnet-4-6'
const NOVA = 'amazon.nova-pro-v1:0'
const PNG = 'data:image/png;base64,aGVsbG8='
const weather = {
  type: 'function',
  function: { name: 'get_weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
}

/** Returns the request for these fields. Every body is checked like in the service. */
function sent(fields: object, upstream = CLAUDE, stream = false) {
  const request = { model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...fields, ...(stream ? { stream } : {}) }
  const wire = vendor.chat!.toWire(callFromRequest(request as ChatRequest, { upstream }))
  const body = bodyOf(wire.body)
  checkConverse(body)
  return { ...wire, body }
}

describe('the call', () => {
  it('names the model in the path, encoded once', () => {
    expect(sent({}, NOVA).path).toBe('/model/amazon.nova-pro-v1%3A0/converse')
    expect(sent({}, NOVA, true).path).toBe('/model/amazon.nova-pro-v1%3A0/converse-stream')
    expect(sent({}, 'arn:aws:bedrock:us-east-1:1:application-inference-profile/abc').path).toBe(
      '/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aapplication-inference-profile%2Fabc/converse',
    )
  })

  it('holds the inference settings', () => {
    expect(sent({ max_tokens: 9, temperature: 0.5, top_p: 0.9, stop: ['.'] }, NOVA)).toMatchObject({
      body: {
        messages: [{ role: 'user', content: [{ text: 'Hi' }] }],
        inferenceConfig: { maxTokens: 9, temperature: 0.5, topP: 0.9, stopSequences: ['.'] },
      },
      dropped: [],
    })
    expect(sent({}, NOVA).body).toEqual({ messages: [{ role: 'user', content: [{ text: 'Hi' }] }] })
    // Claude's own limit is filled in if the caller sets none, because the quota is reserved up front.
    expect(sent({}).body).toMatchObject({ inferenceConfig: { maxTokens: 128_000 } })
  })

  it('is asked in the dialect of the row, or of the model', () => {
    const pathOf = (upstream: string, protocol?: string): string => {
      const call = callFromRequest({ model: 'm', messages: [{ role: 'user', content: 'Hi' }] } as ChatRequest, {
        upstream,
      })
      return vendor.chat!.toWire(protocol === undefined ? call : { ...call, model: { ...call.model, protocol } }).path
    }

    expect(pathOf('openai.gpt-oss-120b-1:0')).toBe('/openai/v1/chat/completions')
    expect(pathOf('us.xai.grok-4.3')).toBe('/openai/v1/chat/completions')
    expect(pathOf('openai.gpt-oss-120b-1:0', 'converse')).toMatch(/converse$/)
    expect(pathOf('qwen.qwen3-32b-v1:0', 'openai')).toBe('/openai/v1/chat/completions')
    expect(pathOf('qwen.qwen3-32b-v1:0')).toMatch(/converse$/)
  })

  it('leaves out what Converse lacks, and says so', () => {
    const fields = {
      seed: 1,
      user: 'u',
      service_tier: 'flex',
      presence_penalty: 1,
      parallel_tool_calls: false,
      logit_bias: { 7: 1 },
    }

    expect(sent({ ...fields, tools: [weather] }, NOVA).dropped.toSorted()).toEqual(Object.keys(fields).toSorted())
    expect(() => sent({ n: 2 })).toThrow(/n/)
  })
})

describe('turns', () => {
  it('alternate, with the results of a turn in one message', () => {
    const call = (id: string) => ({
      id,
      type: 'function',
      function: { name: 'get_weather', arguments: '{"city":"Rome"}' },
    })
    const { body } = sent({
      tools: [weather],
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hi' },
        { role: 'user', content: 'Weather?' },
        { role: 'assistant', content: 'Wait. ', tool_calls: [call('a'), call('b')] },
        { role: 'tool', tool_call_id: 'b', content: 'rain' },
        { role: 'tool', tool_call_id: 'a', content: '' },
        { role: 'user', content: 'So?' },
      ],
    })

    expect(body['system']).toEqual([{ text: 'Be brief.' }])
    expect(body['messages']).toEqual([
      { role: 'user', content: [{ text: 'Hi' }, { text: 'Weather?' }] },
      {
        role: 'assistant',
        content: [
          { text: 'Wait. ' },
          { toolUse: { toolUseId: 'a', name: 'get_weather', input: { city: 'Rome' } } },
          { toolUse: { toolUseId: 'b', name: 'get_weather', input: { city: 'Rome' } } },
        ],
      },
      {
        role: 'user',
        content: [
          { toolResult: { toolUseId: 'a', content: [{ text: '(empty)' }] } },
          { toolResult: { toolUseId: 'b', content: [{ text: 'rain' }] } },
          { text: 'So?' },
        ],
      },
    ])
  })

  it('contain images and files under unique names', () => {
    const file = (filename: string, type = 'application/pdf') => ({
      type: 'file',
      file: { filename, file_data: `data:${type};base64,eA==` },
    })
    const { body } = sent({
      messages: [
        {
          role: 'user',
          content: [
            { type: 'image_url', image_url: { url: PNG } },
            file('Année_2026 (1).pdf'),
            file('Année_2026 (1).pdf'),
            file('../etc.md', 'text/markdown'),
          ],
        },
      ],
    })

    expect(body['messages']).toEqual([
      {
        role: 'user',
        content: [
          { text: 'See the file.' },
          { image: { format: 'png', source: { bytes: 'aGVsbG8=' } } },
          { document: { format: 'pdf', name: 'Ann e 2026 (1)', source: { bytes: 'eA==' } } },
          { document: { format: 'pdf', name: 'Ann e 2026 (1) 2', source: { bytes: 'eA==' } } },
          { document: { format: 'md', name: 'etc', source: { bytes: 'eA==' } } },
        ],
      },
    ])
    expect(() => sent({ messages: [{ role: 'user', content: [file('a.zip', 'application/zip')] }] })).toThrow(
      /types application\/pdf/,
    )
    expect(vendor.chat!.takesImageUrls?.({} as never)).toBe(false)
  })

  it('become a user turn if there is only system text', () => {
    expect(sent({ messages: [{ role: 'system', content: 'Say hello.' }] }).body).toMatchObject({
      messages: [{ role: 'user', content: [{ text: 'Say hello.' }] }],
    })
  })

  it('carry the reasoning that the model signed, to models that take it back', () => {
    const thinking_blocks = [
      { type: 'thinking', thinking: 'Hm.', signature: 'sig' },
      { type: 'redacted_thinking', data: 'ZGF0YQ==' },
    ]
    const messages = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Hello', thinking_blocks },
      { role: 'user', content: 'More' },
    ]

    expect(sent({ messages }).body['messages']).toMatchObject([
      {},
      {
        content: [
          { reasoningContent: { reasoningText: { text: 'Hm.', signature: 'sig' } } },
          { reasoningContent: { redactedContent: 'ZGF0YQ==' } },
          { text: 'Hello' },
        ],
      },
      {},
    ])
    expect(JSON.stringify(sent({ messages }, NOVA).body)).not.toContain('Hm.')
  })

  it('end without white space where the model continues one', () => {
    const messages = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Well, ' },
    ]
    expect(sent({ messages }, NOVA).body['messages']).toMatchObject([{}, { content: [{ text: 'Well,' }] }])
  })
})

describe('tools', () => {
  const history = [
    { role: 'user', content: 'Hi' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'call_0123456789', type: 'function', function: { name: 'old', arguments: '' } }],
    },
    { role: 'tool', tool_call_id: 'call_0123456789', content: 'x' },
  ]

  it.each([
    ['auto', { auto: {} }],
    ['required', { any: {} }],
    [{ type: 'function', function: { name: 'get_weather' } }, { tool: { name: 'get_weather' } }],
    [undefined, undefined],
  ])('are chosen by %j as %j', (tool_choice, expected) => {
    const { body } = sent({ tools: [weather], tool_choice })
    expect(body['toolConfig']).toEqual({
      tools: [{ toolSpec: { name: 'get_weather', inputSchema: { json: weather.function.parameters } } }],
      ...(expected === undefined ? {} : { toolChoice: expected }),
    })
  })

  it('are omitted if calls are forbidden, unless the history has calls', () => {
    expect(sent({ tools: [weather], tool_choice: 'none' })).toMatchObject({ dropped: [] })
    expect(sent({ tools: [weather], tool_choice: 'none' }).body).not.toHaveProperty('toolConfig')
    const { body, dropped } = sent({ tools: [weather], tool_choice: 'none', messages: history })
    expect(body['toolConfig']).toHaveProperty('tools.0.toolSpec.name', 'get_weather')
    expect(dropped).toEqual(['tool_choice'])
  })

  it('are added for the calls of a history without tools, so that none of it is lost', () => {
    expect(sent({ messages: history }).body['toolConfig']).toEqual({
      tools: [{ toolSpec: { name: 'old', inputSchema: { json: { type: 'object' } } } }],
    })
  })

  it('have ids that each model takes, the same for call and result', () => {
    const long = 'x'.repeat(80)
    const idsOf = (upstream: string, id: string): unknown[] => {
      const text = JSON.stringify(history).replaceAll('call_0123456789', id)
      return [
        ...JSON.stringify(sent({ messages: JSON.parse(text) }, upstream).body).matchAll(/"toolUseId":"([^"]*)"/g),
      ].map(([, found]) => found)
    }

    for (const [upstream, id, pattern] of [
      ['mistral.mistral-large-3', 'call_0123456789', /^[a-zA-Z0-9]{9}$/],
      [CLAUDE, long, /^[a-zA-Z0-9_-]{1,64}$/],
      [CLAUDE, 'call_0123456789', /^call_0123456789$/],
    ] as const) {
      const [one, other] = idsOf(upstream, id)
      expect(one).toMatch(pattern)
      expect(other).toBe(one)
    }
  })
})

describe('cache points', () => {
  const cache_control = { type: 'ephemeral' }
  const fields = {
    tools: [{ ...weather, cache_control }],
    messages: [
      { role: 'system', content: [{ type: 'text', text: 'Long.', cache_control: { type: 'ephemeral', ttl: '1h' } }] },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Hi', cache_control },
          { type: 'text', text: 'there' },
        ],
      },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'a', type: 'function', function: { name: 'get_weather', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'a', content: [{ type: 'text', text: 'rain', cache_control }] },
    ],
  }
  const point = { cachePoint: { type: 'default' } }

  it('follow the blocks that `cache_control` marks', () => {
    const { body, dropped } = sent(fields)

    expect(body['system']).toEqual([{ text: 'Long.' }, { cachePoint: { type: 'default', ttl: '1h' } }])
    expect(body['toolConfig']).toMatchObject({ tools: [{ toolSpec: {} }, point] })
    expect(body['messages']).toMatchObject([
      { content: [{ text: 'Hi' }, point, { text: 'there' }] },
      {},
      { content: [{ toolResult: { content: [{ text: 'rain' }] } }, point] },
    ])
    expect(dropped).toEqual([])
  })

  it('are left out for models that have none, and named', () => {
    const { body, dropped } = sent(fields, 'meta.llama4-scout-17b-instruct-v1:0')

    expect(JSON.stringify(body)).not.toContain('cachePoint')
    expect(dropped).toEqual(['cache_control'])
  })
})

describe('reasoning and JSON', () => {
  it('are requested in the form that each model supports', () => {
    expect(sent({ reasoning_effort: 'high' }).body).toMatchObject({
      additionalModelRequestFields: { thinking: { type: 'adaptive' } },
      outputConfig: { effort: 'high' },
    })
    expect(
      sent({ reasoning_effort: 'low', max_tokens: 4000 }, 'eu.anthropic.claude-haiku-4-5-20251001-v1:0').body,
    ).toMatchObject({
      additionalModelRequestFields: { thinking: { type: 'enabled', budget_tokens: 2048 } },
    })
    expect(sent({ reasoning_effort: 'high' }, 'us.amazon.nova-2-lite-v1:0').body).toMatchObject({
      additionalModelRequestFields: { reasoningConfig: { type: 'enabled', maxReasoningEffort: 'high' } },
    })
    const other = sent({ reasoning_effort: 'high' }, 'meta.llama4-scout-17b-instruct-v1:0')
    expect(other.body).not.toHaveProperty('additionalModelRequestFields')
    expect(other.dropped).toEqual(['reasoning_effort'])
  })

  it('schemas are sent as text where the model has structured output, else through a tool or a sentence', () => {
    const schema = {
      type: 'object',
      properties: { a: { type: 'string' } },
      required: ['a'],
      additionalProperties: false,
    }
    const response_format = { type: 'json_schema', json_schema: { name: 'x', schema } }

    const { structure } = (
      sent({ response_format }).body['outputConfig'] as {
        textFormat: { structure: { jsonSchema: { schema: string } } }
      }
    ).textFormat
    expect(JSON.parse(structure.jsonSchema.schema)).toEqual(schema)
    expect(sent({ response_format }, NOVA).body['toolConfig']).toMatchObject({ toolChoice: { tool: { name: 'json' } } })
    expect(sent({ response_format }, 'meta.llama4-scout-17b-instruct-v1:0').body['system']).toEqual([
      { text: expect.stringContaining('JSON') },
    ])
  })
})
