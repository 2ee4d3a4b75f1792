import { Anthropic as Anthropic1 } from '@anthropic-ai/sdk'
import { Anthropic as Anthropic0 } from 'anthropic0'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type StartedGateway, startGateway, TEST_KEY } from '../support/start-gateway.ts'

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway()
})
afterAll(() => started.close())

// Private members keep the two versions' types apart, though every call made here is the same.
const VERSIONS = [
  ['@anthropic-ai/sdk 0.137', Anthropic0 as unknown as typeof Anthropic1],
  ['@anthropic-ai/sdk 1', Anthropic1],
] as const

describe.each(VERSIONS)('%s', (_name, Anthropic) => {
  const connect = (apiKey = TEST_KEY): InstanceType<typeof Anthropic1> =>
    new Anthropic({ apiKey, baseURL: started.url, maxRetries: 0 })

  test('lists every model by x-api-key, and sees that there is no further page', async () => {
    const page = await connect().models.list()

    expect(page.data.map((model) => model.id)).toEqual(started.gateway.models().map((model) => model.id))
    expect(page.hasNextPage()).toBe(false)
  })

  test('reads what it shows of a model', async () => {
    const models = []
    for await (const model of connect().models.list()) models.push(model)

    const sonnet = models.find((model) => model.id === 'cl-sonnet-4-6')
    expect(sonnet).toMatchObject({ type: 'model', display_name: 'Claude Sonnet 4.6' })
    expect(Number.isNaN(Date.parse(sonnet?.created_at ?? ''))).toBe(false)
  })

  test('retrieves one model', async () => {
    const model = await connect().models.retrieve('cl-opus-4-7')

    expect(model).toMatchObject({ id: 'cl-opus-4-7', type: 'model', display_name: 'Claude Opus 4.7' })
    expect(model.created_at).toMatch(/^2026-04-16T/)
  })

  test('throws NotFoundError for a model that does not exist', async () => {
    await expect(connect().models.retrieve('no-such-model')).rejects.toBeInstanceOf(Anthropic.NotFoundError)
  })

  test('throws AuthenticationError for an unknown key', async () => {
    await expect(connect('sk-unknown').models.list()).rejects.toBeInstanceOf(Anthropic.AuthenticationError)
  })
})
