import type { GeminiChatAliases, GeminiListedChats } from '../../catalog/models/model-aliases.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { ChatContentPart, ChatMessage, ChatTool } from '../chat-types.ts'

/** Fields that are known by name, without the index signature that allows other fields. */
type Named<Fields> = { [Name in keyof Fields as string extends Name ? never : Name]: Fields[Name] }

/** Chat request without the model and `stream` (API specification, "Chat completion request"). */
export type ChatFields = Omit<Named<ChatRequest>, 'model' | 'stream' | 'messages' | 'tools'> & {
  /** Messages; at least one. */
  messages: ChatMessage[]
  tools?: ChatTool[] | null
}

/** A row of {@link ChatModels}. */
export interface ChatModel<Request = ChatFields> {
  readonly request: Request
}

/** Chat request to a model that returns only one answer. */
export type OneAnswerChatFields = Omit<ChatFields, 'n'> & { readonly n?: 1 | null }

/** Chat request to a model of OpenAI, with fields that other vendors do not have (OpenAI API, "Create chat completion"). */
export interface OpenAIChatFields extends ChatFields {
  /** Length of the answer. Default `medium`. */
  readonly verbosity?: 'low' | 'medium' | 'high' | null
  /** Text that the answer will mostly repeat, such as a file to edit. */
  readonly prediction?: { readonly type: 'content'; readonly content: string | readonly ChatContentPart[] } | null
  /** Output types. Audio requires a model that supports it and a configured price. */
  readonly modalities?: readonly ('text' | 'audio')[] | null
  /** Moderates prompt and answer in the same call. */
  readonly moderation?: { readonly model: string; readonly policy?: Readonly<Record<string, unknown>> | null } | null
  readonly prompt_cache_key?: string | null
  readonly prompt_cache_options?: { readonly mode?: 'implicit' | 'explicit'; readonly ttl?: '30m' }
  readonly prompt_cache_retention?: 'in_memory' | '24h' | null
  readonly safety_identifier?: string | null
  /** Up to 16 pairs. */
  readonly metadata?: Readonly<Record<string, string>> | null
  readonly store?: boolean | null
  /** Service tier. `priority`, `scale` and `fast` cost extra and require a price set by the operator. */
  readonly service_tier?: 'auto' | 'default' | 'flex' | 'scale' | 'priority' | 'fast' | null
  /** Web search. It costs extra and requires a price set by the operator. */
  readonly web_search_options?: Readonly<Record<string, unknown>>
}

/** Models that need no row in the gateway, by the vendors' own ids. */
export interface ListedChatModels extends GeminiListedChats<ChatModel> {
  'gpt-6.2-astra': ChatModel<OpenAIChatFields>
  'gpt-6.2-sol': ChatModel<OpenAIChatFields>
  'gpt-6.1-sol': ChatModel<OpenAIChatFields>
  'gpt-6.1-terra': ChatModel<OpenAIChatFields>
  'gpt-6-astra': ChatModel<OpenAIChatFields>
  'gpt-6-sol': ChatModel<OpenAIChatFields>
  'gpt-6-luna': ChatModel<OpenAIChatFields>
  'gpt-5.6-sol': ChatModel<OpenAIChatFields>
  'gpt-5.6-terra': ChatModel<OpenAIChatFields>
  'gpt-5.6-luna': ChatModel<OpenAIChatFields>
  'gpt-5.5': ChatModel<OpenAIChatFields>
  'gpt-5.4': ChatModel<OpenAIChatFields>
  'gpt-5.4-mini': ChatModel<OpenAIChatFields>
  'gpt-5.4-nano': ChatModel<OpenAIChatFields>
  'gpt-5.2': ChatModel<OpenAIChatFields>
  'gpt-5.1': ChatModel<OpenAIChatFields>
  'gpt-5': ChatModel<OpenAIChatFields>
  'gpt-5-mini': ChatModel<OpenAIChatFields>
  'gpt-5-nano': ChatModel<OpenAIChatFields>
  'gpt-4.1': ChatModel<OpenAIChatFields>
  'gpt-4.1-mini': ChatModel<OpenAIChatFields>
  'gpt-4.1-nano': ChatModel<OpenAIChatFields>
  'gpt-4o': ChatModel<OpenAIChatFields>
  'gpt-4o-mini': ChatModel<OpenAIChatFields>
  o3: ChatModel<OpenAIChatFields>
  'o4-mini': ChatModel<OpenAIChatFields>
  'claude-opus-5-5': ChatModel<OneAnswerChatFields>
  'claude-sonnet-5-5': ChatModel<OneAnswerChatFields>
  'claude-haiku-5-5': ChatModel<OneAnswerChatFields>
  'claude-opus-5': ChatModel<OneAnswerChatFields>
  'claude-opus-4-8': ChatModel<OneAnswerChatFields>
  'claude-opus-4-6': ChatModel<OneAnswerChatFields>
  'claude-opus-4-5': ChatModel<OneAnswerChatFields>
  'claude-sonnet-5': ChatModel<OneAnswerChatFields>
  'claude-sonnet-4-5': ChatModel<OneAnswerChatFields>
  'claude-haiku-4-5': ChatModel<OneAnswerChatFields>
}

/**
 * Chat models with narrowed requests, by their ids and aliases. Add your own: `declare module 'signalbox/client' { interface
 * ChatModels { … } }`.
 */
export interface ChatModels extends GeminiChatAliases<ChatModel>, ListedChatModels {
  'cl-opus-4-7': ChatModel<OneAnswerChatFields>
  'cl-sonnet-4-6': ChatModel<OneAnswerChatFields>
  'gmn-2.5-pro': ChatModel
  'gmn-2.5-flash': ChatModel
  'claude-opus-4-7': ChatModels['cl-opus-4-7']
  'claude-sonnet-4-6': ChatModels['cl-sonnet-4-6']
}

/** A request to a chat model outside {@link ChatModels}. */
export type OtherChatRequest = ChatFields & { readonly [field: string]: unknown }
