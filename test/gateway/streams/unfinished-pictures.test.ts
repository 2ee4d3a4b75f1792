import { describe, expect, test } from 'vitest'
import { gemini } from '../../../src/vendors/gemini/gemini.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { rawPost } from '../../support/raw-caller.ts'
import { gatewayBeforeVendor } from '../models/gateway-before-vendor.ts'
import { eventStream } from './answering-vendor.ts'

const bench = gatewayBeforeVendor()

describe('images', () => {
  const completed = `event: image_generation.completed\ndata: ${JSON.stringify({
    type: 'image_generation.completed',
    b64_json: 'aGk=',
    usage: { input_tokens: 10, output_tokens: 4_160, input_tokens_details: { image_tokens: 0 } },
  })}\n\n`
  const request = { model: 'gp-image-2', prompt: 'A harbour', n: 3, quality: 'high', size: '1024x1024', stream: true }

  test('are charged as generated if a stream with n = 3 is left in the middle (4,160 tokens before, now 12,480)', async () => {
    await bench.start(
      (response) => {
        eventStream(response)
        response.write(completed)
      },
      (baseURL) => ({ vendors: [openai({ apiKey: 'key', baseURL })] }),
    )
    const caller = rawPost(bench.started.url, '/v1/images/generations', request)
    await caller.received('b64_json')
    const ending = bench.started.nextEnded()
    caller.leave()

    expect(await ending).toMatchObject({ ending: 'abandoned', usage: { images: 3, outputImageTokens: 3 * 4_160 } })
  })

  test('are charged as far as they came if the vendor does not finish them', async () => {
    await bench.start(
      (response) => {
        eventStream(response)
        response.write(completed, () => response.socket?.resetAndDestroy())
      },
      (baseURL) => ({ vendors: [openai({ apiKey: 'key', baseURL })] }),
    )
    const response = await bench.started.post('/v1/images/generations', request)
    await response.text()

    expect((await bench.started.ended(response)).usage).toMatchObject({ images: 1, outputImageTokens: 4_160 })
  })

  test('charge the text if they are blocked after it was streamed (8,200 tokens free before)', async () => {
    const event = (value: object): string => `data: ${JSON.stringify(value)}\n\n`
    const usageMetadata = { promptTokenCount: 12, candidatesTokenCount: 8_200, totalTokenCount: 8_212 }
    await bench.start(
      (response) => {
        eventStream(response)
        response.write(event({ candidates: [{ content: { role: 'model', parts: [{ text: 'A long story. ' }] } }] }))
        response.end(event({ candidates: [{ content: { parts: [] }, finishReason: 'IMAGE_SAFETY' }], usageMetadata }))
      },
      (baseURL) => ({ vendors: [gemini({ apiKey: 'key', baseURL, images: 'generateContent' })] }),
    )
    const body = { model: 'gmn-2.5-flash-image', input: 'A harbour, and tell me of it.', stream: true }
    const response = await bench.started.post('/v1/images/generations', body)
    await response.text()
    const ended = await bench.started.ended(response)

    expect(ended.usage).toMatchObject({ inputTokens: 12, outputTokens: 8_200, images: 0 })
    expect(ended.costNanoDollars).toBeGreaterThan(0n)
  })
})
