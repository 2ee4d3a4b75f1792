import OpenAI from 'openai'
import type { ResponseInputItem } from 'openai/resources/responses/responses'
import { describe, expect, test } from 'vitest'
import { runningSandbox } from './support/running-sandbox.ts'

const PRO = 'gpt-5.4-pro'
const vendor = runningSandbox()
const client = (apiKey = 'sk-test'): OpenAI => new OpenAI({ apiKey, baseURL: `${vendor.origin}/v1`, maxRetries: 0 })

const LOOK = { type: 'function', name: 'look', parameters: { type: 'object', properties: {} }, strict: false } as const
const question: ResponseInputItem = { role: 'user', content: 'call look' }

/** The error of a refused request. */
async function refusal(request: Promise<unknown>): Promise<unknown> {
  const { status, error } = (await request.then(
    () => ({ status: 200, error: undefined }),
    (cause: unknown) => cause,
  )) as { status: number; error: unknown }
  return { status, error }
}

test.each([PRO, 'gpt-5.4-pro-2026-03-05', 'o1-pro', 'gpt-5-codex', 'gpt-5.1-codex-max', 'o4-mini-deep-research'])(
  '%s has no chat completions, as at OpenAI',
  async (model) => {
    const chat = client().chat.completions.create({ model, messages: [{ role: 'user', content: 'hi' }] })

    expect(await refusal(chat)).toEqual({
      status: 404,
      error: {
        message: 'This model is only supported in v1/responses and not in v1/chat/completions.',
        type: 'invalid_request_error',
        param: 'model',
        code: null,
      },
    })
  },
)

describe('reasoning of a model that always reasons', () => {
  test('is an encrypted item before the answer, with a summary if one is asked for', async () => {
    const plain = await client().responses.create({ model: PRO, input: 'hello' })
    const shown = await client().responses.stream({ model: PRO, input: 'hello', reasoning: { summary: 'auto' } })
    const deltas: string[] = []
    shown.on('response.reasoning_summary_text.delta', ({ delta }) => void deltas.push(delta))
    const streamed = await shown.finalResponse()

    expect(plain.output).toMatchObject([
      { type: 'reasoning', summary: [], encrypted_content: expect.any(String) },
      { type: 'message' },
    ])
    expect(plain.usage?.output_tokens_details.reasoning_tokens).toBeGreaterThan(0)
    expect(streamed.output[0]).toMatchObject({ type: 'reasoning', summary: [{ text: deltas.join('') }] })
    expect(deltas.length).toBeGreaterThan(1)
  })

  test('comes back by its id, before what followed it, with the same key and model', async () => {
    const tools = [LOOK]
    const first = await client().responses.create({ model: PRO, input: [question], tools, store: false })
    const [reasoning, call] = first.output as unknown as [ResponseInputItem.FunctionCallOutput, { call_id: string }]
    const output: ResponseInputItem = { type: 'function_call_output', call_id: call.call_id, output: 'seen' }
    const asked = (items: unknown[], key?: string, model = PRO): Promise<unknown> =>
      client(key).responses.create({ model, tools, input: [question, ...(items as ResponseInputItem[]), output] })

    expect(await asked([reasoning, call])).toMatchObject({ output_text: 'The tools answered: seen' })
    const invalid = { status: 400, error: { code: 'invalid_encrypted_content' } }
    expect(await refusal(asked([{ ...reasoning, id: 'rs_other' }, call]))).toMatchObject(invalid)
    expect(await refusal(asked([reasoning, call], 'sk-another'))).toMatchObject(invalid)
    expect(await refusal(asked([reasoning, call], 'sk-test', 'gpt-5.5-pro'))).toMatchObject(invalid)
    expect(await refusal(asked([call, reasoning]))).toMatchObject({
      status: 400,
      error: { message: expect.stringContaining('without its required following item'), param: 'input' },
    })
    expect(await refusal(asked([]))).toMatchObject({
      status: 400,
      error: { message: expect.stringContaining('No tool call found') },
    })
  })
})

test('fields of chat completions, and sampling of a model that reasons, are refused by name', async () => {
  const asked = (fields: object): Promise<unknown> =>
    client().responses.create({ model: PRO, input: 'hi', ...fields } as never)

  for (const field of ['stop', 'messages', 'max_completion_tokens', 'response_format', 'n'])
    expect(await refusal(asked({ [field]: 1 }))).toMatchObject({ status: 400, error: { param: field } })
  expect(await refusal(asked({ temperature: 1 }))).toMatchObject({ status: 400, error: { param: 'temperature' } })
})

test('a search is an item of its own and gives the sources of the text, and logprobs come if asked for', async () => {
  const response = await client().responses.create({
    model: 'gpt-5.4',
    input: 'hello',
    tools: [{ type: 'web_search' }],
    include: ['message.output_text.logprobs'],
  })
  const [search, message] = response.output

  expect(search).toMatchObject({ type: 'web_search_call', action: { type: 'search' } })
  expect(message).toMatchObject({
    content: [{ annotations: [{ type: 'url_citation' }], logprobs: [{ token: 'You' }, { token: ' said:' }, {}] }],
  })
  expect(response).toMatchObject({ tool_usage: { web_search: { num_requests: 1 } } })
})
