import { GatewayError } from '../../core/errors.ts'
import { isJsonObject } from '../../core/json.ts'
import { CARRIED_MARK, isCarriedSignature } from '../../endpoints/messages/carried-state.ts'
import type { MessageParam, MessagesRequest } from '../../endpoints/messages/messages-request.ts'
import { asBuffer, replaceTopLevelString } from '../shared/json-bytes.ts'
import type { VendorCall, WireRequest } from '../vendor.ts'
import type { MessagesAddress } from './chat-to-wire.ts'

/** Headers of the dialect that callers may set; others, such as the choice of a workspace, are the operator's. */
const PRINTABLE = /^[\t\x20-\x7e]*$/

/**
 * Sends a Messages request on: the caller's own bytes with only the value of `model` replaced, and the headers that say which
 * version and features they are written for (Anthropic, "API versioning" and "Beta headers"). Thinking blocks that carry
 * another vendor's state are taken out, because nobody can check their signatures here.
 * @throws GatewayError `invalid_request` for a header that cannot be passed on.
 */
export function messagesRelayRequest(call: VendorCall<MessagesRequest>, address: MessagesAddress): WireRequest {
  const version = callerHeader(call, 'anthropic-version') ?? address.version
  const beta = callerHeader(call, 'anthropic-beta')
  const own = withoutCarriedBlocks(call)
  return {
    path: address.path,
    headers: [
      'x-api-key',
      call.apiKey,
      'anthropic-version',
      version,
      ...(beta === undefined ? [] : ['anthropic-beta', beta]),
      'content-type',
      'application/json',
      'accept',
      call.stream ? 'text/event-stream' : 'application/json',
      'accept-encoding',
      'identity',
    ],
    body: own === undefined ? relayedBody(call) : JSON.stringify({ ...own, model: call.model.upstream }),
    dropped: own === undefined ? [] : ['messages.thinking'],
  }
}

function relayedBody({ bytes, request, model }: VendorCall<MessagesRequest>): Uint8Array | string {
  const edited =
    bytes === undefined ? undefined : replaceTopLevelString(asBuffer(bytes), 'model', request.model, model.upstream)
  return edited ?? JSON.stringify({ ...request, model: model.upstream })
}

function callerHeader(call: VendorCall<MessagesRequest>, name: string): string | undefined {
  const value = call.header?.(name)?.trim()
  if (value === undefined || value === '') return undefined
  if (!PRINTABLE.test(value)) {
    throw new GatewayError('invalid_request', { message: `${name}: holds characters that no header may have` })
  }
  return value
}

/** The request without such blocks; undefined when it has none, which is told from its bytes. */
function withoutCarriedBlocks({ bytes, request }: VendorCall<MessagesRequest>): MessagesRequest | undefined {
  if (bytes !== undefined && !asBuffer(bytes).includes(CARRIED_MARK)) return undefined
  if (!request.messages.some((message) => blocksOf(message).some(isCarried))) return undefined
  const messages = request.messages.flatMap((message): MessageParam[] => {
    const blocks = blocksOf(message)
    if (!blocks.some(isCarried)) return [message]
    const content = blocks.filter((block) => !isCarried(block)) as Exclude<MessageParam['content'], string>
    return content.length === 0 ? [] : [{ ...message, content }]
  })
  return { ...request, messages }
}

function blocksOf({ content }: MessageParam): readonly unknown[] {
  return typeof content === 'string' ? [] : content
}

function isCarried(block: unknown): boolean {
  return isJsonObject(block) && block['type'] === 'thinking' && isCarriedSignature(block['signature'])
}
