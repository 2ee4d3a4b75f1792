import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type StartedGateway, startGateway } from '../support/start-gateway.ts'
import { OPENAI_VERSIONS, openaiClient } from './support/openai-clients.ts'

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway()
})
afterAll(() => started.close())

describe.each(OPENAI_VERSIONS)('%s', (_name, OpenAI) => {
  test('lists every model of the gateway, page after page', async () => {
    const client = openaiClient(OpenAI, started.url)
    const ids: string[] = []

    for await (const model of client.models.list()) ids.push(model.id)

    expect(ids).toEqual(started.gateway.models().map((model) => model.id))
    expect(ids).toEqual(expect.arrayContaining(['chat-relayed', 'cl-sonnet-4-6', 'gmn-2.5-pro', 'vy-4']))
  })

  test('retrieves one model', async () => {
    const client = openaiClient(OpenAI, started.url)

    const model = await client.models.retrieve('gmn-2.5-pro')

    expect(model).toMatchObject({
      id: 'gmn-2.5-pro',
      object: 'model',
      owned_by: 'gemini',
      created: expect.any(Number),
    })
  })

  test('throws NotFoundError for a model that does not exist', async () => {
    const client = openaiClient(OpenAI, started.url)

    const failure = client.models.retrieve('no-such-model')

    await expect(failure).rejects.toBeInstanceOf(OpenAI.NotFoundError)
    await expect(failure).rejects.toMatchObject({ status: 404, code: 'model_not_found', param: 'model' })
  })
})
