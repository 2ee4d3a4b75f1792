import type { ChatMessage } from '../chat/chat-request.ts'
import { peekReasoning } from './reasoning-envelope.ts'
import { inputItems, type ResponsesRequest } from './responses-request.ts'

/** The reasoning in a request, for vendors that look for their own. */
export class ResponsesConversation {
  readonly model: string
  readonly #request: ResponsesRequest

  constructor(request: ResponsesRequest) {
    this.model = request.model
    this.#request = request
  }

  /** A message of the chat dialect for each item that carries a vendor's state. */
  get messages(): readonly ChatMessage[] {
    return inputItems(this.#request).flatMap((item): ChatMessage[] => {
      const state = peekReasoning(item['encrypted_content'])
      if (state === undefined) return []
      const calls = Object.entries(state.calls ?? {}).map(([id, extra]) => ({
        id,
        type: 'function' as const,
        function: { name: '', arguments: '' },
        extra_content: extra,
      }))
      return [{ role: 'assistant', thinking_blocks: [...(state.blocks ?? [])], tool_calls: calls }]
    })
  }
}
