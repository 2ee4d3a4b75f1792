import { describe, expect, test } from 'vitest'
import { eventData, runningSandbox } from './support/running-sandbox.ts'

const vendor = runningSandbox()
const user = (text: string) => ({ role: 'user', parts: [{ text }] })
const weather = {
  name: 'weather',
  parameters: { type: 'OBJECT', properties: { city: { type: 'STRING' } }, required: ['city'] },
}
const tools = [{ functionDeclarations: [weather, { name: 'time' }] }]
const path = (model: string, method: string) => `/v1beta/models/${model}:${method}`

test('answers whole, with counts that keep thoughts apart and a signed text', async () => {
  const answer = await vendor.post(path('gemini-3.1-pro', 'generateContent'), {
    contents: [user('Hello dear cached world')],
    generationConfig: { thinkingConfig: { thinkingLevel: 'HIGH', includeThoughts: true } },
  })

  const { candidates, usageMetadata, modelVersion } = answer.json
  expect(candidates[0].content.parts.map((part: object) => Object.keys(part))).toEqual([
    ['text', 'thought'],
    ['text', 'thoughtSignature'],
  ])
  expect(candidates[0]).toMatchObject({ finishReason: 'STOP', index: 0 })
  expect(modelVersion).toBe('gemini-3.1-pro')
  expect(usageMetadata).toMatchObject({ promptTokenCount: 6, candidatesTokenCount: 6, cachedContentTokenCount: 3 })
  expect(usageMetadata.totalTokenCount).toBe(6 + 6 + usageMetadata.thoughtsTokenCount)
})

test.each(['gemini-flash-latest', 'gemini-flash-lite-latest', 'gemini-pro-latest', 'gemini-robotics-er-2-preview'])(
  'accepts a thinking level for %s, whose id has no generation',
  async (model) => {
    const answer = await vendor.post(path(model, 'generateContent'), {
      contents: [user('Hello')],
      generationConfig: { thinkingConfig: { thinkingLevel: 'HIGH' } },
    })

    expect(answer.json.candidates[0].content.parts.at(-1)).toMatchObject({ text: 'You said: Hello' })
  },
)

test('streams events of whole response objects without an end mark, and a growing list without alt=sse', async () => {
  const body = { contents: [user('Hello dear')] }

  const events = await vendor.post(`${path('gemini-2.5-flash', 'streamGenerateContent')}?alt=sse`, body)
  const list = await vendor.post(path('gemini-2.5-flash', 'streamGenerateContent'), body)

  const chunks = eventData(events.events)
  const text = chunks.map((chunk) => chunk.candidates[0].content.parts[0].text).join('')
  expect(text).toBe('You said: Hello dear')
  expect(chunks.map((chunk) => chunk.candidates[0].finishReason ?? null)).toEqual([null, null, null, null, 'STOP'])
  expect(events.text).not.toContain('[DONE]')
  expect(events.text).toMatch(/\r\n\r\n$/)
  expect(list.json).toEqual(chunks)
})

test('loops through parallel calls: ids and one signature from the third generation on, neither before', async () => {
  const question = user('Please call weather and time')
  const ask = async (model: string, contents: object[]) =>
    (await vendor.post(path(model, 'generateContent'), { contents, tools })).json

  const first = await ask('gemini-3.1-pro', [question])
  const called = first.candidates[0].content
  const responses = called.parts.map((part: { functionCall: { id: string; name: string } }, index: number) => ({
    functionResponse: { id: part.functionCall.id, name: part.functionCall.name, response: { output: `r${index}` } },
  }))
  const second = await ask('gemini-3.1-pro', [question, called, { role: 'user', parts: responses }])
  const unsigned = {
    role: 'model',
    parts: called.parts.map((part: { functionCall: object }) => ({ functionCall: part.functionCall })),
  }
  const refused = await ask('gemini-3.1-pro', [question, unsigned, { role: 'user', parts: responses }])
  const older = await ask('gemini-2.5-flash', [question])

  expect(called.parts.map((part: { thoughtSignature?: string }) => part.thoughtSignature !== undefined)).toEqual([
    true,
    false,
  ])
  expect(called.parts[0].functionCall).toMatchObject({ name: 'weather', args: { city: 'sample city' } })
  expect(second.candidates[0].content.parts[0].text).toBe('The tools answered: r0 | r1')
  expect(refused.error.message).toMatch(/missing a thought_signature.*`default_api:weather` , position 2/)
  expect(Object.keys(older.candidates[0].content.parts[0])).toEqual(['functionCall'])
  expect(older.candidates[0].content.parts[0].functionCall.id).toBeUndefined()
})

test('a blocked prompt has feedback and no candidates', async () => {
  const answer = await vendor.post(path('gemini-2.5-flash', 'generateContent'), {
    contents: [user('x [[fault:blocked]]')],
  })

  expect(answer.status).toBe(200)
  expect(answer.json.promptFeedback.blockReason).toBe('PROHIBITED_CONTENT')
  expect(answer.json.candidates).toBeUndefined()
})

describe('what Gemini refuses', () => {
  const contents = [user('hi')]
  const call = { role: 'model', parts: [{ functionCall: { name: 'weather', args: {} } }] }
  const declared = (parameters: object) => ({
    contents,
    tools: [{ functionDeclarations: [{ name: 'f', parameters }] }],
  })
  test.each<[string, object, RegExp]>([
    ['no contents', {}, /contents is not specified/],
    ['an unknown field', { contents, messages: [] }, /Unknown name "messages"/],
    ['an unknown role', { contents: [{ role: 'assistant', parts: [{ text: 'x' }] }] }, /valid role/],
    ['no parts', { contents: [{ role: 'user', parts: [] }] }, /must not be empty/],
    ['a part with nothing in it', { contents: [{ role: 'user', parts: [{}] }] }, /oneof field 'data'/],
    ['a call at first', { contents: [call] }, /function call turn comes immediately after/],
    ['fewer results than calls', { contents: [user('hi'), call, user('and?')] }, /number of function response parts/],
    ['$schema', declared({ $schema: 'x', type: 'object' }), /Unknown name "\$schema"/],
    [
      'additionalProperties',
      declared({ type: 'object', additionalProperties: false }),
      /Unknown name "additionalProperties"/,
    ],
    [
      'a nested $ref',
      declared({ type: 'object', properties: { a: { $ref: '#/x' } } }),
      /Unknown name "\$ref" at '.*properties\[0\].value'/,
    ],
    ['a list of types', declared({ type: ['string', 'null'] }), /not repeating/],
    ['no declarations', { contents, tools: [{ functionDeclarations: [] }] }, /at least one function declaration/],
    ['a penalty', { contents, generationConfig: { frequencyPenalty: 0.5 } }, /Penalty is not enabled/],
    ['two candidates', { contents, generationConfig: { candidateCount: 2 } }, /Multiple candidates/],
    [
      'a thinking level before the third generation',
      { contents, generationConfig: { thinkingConfig: { thinkingLevel: 'LOW' } } },
      /Thinking level is not supported/,
    ],
    [
      'six stop sequences',
      { contents, generationConfig: { stopSequences: ['1', '2', '3', '4', '5', '6'] } },
      /stop sequences/,
    ],
    [
      'two answer schemas',
      {
        contents,
        generationConfig: { responseMimeType: 'application/json', responseSchema: {}, responseJsonSchema: {} },
      },
      /Only one/,
    ],
    [
      'a result that is no object',
      {
        contents: [
          user('hi'),
          call,
          { role: 'user', parts: [{ functionResponse: { name: 'weather', response: 'x' } }] },
        ],
      },
      /Struct/,
    ],
  ])('%s', async (_, body, message) => {
    const answer = await vendor.post(path('gemini-2.5-flash', 'generateContent'), body)

    expect(answer.json.error).toMatchObject({ code: 400, status: 'INVALID_ARGUMENT' })
    expect(answer.json.error.message).toMatch(message)
  })

  test('a call without a key', async () => {
    const answer = await vendor.post(path('gemini-2.5-flash', 'generateContent'), { contents }, {})

    expect([answer.status, answer.json.error.status]).toEqual([403, 'PERMISSION_DENIED'])
  })
})

test('takes names in snake case and a schema that parametersJsonSchema may hold', async () => {
  const schema = { $schema: 'x', type: 'object', properties: {}, additionalProperties: false }
  const answer = await vendor.post(path('gemini-2.5-flash', 'generateContent'), {
    contents: [user('one two three')],
    system_instruction: { parts: [{ text: 'Be brief.' }] },
    tools: [{ function_declarations: [{ name: 'f', parameters_json_schema: schema }] }],
    generation_config: { max_output_tokens: 3 },
  })

  expect(answer.json.candidates[0]).toMatchObject({
    finishReason: 'MAX_TOKENS',
    content: { parts: [{ text: 'You said: one' }] },
  })
})

describe('Gemini embeddings', () => {
  const embed = (model: string, requests: object[]) => vendor.post(path(model, 'batchEmbedContents'), { requests })
  const request = (text: string, more: object = {}) => ({
    model: 'models/gemini-embedding-001',
    content: { parts: [{ text }] },
    ...more,
  })

  test('come in the order of the requests; only whole vectors of the first model have length 1', async () => {
    const answer = await embed('gemini-embedding-001', [request('red'), request('red', { outputDimensionality: 768 })])

    const [whole, short] = answer.json.embeddings.map((entry: { values: number[] }) => entry.values)
    expect(whole).toHaveLength(3072)
    expect(short).toEqual(whole.slice(0, 768))
    expect(Math.hypot(...whole)).toBeCloseTo(1, 5)
    expect(Math.hypot(...short)).toBeLessThan(0.9)
    expect(answer.json.usageMetadata.promptTokenCount).toBe(2)
  })

  test('are limited to 100 requests of the model in the path', async () => {
    const tooMany = await embed(
      'gemini-embedding-001',
      Array.from({ length: 101 }, () => request('x')),
    )
    const foreign = await embed('gemini-embedding-2', [request('x')])

    expect(tooMany.json.error.message).toMatch(/at most 100 requests can be in one batch/)
    expect(foreign.json.error.message).toMatch(/unexpected model name/)
  })
})

test('counts tokens of contents', async () => {
  const answer = await vendor.post(path('gemini-2.5-flash', 'countTokens'), { contents: [user('Hello dear')] })

  expect(answer.json.totalTokens).toBe(3)
})
