import Anthropic from '@anthropic-ai/sdk'
import { beforeEach, describe, expect, test } from 'vitest'
import { batchSandbox } from './support/batch-sandbox.ts'

const vendor = batchSandbox()
const client = (apiKey = 'sk-ant-test'): Anthropic => new Anthropic({ apiKey, baseURL: vendor.origin, maxRetries: 0 })

beforeEach(() => vendor.sandbox.reset())

const request = (customId: string, content: string): Anthropic.Messages.BatchCreateParams.Request => ({
  custom_id: customId,
  params: { model: 'claude-sonnet-4-6', max_tokens: 50, messages: [{ role: 'user', content }] },
})

async function resultsOf(id: string): Promise<Anthropic.Messages.MessageBatchIndividualResponse[]> {
  const results: Anthropic.Messages.MessageBatchIndividualResponse[] = []
  for await (const result of await client().messages.batches.results(id)) results.push(result)
  return results
}

describe('the Anthropic SDK against the batches of the Anthropic stand-in', () => {
  test('gets the messages of single calls, as scripted and in another order, once the clock has moved', async () => {
    vendor.sandbox.reply({ when: { text: 'rain' }, text: 'It rains.', usage: { inputTokens: 7, outputTokens: 3 } })
    const requests = [request('a', 'Hello'), request('b', 'Will it rain?'), request('c', '[[fault:status=529]]')]
    const begun = await client().messages.batches.create({ requests })
    vendor.clock.advance(1_500)
    const running = await client().messages.batches.retrieve(begun.id)
    vendor.clock.advance(1_500)
    const ended = await client().messages.batches.retrieve(begun.id)

    expect([begun, running, ended].map((batch) => batch.processing_status)).toEqual([
      'in_progress',
      'in_progress',
      'ended',
    ])
    expect(running).toMatchObject({ request_counts: { processing: 3, succeeded: 0 }, results_url: null })
    expect(ended).toMatchObject({
      request_counts: { processing: 0, succeeded: 2, errored: 1, canceled: 0, expired: 0 },
      results_url: `${vendor.origin}/v1/messages/batches/${begun.id}/results`,
    })
    expect(await resultsOf(begun.id)).toMatchObject([
      { custom_id: 'c', result: { type: 'errored', error: { type: 'error', error: { type: 'overloaded_error' } } } },
      {
        custom_id: 'b',
        result: {
          type: 'succeeded',
          message: { content: [{ text: 'It rains.' }], usage: { input_tokens: 7, output_tokens: 3 } },
        },
      },
      { custom_id: 'a', result: { type: 'succeeded', message: { content: [{ text: 'You said: Hello' }] } } },
    ])
    expect(vendor.sandbox.requests.filter(({ batchId }) => batchId === begun.id)).toMatchObject([
      { vendor: 'anthropic', operation: 'chat', model: 'claude-sonnet-4-6', path: '/v1/messages' },
      {},
      {},
    ])
  })

  test('cancelling keeps what was answered before; a batch is deleted after its end only', async () => {
    const { batches } = client().messages
    const { id } = await batches.create({ requests: [request('a', 'one'), request('b', 'two')] })
    vendor.clock.advance(2_000)
    const canceling = await batches.cancel(id)
    await expect(batches.delete(id)).rejects.toMatchObject({ status: 400 })
    vendor.clock.advance(1_000)

    expect(canceling).toMatchObject({ processing_status: 'canceling', cancel_initiated_at: expect.any(String) })
    expect((await resultsOf(id)).map(({ custom_id: customId, result }) => [customId, result.type])).toEqual([
      ['b', 'canceled'],
      ['a', 'succeeded'],
    ])
    await expect(batches.cancel(id)).rejects.toMatchObject({ status: 400 })
    expect(await batches.delete(id)).toEqual(expect.objectContaining({ id, type: 'message_batch_deleted' }))
    await expect(batches.retrieve(id)).rejects.toMatchObject({ status: 404 })
  })

  test('requests expire with their batch, and fail with it', async () => {
    const { batches } = client().messages
    const expired = await batches.create({ requests: [request('a', 'one'), request('b', '[[batch:expired]]')] })
    const failed = await batches.create({ requests: [request('a', 'one'), request('b', '[[batch:failed]]')] })
    vendor.clock.advance(3_000)

    expect((await resultsOf(expired.id)).map(({ result }) => result.type)).toEqual(['expired', 'succeeded'])
    expect((await resultsOf(failed.id)).map(({ result }) => result.type)).toEqual(['errored', 'errored'])
  })

  test.each([
    ['no requests', []],
    ['an id twice', [request('a', 'x'), request('a', 'y')]],
    ['an id with other characters', [request('a b', 'x')]],
  ])('refuses %s', async (_, requests) => {
    await expect(client().messages.batches.create({ requests })).rejects.toMatchObject({ status: 400 })
  })

  test('lists page by page, for the key that has submitted', async () => {
    const { batches } = client('sk-ant-lists').messages
    const ids: string[] = []
    for (const name of ['a', 'b', 'c']) ids.unshift((await batches.create({ requests: [request(name, name)] })).id)

    const listed: string[] = []
    for await (const batch of batches.list({ limit: 2 })) listed.push(batch.id)

    expect(listed).toEqual(ids)
    await expect(client('sk-ant-other').messages.batches.retrieve(ids[0]!)).rejects.toMatchObject({ status: 404 })
  })
})
