import type { OpenAnswer } from './connection.ts'
import { type EventStream, eventStream } from './event-stream.ts'
import type { Message, MessageBlock, MessageUsage, StopReason } from './message-types.ts'

/** A piece of a block (Anthropic API, "Streaming messages"). */
export type MessageDelta =
  | { readonly type: 'text_delta'; readonly text: string }
  | { readonly type: 'input_json_delta'; readonly partial_json: string }
  | { readonly type: 'thinking_delta'; readonly thinking: string }
  | { readonly type: 'signature_delta'; readonly signature: string }

/** An event of a streamed message. Vendors may send other types and deltas; pass over what you do not know. */
export type MessageEvent =
  | { readonly type: 'message_start'; readonly message: Message }
  | { readonly type: 'content_block_start'; readonly index: number; readonly content_block: MessageBlock }
  | { readonly type: 'content_block_delta'; readonly index: number; readonly delta: MessageDelta }
  | { readonly type: 'content_block_stop'; readonly index: number }
  | {
      readonly type: 'message_delta'
      readonly delta: { readonly stop_reason: StopReason | null; readonly stop_sequence: string | null }
      /** Totals so far, not additions. */
      readonly usage: Partial<MessageUsage>
    }
  | { readonly type: 'message_stop' }
  | { readonly type: 'ping' }

/** A streamed message: iterate it once. Leaving the loop, or `abort`, ends the call at the vendor too. */
export type MessageStream = EventStream<MessageEvent>

/** Reads a streamed message, which ends with `message_stop`. */
export function messageStream(answer: OpenAnswer): MessageStream {
  return eventStream<MessageEvent>(answer, {
    isEnd: ({ event }) => event === 'message_stop',
    givesEnd: true,
    isError: (event) => (event.type as string) === 'error',
  })
}
