import { expect, test } from 'vitest'
import { createEmbeddingsOperation } from '../../../src/endpoints/embeddings/embeddings-endpoint.ts'
import type { EmbeddingsRequest } from '../../../src/endpoints/embeddings/embeddings-request.ts'
import { amazonBedrock } from '../../../src/vendors/amazon-bedrock/amazon-bedrock.ts'
import { callFromRequest } from '../../vendors/shared/vendor-call.ts'

const { embeddings } = amazonBedrock({ region: 'us-east-1', apiKey: 'bedrock-key-0123456789' })

/** Makes the calls to a model that embeds one text per call. */
const callsFor = (texts: number) => {
  const input = new Array<string>(texts).fill('one')
  const call = callFromRequest<EmbeddingsRequest>({ model: 'm', input }, { upstream: 'amazon.titan-embed-text-v2:0' })
  return createEmbeddingsOperation(embeddings!, call).requests
}

test('splits a list into at most 512 vendor calls and rejects a longer one with 400 that names input', () => {
  expect(callsFor(512)).toHaveLength(512)
  expect(() => callsFor(513)).toThrow(
    expect.objectContaining({
      status: 400,
      code: 'invalid_request',
      param: 'input',
      message: expect.stringContaining('513 calls'),
    }),
  )
})
