import { GatewayError } from '../../core/errors.ts'
import type { ChatMessage } from '../chat/chat-request.ts'
import { chatMessages } from './chat-messages.ts'
import type { MessagesRequest } from './messages-request.ts'

/** The turns of a Messages request in both dialects, for vendors that look for their own reasoning. */
export class MessagesConversation {
  readonly model: string
  /** The caller's original body. */
  readonly request: MessagesRequest
  #messages: readonly ChatMessage[] | undefined

  constructor(request: MessagesRequest) {
    this.model = request.model
    this.request = request
  }

  /**
   * The turns in the chat dialect, translated on demand. Empty if they cannot be translated: translating the whole request
   * reports the reason.
   */
  get messages(): readonly ChatMessage[] {
    this.#messages ??= this.#translated()
    return this.#messages
  }

  #translated(): readonly ChatMessage[] {
    try {
      return chatMessages(this.request, () => undefined)
    } catch (error) {
      if (GatewayError.isInstance(error)) return []
      throw error
    }
  }
}
