import { expect, test } from 'vitest'
import { chatEndpoint } from '../../src/endpoints/chat/chat-endpoint.ts'
import type { Endpoint } from '../../src/endpoints/endpoint.ts'
import { measureInput } from '../../src/pipeline/estimate.ts'

const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,QUJD' } }

/** A chat with images, each in a message of its own. */
const mediaOf = (images: number) => {
  const messages = Array.from({ length: images }, () => ({ role: 'user', content: [image] }))
  return measureInput(chatEndpoint as Endpoint, { body: { model: 'm', messages } as never, bytes: undefined }).media
}

test('measures up to 5,000 media of a request and rejects more with 400', () => {
  expect(mediaOf(5_000)).toHaveLength(5_000)
  expect(() => mediaOf(5_001)).toThrow(
    expect.objectContaining({ status: 400, code: 'invalid_request', message: expect.stringContaining('5,000 images') }),
  )
})
