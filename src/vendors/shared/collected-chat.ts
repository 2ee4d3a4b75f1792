import { GatewayError } from '../../core/errors.ts'
import { usedOf } from '../../core/usage.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { firstHeader, mediaType } from '../../wire/headers.ts'
import type { BrokenChat, ChatOperation, VendorCall, WireAnswer } from '../vendor.ts'
import { CompletionCollector } from './completion-collector.ts'
import { invalidResponse } from './invalid-response.ts'
import { OpenAIChatDecoder } from './openai-chat-decoder.ts'
import type { OpenAIChatDialect } from './openai-chat-dialect.ts'

/** Whether the caller requests a whole answer but the model only streams. The stream is then collected. */
export function isCollected({ stream, model, request }: VendorCall<ChatRequest>, dialect: OpenAIChatDialect): boolean {
  return !stream && dialect.streamsOnly?.(model.upstream, request) === true
}

/**
 * Returns the call for the stream.
 * @throws GatewayError `unsupported_parameter` for audio, which is not collected.
 */
export function collectedCall(call: VendorCall<ChatRequest>): VendorCall<ChatRequest> {
  const { modalities } = call.request
  if (Array.isArray(modalities) && modalities.includes('audio')) {
    const message = 'modalities: this model speaks in streams only'
    throw new GatewayError('unsupported_parameter', { message, param: 'modalities' })
  }
  return { ...call, request: { ...call.request, stream: true }, bytes: undefined, stream: true }
}

/** Whether the vendor answered with a stream. In a batch it does not. */
export function isEventStream({ headers }: Pick<WireAnswer, 'headers'>): boolean {
  return mediaType(firstHeader(headers, 'content-type')) === 'text/event-stream'
}

/** Reads a finished stream: the answer, or the reason why there is none. A stream without its end is not an answer. */
export function collectedChat(
  chunks: readonly Uint8Array[],
  call: VendorCall<ChatRequest>,
  dialect: OpenAIChatDialect,
): { readonly read: ReturnType<ChatOperation['fromWire']>; readonly broken: BrokenChat } {
  const collector = new CompletionCollector()
  const decoder = new OpenAIChatDecoder(call, collector, dialect)
  for (const chunk of chunks) decoder.push(chunk)
  decoder.end()
  const { usage, isComplete, failure = invalidResponse('The stream ended before its answer did.') } = decoder
  const completion = isComplete && decoder.failure === undefined ? collector.completion(call, usage) : undefined
  const used = usedOf(usage)
  const outputBytes = collector.textBytes
  // Output before the failure is billed like any other text.
  const isBilled = used === undefined && outputBytes > 0
  const told = { ...failure, status: 200, ...(isBilled ? { billedBytes: outputBytes } : {}) }
  return { read: completion && { completion, usage }, broken: { failure: told, usage: used, outputBytes } }
}
