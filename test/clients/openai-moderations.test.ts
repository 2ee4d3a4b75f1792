import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type StartedGateway, startGateway } from '../support/start-gateway.ts'
import { OPENAI_VERSIONS, type OpenAIClient, openaiClient } from './support/openai-clients.ts'

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway()
})
afterAll(() => started.close())

describe.each(OPENAI_VERSIONS)('%s', (_name, OpenAI) => {
  let client: OpenAIClient

  beforeAll(() => {
    client = openaiClient(OpenAI, started.url)
  })

  test('moderates without naming a model', async () => {
    const answer = await client.moderations.create({ input: 'violence' })

    expect(answer.model).toBe('omni-moderation-latest')
    expect(answer.results).toHaveLength(1)
    expect(answer.results[0]).toMatchObject({ flagged: true, categories: { violence: true, hate: false } })
  })

  test('moderates several texts, and a text with an image', async () => {
    const model = 'omni-moderation-latest'
    const texts = await client.moderations.create({ model, input: ['calm', 'hate'] })
    const both = await client.moderations.create({
      model,
      input: [
        { type: 'text', text: 'look' },
        { type: 'image_url', image_url: { url: 'https://pictures.example/sexual.png' } },
      ],
    })

    expect(texts.results.map(({ flagged }) => flagged)).toEqual([false, true])
    expect(both.results.map(({ flagged }) => flagged)).toEqual([true])
    expect(both.results[0]?.category_applied_input_types.sexual).toEqual(['text', 'image'])
  })

  test('reads the error of a malformed input', async () => {
    await expect(client.moderations.create({ input: [] })).rejects.toMatchObject({ status: 400, param: 'input' })
  })
})
