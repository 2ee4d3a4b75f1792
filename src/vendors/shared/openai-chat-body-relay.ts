import { Buffer } from 'node:buffer'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { RelayedBody, VendorCall } from '../vendor.ts'
import { joinChunks, replaceTopLevelString } from './json-bytes.ts'
import { readCompletion, type WireChoice, type WireCompletion } from './openai-chat-body.ts'
import { openaiFinishReason } from './openai-finish-reason.ts'
import { openaiUsage } from './openai-usage.ts'

/**
 * Relays a whole chat answer: the vendor's bytes with the model id replaced. It is written again only when the vendor
 * left out members that callers rely on (`refusal` and `logprobs`, null where unused) or made up a finish reason.
 */
export function relayChatBody(chunks: readonly Uint8Array[], call: VendorCall<ChatRequest>): RelayedBody | undefined {
  const bytes = joinChunks(chunks)
  const completion = readCompletion(bytes.toString('utf8'))
  if (completion === undefined) return undefined
  const usage = openaiUsage(completion['usage'])
  if (!completion.choices.every(isRegular)) return { chunks: [rewritten(completion, call)], usage }
  const vendorModel = completion['model']
  if (vendorModel === call.publicModel) return { chunks, usage }
  const renamed =
    typeof vendorModel === 'string' ? replaceTopLevelString(bytes, 'model', vendorModel, call.publicModel) : undefined
  return { chunks: [renamed ?? rewritten(completion, call)], usage }
}

function isRegular(choice: WireChoice): boolean {
  return (
    choice['logprobs'] !== undefined &&
    choice.message['refusal'] !== undefined &&
    openaiFinishReason(choice['finish_reason']) === choice['finish_reason']
  )
}

function rewritten(completion: WireCompletion, call: VendorCall<ChatRequest>): Buffer {
  const choices = completion.choices.map((choice) => ({
    ...choice,
    message: { ...choice.message, refusal: choice.message['refusal'] ?? null },
    logprobs: choice['logprobs'] ?? null,
    finish_reason: openaiFinishReason(choice['finish_reason']),
  }))
  return Buffer.from(JSON.stringify({ ...completion, model: call.publicModel, choices }))
}
