import { HumanMessage, ToolMessage, type UsageMetadata } from '@langchain/core/messages'
import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type StartedGateway, startGateway, TEST_KEY } from '../support/start-gateway.ts'
import { CHAT_MODELS, CITY_SCHEMA, EMBEDDING_MODELS } from './support/models.ts'

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway()
})
afterAll(() => started.close())

const chat = (model: string, apiKey = TEST_KEY): ChatOpenAI =>
  new ChatOpenAI({ model, apiKey, maxRetries: 0, configuration: { baseURL: `${started.url}/v1` } })

const cityTool = (name: string) => ({
  type: 'function' as const,
  function: { name, description: 'Tells something about a city.', parameters: CITY_SCHEMA },
})

describe.each(CHAT_MODELS)('@langchain/openai with %s', (model) => {
  test('invokes', async () => {
    const message = await chat(model).invoke([
      ['system', 'Be brief.'],
      ['human', 'good morning'],
    ])

    expect(message.content).toBe('You said: good morning')
    expect(outputTokensOf(message)).toBeGreaterThan(0)
    expect(message.response_metadata).toMatchObject({ finish_reason: 'stop' })
  })

  test('streams', async () => {
    const texts: string[] = []
    let outputTokens = 0
    for await (const chunk of await chat(model).stream('good morning to you')) {
      texts.push(String(chunk.content))
      outputTokens += outputTokensOf(chunk)
    }

    expect(texts.join('')).toBe('You said: good morning to you')
    expect(texts.filter((text) => text !== '').length).toBeGreaterThan(1)
    expect(outputTokens).toBeGreaterThan(0)
  })

  test('binds tools, and answers with their results', async () => {
    const bound = chat(model).bindTools([cityTool('get_weather'), cityTool('get_time')])
    const question = new HumanMessage('call get_weather and get_time')

    const asking = await bound.invoke([question])
    const results = (asking.tool_calls ?? []).map(
      (call) => new ToolMessage({ tool_call_id: call.id ?? '', content: `${call.name} of ${call.args['city']}` }),
    )
    const answer = await bound.invoke([question, asking, ...results])

    expect(asking.tool_calls).toMatchObject([
      { name: 'get_weather', args: { city: 'sample city' } },
      { name: 'get_time', args: { city: 'sample city' } },
    ])
    expect(answer.content).toBe('The tools answered: get_weather of sample city | get_time of sample city')
  })

  test('puts streamed tool calls together', async () => {
    const bound = chat(model).bindTools([cityTool('get_weather'), cityTool('get_time')])
    let whole: Awaited<ReturnType<typeof bound.invoke>> | undefined
    for await (const chunk of await bound.stream('call get_weather and get_time')) {
      whole = whole === undefined ? chunk : whole.concat(chunk)
    }

    expect(whole?.tool_calls).toMatchObject([
      { name: 'get_weather', args: { city: 'sample city' } },
      { name: 'get_time', args: { city: 'sample city' } },
    ])
  })
})

test.each(EMBEDDING_MODELS)('@langchain/openai embeds documents with %s, in their order', async (model, dimensions) => {
  const embeddings = new OpenAIEmbeddings({
    model,
    apiKey: TEST_KEY,
    maxRetries: 0,
    configuration: { baseURL: `${started.url}/v1` },
  })
  const texts = Array.from({ length: 12 }, (_, index) => `text number ${index}`)

  const documents = await embeddings.embedDocuments(texts)
  const query = await embeddings.embedQuery('text number 7')

  expect(documents.map((vector) => vector.length)).toEqual(texts.map(() => dimensions))
  expect(documents[7]).toEqual(query)
})

test('@langchain/openai throws what the gateway says about an unknown key', async () => {
  const failure = chat('chat-relayed', 'sk-unknown').invoke('hello')

  await expect(failure).rejects.toMatchObject({ status: 401 })
})

test('@langchain/openai throws what the gateway says about an unknown model', async () => {
  const failure = chat('no-such-model').invoke('hello')

  await expect(failure).rejects.toMatchObject({ status: 404, code: 'model_not_found' })
})

/** The class types this member by the structure of its messages, which is not known here. */
function outputTokensOf(message: { usage_metadata?: UsageMetadata | undefined }): number {
  return message.usage_metadata?.output_tokens ?? 0
}
