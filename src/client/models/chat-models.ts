import type { GeminiChatAliases } from '../../catalog/models/model-aliases.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { ChatMessage, ChatTool } from '../chat-types.ts'

/** The fields that are known by name, without the index signature that lets others pass. */
type Named<Fields> = { [Name in keyof Fields as string extends Name ? never : Name]: Fields[Name] }

/** A chat request but for the model and whether it streams (API specification, "Chat completion request"). */
export type ChatFields = Omit<Named<ChatRequest>, 'model' | 'stream' | 'messages' | 'tools'> & {
  /** At least one. */
  messages: ChatMessage[]
  tools?: ChatTool[] | null
}

/** A row of {@link ChatModels}. */
export interface ChatModel<Request = ChatFields> {
  readonly request: Request
}

/** A chat request to a model that gives one answer only. */
export type OneAnswerChatFields = Omit<ChatFields, 'n'> & { readonly n?: 1 | null }

/**
 * Chat models with narrowed requests, under their ids and aliases. Add your own: `declare module 'signalbox/client' { interface
 * ChatModels { … } }`.
 */
export interface ChatModels extends GeminiChatAliases<ChatModel> {
  'cl-opus-4-7': ChatModel<OneAnswerChatFields>
  'cl-sonnet-4-6': ChatModel<OneAnswerChatFields>
  'gmn-2.5-pro': ChatModel
  'gmn-2.5-flash': ChatModel
  'claude-opus-4-7': ChatModels['cl-opus-4-7']
  'claude-sonnet-4-6': ChatModels['cl-sonnet-4-6']
}

/** A request to a chat model outside {@link ChatModels}. */
export type OtherChatRequest = ChatFields & { readonly [field: string]: unknown }
