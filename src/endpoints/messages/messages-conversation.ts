import { GatewayError } from '../../core/errors.ts'
import type { ChatMessage } from '../chat/chat-request.ts'
import { chatMessages } from './chat-messages.ts'
import type { MessagesRequest } from './messages-request.ts'

/** The turns of a Messages request in both dialects, for vendors that look for reasoning of their own in them. */
export class MessagesConversation {
  readonly model: string
  /** The caller's body, as it came. */
  readonly request: MessagesRequest

  constructor(request: MessagesRequest) {
    this.model = request.model
    this.request = request
  }

  /**
   * The turns as chat vendors read them, made when they are asked for. Empty when they cannot be translated: the translation
   * of the whole request tells the caller why.
   */
  get messages(): readonly ChatMessage[] {
    try {
      return chatMessages(this.request, () => undefined)
    } catch (error) {
      if (GatewayError.isInstance(error)) return []
      throw error
    }
  }
}
