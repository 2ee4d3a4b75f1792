import { GatewayError } from '../../core/errors.ts'
import type { ChatMessage } from '../chat/chat-request.ts'
import { chatMessages } from './chat-messages.ts'
import type { MessagesRequest } from './messages-request.ts'

/** What the caller of a Messages route wants: an answer, or the number of tokens that the request has. */
export type MessagesAim = 'message' | 'token_count'

/** A checked request of a Messages route. */
export class MessagesCall {
  readonly model: string
  readonly aim: MessagesAim
  /** The caller's body, as it came. */
  readonly request: MessagesRequest

  constructor(aim: MessagesAim, request: MessagesRequest) {
    this.model = request.model
    this.aim = aim
    this.request = request
  }

  /**
   * The conversation as chat vendors read it; made when it is asked for, because vendors that speak the dialect never do. A
   * copy of the call in which pictures were fetched holds its own. Empty when it cannot be translated: then there is nothing
   * to fetch, and the translation of the whole request tells the caller why.
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
