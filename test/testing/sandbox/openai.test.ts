import OpenAI from 'openai'
import { describe, expect, test } from 'vitest'
import { eventData, runningSandbox, WEATHER_TOOL } from './support/running-sandbox.ts'

const vendor = runningSandbox()
const client = (): OpenAI => new OpenAI({ apiKey: 'sk-test', baseURL: `${vendor.origin}/v1`, maxRetries: 0 })
const user = (content: string) => ({ role: 'user' as const, content })

describe('the openai SDK against the OpenAI stand-in', () => {
  test('gets an echo, a dated model and counted tokens', async () => {
    const answer = await client().chat.completions.create({ model: 'gpt-5.4', messages: [user('Hello dear world')] })

    expect(answer.choices[0]?.message.content).toBe('You said: Hello dear world')
    expect(answer.choices[0]?.finish_reason).toBe('stop')
    expect(answer.model).toBe('gpt-5.4-2026-03-05')
    expect(answer.usage).toMatchObject({ prompt_tokens: 4, completion_tokens: 5, total_tokens: 9 })
  })

  test('streams the same answer word by word, with usage on request', async () => {
    const runner = client().chat.completions.stream({
      model: 'gpt-5.4',
      messages: [user('Hello dear world')],
      stream_options: { include_usage: true },
    })

    const words: string[] = []
    for await (const chunk of runner) words.push(chunk.choices[0]?.delta.content ?? '')
    const answer = await runner.finalChatCompletion()

    expect(words.filter((word) => word !== '')).toEqual(['You', ' said:', ' Hello', ' dear', ' world'])
    expect(answer.choices[0]?.message.content).toBe('You said: Hello dear world')
    expect(answer.usage).toMatchObject({ prompt_tokens: 4, completion_tokens: 5 })
  })

  test('loops through parallel tool calls, whole and streamed', async () => {
    const tools = [WEATHER_TOOL, { ...WEATHER_TOOL, function: { ...WEATHER_TOOL.function, name: 'get_time' } }]
    const messages: OpenAI.ChatCompletionMessageParam[] = [user('Please call get_weather and get_time')]

    const first = await client().chat.completions.create({ model: 'gpt-5.4', messages, tools })
    const streamed = await client().chat.completions.stream({ model: 'gpt-5.4', messages, tools }).finalChatCompletion()
    const called = first.choices[0]?.message as OpenAI.ChatCompletionMessage
    const results = called.tool_calls?.map((call, index) => ({
      role: 'tool' as const,
      tool_call_id: call.id,
      content: `result ${index}`,
    }))
    const { refusal: _, annotations: __, ...history } = called
    const second = await client().chat.completions.create({
      model: 'gpt-5.4',
      messages: [...messages, history, ...(results ?? [])],
      tools,
    })

    expect(first.choices[0]?.finish_reason).toBe('tool_calls')
    expect(called.content).toBeNull()
    const names = (message: OpenAI.ChatCompletionMessage | undefined) =>
      message?.tool_calls?.map((call) => call.type === 'function' && [call.function.name, call.function.arguments])
    expect(names(called)).toEqual([
      ['get_weather', '{"city":"sample city"}'],
      ['get_time', '{"city":"sample city"}'],
    ])
    expect(names(streamed.choices[0]?.message)).toEqual(names(called))
    expect(second.choices[0]?.message.content).toBe('The tools answered: result 0 | result 1')
  })

  test('gets base64 embeddings by default and the same floats on request, of length 1', async () => {
    const request = { model: 'text-embedding-3-small', input: ['red', 'blue', 'red'] }

    const decoded = await client().embeddings.create(request)
    const floats = await client().embeddings.create({ ...request, encoding_format: 'float' })

    expect(decoded.data.map((entry) => entry.embedding)).toEqual(floats.data.map((entry) => entry.embedding))
    expect(floats.data[0]?.embedding).toEqual(floats.data[2]?.embedding)
    expect(floats.data[0]?.embedding).not.toEqual(floats.data[1]?.embedding)
    expect(Math.hypot(...(floats.data[0]?.embedding ?? []))).toBeCloseTo(1, 5)
    expect(floats.data[0]?.embedding).toHaveLength(1536)
    expect(vendor.sandbox.requests[0]?.body).toMatchObject({ encoding_format: 'base64' })
  })

  test('raises the typed error of a refusal', async () => {
    const call = client().chat.completions.create({
      model: 'gpt-5.4',
      messages: [user('x [[fault:status=429,retry-after=7]]')],
    })

    await expect(call).rejects.toMatchObject({ status: 429, code: 'rate_limit_exceeded' })
  })
})

describe('what OpenAI refuses', () => {
  const chat = { model: 'gpt-4o', messages: [user('hi')] }
  const call = {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }],
  }
  test.each<[string, object, string | null]>([
    ['no messages', { model: 'gpt-4o', messages: [] }, 'messages'],
    ['max_tokens on a reasoning model', { ...chat, model: 'o3', max_tokens: 5 }, 'max_tokens'],
    ['sampling on a reasoning model', { ...chat, model: 'gpt-5.4', temperature: 0.2 }, 'temperature'],
    ['max_tokens on gpt-6', { ...chat, model: 'gpt-6-sol', max_tokens: 5 }, 'max_tokens'],
    ['max_tokens on a later model that is not listed', { ...chat, model: 'gpt-7.1-vega', max_tokens: 5 }, 'max_tokens'],
    [
      'max_tokens on a fine-tuned reasoning model',
      { ...chat, model: 'ft:gpt-6-luna:acme::1', max_tokens: 5 },
      'max_tokens',
    ],
    ['sampling on gpt-6', { ...chat, model: 'gpt-6-luna', temperature: 0.2 }, 'temperature'],
    ['the effort minimal on gpt-6', { ...chat, model: 'gpt-6-sol', reasoning_effort: 'minimal' }, 'reasoning_effort'],
    ['the effort none on gpt-6.2', { ...chat, model: 'gpt-6.2-sol', reasoning_effort: 'none' }, 'reasoning_effort'],
    ['functions on a model that reasons', { ...chat, model: 'gpt-6-sol', tools: [WEATHER_TOOL] }, 'reasoning_effort'],
    [
      'functions with an effort on gpt-5.4',
      { ...chat, model: 'gpt-5.4', reasoning_effort: 'low', tools: [WEATHER_TOOL] },
      'reasoning_effort',
    ],
    ['a temperature above 2', { ...chat, temperature: 3 }, 'temperature'],
    ['stream_options without stream', { ...chat, stream_options: { include_usage: true } }, 'stream_options'],
    ['five stop sequences', { ...chat, stop: ['1', '2', '3', '4', '5'] }, 'stop'],
    [
      'a member of a message it does not know',
      { ...chat, messages: [{ ...user('hi'), reasoning_content: 'x' }] },
      'messages[0].reasoning_content',
    ],
    [
      'a result without a call',
      { ...chat, messages: [user('hi'), { role: 'tool', tool_call_id: 'c1', content: 'x' }] },
      'messages.[1].role',
    ],
    ['a call without a result', { ...chat, messages: [user('hi'), call, user('and?')] }, 'messages'],
    ['JSON mode without the word', { ...chat, response_format: { type: 'json_object' } }, 'messages'],
  ])('%s', async (_, body, param) => {
    const answer = await vendor.post('/v1/chat/completions', body)

    expect(answer.status).toBe(400)
    expect(answer.json.error).toMatchObject({ type: 'invalid_request_error', param })
  })

  test('accepts on gpt-6 without reasoning what it refuses with reasoning', async () => {
    const body = { ...chat, model: 'gpt-6-sol', reasoning_effort: 'none', temperature: 0.2, tools: [WEATHER_TOOL] }

    const answer = await vendor.post('/v1/chat/completions', body)

    expect([answer.status, answer.json.model]).toEqual([200, 'gpt-6-sol'])
  })

  test.each(['gpt-6-cyber', 'gpt-6.2-astra-law', 'gpt-daybreak-red-latest', 'gpt-6-pro', 'gpt-5.1-codex-max'])(
    'answers 404 to a chat with %s, and answers its Responses',
    async (model) => {
      const refused = await vendor.post('/v1/chat/completions', { ...chat, model })
      const answer = await vendor.post('/v1/responses', { model, input: 'hi' })

      expect([refused.status, answer.status]).toEqual([404, 200])
    },
  )

  test('a call without a key, unreadable JSON and an unknown path', async () => {
    const withoutKey = await vendor.post('/v1/chat/completions', chat, {})
    const unreadable = await vendor.post('/v1/chat/completions', '{"model":')
    const unknown = await vendor.post('/v1/nowhere', chat)

    expect([withoutKey.status, withoutKey.json.error.code]).toEqual([401, 'invalid_api_key'])
    expect(unreadable.status).toBe(400)
    expect([unknown.status, vendor.sandbox.requests.at(-1)?.vendor]).toEqual([404, 'unknown'])
  })
})

describe('the answers of the OpenAI stand-in', () => {
  const ask = async (body: object) => (await vendor.post('/v1/chat/completions', { model: 'gpt-4o', ...body })).json

  test('stop at the limit and at a stop sequence', async () => {
    const limited = await ask({ messages: [user('one two three')], max_tokens: 3 })
    const stopped = await ask({ messages: [user('one two three')], stop: [' three', ' two'] })

    expect([limited.choices[0].message.content, limited.choices[0].finish_reason]).toEqual(['You said: one', 'length'])
    expect([stopped.choices[0].message.content, stopped.choices[0].finish_reason]).toEqual(['You said: one', 'stop'])
  })

  test('are JSON of the schema asked for', async () => {
    const schema = {
      type: 'object',
      properties: {
        name: { type: 'string' },
        size: { enum: ['s', 'l'] },
        tags: { type: 'array', items: { type: 'integer' } },
      },
      required: ['name', 'size', 'tags'],
    }
    const answer = await ask({
      messages: [user('fill it')],
      response_format: { type: 'json_schema', json_schema: { name: 'thing', schema } },
    })

    expect(JSON.parse(answer.choices[0].message.content)).toEqual({ name: 'sample name', size: 's', tags: [1] })
  })

  test('come n times, and cost n times', async () => {
    const answer = await ask({ messages: [user('hi')], n: 2 })

    expect(answer.choices.map((choice: { index: number }) => choice.index)).toEqual([0, 1])
    expect(answer.usage).toMatchObject({ prompt_tokens: 1, completion_tokens: 6 })
  })

  test('count reasoning and cached tokens within the totals', async () => {
    const answer = await ask({
      messages: [user('cached words of a long prompt')],
      reasoning_effort: 'low',
      model: 'gpt-5.4',
    })

    expect(answer.usage.prompt_tokens_details.cached_tokens).toBe(Math.floor(answer.usage.prompt_tokens / 2))
    expect(answer.usage.completion_tokens_details.reasoning_tokens).toBeGreaterThan(0)
    expect(answer.usage.completion_tokens).toBeGreaterThan(answer.usage.completion_tokens_details.reasoning_tokens)
  })

  test('force a tool, choose among allowed ones, or call none', async () => {
    const tools = [WEATHER_TOOL, { ...WEATHER_TOOL, function: { ...WEATHER_TOOL.function, name: 'get_time' } }]
    const called = async (choice: unknown, text = 'hi') => {
      const answer = await ask({ messages: [user(text)], tools, tool_choice: choice })
      return answer.choices[0].message.tool_calls?.map((call: { function: { name: string } }) => call.function.name)
    }

    expect(await called('required')).toEqual(['get_weather'])
    expect(await called({ type: 'function', function: { name: 'get_time' } })).toEqual(['get_time'])
    expect(await called('none', 'call get_weather')).toBeUndefined()
    const onlyTime = { mode: 'required', tools: [{ type: 'function', function: { name: 'get_time' } }] }
    expect(await called({ type: 'allowed_tools', allowed_tools: onlyTime })).toEqual(['get_time'])
  })

  test('stream usage only on request: no field, or null and then one chunk without choices', async () => {
    const plain = await vendor.post('/v1/chat/completions', { model: 'gpt-4o', messages: [user('hi')], stream: true })
    const counted = await vendor.post('/v1/chat/completions', {
      model: 'gpt-4o',
      messages: [user('hi')],
      stream: true,
      stream_options: { include_usage: true },
    })

    expect(eventData(plain.events).some((chunk) => 'usage' in chunk)).toBe(false)
    expect(eventData(counted.events).at(-2)).toMatchObject({ usage: null, choices: [{ finish_reason: 'stop' }] })
    expect(eventData(counted.events).at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 4 } })
    expect(counted.text.endsWith('data: [DONE]\n\n')).toBe(true)
  })
})

test('shorter embeddings are the longer ones cut off and brought to length 1', async () => {
  const embed = async (dimensions?: number): Promise<number[]> => {
    const body = { model: 'text-embedding-3-large', input: 'red', dimensions }
    return (await vendor.post('/v1/embeddings', body)).json.data[0].embedding
  }

  const [whole, short] = [await embed(), await embed(256)]

  const cut = whole.slice(0, 256)
  const length = Math.hypot(...cut)
  expect(whole).toHaveLength(3072)
  short.forEach((value, position) => {
    expect(value).toBeCloseTo((cut[position] ?? 0) / length, 6)
  })
})

test.each([
  ['an empty text', { input: '' }],
  ['no input', {}],
  ['too many dimensions', { input: 'a', dimensions: 4000 }],
  ['an encoding it does not have', { input: 'a', encoding_format: 'hex' }],
])('embeddings refuse %s', async (_, body) => {
  const answer = await vendor.post('/v1/embeddings', { model: 'text-embedding-3-small', ...body })

  expect(answer.status).toBe(400)
})
