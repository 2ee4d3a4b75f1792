import type { MessagesOperation } from '../vendor.ts'
import type { MessagesAddress } from './chat-to-wire.ts'
import { messagesStreamError } from './error-from.ts'
import { relayMessageBody, relayTokenCount } from './messages-relay-body.ts'
import { messagesRelayRequest } from './messages-relay-request.ts'
import { MessagesStreamRelay } from './messages-stream-relay.ts'

/** Messages for callers who speak the vendor's own dialect (Anthropic, Messages reference and "Token counting"). */
export function messagesRelay(address: MessagesAddress, apiKeys: readonly string[]): MessagesOperation {
  const countAddress = { ...address, path: `${address.path}/count_tokens` }
  return {
    toWire: (call) => messagesRelayRequest(call, address),
    fromWire: relayMessageBody,
    stream: (call) => new MessagesStreamRelay(call, (event) => messagesStreamError(event, apiKeys)),
    tokenCount: {
      toWire: (call) => messagesRelayRequest(call, countAddress),
      fromWire: relayTokenCount,
    },
  }
}
