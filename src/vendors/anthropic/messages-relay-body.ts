import { Buffer } from 'node:buffer'
import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import type { MessagesRequest } from '../../endpoints/messages/messages-request.ts'
import { joinChunks, replaceTopLevelString } from '../shared/json-bytes.ts'
import type { RelayedBody, VendorCall } from '../vendor.ts'
import { usageFrom } from './usage-from.ts'

/** Passes a whole message on: the vendor's bytes with only the value of `model` replaced. Undefined when it is no message. */
export function relayMessageBody(
  chunks: readonly Uint8Array[],
  call: VendorCall<MessagesRequest>,
): RelayedBody | undefined {
  const bytes = joinChunks(chunks)
  const message = parseVendorJson(bytes.toString('utf8'))
  if (!isJsonObject(message) || message['type'] !== 'message' || !Array.isArray(message['content'])) return undefined
  const usage = usageFrom(message['usage'])
  const { model } = message
  const { publicModel } = call
  const renamed = typeof model === 'string' ? replaceTopLevelString(bytes, 'model', model, publicModel) : undefined
  return { chunks: [renamed ?? Buffer.from(JSON.stringify({ ...message, model: publicModel }))], usage }
}

/** Passes a count of tokens on as it is. Undefined when it holds none. */
export function relayTokenCount(chunks: readonly Uint8Array[]): RelayedBody | undefined {
  const count = parseVendorJson(joinChunks(chunks).toString('utf8'))
  return isJsonObject(count) && typeof count['input_tokens'] === 'number' ? { chunks, usage: undefined } : undefined
}
