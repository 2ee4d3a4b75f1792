import { describe, expect, it } from 'vitest'
import type { ChatRequest } from '../../../src/endpoints/chat/chat-request.ts'
import type { EmbeddingsRequest } from '../../../src/endpoints/embeddings/embeddings-request.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { type Preset, presets } from '../../../src/vendors/presets/presets.ts'
import { bodyOf, callFromRequest, callFromText } from '../shared/vendor-call.ts'

const ALL: readonly Preset[] = Object.values(presets)
const WITH_CHAT = ALL.filter(({ serves }) => serves.includes('chat'))

function vendorOf(preset: Preset) {
  return openaiCompatible(preset, { apiKey: 'k-0123456789', account: 'acc 1' })
}

/** Returns the request that a preset sends for a caller's fields, and the dropped fields. */
function sent(preset: Preset, fields: Partial<ChatRequest>, upstream = 'some-model') {
  const request = { model: 'public', messages: [{ role: 'user', content: 'Hi' }], ...fields } as ChatRequest
  const wire = vendorOf(preset).chat!.toWire(callFromText<ChatRequest>(JSON.stringify(request), { upstream }))
  return { body: bodyOf(wire.body), dropped: wire.dropped, path: wire.path }
}

const tool = (name: string) => ({ type: 'function' as const, function: { name, parameters: { type: 'object' } } })
const TOOLS = [tool('weather'), tool('time')]
const WEATHER = { type: 'function' as const, function: { name: 'weather' } }

/** A turn with a tool call, from a client that drops reasoning. */
const TOOL_TURNS = [
  { role: 'user', content: 'Weather?' },
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'call_abcdef0123456789', type: 'function', function: { name: 'weather', arguments: '{}' } }],
  },
  { role: 'tool', tool_call_id: 'call_abcdef0123456789', content: 'Sunny' },
] as ChatRequest['messages']

function assistant(preset: Preset, messages: ChatRequest['messages'], upstream?: string) {
  const body = sent(preset, { messages }, upstream).body as unknown as ChatRequest
  return body.messages.find(({ role }) => role === 'assistant') as unknown as Record<string, unknown>
}

describe('addresses', () => {
  // Jina has no chat.
  const URLS: Readonly<Record<Exclude<keyof typeof presets, 'jina'>, string>> = {
    deepseek: 'https://api.deepseek.com/chat/completions',
    mistral: 'https://api.mistral.ai/v1/chat/completions',
    xai: 'https://api.x.ai/v1/chat/completions',
    moonshot: 'https://api.moonshot.ai/v1/chat/completions',
    zai: 'https://api.z.ai/api/paas/v4/chat/completions',
    minimax: 'https://api.minimax.io/v1/chat/completions',
    perplexity: 'https://api.perplexity.ai/v1/responses',
    groq: 'https://api.groq.com/openai/v1/chat/completions',
    together: 'https://api.together.xyz/v1/chat/completions',
    fireworks: 'https://api.fireworks.ai/inference/v1/chat/completions',
    openrouter: 'https://openrouter.ai/api/v1/chat/completions',
    cerebras: 'https://api.cerebras.ai/v1/chat/completions',
    sambanova: 'https://api.sambanova.ai/v1/chat/completions',
    siliconflow: 'https://api.siliconflow.com/v1/chat/completions',
    nvidia: 'https://integrate.api.nvidia.com/v1/chat/completions',
    huggingface: 'https://router.huggingface.co/v1/chat/completions',
    cloudflare: 'https://api.cloudflare.com/client/v4/accounts/acc%201/ai/v1/chat/completions',
    ollama: 'http://localhost:11434/v1/chat/completions',
    vllm: 'http://localhost:8000/v1/chat/completions',
    lmstudio: 'http://127.0.0.1:1234/v1/chat/completions',
    llamacpp: 'http://127.0.0.1:8080/v1/chat/completions',
  }

  for (const [name, url] of Object.entries(URLS)) {
    it(`${name} is asked at ${url}`, () => {
      const preset: Preset = presets[name as keyof typeof presets]
      expect(preset.id).toBe(name)
      expect(vendorOf(preset).origin + sent(preset, {}).path).toBe(url)
    })
  }

  it('are next to that of chat for other operations, only if they are offered', () => {
    for (const preset of ALL) {
      const vendor = vendorOf(preset)
      expect(
        [vendor.chat, vendor.embeddings, vendor.rerank, vendor.images, vendor.imageEdits].map(
          (offer) => offer !== undefined,
        ),
      ).toEqual([
        // Chats are translated if a server has Responses but no chat completions.
        preset.serves.includes('chat') || preset.serves.includes('responses'),
        preset.serves.includes('embeddings'),
        preset.serves.includes('rerank'),
        preset.serves.includes('images'),
        preset.serves.includes('image-edits'),
      ])
      const embeddings = vendor.embeddings?.toWire(callFromRequest<EmbeddingsRequest>({ model: 'm', input: 'a' }))
      if (embeddings !== undefined)
        expect(embeddings.path).toBe(sent(preset, {}).path.replace(/(?:chat\/completions|responses)$/, 'embeddings'))
    }
  })
})

describe('keys', () => {
  it('are needed everywhere but on a machine of the operator', () => {
    expect(ALL.filter(({ needsKey }) => !needsKey).map(({ id }) => id)).toEqual([
      'ollama',
      'vllm',
      'lmstudio',
      'llamacpp',
    ])
    for (const preset of ALL) {
      const vendor = openaiCompatible(preset, { account: 'a' })
      expect(vendor.apiKeys).toEqual(preset.needsKey ? [] : [''])
      expect(vendor.configuredBy).toContain(preset.keyVariables[0])
      expect(vendor.configuredBy).toContain(`presets.${preset.id}`)
    }
  })

  it('may be several, and are sent in the bearer header', () => {
    const vendor = openaiCompatible(presets.groq, { apiKey: ['one-key-0001', 'two-key-0002'] })
    const { headers } = vendor.chat!.toWire({
      ...callFromRequest<ChatRequest>({ model: 'm', messages: [{ role: 'user', content: 'x' }] }),
      apiKey: 'two-key-0002',
    })

    expect(vendor.apiKeys).toHaveLength(2)
    expect(headers).toContain('Bearer two-key-0002')
  })
})

describe('mistakes in options', () => {
  it('name the option', () => {
    const wrong = { apikey: 'x' } as object
    expect(() => openaiCompatible(presets.groq, wrong)).toThrow(
      /presets\.groq.*apikey is unknown; did you mean apiKey\?/,
    )
    expect(() => openaiCompatible(presets.groq, { id: 'No Id' })).toThrow(/No Id/)
    expect(() => openaiCompatible(presets.cloudflare, { apiKey: 'x' })).toThrow(/set the option account/)
    expect(() => openaiCompatible((presets as unknown as Record<string, Preset>)['gorq']!)).toThrow(/unknown preset/)
  })

  it('in a preset of your own name the member', () => {
    const own = (members: object) => () => openaiCompatible({ ...presets.vllm, id: 'own', ...members } as Preset)
    expect(own({ fields: { seed: 'dorp' } })).toThrow(/own.*fields\.seed/)
    expect(own({ fields: { seed: { to: 'x' } } })).toThrow(/fields\.seed/)
    expect(own({ serves: ['speech'] })).toThrow(/serves names "speech"/)
    expect(own({ '<<<<<<< HEAD': 1 })).toThrow(/\["<<<<<<< HEAD"\] is unknown/)
    expect(own({ reasoning: { back: 'sometimes' } })).toThrow(/reasoning\.back/)
    expect(own({ byModel: [['x', {}]] })).toThrow(/byModel/)
    expect(own({ baseURL: 'nowhere' })).toThrow(/baseURL/)
  })

  it.each([
    [{ thinksInTags: 'yes' }, 'thinksInTags must be true or false'],
    [{ needsKey: undefined }, 'needsKey is missing'],
    [{ embeddings: { takesTokens: 0 } }, 'embeddings.takesTokens must be'],
    [{ embeddings: { maxInputs: 0 } }, 'embeddings.maxInputs must be a whole number above 0'],
    [{ embeddings: { path: 'embed' } }, 'embeddings.path must begin with a slash'],
    [{ rerank: { maxDocuments: 1.5 } }, 'rerank.maxDocuments must be'],
    [{ messageMembers: 'role' }, 'messageMembers must be a list of strings'],
    [{ keyVariables: [1] }, 'keyVariables must be a list of strings'],
    [{ prefillMember: 5 }, 'prefillMember must be a string'],
    [{ toolChoice: { required: true } }, 'toolChoice.required must be a string'],
    [{ reasoning: null }, 'reasoning.back must be'],
    [{ reasoning: { back: 'always', as: 'thoughts' } }, 'reasoning.as must be'],
    [{ fields: { n: null } }, 'unknown rule of fields.n'],
    [{ fields: { n: { atMost: '1' } } }, 'unknown rule of fields.n'],
    [{ fields: { n: { rename: '' } } }, 'unknown rule of fields.n'],
    [{ fields: { n: { values: ['a'] } } }, 'unknown rule of fields.n'],
    [{ byModel: {} }, 'byModel must hold pairs'],
    [{ byModel: [[/x/]] }, 'byModel must hold pairs'],
    // It would match only every other call.
    [{ byModel: [[/x/g, { takesDeveloperRole: true }]] }, 'byModel[0] must begin with a pattern without the flags'],
    [{ byModel: [[/x/, { takesDeveloperRole: 1 }]] }, 'byModel[0].takesDeveloperRole must be'],
    [{ errors: { codes: { 1113: 'operater' } } }, 'errors.codes.1113 must be one of'],
    [{ errors: { concerns: { 1113: 'account' } } }, 'errors.concerns.1113 must be one of key, model'],
    [{ errors: { messages: [[/flagged/y, 'caller']] } }, 'errors.messages[0] must begin with a pattern'],
    [{ errors: { messages: [[/flagged/, 'user']] } }, 'errors.messages[0] must mean one of'],
  ])('in a value of a preset of your own name the member: %o', (members, message) => {
    const own = { ...presets.vllm, id: 'own', ...members } as unknown as Preset
    expect(() => openaiCompatible(own)).toThrow(message)
    expect(() => openaiCompatible(own)).toThrow(TypeError)
  })

  it('in the number of texts of a call are reported', () => {
    for (const maxEmbeddingInputs of [0, -1, 1.5, '9' as unknown as number]) {
      const wrong = /maxEmbeddingInputs must be a whole number above 0/
      expect(() => openaiCompatible(presets.vllm, { maxEmbeddingInputs })).toThrow(wrong)
      expect(() =>
        openaiCompatible({ id: 'x', baseURL: 'http://x.example/v1', models: [], maxEmbeddingInputs }),
      ).toThrow(wrong)
    }
  })

  it('are none: a preset without a key variable, and one that names its account twice', () => {
    const own: Preset = { ...presets.vllm, id: 'own', keyVariables: [], baseURL: 'https://{account}.example/{account}' }
    const vendor = openaiCompatible(own, { account: 'a1' })
    const { path } = vendor.chat!.toWire(callFromRequest<ChatRequest>({ model: 'm', messages: [] }))
    expect(vendor.configuredBy).toBe('openaiCompatible(presets.own, { apiKey })')
    expect(vendor.origin + path).toBe('https://a1.example/a1/chat/completions')
  })
})

describe('request fields', () => {
  it('pass to the byte where no rule applies', () => {
    const text = '{ "model":"m" , "temperature":0.5,"messages":[{"role":"user","content":"Grüezi"}]}'
    for (const preset of WITH_CHAT) {
      const wire = vendorOf(preset).chat!.toWire(callFromText<ChatRequest>(text, { upstream: 'm' }))
      expect(Buffer.from(wire.body as Uint8Array).toString('utf8')).toBe(text)
      expect(wire.dropped).toEqual([])
    }
  })

  it('bound the answer by the name that the server knows', () => {
    for (const preset of WITH_CHAT.filter(({ fields = {} }) => 'max_completion_tokens' in fields)) {
      expect(sent(preset, { max_completion_tokens: 50 }).body).toMatchObject({ max_tokens: 50 })
      const both = sent(preset, { max_completion_tokens: 50, max_tokens: 20 }).body
      expect(both['max_tokens']).toBe(20)
      expect(both).not.toHaveProperty('max_completion_tokens')
    }
    expect(sent(presets.ollama, { max_completion_tokens: 50 }).body['max_tokens']).toBe(50)
    for (const preset of [presets.cerebras, presets.xai]) {
      const both = sent(preset, { max_tokens: 50, max_completion_tokens: 80 }).body
      expect(both['max_completion_tokens']).toBe(50)
      expect(both).not.toHaveProperty('max_tokens')
    }
  })

  it('are split between answer and thinking where the older name limits the answer only', () => {
    const qwen = (fields: Partial<ChatRequest>, upstream = 'Qwen/Qwen3-8B') => {
      const { body, dropped } = sent(presets.siliconflow, fields, upstream)
      const { max_tokens: answer, thinking_budget: thinking, enable_thinking: enabled } = body
      return [answer, thinking, enabled, body['max_completion_tokens'], dropped]
    }
    expect(qwen({ max_completion_tokens: 1_000 })).toEqual([500, 500, undefined, undefined, []])
    expect(qwen({ max_tokens: 1_000 })).toEqual([500, 500, undefined, undefined, []])
    expect(qwen({ max_tokens: 1_000, max_completion_tokens: 400 })).toEqual([200, 200, undefined, undefined, []])
    expect(qwen({ max_tokens: 400, max_completion_tokens: 1_000 })).toEqual([200, 200, undefined, undefined, []])
    expect(qwen({ max_tokens: 1_000, thinking_budget: 300 })).toEqual([700, 300, undefined, undefined, []])
    expect(qwen({ max_tokens: 1_000, thinking_budget: 4_096 })).toEqual([500, 500, undefined, undefined, []])
    expect(qwen({ max_tokens: 100_000 })).toEqual([67_232, 32_768, undefined, undefined, []])
    expect(qwen({ max_tokens: 1_000, enable_thinking: false })).toEqual([1_000, undefined, false, undefined, []])
    expect(qwen({ max_tokens: 100 })).toEqual([100, undefined, false, undefined, []])
    expect(qwen({ max_tokens: 100, enable_thinking: true })).toEqual([
      ...[100, undefined, false, undefined],
      ['enable_thinking'],
    ])
    expect(qwen({ max_tokens: 100 }, 'Qwen/Qwen2.5-72B-Instruct')).toEqual([100, undefined, undefined, undefined, []])
  })

  it('are rejected before the call if the server rejects them, unless they have no effect', () => {
    for (const [preset, fields, param, upstream] of [
      [presets.groq, { logprobs: true }, 'logprobs'],
      [presets.groq, { logit_bias: { 1: 5 } }, 'logit_bias'],
      [presets.groq, { n: 2 }, 'n'],
      [presets.ollama, { n: 3 }, 'n'],
      [presets.openrouter, { preset: 'expensive' }, 'preset'],
      [presets.xai, { stop: ['end'] }, 'stop', 'grok-4'],
      [presets.xai, { deferred: true }, 'deferred'],
      [presets.xai, { search_parameters: { mode: 'off' } }, 'search_parameters', 'grok-4'],
      [presets.openrouter, { models: ['maker/dear'] }, 'models'],
    ] as const) {
      expect(() => sent(preset, fields as Partial<ChatRequest>, upstream)).toThrow(
        expect.objectContaining({ code: 'unsupported_parameter', param }),
      )
    }
    expect(sent(presets.groq, { logprobs: false, logit_bias: {}, n: 1, top_logprobs: 0 }).body).toEqual({
      model: 'some-model',
      messages: [{ role: 'user', content: 'Hi' }],
      n: 1,
    })
  })

  it('are dropped and reported if the server lacks them', () => {
    expect(sent(presets.deepseek, { seed: 7 }).dropped).toEqual(['seed'])
    expect(sent(presets.nvidia, { store: true, user: 'u', metadata: { a: 'b' } })).toMatchObject({
      body: { model: 'some-model', messages: [{ role: 'user', content: 'Hi' }] },
      dropped: ['store', 'metadata', 'user'],
    })
    expect(sent(presets.xai, { presence_penalty: 1 }, 'grok-4-fast-reasoning').dropped).toEqual(['presence_penalty'])
    expect(sent(presets.xai, { presence_penalty: 1 }, 'grok-4-fast-non-reasoning').dropped).toEqual([])
    const named = sent(presets.groq, { messages: [{ role: 'user', content: 'Hi', name: 'anna' }] })
    expect(named.dropped).toEqual(['messages.name'])
    expect(named.body['messages']).toEqual([{ role: 'user', content: 'Hi' }])
  })

  it.each(['mistral', 'cerebras', 'groq', 'fireworks'] as const)(
    'without effect on the answer are not rejected by %s',
    (name) => {
      const extra = {
        store: true,
        safety_identifier: 's',
        verbosity: 'low',
        prompt_cache_retention: '24h',
        session_id: 's1',
      }
      const { body, dropped } = sent(presets[name], extra as Partial<ChatRequest>)

      expect(Object.keys(body).sort()).toEqual(['messages', 'model'])
      expect([...dropped].sort()).toEqual([
        ...['prompt_cache_retention', 'safety_identifier', 'session_id', 'store', 'verbosity'],
      ])
    },
  )

  it('sends session_id only to servers that list it', () => {
    const session = { session_id: 's1' } as Partial<ChatRequest>
    const receivers = WITH_CHAT.filter((preset) => 'session_id' in sent(preset, session).body)

    expect(receivers.map(({ id }) => id)).toEqual(['openrouter'])
    expect(sent(presets.xai, session).dropped).toEqual(['session_id'])
    const own = { ...presets.vllm, id: 'own', fields: { session_id: 'pass' } } as const
    expect(sent(own, session).body).toMatchObject(session)
  })

  it.each(['mistral', 'cerebras', 'groq'] as const)('does not send bookkeeping fields to %s', (name) => {
    expect(sent(presets[name], { metadata: { team: 'a' } })).toMatchObject({
      body: { messages: [{ role: 'user', content: 'Hi' }] },
      dropped: ['metadata'],
    })
    expect(sent(presets[name], { metadata: { team: 'a' } }).body).not.toHaveProperty('metadata')
  })

  it('without effect are dropped and not reported', () => {
    expect(
      sent(presets.nvidia, { store: false, metadata: {}, service_tier: 'auto', verbosity: 'medium' }),
    ).toMatchObject({
      body: { model: 'some-model', messages: [{ role: 'user', content: 'Hi' }] },
      dropped: [],
    })
    expect(sent(presets.xai, { presence_penalty: 0, frequency_penalty: 0 }, 'grok-4-fast-reasoning').dropped).toEqual(
      [],
    )
    expect(sent(presets.ollama, { parallel_tool_calls: true }).dropped).toEqual([])
    expect(sent({ ...presets.vllm, fields: { n: 'refuse', top_p: 'refuse' } }, { n: 1, top_p: 1 }).dropped).toEqual([])
  })

  it('have other names or values where the server has', () => {
    expect(sent(presets.mistral, { seed: 7 }).body).toMatchObject({ random_seed: 7 })
    expect(sent(presets.xai, { parallel_tool_calls: false }, 'grok-4').body).toMatchObject({
      parallel_function_calling: false,
    })
    const effort = sent(presets.fireworks, { reasoning_effort: 'xhigh' })
    expect(effort).toMatchObject({ body: { reasoning_effort: 'high' }, dropped: ['reasoning_effort'] })
    expect(sent(presets.fireworks, { reasoning_effort: 'low' }).dropped).toEqual([])
  })

  it('do not ask for usage where it comes unasked', () => {
    for (const preset of WITH_CHAT) {
      const { body } = sent(preset, { stream: true })
      expect(body['stream_options']).toEqual(preset.asksForUsage === false ? undefined : { include_usage: true })
      const asked = sent(preset, { stream: true, stream_options: { include_usage: true } }).body
      expect('stream_options' in asked).toBe(preset.asksForUsage !== false)
    }
  })
})

describe('the choice of a tool', () => {
  it('is written in the words of the server', () => {
    expect(sent(presets.mistral, { tools: TOOLS, tool_choice: 'required' }).body).toMatchObject({ tool_choice: 'any' })
    expect(sent(presets.mistral, { tools: TOOLS, tool_choice: WEATHER }).body).toMatchObject({
      tool_choice: 'any',
      tools: [TOOLS[0]],
    })
    expect(sent(presets.groq, { tools: TOOLS, tool_choice: WEATHER }).body).toMatchObject({ tool_choice: WEATHER })
  })

  it('cuts the list to one function if the server ignores names', () => {
    for (const preset of [presets.lmstudio, presets.llamacpp]) {
      expect(sent(preset, { tools: TOOLS, tool_choice: WEATHER })).toMatchObject({
        body: { tool_choice: 'required', tools: [TOOLS[0]] },
        dropped: [],
      })
    }
    const allowed = { type: 'allowed_tools' as const, allowed_tools: { mode: 'auto' as const, tools: [WEATHER] } }
    expect(sent(presets.llamacpp, { tools: TOOLS, tool_choice: allowed }).body).toMatchObject({
      tool_choice: 'auto',
      tools: [TOOLS[0]],
    })
  })

  it('is left to the model if the mode of some tools is not a string', () => {
    const mode = { toString: 1 } as unknown as 'auto'
    const tool_choice = { type: 'allowed_tools' as const, allowed_tools: { mode, tools: [WEATHER] } }
    expect(sent(presets.mistral, { tools: TOOLS, tool_choice }).body).toMatchObject({ tool_choice: 'auto' })
  })

  it('is rejected if it would cut the list to nothing', () => {
    const other = { type: 'function' as const, function: { name: 'other' } }
    const allowed = { type: 'allowed_tools' as const, allowed_tools: { mode: 'auto' as const, tools: [other] } }
    for (const preset of [presets.mistral, presets.lmstudio, presets.llamacpp, presets.ollama])
      for (const choice of [other, allowed])
        expect(() => sent(preset, { tools: TOOLS, tool_choice: choice })).toThrow(
          expect.objectContaining({
            status: 400,
            param: 'tool_choice',
            message: expect.stringContaining('tool_choice'),
          }),
        )
  })

  it('is reported where the server ignores it, and none sends no tools', () => {
    const named = sent(presets.ollama, { tools: TOOLS, tool_choice: WEATHER })
    expect(named.body['tools']).toEqual([TOOLS[0]])
    expect(named.body).not.toHaveProperty('tool_choice')
    expect(named.dropped).toEqual(['tool_choice'])
    expect(sent(presets.ollama, { tools: TOOLS, tool_choice: 'none' }).body).not.toHaveProperty('tools')
    expect(sent(presets.ollama, { tools: TOOLS, tool_choice: 'auto' }).dropped).toEqual([])
  })
})

describe('the history', () => {
  const reasoned = [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: 'Hello', reasoning_content: 'Greet.', thinking_blocks: [] },
    { role: 'user', content: 'And?' },
  ] as unknown as ChatRequest['messages']

  it('gets the reasoning that a server requires, empty where it is not known', () => {
    expect(assistant(presets.deepseek, TOOL_TURNS, 'deepseek-v4')).toMatchObject({ reasoning_content: '' })
    expect(assistant(presets.moonshot, TOOL_TURNS)).toMatchObject({ reasoning_content: '' })
    expect(assistant(presets.deepseek, reasoned, 'deepseek-v4')).toMatchObject({ reasoning_content: 'Greet.' })
    expect(assistant(presets.moonshot, reasoned)).toEqual({ role: 'assistant', content: 'Hello' })
  })

  it('has none where it is refused, and has it under the name of the server', () => {
    expect(assistant(presets.deepseek, reasoned, 'deepseek-reasoner')).toEqual({ role: 'assistant', content: 'Hello' })
    for (const preset of [presets.groq, presets.cerebras, presets.ollama])
      expect(assistant(preset, reasoned)).toEqual({ role: 'assistant', content: 'Hello', reasoning: 'Greet.' })
    expect(assistant(presets.groq, TOOL_TURNS)).not.toHaveProperty('reasoning_content')
    const echoed = [{ role: 'assistant', content: 'Hello', reasoning: 'Greet.' }] as unknown as ChatRequest['messages']
    expect(assistant(presets.zai, echoed)).toEqual({
      role: 'assistant',
      content: 'Hello',
      reasoning_content: 'Greet.',
    })
    for (const preset of [presets.together, presets.nvidia, presets.openrouter])
      expect(assistant(preset, echoed)).toEqual({ role: 'assistant', content: 'Hello' })
  })

  it('has ids of tool calls that the server takes: the same one in both places, each time', () => {
    const bodies = [1, 2].map(() => sent(presets.mistral, { messages: TOOL_TURNS }).body as unknown as ChatRequest)
    const ids = bodies.flatMap(({ messages }) => [messages[1]!.tool_calls![0]!.id, messages[2]!.tool_call_id!])

    expect(ids[0]).toMatch(/^[a-zA-Z0-9]{9}$/)
    expect(new Set(ids).size).toBe(1)
    const own = JSON.parse(JSON.stringify(TOOL_TURNS).replaceAll('call_abcdef0123456789', 'gSIMJiOkT'))
    expect(sent(presets.mistral, { messages: own }).body['messages']).toEqual(own)
  })

  it.each(['mistral', 'cerebras', 'fireworks', 'groq', 'nvidia'] as const)(
    'loses what %s refuses of an answer that a client sends back whole',
    (name) => {
      const answer = { role: 'assistant', content: 'Hello', refusal: null, annotations: [], reasoning_content: 'Greet' }
      const messages = [{ role: 'user', content: 'Hi' }, answer, { role: 'user', content: 'And?' }]
      const { body, dropped } = sent(presets[name], { messages: messages as unknown as ChatRequest['messages'] })
      const { reasoning: _known, ...kept } = (body['messages'] as Record<string, unknown>[])[1]!

      expect(kept).toEqual({ role: 'assistant', content: 'Hello' })
      expect(dropped).toEqual(['messages.annotations'])
    },
  )

  it('gets an assistant turn between tool results and a user turn if the server requires one', () => {
    const messages = [...TOOL_TURNS, { role: 'user', content: 'And tomorrow?' }] as ChatRequest['messages']
    const rolesAt = (preset: Preset, history: ChatRequest['messages']) =>
      (sent(preset, { messages: history }).body as unknown as ChatRequest).messages.map(({ role }) => role)

    expect(rolesAt(presets.mistral, messages)).toEqual(['user', 'assistant', 'tool', 'assistant', 'user'])
    expect(rolesAt(presets.mistral, TOOL_TURNS)).toEqual(['user', 'assistant', 'tool'])
    expect(rolesAt(presets.groq, messages)).toEqual(['user', 'assistant', 'tool', 'user'])
    const plain = [{ role: 'tool', tool_call_id: 'abcDEF123', content: 'x' }, ...messages.slice(-1)]
    const bare = plain as unknown as ChatRequest['messages']
    expect(sent(presets.mistral, { messages: bare }).body['messages']).toEqual([
      plain[0],
      { role: 'assistant', content: 'OK.' },
      plain[1],
    ])
  })

  it('calls the developer system, and marks the beginning of an answer', () => {
    const messages = [
      { role: 'developer', content: 'Be brief' },
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Well,' },
    ] as ChatRequest['messages']
    const body = sent(presets.mistral, { messages }).body as unknown as ChatRequest

    expect(body.messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant'])
    expect(body.messages[2]).toMatchObject({ prefix: true })
    expect((sent(presets.openrouter, { messages }).body as unknown as ChatRequest).messages[0]?.role).toBe('developer')
  })
})

it('fetches images given by URL for servers that accept only bytes', () => {
  const inline = ALL.filter((preset) => vendorOf(preset).chat?.takesImageUrls?.({} as never) === false)

  expect(inline.map(({ id }) => id)).toEqual(['moonshot', 'ollama', 'lmstudio'])
})
