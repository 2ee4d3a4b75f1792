import { Buffer } from 'node:buffer'
import { defineModel } from '../../../src/catalog/model.ts'
import { GEMINI_IMAGE_MODELS } from '../../../src/catalog/models/gemini-models.ts'
import type { InteractionRequest } from '../../../src/endpoints/images/interactions/interaction-request.ts'
import { type GeminiOptions, gemini } from '../../../src/vendors/gemini/gemini.ts'
import type { AnswerBody, ImageOperation, StreamTransform, VendorCall } from '../../../src/vendors/vendor.ts'
import { NOW_MS } from './gemini-call.ts'

/** Id of the gateway for an answer without a vendor id. */
export const FRESH_ID = 'v1_fresh-from-the-gateway'

/** Returns the operation under test. */
export function interactionsOf(options: GeminiOptions = {}): ImageOperation<InteractionRequest> {
  const operation = gemini({ apiKey: 'test-key-0001', ...options }).images?.interactions
  if (operation === undefined) throw new Error('the vendor makes no pictures')
  return operation
}

/** Returns a call for an image on gmn-3.1-flash-image-preview. */
export function interactionCall(
  fields: Partial<InteractionRequest> & Record<string, unknown> = {},
  options: { previousUpstreamId?: string; modelId?: string; upstream?: string; hasConversation?: boolean } = {},
): VendorCall<InteractionRequest> {
  const publicModel = options.modelId ?? 'gmn-3.1-flash-image-preview'
  const row = GEMINI_IMAGE_MODELS.find(({ id }) => id === publicModel)
  if (row === undefined) throw new Error(`no such model: ${publicModel}`)
  const conversation = { previousUpstreamId: options.previousUpstreamId, freshId: FRESH_ID }
  return {
    request: { model: publicModel, input: 'A paper crane', ...fields },
    bytes: undefined,
    model: defineModel({ ...row, ...(options.upstream === undefined ? {} : { upstream: options.upstream }) }),
    publicModel,
    apiKey: 'test-key-0001',
    stream: fields.stream === true,
    nowMs: NOW_MS,
    ...(options.hasConversation === false ? {} : { conversation }),
  }
}

/** Returns a JSON value as the chunks of a body. */
export function bodyChunks(value: unknown): Uint8Array[] {
  return [Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))]
}

/** Returns the text of a relayed body. */
export function relayedText(body: AnswerBody | undefined): string {
  if (body === undefined) throw new Error('the answer was not understood')
  return Buffer.concat(body.chunks).toString('utf8')
}

/** Feeds a stream to its end and returns the caller's output. */
export function feed(stream: StreamTransform, chunks: readonly Uint8Array[]): string {
  const given: Buffer[] = []
  for (const chunk of chunks) given.push(Buffer.from(stream.push(chunk) ?? ''))
  given.push(Buffer.from(stream.end() ?? ''))
  return Buffer.concat(given).toString('utf8')
}

/** Writes events like the vendor. */
export function events(...payloads: readonly Record<string, unknown>[]): string {
  return payloads
    .map((payload) => `event: ${String(payload['event_type'])}\ndata: ${JSON.stringify(payload)}\n\n`)
    .join('')
}
