import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'

/** The fields that are known by name, without the index signature that lets others pass. */
type Named<Fields> = { [Name in keyof Fields as string extends Name ? never : Name]: Fields[Name] }

/** A chat request but for the model and whether it streams (API specification, "Chat completion request"). */
export type ChatFields = Omit<Named<ChatRequest>, 'model' | 'stream'>

/** A row of {@link ChatModels}. */
export interface ChatModel<Request = ChatFields> {
  readonly request: Request
}

/** Chat models with narrowed requests. Add your own: `declare module 'signalbox/client' { interface ChatModels { … } }`. */
export interface ChatModels {
  'cl-opus-4-7': ChatModel
  'cl-sonnet-4-6': ChatModel
  'gmn-2.5-pro': ChatModel
  'gmn-2.5-flash': ChatModel
}

/** A request to a chat model outside {@link ChatModels}. */
export type OtherChatRequest = ChatFields & { readonly [field: string]: unknown }
