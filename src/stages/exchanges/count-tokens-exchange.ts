import type { MessagesCall } from '../../endpoints/messages/messages-call.ts'
import { estimateMessageTokens } from '../../endpoints/messages/messages-estimate.ts'
import type { MessagesRequest } from '../../endpoints/messages/messages-request.ts'
import type { RelayedBody, TokenCountOperation, Vendor, VendorCall } from '../../vendors/vendor.ts'
import { joinChunks } from '../../wire/join-chunks.ts'
import { droppedByTranslation, translatedCall } from './messages-translation.ts'
import type { VendorExchange } from './vendor-exchange.ts'

/**
 * The count of a request's tokens: by the vendor where it counts, else estimated without asking anybody. An estimate says so in
 * a member `estimated`, which clients of the dialect pass over.
 * @param call The call as it came, with the pictures that were fetched for this vendor.
 * @throws GatewayError `unsupported_parameter` or `invalid_request` naming what cannot be translated.
 */
export function countTokensExchange(
  vendor: Vendor,
  asked: VendorCall<MessagesRequest>,
  call: VendorCall<MessagesCall>,
): VendorExchange | undefined {
  const { messages, tokenCount, chat } = vendor
  if (messages !== undefined) {
    return {
      requests: [messages.tokenCount.toWire(asked)],
      whole: ([answer]) => (answer === undefined ? undefined : messages.tokenCount.fromWire(answer.chunks)),
      stream: neverStreams,
    }
  }
  if (chat === undefined) return undefined
  if (tokenCount !== undefined) return counted(tokenCount, asked, call)
  return {
    requests: [],
    whole: () => bodyOf({ input_tokens: estimateMessageTokens(asked.request), estimated: true }),
    stream: neverStreams,
  }
}

function counted(
  operation: TokenCountOperation,
  asked: VendorCall<MessagesRequest>,
  call: VendorCall<MessagesCall>,
): VendorExchange {
  const { chatCall, dropped } = translatedCall(asked, call)
  const wire = operation.toWire(chatCall)
  return {
    requests: [{ ...wire, dropped: droppedByTranslation(dropped, wire.dropped) }],
    whole([answer]) {
      if (answer === undefined) return undefined
      const tokens = operation.fromWire({ ...answer, body: joinChunks(answer.chunks) })
      return tokens === undefined ? undefined : bodyOf({ input_tokens: tokens })
    },
    stream: neverStreams,
  }
}

function bodyOf(count: { readonly input_tokens: number; readonly estimated?: true }): RelayedBody {
  return { chunks: [Buffer.from(JSON.stringify(count))], usage: undefined }
}

function neverStreams(): never {
  throw new TypeError('counts are never streamed')
}
